// Text of files and of users in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace warpwright::cli
