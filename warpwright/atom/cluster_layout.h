// The cluster as a layout value: (V, M, N, K) -> rank.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/layout/layout.h"

namespace warpwright::atom {

/// CuTe's `cluster_layout_vmnk`: maps (CTA within an MMA, MMA along M, MMA along N, 0) to the rank
/// of the CTA. For 4 x 4: `((1),4,4,1):((0),1,4,0)`, and with pairs `((2),2,4,1):((1),2,4,0)`. The
/// shape must be legal. Facts: tiled_divide(cluster, AtomThrID), CUTLASS copy_traits_sm90_tma.hpp.
constexpr layout::Layout cluster_layout_vmnk(ClusterShape shape, bool pair) {
  return layout::tiled_divide(layout::make_layout(layout::tuple(shape.m, shape.n, 1)),
                              layout::make_tiler(layout::tuple(pair ? 2 : 1)));
}

/// The CTAs that a layout (coordinate -> rank) reaches when the modes of `modes` run and the others
/// stay as in `at`, a bit each: CuTe's make_layout_image_mask, and create_tma_multicast_mask for
/// any modes. Modes outside the layout's and ranks past 15 are refused.
template <class... Mode>
constexpr std::uint16_t layout_image_mask(const layout::Layout& ranks, const layout::Tuple& at,
                                          Mode... modes) {
  if (layout::rank(at) != layout::rank(ranks))
    layout::refuse("a coordinate of rank {} does not fit {}.", layout::rank(at), ranks);
  layout::detail::Builder<layout::Tuple> builder;
  for (int m = 0; m < layout::rank(ranks); ++m)
    builder.add(((m == modes) || ...) ? layout::Tuple(layout::kAll) : layout::mode(at, m));
  const auto check = [&](int mode) {
    if (mode < 0 || mode >= layout::rank(ranks))
      layout::refuse("there is no mode {} in {}: modes are 0 to {}.", mode, ranks,
                     layout::rank(ranks) - 1);
  };
  (check(modes), ...);
  const layout::Slice image = layout::slice(ranks, builder.tuple());
  unsigned mask = 0;
  for (std::int64_t i = 0; i < layout::size(image.layout); ++i) {
    const std::int64_t rank = image.offset + image.layout(i);
    if (rank < 0 || rank >= kMaxClusterSize)
      layout::refuse("rank {} of {} has no bit: a mask has {} of them.", rank, ranks,
                     kMaxClusterSize);
    mask |= 1U << rank;
  }
  return static_cast<std::uint16_t>(mask);
}

/// The coordinate (V, M, N, K) of a rank in `cluster_layout_vmnk`.
constexpr layout::Tuple cluster_coordinate_vmnk(ClusterShape shape, bool pair, int rank) {
  const ClusterCoord at = coord_of(shape, rank);
  return pair ? layout::tuple(at.x % 2, at.x / 2, at.y, 0) : layout::tuple(0, at.x, at.y, 0);
}

}  // namespace warpwright::atom
