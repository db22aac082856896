// The processors that texts are made for, and what each lacks (PTX ISA 11.1.2, and "Target ISA
// Notes" of each instruction).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace warpwright::ptx {

/// "sm_90a": its number, and a letter, if there is one. With "a" a text is of this processor only,
/// with "f" of its family; either has what plain ones lack.
struct Target {
  std::string_view name = {};
  int number = 0;
  char letter = '\0';
};

/// The target of that name.
std::optional<Target> target_named(std::string_view name);
/// The known name that is nearest to one.
std::string_view nearest_target(std::string_view name);
/// The first version of PTX that has it; 78: 7.8.
int first_version(const Target& target);

/// Which targets have an instruction, in words, where this one has not: "sm_80 or later". Empty
/// where it has it, or nothing is known against it.
std::string lacking(const Target& target, std::string_view opcode);

}  // namespace warpwright::ptx
