// CuTe's prints as ours: without the underscores of numbers known while compiling.
#pragma once

#include <string>

namespace warpwright::tests {

inline std::string without_underscores(const std::string& text) {
  // A lone `_` between commas or parentheses is a mode kept whole.
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool before_digit = i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (text[i] != '_' || !before_digit) out += text[i];
  }
  return out;
}

}  // namespace warpwright::tests
