// Which row of tiles of scales a row's scales are in, in a kernel: for device/'s .cu files.
#pragma once

#include "warpwright/device/scale_order.h"
#include "warpwright/facts/block_scales.h"

namespace warpwright::device {

/// Asked by all lanes of a warp for the same row of `rows`: its row in the tiles, or -1 where it is
/// in no group. The lanes share the groups and add up.
inline __device__ std::int64_t scale_row(const ScaleGroups& groups, std::int64_t row,
                                         std::int64_t rows) {
  if (groups.count == 0) return row;
  const auto offset = [&](std::int64_t i) {
    const std::int64_t at = groups.type == OffsetType::int32
                                ? static_cast<const std::int32_t*>(groups.offsets)[i]
                                : static_cast<const std::int64_t*>(groups.offsets)[i];
    return at < 0 ? 0 : at > rows ? rows : at;
  };
  std::int64_t before = 0;   // rows of tiles of the groups that end before this row
  std::int64_t inside = -1;  // the row's own place in its group
  for (std::int64_t g = threadIdx.x % 32; g < groups.count; g += 32) {
    const std::int64_t begin = offset(g);
    const std::int64_t end = offset(g + 1);
    if (end <= row) before += block_scales::padded_rows(end > begin ? end - begin : 0);
    if (begin <= row && row < end) inside = row - begin;
  }
  for (int d = 16; d > 0; d /= 2) {
    before += __shfl_xor_sync(0xffffffffU, before, d);
    const std::int64_t theirs = __shfl_xor_sync(0xffffffffU, inside, d);
    inside = theirs > inside ? theirs : inside;
  }
  return inside < 0 ? -1 : before + inside;
}

}  // namespace warpwright::device
