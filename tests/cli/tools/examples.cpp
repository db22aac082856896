// Prints what the command line says of things that this machine does not have, for transcripts:
//
//   warpwright_examples dense|grouped|w4a8 [--markdown|--json] [--host] [--counters] [--uncounted]
//                        made-up measurements, as `bench` prints them
//   warpwright_examples devices          two GPUs, as `devices` prints them
//   warpwright_examples timeline|empty|grid   pictures of made-up traces; trace: an empty one
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cli/commands/machine/devices_command.h"
#include "cli/reports/bench_report.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/perfetto.h"
#include "warpwright/pictures/timeline_svg.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

bench::GemmTimes times_of(const GemmProblem& problem, double ours, double config) {
  bench::GemmTimes t;
  t.problem = problem;
  t.plan = "the_plan";
  t.config = config < ours ? "the_config" : "the_plan";
  t.ours = {ours, 0.99 * ours, 1.01 * ours};
  t.predicted_us = ours == 20 ? 0 : ours + 1;  // one row has none
  t.config_time = {config, config, config};
  t.roof = bench::roof(problem, {});
  t.roof.memory_us = ours / 2;
  t.roof.sustained_us = t.roof.operations / 1.4e9;
  return t;
}

BenchRow dense_row(const Shape& shape, double ours, double config, double first, double best) {
  bench::GemmTimes t =
      times_of(packed_problem(64, 4096, 7168, DType::bf16, DType::bf16), ours, config);
  t.baseline = "cuBLASLt has no algorithm for this product";
  if (first > 0) {
    t.first = bench::Timing{first, first, first};
    t.best = bench::Timing{best, best, best};
    t.baseline = "cuBLASLt 13.1.0";
  }
  t.offered = 7;
  t.best_index = 2;
  t.checked_against = "cuBLASLt";
  t.relative_error = 0.25;
  t.rounds = 21;
  t.launches = 100;
  t.buffer_sets = 3;
  return {shape, {}, t, ""};
}

BenchRow grouped_row(double ours, double config, double loop, const std::string& tokens = "16") {
  BenchRow row{{0, 4096, 4096, 8, tokens}, {}, {}, ""};
  row.lengths = *lengths_of(row.shape);
  bench::GemmTimes t =
      times_of(packed_grouped_problem(128, 4096, 4096, 8, DType::e4m3, DType::bf16), ours, config);
  if (loop > 0) t.first = bench::Timing{loop, loop, loop};
  t.baseline = loop > 0 ? "cuBLASLt 13.1.0" : "a group of 3 tokens: it cannot";
  t.calls = 8;
  t.roof = bench::roof(t.problem, {}, row.lengths);
  t.roof.memory_us = 30;
  t.roof.sustained_us = t.roof.operations / 1.4e9;
  t.roof.compute_us = 2;
  row.times = t;
  return row;
}

bench::GemmTimes packed_times(GroupSums sums, const Shape& shape, double ours, double config) {
  ProductTypes types = packed_kinds("int4").front().second;
  types.packed->sums = sums;
  bench::GemmTimes t = times_of(problem_of(types, shape, *lengths_of(shape)), ours, config);
  t.plan = std::string(name(sums)) + "_plan";
  t.config = std::string(name(sums)) + "_config";
  t.roof.memory_us = 10;
  t.roof.sustained_us = t.roof.operations / 1.4e9;
  return t;
}

BenchRow packed_row(const std::string& tokens, double config) {
  BenchRow row{{0, 4096, 4096, 8, tokens}, {}, {}, ""};
  row.lengths = *lengths_of(row.shape);
  bench::GemmTimes t = packed_times(GroupSums::exact, row.shape, config + 5, config);
  t.beside = {packed_times(GroupSums::chained, row.shape, 50, 16),
              packed_times(GroupSums::exact, row.shape, 80, 32)};
  t.beside.back().problem.packed.reset();  // FP8
  row.times = t;
  return row;
}

