// What `bench w4a8` does without a GPU: shapes, kinds, the floor, tables, JSON, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/files/tensor_file.h"
#include "cli/reports/bench_report.h"
#include "tests/cli/run_cli.h"

namespace warpwright::cli {
namespace {

TEST(W4a8Shapes, OfGroupsOrNot) {
  std::istringstream in("8 16 4096 4096\n64x128 256  # dense\n2 3,0 64 128\n");
  EXPECT_EQ(parse_shapes(in, "shapes.txt", BenchKind::w4a8),
            (std::vector<Shape>{{0, 4096, 4096, 8, "16"}, {64, 128, 256}, {0, 64, 128, 2, "3,0"}}));
  std::istringstream bad("8 16\n");
  EXPECT_THROW(parse_shapes(bad, "shapes.txt", BenchKind::w4a8), InputError);
}

// All rows of the table are measured: each built-in shape has plans with exact sums and FP8 ones.
TEST(W4a8Shapes, HavePlans) {
  const std::vector<Shape>& all = w4a8_shapes();
  EXPECT_EQ(all.size(), 22U);
  for (const Shape& wanted : {Shape{0, 4096, 4096, 8, "16"}, Shape{0, 4096, 7168, 32, "128"},
                              Shape{0, 4096, 4096, 8, "4096"}, Shape{512, 4096, 4096}}) {
    EXPECT_NE(std::find(all.begin(), all.end(), wanted), all.end()) << shape_name(wanted);
  }
  const DeviceFacts h200 = *known_facts("h200");
  const std::vector<ProductKind> kinds = w4a8_kinds(128);
  for (const Shape& shape : all) {
    for (const ProductKind& kind : {kinds.front(), kinds.back()}) {
      const auto plans = candidates(problem_of(kind.second, shape, *lengths_of(shape)), h200);
      EXPECT_TRUE(plans) << kind.first << " " << shape_name(shape) << ": " << plans.reason();
    }
  }
  EXPECT_THROW(w4a8_kinds(48), InputError);
}

// 69.2 MB of weights with their scales, 0.5 MB of tokens and 1 MB of D at 4.4 TB/s.
TEST(W4a8Roof, CountsPackedBytes) {
  const ProductTypes types = w4a8_kinds(128).front().second;
  const Shape shape{0, 4096, 4096, 8, "16"};
  const GemmProblem p = problem_of(types, shape, *lengths_of(shape));
  const bench::Roof roof = bench::roof(p, *known_facts("h200"), *lengths_of(shape));
  EXPECT_EQ(roof.bytes, 8.0 * (4096 / 64) * (4096 / 128) * 4224 + 3 * 128 * 4096);
  EXPECT_NEAR(roof.memory_us, 16.1, 0.05);
}

bench::GemmTimes times_of(GroupSums sums, const Shape& shape, double ours, double config) {
  ProductTypes types = w4a8_kinds(128).front().second;
  types.packed->sums = sums;
  bench::GemmTimes t;
  t.problem = problem_of(types, shape, *lengths_of(shape));
  t.plan = std::string(name(sums)) + "_plan";
  t.config = std::string(name(sums)) + "_config";
  t.ours = {ours, 0.99 * ours, 1.01 * ours};
  t.config_time = {config, config, config};
  t.roof = bench::roof(t.problem, *known_facts("h200"), *lengths_of(shape));
  t.roof.memory_us = 10;
  return t;
}

BenchRow row_of(const std::string& tokens, double config) {
  BenchRow row;
  row.shape = {0, 4096, 4096, 8, tokens};
  row.lengths = *lengths_of(row.shape);
  bench::GemmTimes t = times_of(GroupSums::exact, row.shape, config + 5, config);
  t.beside.push_back(times_of(GroupSums::chained, row.shape, 50, 16));
  bench::GemmTimes fp8 = times_of(GroupSums::exact, row.shape, 80, 32);
  fp8.problem.packed.reset();
  t.beside.push_back(fp8);
  row.times = t;
  return row;
}

BenchRun example_run() {
  BenchRun run;
  run.kind = BenchKind::w4a8;
  run.gpu = "NVIDIA H200";
  run.command = "warpwright bench w4a8";
  const BenchRow missing{{3, 8, 24}, {}, {}, "A must be 16-byte aligned"};
  run.sections = {{"exact",
                   operands_name(w4a8_kinds(128).front().second),
                   {row_of("1", 15), row_of("2", 20), row_of("4", 22), row_of("16", 90), missing}}};
  return run;
}

TEST(W4a8Report, TheTableSaysEverything) {
  const BenchRun run = example_run();
  EXPECT_NE(table_title(run).find("int4 weights in groups of 128, e4m3 to bf16"),
            std::string::npos);
  const std::string row = table_row(run, run.sections.front().rows[1]);
  // Exact plan and best, chained, FP8's two, the speeds, the floor, and times over it.
  for (const char* word : {"8x2 N4096 K4096", "25.00", "20.00", "16.00", "80.00", "32.00", "3.200",
                           "1.600", "2.000", "10.00", "1.60"}) {
    EXPECT_NE(row.find(word), std::string::npos) << word << "\n" << row;
  }
  const std::string summary = table_summary(run, run.sections.front());
  // 15 to 20 is more than 20 to 22; 4 to 16 tokens is not the next count.
  EXPECT_NE(summary.find("rises by at most 1.33, from 8x1 N4096 K4096 to 8x2 N4096 K4096"),
            std::string::npos)
      << summary;
  EXPECT_NE(summary.find("best folded over best FP8: no row has it"), std::string::npos);
}

TEST(W4a8Report, MarkdownAndJson) {
  const std::string text = markdown(example_run());
  std::istringstream lines(text);
  std::ptrdiff_t columns = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() != '|') continue;
    const auto bars = std::count(line.begin(), line.end(), '|');
    if (columns == 0) columns = bars;
    EXPECT_EQ(bars, columns) << line;
  }
  EXPECT_GT(columns, 10);
  const nlohmann::json j = nlohmann::json::parse(json(example_run()));
  EXPECT_EQ(j.at("format"), "warpwright-bench-w4a8-1");
  const nlohmann::json& row = j.at("rows").at(1);
  EXPECT_EQ(row.at("beside").at("chained").at("config_time").at("median_us"), 16);
  EXPECT_EQ(row.at("beside").at("fp8").at("ours").at("median_us"), 80);
  EXPECT_EQ(row.at("exact_over_fp8"), 1.6);
  EXPECT_EQ(row.at("floor_us"), 10);
  EXPECT_EQ(j.at("rows").at(4).at("refusal"), "A must be 16-byte aligned");
}

TEST(BenchW4a8Command, BadInputIsASentence) {
  const auto refused = [](std::vector<std::string> arguments, const std::string& word) {
    arguments.insert(arguments.begin(), {"bench", "w4a8"});
    const CliResult r = run_cli(arguments);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
  };
  refused({"--group", "48"}, "32, 64 or 128");
  refused({"--configs", "0"}, "--configs");
  refused({"--device", "model"}, "does not predict time");
  refused({"--shapes", "/nowhere/shapes.txt"}, "/nowhere/shapes.txt");
}

}  // namespace
}  // namespace warpwright::cli
