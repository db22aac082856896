// What `bench grouped` does without a GPU: shapes, kinds, arithmetic, tables, JSON, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "cli/files/tensor_file.h"
#include "cli/reports/bench_report.h"
#include "tests/cli/run_cli.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> shapes_in(const std::string& text) {
  std::istringstream in(text);
  return parse_shapes(in, "shapes.txt", BenchKind::grouped);
}

TEST(GroupedShapes, AreReadWithComments) {
  EXPECT_EQ(shapes_in("8 16 4096 4096\n\n# none\n3 1,0,2 64 128  # a list\r\n\t4 skew:7\t8 16\n"),
            (std::vector<Shape>{
                {0, 4096, 4096, 8, "16"}, {0, 64, 128, 3, "1,0,2"}, {0, 8, 16, 4, "skew:7"}}));
}

TEST(GroupedShapes, BadLinesAreNamed) {
  for (const char* bad : {"8 16 4096", "8 16 4096 4096 1", "0 16 8 16", "8 16 0 16", "8 16 8 -1",
                          "x 16 8 16", "3 1,2 8 16", "8 much 8 16", "8 16 8 99999999999"}) {
    SCOPED_TRACE(bad);
    try {
      shapes_in(std::string("1 1 8 16\n") + bad + "\n");
      ADD_FAILURE() << "was taken";
    } catch (const InputError& refusal) {
      EXPECT_EQ(std::string(refusal.what()).rfind("shapes.txt, line 2: ", 0), 0U) << refusal.what();
    }
  }
  EXPECT_THROW(shapes_in("# nothing\n"), InputError);
}

TEST(GroupedShapes, TheNineteenAreThere) {
  const std::vector<Shape>& all = grouped_shapes();
  EXPECT_EQ(all.size(), 19U);
  EXPECT_NE(std::find(all.begin(), all.end(), Shape{0, 4096, 4096, 8, "16"}), all.end());
  const Shape skewed{0, 4096, 7168, 32, "skew:1"};
  ASSERT_NE(std::find(all.begin(), all.end(), skewed), all.end());
  const auto lengths = lengths_of(skewed);
  ASSERT_TRUE(lengths) << lengths.reason();
  EXPECT_EQ(std::accumulate(lengths->begin(), lengths->end(), std::int64_t{0}), 8192);
  EXPECT_EQ(std::count(lengths->begin(), lengths->end(), 0), 4);
}

TEST(GroupedShapes, Names) {
  EXPECT_EQ(shape_name({0, 4096, 2048, 8, "16"}), "8x16 N4096 K2048");
  EXPECT_EQ(shape_name({0, 64, 128, 32, "skew:1"}), "32 skew:1 N64 K128");
}

TEST(GroupedKinds, WordsAndPlans) {
  ASSERT_EQ(parse_kinds("all").size(), 3U);
  EXPECT_EQ(parse_kinds("all").back().first, "bf16");
  EXPECT_EQ(parse_kinds("bf16,e4m3-row-column").at(1).second.scaling, Scaling::row_column);
  for (const char* bad : {"", "fp4", "e4m3,", "e4m3 bf16"}) {
    EXPECT_THROW(parse_kinds(bad), InputError) << bad;
  }
  // There is a plan for all of them, built-in shapes included.
  const DeviceFacts h200 = *known_facts("h200");
  for (const auto& [word, types] : parse_kinds("e4m3,e4m3-block,e4m3-row-column,bf16")) {
    for (const Shape& shape : grouped_shapes()) {
      const auto plans = candidates(problem_of(types, shape, *lengths_of(shape)), h200);
      EXPECT_TRUE(plans) << word << " " << shape_name(shape) << ": " << plans.reason();
    }
  }
}

