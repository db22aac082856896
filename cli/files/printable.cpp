#include "cli/files/printable.h"

#include <algorithm>
#include <cstdint>

#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: the text does not begin with a character of UTF-8
};

// The first character of a text that is not empty.
Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  // Only the shortest spelling is legal, and neither surrogates nor what lies beyond Unicode are.
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

bool is_shown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  const bool ends_a_line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return !ends_a_line && !turns;
}

std::string escape(std::uint32_t code, bool is_byte) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return format(is_byte || code < 0x80 ? "\\x%02x" : "\\u%04x", code);
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    const std::size_t bytes = next.bytes == 0 ? 1 : next.bytes;
    if (bytes > limit - at) return shown + "...";
    if (next.bytes == 0) {
      shown += escape(static_cast<unsigned char>(text[at]), true);
    } else if (is_shown(next.code)) {
      shown += text.substr(at, bytes);
    } else {
      shown += escape(next.code, false);
    }
    at += bytes;
  }
  return shown;
}

std::string in_quotes(std::string_view name) {
  return "\"" + printable(name, 80) + "\"";
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.bytes == 0) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c] + std::string(width[c] - row[c].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace warpwright::cli
