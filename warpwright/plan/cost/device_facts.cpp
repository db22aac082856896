#include "warpwright/plan/cost/device_facts.h"

#include "warpwright/kernel/sm_limits.h"
#include "warpwright/plan/cost/known_devices.h"

namespace warpwright {

namespace {

std::int64_t shared_bytes_of(int architecture) {
  const int known = kernel::max_smem_bytes_of(architecture);
  return known > 0 ? known : kernel::max_smem_bytes;
}

}  // namespace

DeviceFacts model_facts(int sms, int architecture) {
  DeviceFacts f;
  f.name = "model";
  f.architecture = architecture;
  f.sms = sms;
  f.shared_bytes_per_cta = shared_bytes_of(architecture);
  f.is_model = true;
  return f;
}

namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

// What data sheets say, with float32 sums; rates are of memory in bytes and of dense 16-bit
// products. Nobody measured one, but for what stands beside the H200.
struct Sheet {
  int architecture;
  int sms;
  int l2_mib;
  int memory_gigabytes;
  double clock_hz;
  double memory_bytes_per_second;
  double flops_16bit;
  std::array<int, 8> groups{};  // SMs that stand together, where that is known
};

struct Known {
  const char* name;
  Sheet sheet;
};

constexpr Known kKnown[] = {
    {"v100", {70, 80, 6, 32, 1.53e9, 0.9e12, 125e12}},
    {"t4", {75, 40, 4, 16, 1.59e9, 0.32e12, 65e12}},
    {"a100", {80, 108, 40, 80, 1.41e9, 2.04e12, 312e12}},
    {"rtx3090", {86, 82, 6, 24, 1.70e9, 0.936e12, 71e12}},
    {"l40s", {89, 142, 96, 48, 2.52e9, 0.864e12, 362e12}},
    // SXM5, also by "H100 Tensor Core GPU Architecture"; how its SMs stand differs from card to
    // card.
    {"h100", {90, 132, 50, 80, 1.98e9, 3.35e12, 989e12}},
    // Its memory's rate was measured, reading. The groups follow from the clusters of 2, 4, 8 and
    // 16 CTAs that the runtime says an H200 holds.
    {"h200", {90, 132, 60, 141, 1.98e9, 4.4e12, 989e12, {18, 18, 18, 18, 18, 16, 16, 10}}},
    {"b200", {100, 148, 126, 180, 1.965e9, 7.7e12, 2250e12}},
    {"b300", {103, 148, 126, 288, 1.965e9, 8e12, 2250e12}},
    {"rtx5090", {120, 170, 96, 32, 2.41e9, 1.79e12, 209.5e12}}};

DeviceFacts from(const Known& known) {
  const Sheet& sheet = known.sheet;
  DeviceFacts f;
  f.name = known.name;
  f.architecture = sheet.architecture;
  f.sms = sheet.sms;
  f.shared_bytes_per_cta = shared_bytes_of(f.architecture);
  f.l2_bytes = std::int64_t{sheet.l2_mib} << 20;
  f.memory_bytes = sheet.memory_gigabytes * kGigabyte;
  f.clock_hz = sheet.clock_hz;
  f.memory_bytes_per_second = sheet.memory_bytes_per_second;
  f.flops_16bit = sheet.flops_16bit;
  for (int size = 2; size <= 16; ++size) {
    for (const int sms : sheet.groups) {
      f.resident_clusters[static_cast<std::size_t>(size)] += sms / size;
    }
  }
  return f;
}

}  // namespace

std::optional<DeviceFacts> known_facts(std::string_view name) {
  for (const Known& known : kKnown) {
    if (name == known.name) return from(known);
  }
  return std::nullopt;
}

std::vector<std::string_view> known_devices() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kKnown));
  for (const Known& known : kKnown) names.emplace_back(known.name);
  return names;
}

int resident_ctas(const DeviceFacts& facts, int size) {
  const int most = facts.sms / size;
  const auto at = static_cast<std::size_t>(size);
  const int known = at < facts.resident_clusters.size() ? facts.resident_clusters[at] : 0;
  return (known > 0 && known < most ? known : most) * size;
}

void estimate_roofs(DeviceFacts& f) {
  // Operations of one SM in one clock: 64 x 256 x 16 x 2 in 128 clocks on Hopper, twice that later.
  const double per_clock = f.architecture >= 100 ? 8192 : 4096;
  if (f.flops_16bit == 0) f.flops_16bit = per_clock * f.sms * f.clock_hz;
}

}  // namespace warpwright
