// Texts that the library keeps, read part by part. Internal to plan/cost/.
#pragma once

#include <algorithm>
#include <string_view>

namespace warpwright {

/// The text up to `end` or to its own end, which it is shortened by.
inline std::string_view cut(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view found = text.substr(0, at);
  text.remove_prefix(std::min(text.size(), at + 1));
  return found;
}

}  // namespace warpwright
