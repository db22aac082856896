#pragma once

#include <cstdint>

#include "warpwright/layout/layout.h"

/// How TMA cuts a tile: which box of the tensor map goes to which run of shared memory.
namespace warpwright::layout {

/// The two sides of a TMA copy, both shaped ((box, boxes), rest...).
struct TmaPartition {
  CoordinateTensor gmem;         ///< coordinates handed to the instruction
  Layout smem;                   ///< offsets in shared memory, in elements, before the swizzle
  std::int64_t smem_offset = 0;  ///< where this CTA's multicast slice begins
};

/// The coordinate tensor of a K-major operand: a tile of `mn` rows by `k` elements, `k_tiles` of
/// them along K, whose first row is `mn_origin`. Component 0 of a coordinate runs along K.
constexpr CoordinateTensor tma_coordinates(std::int64_t mn, std::int64_t k, std::int64_t k_tiles,
                                           std::int64_t mn_origin = 0) {
  return {tuple(0, mn_origin), make_layout(tuple(tuple(mn, k), k_tiles),
                                           tuple(tuple(along(1, 1), along(1, 0)), along(k, 0)))};
}

namespace detail {

/// Mode 0 walked as `order` says and split in (box, boxes); the other modes stay.
constexpr Layout partition_mode(const Layout& l, const Layout& order) {
  Builder<Layout> builder;
  builder.add(composition(mode_of(l, 0), order));
  for (int m = 1; m < rank_of(l); ++m) builder.add(mode_of(l, m));
  return coalesce(builder.tuple(), tuple(tuple(1, 1)));
}

}  // namespace detail

/// Partitions a tile for TMA. Mode 0 of `smem` and of `gmem.layout` is the tile, in any nesting.
/// One instruction moves `box` elements, contiguous in shared memory. CTA `cta` of `cta_layout`
/// loads its slice of the box and multicasts it; the slice is seen only in the two offsets.
constexpr TmaPartition tma_partition(const Layout& smem, const CoordinateTensor& gmem,
                                     std::int64_t box, std::int64_t cta = 0,
                                     const Layout& cta_layout = Layout{}) {
  const Layout tile = mode(smem, 0);
  const std::int64_t elements = size(tile);
  if (size(gmem.layout, 0) != elements)
    refuse("tma_partition: the tile has {} elements in shared memory and {} in global memory.",
           elements, size(gmem.layout, 0));
  const std::int64_t slices = cosize(cta_layout);
  if (box <= 0 || elements % box != 0)
    refuse("tma_partition: a box of {} elements does not divide a tile of {}.", box, elements);
  if (box % slices != 0)
    refuse("tma_partition: {} multicasting CTAs do not divide a box of {} elements.", slices, box);
  if (cta < 0 || cta >= size(cta_layout))
    refuse("tma_partition: CTA {} is not in {}.", cta, cta_layout);
  // The order in which shared memory is filled, as indices of the tile.
  const Layout inverse = right_inverse(tile);
  if (elements % size(inverse) != 0)
    refuse("tma_partition: the contiguous part of {} does not divide the tile.", tile);
  const Layout order =
      logical_divide(tile_to_shape(make_layout(inverse), Tuple(elements)), make_layout(box));
  TmaPartition result;
  result.gmem.layout = detail::partition_mode(gmem.layout, order);
  result.gmem.origin = gmem.origin;
  result.smem = detail::partition_mode(smem, order);
  const std::int64_t begin = cta_layout(cta) * (box / slices);
  const Tuple slice_begin = tuple(begin, 0);
  result.gmem.origin = CoordinateTensor{gmem.origin, mode(result.gmem.layout, 0)}(slice_begin);
  result.smem_offset = mode(result.smem, 0)(slice_begin);
  return result;
}

}  // namespace warpwright::layout