// The floor of the reference for 8 x 16 tokens, N = K = 4096: 30.9 us at 4.4 TB/s.
TEST(GroupedRoof, CountsWhatMustBeMoved) {
  const GemmProblem p = packed_grouped_problem(128, 4096, 4096, 8, DType::e4m3, DType::bf16);
  const DeviceFacts h200 = *known_facts("h200");
  const std::vector<std::int64_t> lengths(8, 16);
  const bench::Roof roof = bench::roof(p, h200, lengths);
  EXPECT_EQ(bench::busy_groups(lengths), 8);
  EXPECT_EQ(roof.operations, 2.0 * 128 * 4096 * 4096);
  EXPECT_EQ(roof.bytes, 8.0 * 4096 * 4096 + 128 * 4096 + 2 * 128 * 4096);
  EXPECT_NEAR(roof.memory_us, 30.9, 0.05);
  EXPECT_NEAR(roof.compute_us, roof.operations / 1978e6, 1e-6);
  // The matrices of B of empty groups stay where they are.
  const bench::Roof one = bench::roof(p, h200, {128, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(roof.bytes - one.bytes, 7.0 * 4096 * 4096);
  // The model has no rates.
  EXPECT_EQ(bench::roof(p, {}, lengths).us(), 0);
}

BenchRow row_of(double ours, double config, double loop) {
  BenchRow row;
  row.shape = {0, 4096, 4096, 8, "16"};
  row.lengths = std::vector<std::int64_t>(8, 16);
  bench::GemmTimes t;
  t.problem = packed_grouped_problem(128, 4096, 4096, 8, DType::e4m3, DType::bf16);
  t.plan = "the_plan";
  t.config = config < ours ? "the_config" : "the_plan";
  t.ours = {ours, 0.99 * ours, 1.01 * ours};
  t.config_time = {config, config, config};
  if (loop > 0) t.first = bench::Timing{loop, loop, loop};
  t.baseline = loop > 0 ? "cuBLASLt 13.1.0" : "a group of 3 tokens: it cannot";
  t.calls = 8;
  t.roof = bench::roof(t.problem, {}, row.lengths);
  t.roof.memory_us = 30;
  t.roof.compute_us = 2;
  row.times = t;
  return row;
}

BenchRun example_grouped_run() {
  BenchRun run;
  run.kind = BenchKind::grouped;
  run.date = "2026-11-21T10:00:00Z";
  run.gpu = "NVIDIA H200";
  run.driver = "580.159";
  run.cuda = "13.0";
  run.cublaslt = "13.1.0";
  run.commit = "0123456789ab";
  run.command = "warpwright bench grouped";
  run.seed = 7;
  const auto [word, types] = parse_kinds("e4m3").front();
  const BenchRow missing{{0, 8, 24, 1, "3"}, {3}, {}, "the rows of A are 24 bytes apart"};
  run.sections = {{word,
                   operands_name(types),
                   {row_of(40, 32, 80), row_of(50, 50, 25), row_of(60, 60, 0), missing}}};
  return run;
}

TEST(GroupedReport, TheTableSaysEverything) {
  const BenchRun run = example_grouped_run();
  const BenchSection& section = run.sections.front();
  for (const char* word : {"NVIDIA H200", "580.159", "13.1.0", "0123456789ab"}) {
    EXPECT_NE(table_title(run).find(word), std::string::npos) << word;
  }
  EXPECT_NE(table_heading(run, section).find("e4m3 to bf16, tensor scales\n"), std::string::npos);
  const std::string row = table_row(run, section.rows[0]);
  for (const char* word : {"8x16 N4096 K4096", "40.00", "1.0%", "32.00", "80.00", "2.000", "2.500",
                           "30.00", "75%", "94%", "the_plan; the_config"}) {
    EXPECT_NE(row.find(word), std::string::npos) << word << "\n" << row;
  }
  EXPECT_NE(table_row(run, section.rows[3]).find("24 bytes apart"), std::string::npos);
  const std::string summary = table_summary(run, section);
  for (const char* word : {"plan over the loop: geomean 1.000 of 2, worst 0.500",
                           "plan over best config: geomean 0.928 of 3, worst 0.800",
                           "no loop for 8x16 N4096 K4096: a group of 3 tokens: it cannot"}) {
    EXPECT_NE(summary.find(word), std::string::npos) << word << "\n" << summary;
  }
}

TEST(GroupedReport, MarkdownRowsHaveEveryColumn) {
  const std::string text = markdown(example_grouped_run());
  std::istringstream lines(text);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() != '|') continue;
    ++rows;
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 12) << line;
  }
  EXPECT_EQ(rows, 2 + 4);
  EXPECT_NE(text.find("75% of HBM | 94% |"), std::string::npos) << text;
}

