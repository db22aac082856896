// What `bench` and `tune` do without a GPU: shapes, arithmetic, tables, JSON, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands/bench_command.h"
#include "cli/commands/product.h"
#include "cli/files/tensor_file.h"
#include "cli/reports/bench_report.h"
#include "tests/cli/run_cli.h"
#include "warpwright/device/cuda.h"
#include "warpwright/plan/tuning.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> parse(const std::string& text) {
  std::istringstream in(text);
  return parse_shapes(in, "shapes.txt");
}

std::string refusal_of(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& refusal) {
    return refusal.what();
  }
  return "";
}

TEST(Shapes, AreReadInBothSpellings) {
  EXPECT_EQ(parse("4096 7168 2048\n\n# a comment\n64x4096x7168  # decode\r\n\t1\t2\t3\n"),
            (std::vector<Shape>{{4096, 7168, 2048}, {64, 4096, 7168}, {1, 2, 3}}));
  EXPECT_EQ(parse("8X16X24"), (std::vector<Shape>{{8, 16, 24}}));
}

TEST(Shapes, BadLinesAreNamed) {
  for (const char* bad : {"12 13", "1 2 3 4", "0 1 1", "-1 2 3", "a b c", "1.5 2 3", "1 2 3k",
                          "99999999999 1 1", "2147479552 1 1"}) {
    const std::string text = refusal_of(std::string("1 2 3\n# fine\n") + bad + "\n4 5 6\n");
    EXPECT_NE(text.find("shapes.txt, line 3"), std::string::npos) << bad << ": " << text;
    EXPECT_NE(text.find(bad), std::string::npos) << text;
  }
  EXPECT_NE(refusal_of("# nothing\n").find("no shape"), std::string::npos);
  EXPECT_NE(refusal_of("").find("no shape"), std::string::npos);
}

TEST(Shapes, TheFourteenAreThere) {
  ASSERT_EQ(dense_shapes().size(), 14U);
  EXPECT_EQ(shape_name(dense_shapes()[5]), "4096x2112x7168");
  EXPECT_EQ(std::count(dense_shapes().begin(), dense_shapes().end(), Shape{16, 24576, 1536}), 1);
}

TEST(Shapes, SamplesStayInBoundsAndSpread) {
  constexpr std::uint64_t seed = 20261121;
  std::cout << "seed " << seed << "\n";
  for (const int step : {8, 16}) {
    const std::vector<Shape> shapes = sample_shapes(2000, seed, step);
    ASSERT_EQ(shapes.size(), 2000U);
    int few_rows = 0;
    int small_n = 0;
    for (const Shape& s : shapes) {
      ASSERT_GE(s.m, 1);
      ASSERT_LE(s.m, 16384);
      for (const std::int64_t extent : {s.n, s.k}) {
        ASSERT_GE(extent, 64);
        ASSERT_LE(extent, 16384);
        ASSERT_EQ(extent % step, 0);
      }
      few_rows += s.m <= 128 ? 1 : 0;
      small_n += s.n <= 1024 ? 1 : 0;
    }
    // Half of M's and half of N's logarithmic range; evenly drawn numbers would give 16 and 117.
    EXPECT_NEAR(few_rows, 1000, 100);
    EXPECT_NEAR(small_n, 1000, 100);
    EXPECT_EQ(sample_shapes(2000, seed, step), shapes);
    EXPECT_NE(sample_shapes(2000, seed + 1, step), shapes);
  }
}

TEST(ProductTypes, Defaults) {
  EXPECT_EQ(types_name(parse_types({})), "bf16 to bf16");
  EXPECT_EQ(types_name(parse_types({"fp16", "", "", "fast"})), "fp16 to fp16");
  EXPECT_EQ(types_name(parse_types({"e4m3", "", "", "fast"})),
            "e4m3 to bf16, tensor scales, fast accumulation");
  const ProductTypes block = parse_types({"e4m3", "f32", "block", "fast"});
  EXPECT_EQ(types_name(block), "e4m3 to f32, block scales, promoted");
  EXPECT_EQ(block.step(), 16);
  EXPECT_EQ(parse_types({}).step(), 8);
  const GemmProblem p = problem_of(block, {3, 5, 7});
  EXPECT_EQ(p.m(), 3);
  EXPECT_EQ(p.n(), 5);
  EXPECT_EQ(p.k(), 7);
  EXPECT_EQ(p.a.dtype, DType::e4m3);
  EXPECT_EQ(p.d.dtype, DType::f32);
  EXPECT_EQ(p.scaling, Scaling::block);
}

