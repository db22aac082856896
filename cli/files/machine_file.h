// Machines in numbers in files.
#pragma once

#include <string>

#include "warpwright/facts/machine_numbers.h"

namespace warpwright::cli {

/// The machine of the file that `option` names. Throws InputError, which names the number that is
/// missing or absurd.
MachineNumbers read_machine(const char* option, const std::string& path);

}  // namespace warpwright::cli
