// What the roles of a CTA of a Hopper kernel share: where it stands, its ring of stages, and which
// tiles are its own.
#pragma once

#include <type_traits>
#include <utility>

#include "warpwright/isa/fence.h"
#include "warpwright/kernel/hopper/smem_map.h"
#include "warpwright/kernel/params.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/tile/cta_tiles.h"
#include "warpwright/tile/even_tiles.h"
#include "warpwright/tile/numbers.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright::kernel {

/// The ring of stages.
template <class Tag>
using MainloopPipeline = pipeline::TmaPipeline<StagesOf<Tag>>;
/// The ring of the tiles that its cluster draws.
template <class Tag>
using TileRing = TileRingOf<Tag, tile::DynamicNumbers>;

/// `base` is where shared memory begins.
template <class Tag>
WW_DEVICE TileRing<Tag> tile_ring(isa::SharedAddress base) {
  return TileRing<Tag>(base + smem_map(Tag::config).tiles, {});
}

/// Only parameters say which tiles of a dense product are a CTA's.
struct NothingToAwait {
  constexpr NothingToAwait() = default;
  // NOLINTNEXTLINE: to have awaited more is as good
  WW_DEVICE constexpr NothingToAwait(const isa::Prerequisites& /*ready*/) {}
};
/// What a CTA must have waited for before it looks for its tiles: groups are found in memory.
template <class Tag>
using TilesAwait = std::conditional_t<is_grouped(Tag::config), isa::Prerequisites, NothingToAwait>;

/// What a launch takes.
template <class Tag>
using ParamsOf = std::conditional_t<has_widths(Tag::config), WidthsGemmParams, GemmParams>;

/// A CTA as one of its threads sees it.
template <class Tag>
struct Cta {
  const ParamsOf<Tag>& p;
  isa::SharedAddress base;  ///< where shared memory begins
  int rank;                 ///< among the CTAs that share operands
  atom::ClusterCoord at;    ///< among them
  TilesAwait<Tag> ready;
  MainloopPipeline<Tag> ring;
};

/// The numbers of the tiles that a cluster works on, for a role that is `Who`.
template <class Tag, pipeline::Reader Who>
WW_DEVICE auto make_numbers(const Cta<Tag>& cta) {
  if constexpr (is_dynamic_persistent(Tag::config)) {
    return tile::ClcNumbers<TileRing<Tag>, Who>(tile_ring<Tag>(cta.base));
  } else {
    return tile::StaticNumbers();
  }
}

/// Which tiles, or shares of tiles, a cluster works on. `spans`: the rows of groups for who looks
/// for them as a warp, or the proof that memory has them.
template <class Tag, pipeline::Reader Who, class Spans>
WW_DEVICE auto make_scheduler(const Cta<Tag>& cta, [[maybe_unused]] const Spans& spans) {
  constexpr GemmConfig cfg = Tag::config;
  const WalkParams& p = cta.p.walk;
  if constexpr (grouping(cfg) == Grouping::linear_scan) {
    return tile::LinearScanGroups(p.groups, p.k_tiles, cta.ready, make_numbers<Tag, Who>(cta));
  } else if constexpr (grouping(cfg) == Grouping::warp_scan) {
    return tile::WarpScanGroups(p.groups, p.k_tiles, spans, make_numbers<Tag, Who>(cta));
  } else if constexpr (grouping(cfg) == Grouping::binary_search) {
    const tile::GroupTable table(p.groups, cta.base + smem_map(cfg).groups, threads(cfg));
    return tile::BinarySearchGroups(p.groups, table, p.k_tiles, cta.ready,
                                    make_numbers<Tag, Who>(cta));
  } else if constexpr (splits_k(cfg)) {
    return tile::SplitPersistent(p.raster, p.split);
  } else if constexpr (slices_k(cfg)) {
    return tile::SlicedTiles(p.raster, p.slices);
  } else if constexpr (shares_cluster_k(cfg)) {
    return tile::ClusterSplit(p.raster, p.k_tiles, p.cluster_k);
  } else {
    return tile::Persistent(p.raster, p.k_tiles, make_numbers<Tag, Who>(cta));
  }
}

/// The tiles, or shares of tiles, that the CTA works on. All roles make their own.
template <class Tag, pipeline::Reader Who = pipeline::Reader::warp, class Spans>
WW_DEVICE auto make_walk(const Cta<Tag>& cta, const Spans& spans) {
  constexpr GemmConfig cfg = Tag::config;
  const auto tiles = tile::cta_tiles<result_rows(cfg), result_columns(cfg), is_swapped(cfg)>(
      make_scheduler<Tag, Who>(cta, spans), cta.p.walk.cluster, cta.at);
  if constexpr (has_widths(cfg)) {
    return tile::EvenTiles<std::remove_cv_t<decltype(tiles)>, tile_widths(cfg)>(tiles);
  } else {
    return tiles;
  }
}
template <class Tag, pipeline::Reader Who = pipeline::Reader::warp>
WW_DEVICE auto make_walk(const Cta<Tag>& cta) {
  return make_walk<Tag, Who>(cta, cta.ready);
}
template <class Tag, pipeline::Reader Who = pipeline::Reader::warp>
using Walk = decltype(make_walk<Tag, Who>(std::declval<const Cta<Tag>&>()));
/// For who may find tiles before memory says whose they are.
template <class Tag>
using WalkAhead = decltype(make_walk<Tag, pipeline::Reader::warp>(
    std::declval<const Cta<Tag>&>(), std::declval<const tile::SpansAhead&>()));

/// Who looks for the tiles that are loaded: the thread that loads, or its warp together.
template <class Tag>
inline constexpr pipeline::Reader loading = grouping(Tag::config) == Grouping::warp_scan
                                                ? pipeline::Reader::warp
                                                : pipeline::Reader::thread;

/// One warp of every CTA: draws the tiles of its cluster.
template <class Tag>
WW_DEVICE void schedule(const Cta<Tag>& cta, const isa::Prerequisites& ready) {
  const WalkParams& p = cta.p.walk;
  int count = p.raster.count;
  if constexpr (is_grouped(Tag::config)) count = tile::tile_count(p.groups, ready);
  // A cluster without a tile asks for none, and its roles look for none.
  if (!isa::elect_one() || isa::cluster_index() >= count) return;
  tile_ring<Tag>(cta.base).schedule(
      tile::DrawingScheduler{p.counter, count, atom::cluster_size(p.cluster), ready}, cta.rank);
}

}  // namespace warpwright::kernel