TEST(ProductTypes, Refusals) {
  for (const TypeOptions& bad : std::vector<TypeOptions>{{"int8", "", "", "fast"},
                                                         {"bf16", "e4m3", "", "fast"},
                                                         {"bf16", "", "block", "fast"},
                                                         {"e4m3", "", "columns", "fast"},
                                                         {"e4m3", "", "", "slow"},
                                                         {"bf16", "", "", "promoted"}}) {
    EXPECT_THROW(parse_types(bad), InputError) << bad.dtype << " " << bad.scaling;
  }
}

bench::GemmTimes times(double ours, double config, double first, double best) {
  bench::GemmTimes t;
  t.problem = packed_problem(64, 4096, 7168, DType::bf16, DType::bf16);
  t.plan = "the_plan";
  t.config = config < ours ? "the_config" : "the_plan";
  t.ours = {ours, 0.99 * ours, 1.01 * ours};
  t.config_time = {config, config, config};
  t.first = bench::Timing{first, first, first};
  t.best = bench::Timing{best, best, best};
  t.offered = 7;
  t.best_index = 2;
  t.baseline = "cuBLASLt 13.1.0";
  t.checked_against = "cuBLASLt";
  t.relative_error = 0.25;
  t.rounds = 21;
  t.launches = 100;
  t.buffer_sets = 3;
  t.roof = bench::roof(t.problem, {});
  t.roof.memory_us = ours / 2;
  return t;
}

BenchRow dense_row(const Shape& shape, const std::optional<bench::GemmTimes>& of) {
  return {shape, {}, of, of ? "" : "the rows of A are 8 bytes apart"};
}

BenchRun example_dense_run() {
  BenchRun run;
  run.date = "2026-11-21T10:00:00Z";
  run.gpu = "NVIDIA H200";
  run.driver = "580.159";
  run.cuda = "13.0";
  run.cublaslt = "13.1.0";
  run.commit = "0123456789ab";
  run.command = "warpwright bench dense";
  run.seed = 7;
  bench::GemmTimes alone = times(4, 4, 1, 1);
  alone.first.reset();
  alone.best.reset();
  alone.baseline = "cuBLASLt has no algorithm for this product";
  run.sections = {{"",
                   "bf16 to bf16",
                   {dense_row({64, 4096, 7168}, times(10, 8, 20, 16)),
                    dense_row({8, 8, 8}, times(20, 20, 10, 10)), dense_row({1, 64, 64}, alone),
                    dense_row({2, 3, 4}, std::nullopt)}}};
  return run;
}

