// The slice of a tile in a timeline, under the name of its place in D: where operands are swapped,
// the kernel's M is D's columns.
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// Opens the slice of a tile, those of different groups under different names.
template <bool grouped, bool swapped>
WW_DEVICE void mark_tile(const tile::TilePosition& tile) {
  const int row = swapped ? tile.n : tile.m;
  const int column = swapped ? tile.m : tile.n;
  if constexpr (grouped) {
    isa::mark_begin("group % tile m % n %", tile.batch, row, column);
  } else {
    isa::mark_begin("tile m % n %", row, column);
  }
}

/// A tile's slice as long as a scope.
template <bool grouped, bool swapped>
class TileMark {
 public:
  WW_DEVICE explicit TileMark(const tile::TilePosition& tile) { mark_tile<grouped, swapped>(tile); }
  WW_DEVICE ~TileMark() { isa::mark_end(); }
  TileMark(const TileMark&) = delete;
  TileMark& operator=(const TileMark&) = delete;
};

}  // namespace warpwright::kernel
