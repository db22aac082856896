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

}  // namespace warpwright::atom
