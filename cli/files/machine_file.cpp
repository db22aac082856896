#include "cli/files/machine_file.h"

#include <fstream>
#include <iterator>

#include "cli/files/host_tensor.h"
#include "cli/files/printable.h"
#include "warpwright/facts/machines.h"

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

}  // namespace warpwright::cli
