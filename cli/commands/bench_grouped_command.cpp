#include "cli/commands/bench_grouped_command.h"

#include <optional>

#include "cli/commands/bench.h"
#include "cli/commands/bench_command.h"
#include "cli/commands/bench_run.h"
#include "cli/files/tensor_file.h"
#include "cli/reports/bench_grouped_report.h"
#include "cli/reports/progress.h"

namespace warpwright::cli {
namespace {

void time_row(GroupedRow& row, const GroupedKind& kind, const GroupedBenchOptions& o, int index,
              const DeviceFacts& facts) {
  const Result<std::vector<std::int64_t>> lengths = lengths_of(row.shape);
  if (!lengths) {
    row.refusal = lengths.reason();
    return;
  }
  row.lengths = *lengths;
  const GroupedProblem problem = problem_of(kind, row.shape, row.lengths);
  row.work = bench::grouped_work(problem, row.lengths);
  row.compute_us = bench::compute_seconds(row.work, problem, facts) * 1e6;
  row.memory_us = bench::memory_seconds(row.work, facts) * 1e6;
  const Result<std::vector<GroupedPlan>> plans = candidates_grouped(problem, facts);
  if (!plans) {
    row.refusal = plans.reason();
    return;
  }
  std::vector<GroupedPlan> some = *plans;
  const std::optional<int> limit = parse_configs(o.configs);
  if (limit && some.size() > static_cast<std::size_t>(*limit)) {
    some.erase(some.begin() + *limit, some.end());
  }
  bench::TimeOptions how;
  how.rounds = o.rounds;
  how.seed = o.seed;
  how.dependent = o.dependent;
  const Result<bench::GroupedTimes> times = time_grouped_product(some, row.lengths, index, how);
  if (times) {
    row.times = *times;
  } else {
    row.refusal = times.reason();
  }
}

int run_bench(const GroupedBenchOptions& o, std::ostream& out, std::ostream& err) {
  const std::vector<GroupedKind> kinds = parse_kinds(o.dtype);
  const std::vector<GroupedShape> shapes =
      o.shapes.empty() ? grouped_shapes() : read_grouped_shapes(o.shapes);
  parse_configs(o.configs);
  if (o.rounds < 1) throw InputError("--rounds is less than 1; the nearest legal value is 1.");
  check_json(o.json);
  const DeviceChoice device = bench_device(o.device);
  const DeviceFacts facts = facts_of(device);
  const std::size_t all = kinds.size() * shapes.size();
  err << "bench: " << all << (all == 1 ? " grouped product" : " grouped products") << ", seed "
      << o.seed << ".\n";

  GroupedRun run;
  static_cast<BenchHead&>(run) = bench_head(o.command, o.seed, o.dependent, facts);
  if (!o.markdown) out << table_title(run) << std::flush;
  std::optional<Progress> progress;
  progress.emplace(err, "bench", "products", static_cast<std::int64_t>(all));
  std::int64_t done = 0;
  int missing = 0;
  for (const GroupedKind& kind : kinds) {
    run.sections.push_back({kind, {}});
    GroupedSection& section = run.sections.back();
    if (!o.markdown) progress->print(out, table_heading(section));
    for (const GroupedShape& shape : shapes) {
      GroupedRow row;
      row.shape = shape;
      time_row(row, kind, o, device.index, facts);
      if (!row.times) ++missing;
      section.rows.push_back(row);
      if (!o.markdown) progress->print(out, table_row(row));
      write_json(o.json, json(run));
      progress->update(++done);
    }
    if (!o.markdown) progress->print(out, table_summary(section));
  }
  progress.reset();
  if (o.markdown) out << markdown(run);
  if (missing > 0) {
    err << missing << " of " << all << " products were not measured; their rows say why.\n";
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

int bench_grouped_command(const GroupedBenchOptions& options, std::ostream& out,
                          std::ostream& err) {
  try {
    return run_bench(options, out, err);
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
