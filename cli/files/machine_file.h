// Files that describe a device: its numbers, and its correction of floors.
#pragma once

#include <memory>
#include <string>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/correction.h"

namespace warpwright::cli {

/// The files that plans follow, as they were typed; empty texts were not given.
struct DeviceFiles {
  std::string machine;     ///< a device in numbers
  std::string correction;  ///< what its measured times are beside floors
};

/// The machine of the file that `option` names. Throws InputError, which names the number that is
/// missing or absurd.
MachineNumbers read_machine(const char* option, const std::string& path);

/// The correction of the file of --correction. Throws InputError, which says line and word.
std::shared_ptr<const Correction> given_correction(const std::string& path);

}  // namespace warpwright::cli