BenchRun example(const std::string& kind) {
  BenchRun run;
  run.date = "2026-11-21T10:00:00Z";
  run.gpu = "NVIDIA H200";
  run.driver = "580.159";
  run.cuda = "13.0";
  run.cublaslt = "13.1.0";
  run.commit = "0123456789ab";
  run.command = "warpwright bench " + kind;
  run.seed = 7;
  if (kind == "dense") {
    run.sections = {{"",
                     "bf16 to bf16",
                     {dense_row({64, 4096, 7168}, 10, 8, 20, 16),
                      dense_row({8, 8, 8}, 20, 20, 10, 10), dense_row({1, 64, 64}, 4, 4, 0, 0),
                      BenchRow{{2, 3, 4}, {}, {}, "the rows of A are 8 bytes apart"}}}};
  } else if (kind == "grouped") {
    run.kind = BenchKind::grouped;
    const auto [word, types] = parse_kinds("e4m3").front();
    run.sections = {{word,
                     operands_name(types),
                     {grouped_row(40, 32, 80), grouped_row(50, 50, 25), grouped_row(60, 60, 0),
                      grouped_row(70, 70, 70, "routed:64,2,zipf:2,seed:5"),
                      BenchRow{{0, 8, 24, 1, "3"}, {3}, {}, "the rows of A are 24 bytes apart"}}}};
  } else {
    run.kind = BenchKind::w4a8;
    run.sections = {{"exact",
                     operands_name(packed_kinds("int4").front().second),
                     {packed_row("1", 15), packed_row("2", 20), packed_row("4", 22),
                      packed_row("16", 90), BenchRow{{3, 8, 24}, {}, {}, "A must be aligned"}}}};
  }
  return run;
}

void print_run(BenchRun run, const std::vector<std::string>& words) {
  const auto has = [&words](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  BenchSection& section = run.sections.front();
  for (std::size_t i = 0; i < 3 && has("--host"); ++i) {
    const double us = std::vector<double>{3.25, 2.75, 2.5}[i];
    section.rows[i].times->host = {{us, us, us}, {2.25, 2.25, 2.25}};
  }
  if (has("--counters") || has("--uncounted")) {
    run.counted = has("--counters");
    run.uncounted = run.counted ? "" : "there is no ncu";
    section.rows[0].times->counted = bench::Counters{74.8e6, 91.8e6, 241e6};
    section.rows[1].times->counted = bench::Counters{74.8e6, 91.8e6, 241e6};
    section.rows[1].times->first_counted = bench::Counters{33.9e6, 68e6, 167e6};
  }
  if (has("--markdown")) {
    std::cout << markdown(run);
  } else if (has("--json")) {
    std::cout << json(run);
  } else {
    std::cout << table_title(run) << table_heading(run, section);
    for (const BenchRow& row : section.rows) std::cout << table_row(run, row);
    std::cout << table_summary(run, section);
  }
}

void print_gpus() {
  DeviceFacts one = *known_facts("h200");
  DeviceFacts other = one;
  one.name = "cuda:0 NVIDIA H200";
  other.name = "cuda:1 NVIDIA H200";
  print_devices({one, other}, std::cout);
}

// A lane an SM, a tile each.
model::Trace two_tiles() {
  model::TraceBuilder builder;
  for (int sm = 0; sm < 2; ++sm) {
    const int track = builder.add_track(model::TraceTrack::Kind::role, sm, "epilogue");
    builder.track(track).sm = sm;
    builder.begin(track, 100 * sm, "tile m 0 n " + std::to_string(sm));
    builder.begin(track, 100 * sm + 10, "epilogue subtile 0");
    builder.end(track, 100 * sm + 60);
    builder.end(track, 100 * sm + 90);
  }
  return builder.finish();
}

// Names that XML would take for its own.
model::Trace odd_names() {
  model::TraceBuilder builder;
  const int track = builder.add_track(model::TraceTrack::Kind::role, 0, "a<b & \"c\"");
  builder.begin(track, 0, "tile <0> & \"1\"");
  builder.end(track, 100000);
  return builder.finish();
}

}  // namespace
}  // namespace warpwright::cli

int main(int argc, char** argv) {
  using namespace warpwright::cli;  // NOLINT: only of a program
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string what = words.empty() ? "" : words.front();
  if (what == "dense" || what == "grouped" || what == "w4a8") {
    print_run(example(what), words);
  } else if (what == "devices") {
    print_gpus();
  } else if (what == "timeline") {
    std::cout << warpwright::pictures::timeline_svg(odd_names(), {.title = "<title> & more"});
  } else if (what == "empty") {
    std::cout << warpwright::pictures::timeline_svg({}, {.title = "nothing"});
  } else if (what == "trace") {
    std::cout << warpwright::pictures::perfetto_bytes({});
  } else if (what == "grid") {
    std::cout << warpwright::pictures::grid_svg(two_tiles(), {"a title", 3, 2});
  } else {
    std::cerr << "warpwright_examples: there is no example \"" << what << "\".\n";
    return 2;
  }
  return 0;
}
