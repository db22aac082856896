#include "cli/commands/machine/devices_command.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/reports/plan_json.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

std::string scaled(double value, double unit, const char* format) {
  if (value <= 0) return "-";
  char text[48];
  std::snprintf(text, sizeof(text), format, value / unit);  // NOLINT: the formats are below
  return text;
}

void row(const std::string& device, const std::string& name, const DeviceFacts& f,
         std::ostream& out) {
  char text[256];
  const std::string memory =
      f.is_model ? "the host's" : scaled(static_cast<double>(f.memory_bytes), 0x1p30, "%.1f GiB");
  std::snprintf(text, sizeof(text), "%-7s  %-24s  sm_%-4d  %4d  %11s  %8s  %10s  %7s\n",
                device.c_str(), name.c_str(), f.architecture, f.sms,
                scaled(static_cast<double>(f.shared_bytes_per_cta), 1024, "%.0f KiB").c_str(),
                scaled(f.clock_hz, 1e6, "%.0f MHz").c_str(), memory.c_str(),
                scaled(static_cast<double>(f.l2_bytes), 0x1p20, "%.0f MiB").c_str());
  out << text;
}

// "0-1 16-17 ...": the SMs of a group.
std::string ranges(const std::vector<int>& of_sm, int group) {
  std::string text;
  const int count = static_cast<int>(of_sm.size());
  const auto is_in = [&](int sm) {
    return sm >= 0 && sm < count && of_sm[static_cast<std::size_t>(sm)] == group;
  };
  for (int sm = 0; sm < count; ++sm) {
    if (!is_in(sm)) continue;
    if (!is_in(sm - 1)) text += (text.empty() ? "" : " ") + std::to_string(sm);
    if (is_in(sm - 1) && !is_in(sm + 1)) text += "-" + std::to_string(sm);
  }
  return text;
}

// A line a group, and one for each size of clusters that landed alike every time.
void print_groups(const std::string& device, const SmGroups& groups, std::ostream& out) {
  for (int g = -1; g < groups.count; ++g) {
    const auto sms = std::count(groups.of_sm.begin(), groups.of_sm.end(), g);
    if (sms == 0) continue;
    out << device << "  " << (g < 0 ? "no group known" : "group " + std::to_string(g)) << ", "
        << sms << " SMs: " << ranges(groups.of_sm, g) << "\n";
  }
  for (const auto& [size, landed] : groups.of_clusters) {
    out << device << "  clusters of " << size << " go to groups";
    for (const int g : landed) out << " " << g;
    out << "\n";
  }
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
  index = 0;
  for (const DeviceFacts& facts : cuda_devices) {
    const std::string device = "cuda:" + std::to_string(index++);
    if (facts.sm_groups) print_groups(device, *facts.sm_groups, out);
  }
}

int devices_command(bool groups, bool json, std::ostream& out, std::ostream& err) {
  std::vector<DeviceFacts> found = device::cuda_devices();
  for (std::size_t i = 0; groups && i < found.size(); ++i) {
    const auto looked = device::find_sm_groups(static_cast<int>(i));
    if (!looked)
      err << "The SMs of cuda:" << i << " were not looked at: " << looked.reason() << "\n";
    if (looked) found[i].sm_groups = *looked;
  }
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
