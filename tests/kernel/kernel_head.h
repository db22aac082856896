// The table of barriers at the head of a kernel file.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace warpwright {

/// The rows of the table "barrier copies arrivals ..." of warpwright/kernel/`name`: the barrier,
/// and all that its line says. Empty when there is none.
inline std::vector<std::pair<std::string, std::string>> barriers_in_head(const char* name) {
  std::ifstream file(std::filesystem::path(WARPWRIGHT_SOURCE) / "warpwright" / "kernel" / name);
  std::vector<std::pair<std::string, std::string>> table;
  std::string line;
  bool inside = false;
  while (std::getline(file, line) && line.rfind("//", 0) == 0) {
    std::istringstream words(line.substr(2));
    std::string barrier;
    words >> barrier;
    if (barrier == "barrier") {
      inside = true;
      continue;
    }
    if (inside && barrier.empty()) break;
    if (inside && line.find_first_not_of(' ', 2) == 5) table.emplace_back(barrier, line);
  }
  return table;
}

}  // namespace warpwright
