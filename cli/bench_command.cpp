#include "cli/bench_command.h"

#include <unistd.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/bench.h"
#include "cli/bench_report.h"
#include "cli/gemm_job.h"
#include "cli/progress.h"
#include "warpwright/plan/tuning.h"

namespace warpwright::cli {
namespace {

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

DeviceChoice gpu_of(const std::string& text) {
  const DeviceChoice device = parse_device(text);
  if (device.is_model) {
    throw InputError(
        "--device is model, which does not predict time; bench measures a GPU: cuda:0, cuda:1, "
        "...");
  }
  return device;
}

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

// Finds out before the work what would keep the JSON from being written.
void check_json(const std::string& path) {
  if (path.empty()) return;
  const bool existed = std::filesystem::exists(path);
  std::ofstream file(path, std::ios::app);
  if (!file) throw InputError("--json: the file " + path + " cannot be written.");
  file.close();
  if (!existed) std::filesystem::remove(path);
}

// The whole of it after every shape, so that a run that is cut short leaves what it has.
void write_json(const std::string& path, const BenchRun& run) {
  if (path.empty()) return;
  const std::string draft = path + ".part";
  std::ofstream file(draft, std::ios::binary);
  file << json(run);
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(draft, path, error);
  if (!file || error) throw InputError("--json: the file " + path + " cannot be written.");
}

BenchRun run_of(const BenchOptions& o, const ProductTypes& types, const DeviceFacts& facts) {
  BenchRun run;
  const bench::Software software = bench_software();
  run.date = now();
  run.gpu = tuning_key({}, facts).gpu;
  run.driver = nvidia_driver_version();
  run.cuda = software.cuda;
  run.cublaslt = software.cublaslt;
  run.commit = WARPWRIGHT_COMMIT;
  run.command = o.command;
  run.types = types_name(types);
  run.seed = o.seed;
  run.dependent = o.dependent;
  return run;
}

// On a terminal the rows themselves are the progress, where they come as they are made.
bool shows_progress(const BenchOptions& o, const std::ostream& err) {
  return &err == &std::cerr && ::isatty(STDERR_FILENO) == 1 &&
         (o.markdown || ::isatty(STDOUT_FILENO) != 1);
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
  const DeviceChoice device = gpu_of(o.device);
  const DeviceFacts facts = facts_of(device);
  err << "bench: " << shapes.size() << (shapes.size() == 1 ? " shape" : " shapes") << ", seed "
      << o.seed << ".\n";

  BenchRun run = run_of(o, types, facts);
  if (!o.markdown) out << table_heading(run) << std::flush;
  Progress progress(err, "bench", "shapes", static_cast<std::int64_t>(shapes.size()),
                    shows_progress(o, err));
  int missing = 0;
  for (const Shape& shape : shapes) {
    run.rows.push_back(measure(shape, types, o, device, facts));
    if (!run.rows.back().times) ++missing;
    if (!o.markdown) out << table_row(run.rows.back()) << std::flush;
    write_json(o.json, run);
    progress.update(static_cast<std::int64_t>(run.rows.size()));
  }
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