TEST(BenchReport, Roofs) {
  const DeviceFacts h200 = *known_facts("h200");
  GemmProblem p = packed_problem(8192, 8192, 8192, DType::bf16, DType::bf16);
  const bench::Roof wide = bench::roof(p, h200);
  EXPECT_EQ(wide.bound(), Bound::tensor_cores);
  EXPECT_NEAR(wide.us(), 2 * std::pow(8192.0, 3) / 989e6, 1e-3);
  p.a.dtype = p.b.dtype = DType::e4m3;
  EXPECT_NEAR(bench::roof(p, h200).us(), wide.us() / 2, 1e-3);
  const GemmProblem narrow = packed_problem(64, 4096, 7168, DType::bf16, DType::bf16);
  const bench::Roof few = bench::roof(narrow, h200);
  EXPECT_EQ(few.bound(), Bound::memory);
  EXPECT_NEAR(few.us(), 13.7, 0.05);  // the floor that the baselines name
  EXPECT_EQ(bench::roof(narrow, model_facts()).us(), 0);
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST(BenchReport, WhatALaunchTakesOfTheHost) {
  BenchRun run = example_dense_run();
  BenchSection& section = run.sections.front();
  EXPECT_EQ(table_summary(run, section).find("host:"), std::string::npos) << "nothing was measured";
  const std::vector<double> ours = {3.25, 2.75, 2.5};
  for (std::size_t i = 0; i < ours.size(); ++i) {
    section.rows[i].times->host = {{ours[i], ours[i], ours[i]}, {2.25, 2.25, 2.25}};
  }
  const std::string line =
      "host: a launch takes 2.75 us, that of an empty kernel 2.25 us (medians of 3 rows)\n";
  EXPECT_NE(table_summary(run, section).find(line), std::string::npos);
  EXPECT_NE(markdown(run).find("- " + line), std::string::npos);
  EXPECT_NE(json(run).find("\"host_empty\""), std::string::npos);
}

TEST(BenchReport, TheTableSaysEverything) {
  const BenchRun run = example_dense_run();
  const BenchSection& section = run.sections.front();
  const std::string heading = table_title(run) + table_heading(run, section);
  for (const char* word : {"NVIDIA H200", "580.159", "13.0", "13.1.0", "0123456789ab", "2026-11-21",
                           "bf16 to bf16", "/first", "/best", "roof"}) {
    EXPECT_NE(heading.find(word), std::string::npos) << word << "\n" << heading;
  }
  const std::string row = table_row(run, section.rows[0]);
  for (const char* word : {"64x4096x7168", "10.00", "1.0%", "8.00", "20.00", "16.00", "2.000",
                           "1.600", "50%", "the_plan; the_config"}) {
    EXPECT_NE(row.find(word), std::string::npos) << word << "\n" << row;
  }
  EXPECT_EQ(count_of(table_row(run, section.rows[2]), " - "), 5U)
      << table_row(run, section.rows[2]);
  EXPECT_NE(table_row(run, section.rows[3]).find("8 bytes apart"), std::string::npos);
  const std::string summary = table_summary(run, section);
  EXPECT_NE(summary.find("plan over first pick: geomean 1.000 of 2, worst 0.500 (8x8x8)"),
            std::string::npos)
      << summary;
  EXPECT_NE(summary.find("no baseline: cuBLASLt has no algorithm"), std::string::npos) << summary;
}

TEST(BenchReport, MarkdownRowsHaveEveryColumn) {
  const std::string text = markdown(example_dense_run());
  std::istringstream lines(text);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() != '|') continue;
    ++rows;
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 12) << line;
  }
  EXPECT_EQ(rows, 2 + 4);
  EXPECT_NE(text.find("`warpwright bench dense`"), std::string::npos);
  EXPECT_NE(text.find("| 64x4096x7168 | 10.00 (376) | 1.0% | the_config | 8.00 | 20.00 | 16.00 | "
                      "2.000 | 1.600 | 2.000 | 50% of HBM |"),
            std::string::npos)
      << text;
}

