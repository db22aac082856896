#include "cli/commands/bench_run.h"

#include <ctime>

#include "cli/commands/bench.h"
#include "cli/files/output_file.h"
#include "cli/files/tensor_file.h"
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

}  // namespace

BenchHead bench_head(const std::string& command, std::uint64_t seed, bool dependent,
                     const DeviceFacts& facts) {
  BenchHead head;
  const bench::Software software = bench_software();
  head.date = now();
  head.gpu = tuning_key({}, facts).gpu;
  head.driver = nvidia_driver_version();
  head.cuda = software.cuda;
  head.cublaslt = software.cublaslt;
  head.commit = WARPWRIGHT_COMMIT;
  head.command = command;
  head.seed = seed;
  head.dependent = dependent;
  return head;
}

DeviceChoice bench_device(const std::string& text) {
  const DeviceChoice device = parse_device(text);
  if (device.is_model) {
    throw InputError(
        "--device is model, which does not predict time; bench measures a GPU: cuda:0, cuda:1, "
        "...");
  }
  return device;
}

void check_json(const std::string& path) {
  if (!path.empty()) check_output_file("The JSON", path);
}

void write_json(const std::string& path, const std::string& text) {
  if (!path.empty()) replace_file(path, text);
}

}  // namespace warpwright::cli
