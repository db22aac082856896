// Which row of tiles of scales (facts/block_scales.h) a row's scales are in.
#pragma once

#include "warpwright/facts/block_scales.h"
#include "warpwright/isa/warp.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

/// Asked by all lanes of a warp for the same row: its row in the tiles, of which every group begins
/// with a tile of its own, or -1 where it is in no group. Without groups the row itself. The lanes
/// share the groups and add up.
WW_DEVICE std::int64_t scale_row(const tile::GroupOffsets& groups, const isa::Prerequisites& ready,
                                 std::int64_t row) {
  if (groups.groups() == 0) return row;
  const int lane = isa::lane_index();
  int before = 0;   // tiles of the groups that end before this row
  int inside = -1;  // the row's own place in its group
  for (int g = lane; g < groups.groups(); g += 32) {
    const tile::GroupSpan span = groups.span(ready, g);
    if (span.end <= row) {
      before += static_cast<int>(block_scales::padded_rows(span.end - span.first) /
                                 block_scales::kTileRows);
    }
    if (span.first <= row && row < span.end) inside = static_cast<int>(row) - span.first;
  }
  const auto of_lane = [](int value, int other) {
    return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(value), other));
  };
  WW_UNROLL
  for (int far = 16; far > 0; far /= 2) {
    before += of_lane(before, lane ^ far);
    const int theirs = of_lane(inside, lane ^ far);
    inside = theirs > inside ? theirs : inside;
  }
  return inside < 0 ? -1 : std::int64_t{before} * block_scales::kTileRows + inside;
}

}  // namespace warpwright::kernel