TEST(BenchReport, JsonHasItsSchema) {
  const nlohmann::json j = nlohmann::json::parse(json(example_dense_run()));
  EXPECT_EQ(j.at("format"), "warpwright-bench-1");
  for (const char* key : {"date", "gpu", "driver", "cuda", "cublaslt", "commit", "command"}) {
    EXPECT_TRUE(j.at(key).is_string()) << key;
    EXPECT_FALSE(j.at(key).get<std::string>().empty()) << key;
  }
  EXPECT_EQ(j.at("seed"), 7);
  EXPECT_EQ(j.at("dependent"), false);
  ASSERT_EQ(j.at("rows").size(), 4U);
  const nlohmann::json& row = j["rows"][0];
  EXPECT_EQ(row.at("m"), 64);
  EXPECT_EQ(row.at("ours").at("median_us"), 10);
  EXPECT_EQ(row.at("ours").at("low_us"), 9.9);
  EXPECT_EQ(row.at("config"), "the_config");
  EXPECT_EQ(row.at("first").at("median_us"), 20);
  EXPECT_EQ(row.at("plan_over_best"), 1.6);
  EXPECT_EQ(row.at("best_offer"), 3);
  EXPECT_EQ(row.at("bound"), "HBM");
  EXPECT_EQ(row.at("checked_against"), "cuBLASLt");
  EXPECT_EQ(row.at("plan_over_first"), 2);
  EXPECT_EQ(row.at("config_over_best"), 2);
  EXPECT_EQ(row.at("roof_share"), 0.5);
  // No baseline, no ratio.
  EXPECT_TRUE(j["rows"][2].at("plan_over_first").is_null());
  EXPECT_TRUE(j["rows"][2].at("config_over_best").is_null());
  EXPECT_TRUE(j["rows"][2].at("first").is_null());
  EXPECT_EQ(j["rows"][3].at("refusal"), "the rows of A are 8 bytes apart");
  EXPECT_FALSE(j["rows"][3].contains("ours"));
  EXPECT_NEAR(j.at("summary").at("plan_over_first").at("geomean").get<double>(), 1, 1e-12);
  EXPECT_EQ(j["summary"]["plan_over_first"]["rows"], 2);
  EXPECT_EQ(j["summary"]["plan_over_first"]["worst"], 0.5);
  EXPECT_EQ(j["summary"]["plan_over_first"]["worst_shape"], "8x8x8");
  BenchRun none = example_dense_run();
  none.sections.front().rows.clear();
  const nlohmann::json empty = nlohmann::json::parse(json(none));
  EXPECT_TRUE(empty["summary"]["plan_over_best"]["geomean"].is_null());
}

TEST(BenchCommand, Configs) {
  EXPECT_EQ(parse_configs("3"), 3);
  EXPECT_FALSE(parse_configs("all"));
  for (const char* bad : {"", "0", "-1", "some", "3x"}) {
    EXPECT_THROW(parse_configs(bad), InputError) << bad;
  }
}

// The plan keeps the contract; the configuration beside it need not, and splits K.
TEST(BenchCommand, BatchInvariantPlansBesideAnyConfiguration) {
  const auto facts = known_facts("h200");
  ASSERT_TRUE(facts);
  const GemmProblem problem = problem_of(ProductTypes{}, {1, 1024, 16384}, {});
  const auto plans = bench_plans(problem, *facts, {.batch_invariant = true}, 1);
  ASSERT_TRUE(plans) << plans.reason();
  ASSERT_EQ(plans->size(), 2U);
  EXPECT_NE((*plans)[0].reason.find("batch_invariant"), std::string::npos) << (*plans)[0].reason;
  EXPECT_EQ((*plans)[0].cluster_k, 1);
  EXPECT_EQ((*plans)[0].workspace_bytes, 0);
  EXPECT_EQ((*plans)[1].reason.find("batch_invariant"), std::string::npos) << (*plans)[1].reason;
  EXPECT_TRUE((*plans)[1].cluster_k > 1 || (*plans)[1].workspace_bytes > 0) << (*plans)[1].kernel;
}

// Clusters of more than two CTAs are tried when asked for.
TEST(BenchCommand, LargeClusters) {
  const auto facts = known_facts("h200");
  ASSERT_TRUE(facts);
  const GemmProblem problem = problem_of(ProductTypes{}, {2048, 2048, 2048}, {});
  for (const int most : {1, 2, 4, 16}) {
    MeasureOptions o;
    o.clusters = most;
    const auto plans = bench_plans(problem, *facts, measured_choices(o), {});
    ASSERT_TRUE(plans) << plans.reason();
    int largest = 0;
    for (const Plan& one : *plans) largest = std::max(largest, atom::cluster_size(one.cluster));
    EXPECT_EQ(largest, most);
  }
  for (const int bad : {0, 17}) {
    MeasureOptions o;
    o.clusters = bad;
    EXPECT_THROW(measured_choices(o), InputError) << bad;
  }
}

