#include "cli/commands/machine/devices_command.h"

#include <string>

#include "cli/reports/plan_json.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/cuda.h"
#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

std::string scaled(double value, double unit, const char* pattern) {
  if (value <= 0) return "-";
  return format(pattern, value / unit);
}

void row(const std::string& device, const std::string& name, const DeviceFacts& f,
         std::ostream& out) {
  const std::string memory =
      f.is_model ? "the host's" : scaled(static_cast<double>(f.memory_bytes), 0x1p30, "%.1f GiB");
  out << format("%-7s  %-24s  sm_%-4d  %4d  %11s  %8s  %10s  %7s\n", device.c_str(), name.c_str(),
                f.architecture, f.sms,
                scaled(static_cast<double>(f.shared_bytes_per_cta), 1024, "%.0f KiB").c_str(),
                scaled(f.clock_hz, 1e6, "%.0f MHz").c_str(), memory.c_str(),
                scaled(static_cast<double>(f.l2_bytes), 0x1p20, "%.0f MiB").c_str());
}

}  // namespace

void print_devices(const std::vector<DeviceFacts>& cuda_devices, std::ostream& out) {
  out << "device   name                      rules     SMs  shared/CTA     clock      memory       "
         "L2\n";
  row("model", "machine model on the CPU", model_facts(), out);
  int index = 0;
  for (const DeviceFacts& facts : cuda_devices) {
    const std::string device = "cuda:" + std::to_string(index++);
    const std::string prefix = device + " ";
    row(device, facts.name.starts_with(prefix) ? facts.name.substr(prefix.size()) : facts.name,
        facts, out);
  }
}

int devices_command(bool json, std::ostream& out, std::ostream& err) {
  const std::vector<DeviceFacts> found = device::cuda_devices();
  std::string missing;  // why there is no GPU
  if (found.empty()) {
    const Result<DeviceFacts> first = device::cuda_device(0);
    if (!first) missing = first.reason();
  }
  if (json) {
    nlohmann::ordered_json all;
    all["devices"] = nlohmann::ordered_json::array({device_json(model_facts())});
    all["devices"].back()["device"] = "model";
    for (std::size_t i = 0; i < found.size(); ++i) {
      all["devices"].push_back(device_json(found[i]));
      all["devices"].back()["device"] = "cuda:" + std::to_string(i);
    }
    all["no_cuda_device"] =
        missing.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(missing);
    out << json_text(all);
    return 0;
  }
  print_devices(found, out);
  if (!missing.empty()) err << "No CUDA device is listed: " << missing << "\n";
  return 0;
}

}  // namespace warpwright::cli
