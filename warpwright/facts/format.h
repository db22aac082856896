// Text by a pattern.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace warpwright {

/// As printf has it.
template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int n = std::snprintf(nullptr, 0, pattern, args...);  // NOLINT
  std::string text(static_cast<std::size_t>(n), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, args...);  // NOLINT
  return text;
}

}  // namespace warpwright