TEST(BenchCommand, BadInputIsASentence) {
  expect_refused({"bench"}, "required");
  expect_refused({"bench", "dense", "--dtype", "int8"}, "e4m3");
  expect_refused({"bench", "dense", "--configs", "0"}, "--configs");
  expect_refused({"bench", "dense", "--rounds", "0"}, "--rounds");
  expect_refused({"bench", "dense", "--sample", "0"}, "--sample");
  expect_refused({"bench", "dense", "--seed", "-1"}, "no integer");
  expect_refused({"bench", "dense", "--device", "model"}, "does not predict time");
  expect_refused({"bench", "dense", "--shapes", "/nowhere/shapes.txt"}, "/nowhere/shapes.txt");
  expect_refused({"bench", "dense", "--shapes", "a", "--sample", "3"}, "together");
  expect_refused({"bench", "dense", "--json", "/nowhere/x.json"}, "/nowhere/x.json");
}

TEST(BenchCommand, HelpSaysWhatItCosts) {
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"bench", "--help"}, {"bench", "dense", "--help"}, {"tune", "--help"}}) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("second"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("Examples"), std::string::npos) << r.out;
  }
}

TEST(TuneCommand, BadInputIsASentence) {
  expect_refused({"tune"}, "M N K");
  expect_refused({"tune", "64", "64"}, "M N K");
  expect_refused({"tune", "64", "64", "0"}, "K is 0");
  expect_refused({"tune", "64", "64", "64", "--shapes", "a"}, "together");
  expect_refused({"tune", "64", "64", "64", "--scaling", "block"}, "8 bits");
  expect_refused({"tune", "64", "64", "64", "--device", "model"}, "does not predict time");
}

TEST(BenchCommand, WithoutAGpuThereIsOneSentence) {
  if (!device::cuda_devices().empty()) GTEST_SKIP() << "there is a CUDA device here";
  const std::string reason = device::cuda_device(0).reason();
  expect_refused({"bench", "dense"}, reason);
  expect_refused({"bench", "dense", "--sample", "3", "--dtype", "e4m3"}, reason);
  expect_refused({"tune", "64", "64", "64"}, reason);
}

// A cache in a folder of its own, where the command line looks for it.
class TunedProduct : public testing::Test {
 protected:
  TunedProduct() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ww-tune-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    const char* before = std::getenv("XDG_CACHE_HOME");
    if (before != nullptr) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~TunedProduct() override {
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
    std::filesystem::remove_all(folder_);
  }

  std::string folder_;
  std::optional<std::string> before_;
};

TEST_F(TunedProduct, SaysWhereThePlanCameFrom) {
  const DeviceFacts h200 = *known_facts("h200");
  std::ostringstream err;
  GemmOptions options;
  options.random = {4096, 4096, 4096};
  const Product usual(options, h200, err);
  EXPECT_NE(usual.origin.find("by rule"), std::string::npos) << usual.origin;
  const GemmProblem& problem = usual.plan.problem;
  const auto all = candidates(problem, h200);
  ASSERT_TRUE(all) << all.reason();
  ASSERT_GT(all->size(), 1U);
  const Plan& other = all->back();
  TuningCache cache(TuningCache::default_path());
  ASSERT_FALSE(cache.store({{tuning_key(problem, h200), tuning_entry(other, 123.25)}}));
  const Product tuned(options, h200, err);
  EXPECT_NE(tuned.origin.find("123.25 us"), std::string::npos) << tuned.origin;
  EXPECT_NE(tuned.origin.find(folder_), std::string::npos) << tuned.origin;
  EXPECT_EQ(tuned.plan.cluster, other.cluster);
  GemmOptions untuned = options;
  untuned.no_tuning = true;
  const Product off(untuned, h200, err);
  EXPECT_EQ(off.plan.cluster, usual.plan.cluster);
  EXPECT_NE(off.origin.find("not used"), std::string::npos) << off.origin;
  EXPECT_EQ(err.str(), "");
  std::ofstream(TuningCache::default_path(), std::ios::app) << "scribble\n";
  const Product scribbled(options, h200, err);
  EXPECT_EQ(count_of(err.str(), "\n"), 1U) << err.str();
  EXPECT_NE(err.str().find("damaged"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace warpwright::cli
