// Tiles from CLC: the grid has a cluster for every tile, and the running ones cancel
// those that were not launched yet and do their work.
#pragma once

#include "warpwright/isa/clc.h"
#include "warpwright/isa/fence.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// The answers for a pipeline::TileRing, and who asks for them. The next one is written by the
/// asynchronous proxy, also in the CTAs of others, so ends of reading are handed on behind a proxy
/// fence and at cluster scope.
struct CanceledClusters {
  static constexpr isa::Scope reading = isa::Scope::cluster;

  const Divisor& ctas;  ///< divides the index of a CTA by the CTAs of a cluster

  WW_DEVICE int load(isa::SharedAddress answer, isa::Site site) const {
    const isa::LaunchAnswer got = isa::load_launch_answer(answer, site);
    isa::fence_proxy_async_shared(site);
    if (!isa::cluster_canceled(got, site)) return pipeline::no_tile;
    return ctas.quotient(isa::canceled_first_cta(got, site));
  }

  /// Cancels a cluster, for all CTAs of this one.
  WW_DEVICE void ask(isa::SharedAddress answer, isa::SharedAddress full, isa::Site site) const {
    if (ctas.value > 1) {
      isa::try_cancel_multicast(answer, full, site);
    } else {
      isa::try_cancel(answer, full, site);
    }
  }
};

}  // namespace warpwright::tile
