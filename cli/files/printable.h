// Text of files and of users: in messages, in lists, and as numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace warpwright::cli {

/// `text` as a terminal may show it: what is no printable UTF-8 is written out. Control characters
/// become \n, \t, \r, \x1b or \u009b, bytes that are no UTF-8 become \xff, and so do the characters
/// that end lines or turn the direction of writing (\u202e). Behind `limit` bytes, never within a
/// character, it ends with "...". Text that has been through it comes out as it is.
std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

/// `printable` in double quotes, cut to the length of a name.
std::string in_quotes(std::string_view name);

/// Whether all of `text` is UTF-8.
bool is_utf8(std::string_view text);

/// The words of a list, `word` of each, with `between` two and `before_last` before the last where
/// that is another: "a, b or c".
template <class List, class Word = std::identity>
std::string joined(const List& list, const char* between = ", ", const char* before_last = nullptr,
                   const Word& word = {}) {
  std::string text;
  for (auto at = std::begin(list); at != std::end(list);) {
    text += std::invoke(word, *at);
    if (++at == std::end(list)) break;
    const bool is_last = std::next(at) == std::end(list);
    text += is_last && before_last != nullptr ? before_last : between;
  }
  return text;
}

/// Those of a list that `keep` keeps.
template <class List, class Keep>
auto kept(const List& list, const Keep& keep) {
  std::vector<std::decay_t<decltype(*std::begin(list))>> some;
  std::copy_if(std::begin(list), std::end(list), std::back_inserter(some), keep);
  return some;
}

/// The words of whole numbers, with commas.
template <class Numbers>
std::string joined_numbers(const Numbers& numbers) {
  return joined(numbers, ",", ",", [](auto number) { return std::to_string(number); });
}

/// Rows of a table below one another, each column as wide as its widest word.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

/// The number that is all of `text`; nothing where it is none, or beyond its type.
template <class Number>
std::optional<Number> as_number(std::string_view text) {
  Number value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace warpwright::cli
