#include "cli/commands/bench_command.h"

#include <charconv>

#include "cli/commands/bench.h"
#include "cli/commands/bench_run.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/progress.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> shapes_of(const BenchOptions& o, const ProductTypes& types) {
  if (o.sample && !o.shapes.empty()) {
    throw InputError("--shapes and --sample do not go together: give one of them.");
  }
  if (o.sample) {
    if (*o.sample < 1) throw InputError("--sample is less than 1; the nearest legal value is 1.");
    return sample_shapes(*o.sample, o.seed, types.step());
  }
  return o.shapes.empty() ? dense_shapes() : read_shapes(o.shapes);
}

BenchRun run_of(const BenchOptions& o, const ProductTypes& types, const DeviceFacts& facts) {
  BenchRun run;
  static_cast<BenchHead&>(run) = bench_head(o.command, o.seed, o.dependent, facts);
  run.types = types_name(types);
  return run;
}

BenchRow measure(const Shape& shape, const ProductTypes& types, const BenchOptions& o,
                 const DeviceChoice& device, const DeviceFacts& facts) {
  BenchRow row{shape, std::nullopt, {}};
  Result<std::vector<Plan>> plans = candidates(problem_of(types, shape), facts);
  if (!plans) {
    row.refusal = plans.reason();
    return row;
  }
  std::vector<Plan> some = *plans;
  const std::optional<int> limit = parse_configs(o.configs);
  if (limit && some.size() > static_cast<std::size_t>(*limit)) {
    some.erase(some.begin() + *limit, some.end());
  }
  bench::TimeOptions how;
  how.rounds = o.rounds;
  how.seed = o.seed;
  how.dependent = o.dependent;
  const Result<bench::GemmTimes> times = time_product(some, device.index, how);
  if (times) {
    row.times = *times;
  } else {
    row.refusal = times.reason();
  }
  return row;
}

int run_bench(const BenchOptions& o, std::ostream& out, std::ostream& err) {
  const ProductTypes types = parse_types(o.types);
  const std::vector<Shape> shapes = shapes_of(o, types);
  parse_configs(o.configs);
  if (o.rounds < 1) throw InputError("--rounds is less than 1; the nearest legal value is 1.");
  check_json(o.json);
  const DeviceChoice device = bench_device(o.device);
  const DeviceFacts facts = facts_of(device);
  err << "bench: " << shapes.size() << (shapes.size() == 1 ? " shape" : " shapes") << ", seed "
      << o.seed << ".\n";

  BenchRun run = run_of(o, types, facts);
  if (!o.markdown) out << table_heading(run) << std::flush;
  std::optional<Progress> progress;
  progress.emplace(err, "bench", "shapes", static_cast<std::int64_t>(shapes.size()));
  int missing = 0;
  for (const Shape& shape : shapes) {
    run.rows.push_back(measure(shape, types, o, device, facts));
    if (!run.rows.back().times) ++missing;
    if (!o.markdown) progress->print(out, table_row(run.rows.back()));
    write_json(o.json, json(run));
    progress->update(static_cast<std::int64_t>(run.rows.size()));
  }
  progress.reset();
  out << (o.markdown ? markdown(run) : table_summary(run));
  if (missing > 0) {
    err << missing << " of " << shapes.size() << " shapes were not measured; their rows say why.\n";
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

std::optional<int> parse_configs(const std::string& text) {
  if (text == "all") return std::nullopt;
  int count = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count);
  if (error == std::errc() && end == last && count >= 1) return count;
  throw InputError("--configs is \"" + text + "\"; it must be a number from 1, or all.");
}

int bench_dense_command(const BenchOptions& options, std::ostream& out, std::ostream& err) {
  try {
    return run_bench(options, out, err);
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
