// What planning needs to know about a device, as a value: of the one at hand, or of one elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace warpwright {

struct MachineNumbers;  // facts/machine_numbers.h
class Correction;       // plan/cost/correction.h

/// Facts of one device. Rates are the roofs a kernel is held against, so measured ones where known.
struct DeviceFacts {
  std::string name;
  int architecture = 90;  ///< compute capability x 10: 90 Hopper, 100 Blackwell
  int sms = 0;
  std::int64_t shared_bytes_per_cta = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  double clock_hz = 0;
  double memory_bytes_per_second = 0;
  double flops_16bit = 0;  ///< tensor-core floating-point operations a second, bf16 or fp16
  bool is_model = false;
  /// Clusters of 2 to 16 CTAs, by their size, that are resident together, one CTA an SM; 0 where
  /// unknown. The SMs of a GPU stand in groups of uneven size, so this can be less than sms / size.
  std::array<int, 17> resident_clusters{};
  /// By which plans are held against each other; null where the machine of the architecture stands
  /// for it (numbers_of).
  std::shared_ptr<const MachineNumbers> numbers = nullptr;
  /// What its measured times are beside floors; null where the built-in correction stands for it
  /// (correction_of).
  std::shared_ptr<const Correction> correction = nullptr;
};

/// The numbers of a device: its own, or of the known machine that stands for its architecture.
const MachineNumbers& numbers_of(const DeviceFacts& facts);

/// CTAs that run together in clusters of `size`, one CTA an SM.
int resident_ctas(const DeviceFacts& facts, int size);

/// The machine model as a device: an architecture's rules on a few SMs, no rates.
DeviceFacts model_facts(int sms = 8, int architecture = 90);

/// Facts of a device that a description in numbers stands for.
DeviceFacts machine_facts(const MachineNumbers& numbers);

/// The facts of a device that is there, with the rates of a description of it. Its architecture
/// must be the description's.
DeviceFacts with_numbers(DeviceFacts facts, const MachineNumbers& numbers);

/// Facts of a device by its name (known_devices.h has them all), without having one.
std::optional<DeviceFacts> known_facts(std::string_view name);

/// Roofs for a device of this architecture, SM count and clock whose rates nobody measured.
void estimate_roofs(DeviceFacts& facts);

}  // namespace warpwright
