// The skeleton of kernels whose warps have roles, of every family. Who does what is a kernel's own
// story (hopper/gemm.h, blackwell/gemm.h, registers/ring_gemm.h), which is told in these words:
//
//   initialise_barriers   one warp makes the barriers, before all threads meet
//   await_cluster         all threads meet those of the peers
//   give_registers        warps that load, schedule or idle
//   take_registers        warps that multiply
//   walk_tiles            every role goes over the tiles of its CTA
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/params.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/tile/cta_tiles.h"
#include "warpwright/tile/numbers.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The rings of a configuration, as pipelines want them: of stages, and of the next tiles.
template <class Tag>
struct StagesOf {
  static constexpr auto value = mainloop_shape(Tag::config);
};
template <class Tag>
struct NextTilesOf {
  static constexpr pipeline::TileRingShape value = tile_ring_shape(Tag::config);
};
template <class Tag, class Source>
using TileRingOf = pipeline::TileRing<NextTilesOf<Tag>, Source>;

/// One warp of the CTA, of which a lane calls `make`, which initialises the barriers.
template <class Make>
WW_DEVICE void initialise_barriers(const Make& make) {
  isa::set_role("initialiser");
  if (isa::elect_one()) {
    make();
    isa::fence_mbarrier_init();
  }
}

/// All threads of a cluster, until the barriers of all its CTAs may be used. (A CTA by itself needs
/// no more than a barrier of its threads.)
WW_DEVICE void await_cluster(isa::Site site = isa::Site::here()) {
  const isa::Call call(site);
  // Relaxed: the fence publishes the barriers, and nothing else was written.
  isa::cluster_arrive_relaxed();
  isa::cluster_wait();
}

/// All warps of the first warpgroup: they leave most of their registers to the consumers.
template <class Tag>
WW_DEVICE void give_registers(isa::Site site = isa::Site::here()) {
  const isa::Call call(site);
  constexpr auto cfg = Tag::config;
  if constexpr (moves_registers(cfg)) isa::decrease_registers<producer_registers(cfg)>();
}
/// All consumer warps. Waits until the others have given.
template <class Tag>
WW_DEVICE void take_registers(isa::Site site = isa::Site::here()) {
  const isa::Call call(site);
  constexpr auto cfg = Tag::config;
  if constexpr (moves_registers(cfg)) isa::increase_registers<consumer_registers(cfg)>();
}

/// The whole tiles of the CTA at `at` of its cluster, for a role that is `Who`: its static
/// persistent walk, or those that it learns from `ring`.
template <class Tag, pipeline::Reader Who, class Ring>
WW_DEVICE auto walk_tiles(const WalkParams& p, atom::ClusterCoord at, const Ring& ring) {
  constexpr auto cfg = Tag::config;
  const auto own = [&](const auto& scheduler) {
    return tile::cta_tiles<result_rows(cfg), result_columns(cfg), false>(scheduler, p.cluster, at);
  };
  if constexpr (asks_for_tiles(cfg)) {
    return own(tile::Persistent(p.raster, p.k_tiles, tile::ClcNumbers<Ring, Who>(ring)));
  } else {
    return own(tile::Persistent(p.raster, p.k_tiles));
  }
}

}  // namespace warpwright::kernel
