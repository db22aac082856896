#include "cli/files/times_file.h"

#include <fstream>
#include <iterator>

#include "cli/files/host_tensor.h"
#include "cli/files/printable.h"

namespace warpwright::cli {

std::vector<MeasuredTime> read_times(const std::string& option, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(option + ": " + printable(path) + " cannot be read.");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto times = parse_times(text);
  if (!times) throw InputError(option + ": " + printable(path) + ": " + times.refusal() + ".");
  return *times;
}

}  // namespace warpwright::cli
