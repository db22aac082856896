#include "warpwright/plan/device_facts.h"

#include "warpwright/kernel/sm_limits.h"
#include "warpwright/plan/known_devices.h"

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

bool is_blackwell(const DeviceFacts& facts) {
  return facts.architecture == 100 || facts.architecture == 103;
}

namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

// What data sheets say; rates are of memory in bytes and of dense 16-bit products.
struct Sheet {
  int architecture;
  int sms;
  int l2_mib;
  int memory_gigabytes;
  double clock_hz;
  double memory_bytes_per_second;
  double flops_16bit;
};

DeviceFacts from(const Sheet& sheet) {
  DeviceFacts f;
  f.architecture = sheet.architecture;
  f.sms = sheet.sms;
  f.l2_bytes = std::int64_t{sheet.l2_mib} << 20;
  f.memory_bytes = sheet.memory_gigabytes * kGigabyte;
  f.clock_hz = sheet.clock_hz;
  f.memory_bytes_per_second = sheet.memory_bytes_per_second;
  f.flops_16bit = sheet.flops_16bit;
  return f;
}

// These by NVIDIA's data sheets, with float32 sums. Nobody measured one.
DeviceFacts v100() {
  return from({70, 80, 6, 32, 1.53e9, 0.9e12, 125e12});
}
DeviceFacts t4() {
  return from({75, 40, 4, 16, 1.59e9, 0.32e12, 65e12});
}
DeviceFacts a100() {
  return from({80, 108, 40, 80, 1.41e9, 2.04e12, 312e12});
}
DeviceFacts rtx3090() {
  return from({86, 82, 6, 24, 1.70e9, 0.936e12, 71e12});
}
DeviceFacts l40s() {
  return from({89, 142, 96, 48, 2.52e9, 0.864e12, 362e12});
}
DeviceFacts rtx5090() {
  return from({120, 170, 96, 32, 2.41e9, 1.79e12, 209.5e12});
}

// The H100 SXM5 by NVIDIA's data sheet and "H100 Tensor Core GPU Architecture": nobody measured one
// for this table, and how its SMs stand in groups differs from card to card.
DeviceFacts h100() {
  return from({90, 132, 50, 80, 1.98e9, 3.35e12, 989e12});
}

// Its memory's rate was measured, reading.
DeviceFacts h200() {
  DeviceFacts f = from({90, 132, 60, 141, 1.98e9, 4.4e12, 989e12});
  // Asked of the runtime on an H200 for 2, 4, 8 and 16; the others follow from the groups of SMs
  // that this leaves: five of 18, two of 16 and one of 10.
  for (int size = 2; size <= 16; ++size) {
    f.resident_clusters[static_cast<std::size_t>(size)] =
        5 * (18 / size) + 2 * (16 / size) + 10 / size;
  }
  return f;
}

DeviceFacts b200() {
  return from({100, 148, 126, 180, 1.965e9, 7.7e12, 2250e12});
}

struct Known {
  const char* name;
  DeviceFacts (*facts)();
};

constexpr std::array kKnown = {
    Known{"v100", v100},       Known{"t4", t4},     Known{"a100", a100},
    Known{"rtx3090", rtx3090}, Known{"l40s", l40s}, Known{"h100", h100},
    Known{"h200", h200},       Known{"b200", b200}, Known{"rtx5090", rtx5090}};

}  // namespace

std::optional<DeviceFacts> known_facts(std::string_view name) {
  for (const Known& known : kKnown) {
    if (name != known.name) continue;
    DeviceFacts f = known.facts();
    f.name = known.name;
    f.shared_bytes_per_cta = shared_bytes_of(f.architecture);
    return f;
  }
  return std::nullopt;
}

std::vector<std::string_view> known_devices() {
  std::vector<std::string_view> names;
  names.reserve(kKnown.size());
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
