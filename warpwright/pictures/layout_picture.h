// Layouts as pictures: where each element lies, and what an operation makes of two layouts.
#pragma once

#include <cstdint>
#include <string>

#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// The most cells that the grids of one picture have together.
inline constexpr std::int64_t kMostCells = 4096;

/// What the colours of a layout's cells tell.
enum class LayoutColour {
  offsets,  ///< which eighth of the memory that the layout reaches
  threads,  ///< of a layout (thread, value): who holds the element
  values,   ///< of a layout (thread, value): as which of its values
  banks,    ///< the bank of shared memory in which the element begins
};

/// What is drawn.
struct LayoutAsk {
  std::string layout;     ///< an expression (see layout/expression.h)
  std::string operation;  ///< "" for only the layout, or "composition", "logical_divide", ...
  std::string with;       ///< the operation's second argument, an expression
  LayoutColour colour = LayoutColour::offsets;
  std::int64_t tile_rows = 0, tile_columns = 0;  ///< of `threads` and `values`: their tile
  int element_bits = 16;                         ///< of `banks`
};

/// A picture of one view, of a TiledCopy two: who reads and who writes the elements of its tile.
/// For an operation: both arguments and the result side by side, in colours that show which element
/// comes from where. Throws layout::Error with one sentence.
Picture layout_picture(const LayoutAsk& ask);

}  // namespace warpwright::pictures
