// Lines of words in columns.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace warpwright::atom {

/// A title, and below it the lines, each word as wide as the widest of its column.
inline std::string aligned(const char* title, const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> width(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  }
  std::string text = std::string(title) + "\n";
  for (const auto& line : lines) {
    std::string one;
    for (std::size_t i = 0; i < line.size(); ++i)
      one +=
          std::string(i == 0 ? 2 : 3, ' ') + line[i] + std::string(width[i] - line[i].size(), ' ');
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace warpwright::atom
