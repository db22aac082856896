// What the roles of a CTA of a Blackwell kernel share: where it stands, its pipelines, its tiles
// and its tensor memory.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/kernel/tile_mark.h"
#include "warpwright/tile/clc_tiles.h"
#include "warpwright/tile/cta_tiles.h"
#include "warpwright/tile/even_tiles.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright::kernel {

/// The ring of accumulators of a configuration, as the pipeline wants it.
template <class Tag>
struct AccumulatorsOf {
  static constexpr pipeline::UmmaAccumulatorShape value = accumulator_shape(Tag::config);
};

/// What a launch takes.
template <class Tag>
using BlackwellParamsOf = std::conditional_t<
    is_scaled(Tag::config),
    std::conditional_t<has_widths(Tag::config), BlackwellScaledWidthsParams, BlackwellScaledParams>,
    std::conditional_t<has_widths(Tag::config), BlackwellWidthsParams, BlackwellGemmParams>>;

/// A CTA as one of its threads sees it.
template <class Tag>
struct BlackwellCta {
  static constexpr BlackwellSmemMap smem = smem_map(Tag::config);
  static constexpr int ctas = ctas_of_mma(Tag::config);
  static constexpr int tmem_barrier = 1;  ///< the named barrier that publishes the tensor memory
  using TileRing = TileRingOf<Tag, tile::CanceledClusters>;

  WW_DEVICE explicit BlackwellCta(const BlackwellParamsOf<Tag>& params)
      : p(params),
        base(isa::shared_base()),
        rank(isa::cluster_rank()),
        at(p.walk.coord_of(rank)),
        mainloop(base + smem.barriers, p.walk.cluster, rank, commit_mask(p, at)),
        accumulators(base + smem.accumulators, rank),
        ring(base + smem.tiles, tile::CanceledClusters{p.cluster_size}) {}

  const BlackwellParamsOf<Tag>& p;
  isa::SharedAddress base;  ///< where shared memory begins
  int rank;                 ///< in the cluster
  atom::ClusterCoord at;
  pipeline::UmmaPipeline<StagesOf<Tag>> mainloop;
  pipeline::UmmaAccumulator<AccumulatorsOf<Tag>> accumulators;
  TileRing ring;  ///< of the tiles that come from CLC

  /// Who looks for the tiles of a role whose work is one thread's: it, or its warp together.
  static constexpr pipeline::Reader looking =
      walks_by_warp(Tag::config) ? pipeline::Reader::warp : pipeline::Reader::thread;

  /// The tiles of this CTA, for a role that is one thread or a whole warp. Groups are found in
  /// memory, which the grid before may have written.
  template <pipeline::Reader Who>
  WW_DEVICE auto tiles([[maybe_unused]] const isa::Prerequisites& ready) const {
    constexpr BlackwellConfig cfg = Tag::config;
    if constexpr (cfg.grouped) {
      static_assert(Who == pipeline::Reader::warp);
      return even(tile::cta_tiles<result_rows(cfg), result_columns(cfg), true>(
          tile::WarpScanGroups(p.walk.groups, p.walk.k_tiles, ready), p.walk.cluster, at));
    } else if constexpr (cfg.splits_k) {
      return even(tile::cta_tiles<result_rows(cfg), result_columns(cfg), false>(
          tile::SplitPersistent(p.walk.raster, p.walk.split), p.walk.cluster, at));
    } else {
      return even(walk_tiles<Tag, Who>(p.walk, at, ring));
    }
  }

  /// The column where the accumulator of a tile begins. To their barriers two that share columns
  /// are one, and alternate with its parity.
  WW_DEVICE static int accumulator_column(const pipeline::PipelineState& at) {
    constexpr BlackwellConfig cfg = Tag::config;
    return (overlaps(cfg) ? at.parity : at.stage) * accumulator_step(cfg);
  }

  /// The address of the tensor memory, once it is allocated: for the warp that owns it and the
  /// epilogue.
  WW_DEVICE isa::TmemAddress published_tmem() const {
    isa::named_barrier_sync(tmem_barrier, 32 * (1 + epilogue_warps));
    return isa::SharedView<std::uint32_t>{base + smem.tmem}.load();
  }

 private:
  // Tiles of several widths are cut evenly, but those with scales, which lie in atoms of the widest
  // from a group's first token on. For a whole product all of its rows are the tokens.
  template <class Tiles>
  WW_DEVICE auto even(const Tiles& tiles) const {
    constexpr BlackwellConfig cfg = Tag::config;
    if constexpr (has_widths(cfg)) {
      return tile::EvenTiles<Tiles, cfg.widths, cuts_evenly(cfg)>(
          tiles, cfg.grouped ? 0 : p.output.d_rows);
    } else {
      return tiles;
    }
  }

  // The CTAs whose stages the MMAs of this CTA (of its pair) read: atom::Masks::commit.
  WW_DEVICE static std::uint16_t commit_mask(const BlackwellGemmParams& p,
                                             const atom::ClusterCoord& at) {
    constexpr BlackwellConfig cfg = Tag::config;
    const int first = cfg.pair ? at.x & ~1 : at.x;
    return static_cast<std::uint16_t>(p.commit_column_mask << first |
                                      p.commit_row_mask << (at.y * p.walk.cluster.m));
  }
};

}  // namespace warpwright::kernel
