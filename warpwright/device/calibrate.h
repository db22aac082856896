// What the units of a CUDA device take, measured by probes: the numbers of facts/machine_numbers.h.
#pragma once

#include <string>
#include <vector>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/refusal.h"

namespace warpwright::device {

/// One number, measured several times. For a curve the name is the curve's, and `size` its point.
struct MeasuredNumber {
  std::string name;  ///< as MachineNumbers has it
  int size = 0;
  std::string how;  ///< by which probe, in a few words
  std::vector<double> rounds;
};

/// All that probes measure, on CUDA device `index`, each `rounds` times, in well below a minute.
/// Takes 1 GiB of its memory meanwhile. Waits. Refuses where there is no such device, or none of
/// sm_90.
Result<std::vector<MeasuredNumber>> measure_machine(int index, int rounds = 5);

/// Why a device has no probes, or nothing.
inline std::optional<Refusal> probes_fault(const DeviceFacts& facts) {
  if (facts.architecture == 90) return std::nullopt;
  return refuse(RefusalCode::wrong_device, facts.name, " is sm_", facts.architecture,
                ", and the probes are of sm_90: ", as_rule("take an H100, H200 or H20"));
}

}  // namespace warpwright::device
