#include "cli/files/machine_file.h"

#include <fstream>
#include <iterator>

#include "cli/files/host_tensor.h"
#include "cli/files/printable.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/learnt.h"

namespace warpwright::cli {

MachineNumbers read_machine(const char* option, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw InputError(std::string(option) + " is " + printable(path) + ", which cannot be read: " +
                     as_rule("give a file as those of machines/") + ".");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return parse_machine(text);
  } catch (const MachineError& fault) {
    throw InputError(printable(path) + ": " + fault.what());
  }
}

std::shared_ptr<const Correction> given_correction(const std::string& path) {
  auto read = read_correction(path);
  if (!read) {
    throw InputError("--correction is " + printable(path) + "; " + read.refusal() + ".");
  }
  return std::make_shared<const Correction>(*std::move(read));
}

}  // namespace warpwright::cli
