// The widths of a kernel's tiles along the tokens, for readers.
#pragma once

#include <string>

#include "warpwright/tile/even_tiles.h"

namespace warpwright::kernel {

/// As a list: "16 32 64".
inline std::string widths_words(const tile::TileWidths& widths) {
  std::string words;
  for (int i = 0; i < tile::count(widths); ++i) {
    words += (i > 0 ? " " : "") + std::to_string(widths.of[i]);
  }
  return words;
}

}  // namespace warpwright::kernel
