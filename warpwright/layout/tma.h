#pragma once

#include <cstdint>

#include "warpwright/layout/copy.h"

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

// ---------------------------------------------------------------- atoms

namespace detail {

/// The first leaves of a flat layout of coordinates that walk single steps: what one box can hold.
/// Boxes reach 256 elements along a mode.
constexpr Layout box_modes(const Layout& order) {
  Builder<Layout> builder;
  for (int i = 0; i < order.count && order.stride[i].value == 1; ++i)
    builder.add(single(order.shape[i], order.stride[i]));
  if (builder.modes == 0)
    refuse("no box fits: shared memory does not begin with neighbours of {}.", order);
  return builder.tuple();
}

}  // namespace detail

/// A TMA copy of a tile of a tensor in global memory to shared memory: CuTe's make_tma_atom and, of
/// the two CTAs of a pair, each its half, make_tma_atom_A_sm100.
///
/// `tile` says which elements of the tensor the tile's are (a tensor of coordinates of it, in the
/// order of `smem`); `ctas` is 1, or 2 for a pair. One instruction fills what lies side by side in
/// shared memory and in the tensor map's box. `smem` has no swizzle here.
constexpr CopyAtom make_tma_atom(const Tensor& gmem, const Layout& smem, const Layout& tile,
                                 int multicast, int ctas) {
  const int bits = gmem.pointer.bits;
  if (size(smem) != size(tile))
    refuse("make_tma_atom: the tile has {} elements in shared memory and {} in global memory.",
           size(smem), size(tile));
  const Layout order = coalesce(composition(tile, right_inverse(smem)));
  const Layout box = detail::box_modes(order);
  const auto stride_of = [&](int basis) { return mode(gmem.layout, basis).stride[0].value; };
  if (stride_of(box.stride[0].basis) != 1)
    refuse(
        "make_tma_atom: shared memory and global memory are contiguous along different modes of "
        "{}, and TMA transposes nothing.",
        gmem.layout);
  for (int i = 0; i < box.count; ++i)
    if (box.shape[i] > 256)
      refuse("make_tma_atom: a box has at most 256 elements along a mode, and here {}.",
             box.shape[i]);
  if (size(box) % multicast != 0)
    refuse("make_tma_atom: {} multicasting CTAs do not divide a box of {} elements.", multicast,
           size(box));
  // Components of a coordinate: the box's modes in their order, then the tensor's others.
  Layout coordinates = gmem.layout;
  int next = 0;
  const auto name = [&](int basis) {
    coordinates.stride[basis] = {coordinates.shape[basis] == 1 ? 0 : 1, next};
    if (coordinates.shape[basis] == 1) coordinates.stride[basis].basis = -1;
    if (coordinates.shape[basis] != 1) ++next;
  };
  bool named[kMaxLeaves] = {};
  for (int i = 0; i < box.count; ++i) {
    const int basis = box.stride[i].basis;
    if (!named[basis]) name(basis);
    named[basis] = true;
  }
  for (int i = 0; i < coordinates.count; ++i)
    if (!named[i]) name(i);
  const std::int64_t n = size(box);
  const Layout values = make_layout(tuple(ctas, n), tuple(ctas == 1 ? 0 : n, 1));
  return {make_layout(ctas), values, values, values, bits, coordinates};
}

/// Elements of one instruction of a TMA copy, before CTAs share it.
constexpr std::int64_t box_of(const CopyAtom& atom) {
  return size(atom.src, 1);
}

}  // namespace warpwright::layout
