// Machines in numbers as files: the known ones, which lie in machines/ and are compiled in, and any
// other's.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/machine_numbers.h"

namespace warpwright {

/// What is wrong with a description, as a sentence that names the number.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The first number that is missing, negative or absurd, as a sentence; nothing where there is
/// none.
std::optional<std::string> machine_fault(const MachineNumbers& machine);

/// Reads a file of machines/. Throws MachineError for what is no such text, for a number that it
/// does not know, and for what machine_fault finds.
MachineNumbers parse_machine(std::string_view text);

/// The text that parse_machine reads, a number a line.
std::string machine_text(const MachineNumbers& machine);

/// The known machine of that name, or null.
const MachineNumbers* known_machine(std::string_view name);

/// All of them, the oldest device first.
const std::vector<MachineNumbers>& known_machines();

/// The known machine of a card by what its driver calls it, "NVIDIA H100 80GB HBM3", or null.
const MachineNumbers* machine_of_card(std::string_view card);

/// The known machine that stands for an architecture where no device is named: an H200 for 90, a
/// B200 for 100, ...; for one that nobody knows, that of the nearest earlier.
const MachineNumbers& machine_of_architecture(int architecture);

}  // namespace warpwright
