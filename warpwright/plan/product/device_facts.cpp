#include "warpwright/plan/product/device_facts.h"

#include <utility>

#include "warpwright/facts/machines.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/plan/product/known_devices.h"

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

// Clusters of each size that groups of SMs hold, a CTA an SM.
void count_clusters(DeviceFacts& f, const std::vector<int>& groups) {
  for (int size = 2; size <= 16; ++size) {
    for (const int sms : groups) f.resident_clusters[static_cast<std::size_t>(size)] += sms / size;
  }
}

// Facts that only a description makes.
DeviceFacts described(std::shared_ptr<const MachineNumbers> numbers) {
  DeviceFacts f;
  f.name = numbers->name;
  f.architecture = numbers->architecture;
  f.sms = numbers->sms;
  f.shared_bytes_per_cta = shared_bytes_of(f.architecture);
  f.l2_bytes = static_cast<std::int64_t>(numbers->l2_bytes);
  f.memory_bytes = static_cast<std::int64_t>(numbers->memory_bytes);
  f.clock_hz = numbers->clock_hz;
  f.memory_bytes_per_second = numbers->hbm_bytes_per_second;
  f.flops_16bit = numbers->flops_16bit;
  count_clusters(f, numbers->sm_groups);
  f.numbers = std::move(numbers);
  return f;
}

}  // namespace

const MachineNumbers& numbers_of(const DeviceFacts& facts) {
  return facts.numbers ? *facts.numbers : machine_of_architecture(facts.architecture);
}

DeviceFacts machine_facts(const MachineNumbers& numbers) {
  return described(std::make_shared<const MachineNumbers>(numbers));
}

DeviceFacts with_numbers(DeviceFacts facts, const MachineNumbers& numbers) {
  facts.clock_hz = numbers.clock_hz;
  facts.memory_bytes_per_second = numbers.hbm_bytes_per_second;
  facts.flops_16bit = numbers.flops_16bit;
  facts.numbers = std::make_shared<const MachineNumbers>(numbers);
  return facts;
}

std::optional<DeviceFacts> known_facts(std::string_view name) {
  const MachineNumbers* const known = known_machine(name);
  if (known == nullptr) return std::nullopt;
  return described({std::shared_ptr<const void>(), known});  // it lives for ever
}

std::vector<std::string_view> known_devices() {
  std::vector<std::string_view> names;
  for (const MachineNumbers& machine : known_machines()) names.emplace_back(machine.name);
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