TEST(GroupedReport, JsonHasItsSchema) {
  const nlohmann::json j = nlohmann::json::parse(json(example_grouped_run()));
  EXPECT_EQ(j.at("format"), "warpwright-bench-grouped-1");
  EXPECT_EQ(j.at("command"), "warpwright bench grouped");
  EXPECT_EQ(j.at("seed"), 7);
  const nlohmann::json& section = j.at("sections").at(0);
  EXPECT_EQ(section.at("dtype"), "e4m3");
  ASSERT_EQ(section.at("rows").size(), 4U);
  const nlohmann::json& row = section["rows"][0];
  EXPECT_EQ(row.at("groups"), 8);
  EXPECT_EQ(row.at("tokens"), "16");
  EXPECT_EQ(row.at("lengths").size(), 8U);
  EXPECT_EQ(row.at("ours").at("median_us"), 40);
  EXPECT_EQ(row.at("loop").at("median_us"), 80);
  EXPECT_EQ(row.at("plan_over_loop"), 2);
  EXPECT_EQ(row.at("config_over_loop"), 2.5);
  EXPECT_EQ(row.at("plan_over_config"), 0.8);
  EXPECT_EQ(row.at("plan_over_roof"), 0.75);
  EXPECT_EQ(row.at("config_over_roof"), 30.0 / 32);
  EXPECT_EQ(row.at("bound"), "HBM");
  EXPECT_TRUE(section["rows"][2].at("loop").is_null());
  EXPECT_TRUE(section["rows"][2].at("plan_over_loop").is_null());
  EXPECT_EQ(section["rows"][3].at("refusal"), "the rows of A are 24 bytes apart");
  EXPECT_NEAR(section.at("summary").at("plan_over_loop").at("geomean").get<double>(), 1, 1e-12);
}

void expect_bench_grouped_refused(std::vector<std::string> arguments, const std::string& word) {
  arguments.insert(arguments.begin(), {"bench", "grouped"});
  const CliResult r = run_cli(arguments);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
}

TEST(BenchGroupedCommand, BadInputIsASentence) {
  expect_bench_grouped_refused({"--dtype", "int8"}, "e4m3-block");
  expect_bench_grouped_refused({"--configs", "0"}, "--configs");
  expect_bench_grouped_refused({"--rounds", "0"}, "--rounds");
  expect_bench_grouped_refused({"--seed", "-1"}, "no integer");
  expect_bench_grouped_refused({"--device", "model"}, "does not predict time");
  expect_bench_grouped_refused({"--shapes", "/nowhere/shapes.txt"}, "/nowhere/shapes.txt");
  expect_bench_grouped_refused({"--json", "/nowhere/x.json"}, "/nowhere/x.json");
}

TEST(BenchGroupedCommand, HelpSaysWhatItCosts) {
  const CliResult r = run_cli({"bench", "grouped", "--help"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("3 seconds"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("Examples"), std::string::npos) << r.out;
}

TEST(BenchGroupedCommand, WithoutAGpuThereIsOneSentence) {
  if (!device::cuda_devices().empty()) GTEST_SKIP() << "there is a CUDA device here";
  expect_bench_grouped_refused({}, device::cuda_device(0).reason());
}

}  // namespace
}  // namespace warpwright::cli
