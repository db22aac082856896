// What options that take numbers make of what was typed, in words of this command line.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "cli/files/printable.h"
#include "warpwright/plan/product/refusal.h"

namespace warpwright::cli {

/// Stands before and behind the nearest legal value: what checks an option hands on only a text.
inline constexpr char nearest_mark = '\x1f';

/// Why a text is no integer from `least` to `most`, as typed; empty when it is one. CLI11 by itself
/// clamps what is too large, and then another number than the one typed is refused.
inline std::string integer_fault(const std::string& text, std::int64_t least, std::int64_t most) {
  const std::string typed = "\"" + text + "\"";
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || std::string(" \t\n").find(text.front()) != std::string::npos ||
      end != text.c_str() + text.size()) {
    const bool joined = text.find_first_not_of("0123456789xX,*") == std::string::npos;
    return typed + " is no integer" + (joined ? ": numbers stand with spaces between them" : "");
  }
  if (errno == 0 && value >= least && value <= most) return {};
  const bool is_small = text.find('-') != std::string::npos;
  return text + " is too " + (is_small ? "small" : "large") + ": the nearest legal value is " +
         nearest_mark + std::to_string(is_small ? least : most) + nearest_mark;
}

/// The sentence of a text with such marks.
inline Sentence unmarked(const std::string& text) {
  const std::size_t begin = text.find(nearest_mark);
  if (begin == std::string::npos) return text;
  const std::size_t end = text.find(nearest_mark, begin + 1);
  return text.substr(0, begin) + as_nearest(text.substr(begin + 1, end - begin - 1)) +
         text.substr(end + 1);
}

/// The check of an option of type T. What T does not hold is refused with `least` or `most` for the
/// nearest; what it does hold goes on to rules that name the thing itself.
template <class T = int>
auto whole(std::int64_t least = 1, std::int64_t most = std::numeric_limits<T>::max()) {
  return [least, most](const std::string& text) {
    using Limits = std::numeric_limits<T>;
    const std::string fault = integer_fault(text, Limits::min(), Limits::max());
    return fault.empty() ? fault : integer_fault(text, least, most);
  };
}

/// Why a text is no seed; empty when it is one. CLI11 by itself would wrap or clamp it.
inline std::string refuse_seed(const std::string& text) {
  if (as_number<std::uint64_t>(text)) return {};
  return "\"" + text + "\" is no integer from 0 to 18446744073709551615";
}

/// Why a text is no number; empty when it is one.
inline std::string number_fault(const std::string& text) {
  char* end = nullptr;
  static_cast<void>(std::strtod(text.c_str(), &end));
  const bool is_one = !text.empty() && end == text.c_str() + text.size();
  return is_one ? "" : "\"" + text + "\" is no number";
}

}  // namespace warpwright::cli
