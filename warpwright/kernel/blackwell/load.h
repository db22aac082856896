// The load warp of a Blackwell kernel: TMA loads of A and B into a ring of stages.
#pragma once

#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/gather.h"
#include "warpwright/kernel/blackwell/scales.h"
#include "warpwright/kernel/blackwell/slice.h"

namespace warpwright::kernel::blackwell {

/// One operand's part of a stage that this CTA loads, for all CTAs that share it.
template <class Tag>
struct RowSlice {
  WW_DEVICE explicit RowSlice(const BlackwellCta<Tag>& cta)
      : p(cta.p),
        first(cta.at.y * p.operands.a_slice_rows),
        ctas(static_cast<std::uint16_t>(p.walk.cluster.n > 1 ? p.operands.a_ctas(cta.at) : 0)),
        stages(cta.base + smem_map(Tag::config).a +
               first * atom::span_bytes(atom::SmemSwizzle::b128)) {}

  /// One thread: the rows of A from `work` on, in k_tile `k_tile`. Gated rows come 16 of each half
  /// at a time, so that both lie in the lanes of one epilogue warp; those with scales half by half,
  /// each for an accumulator of its own.
  WW_DEVICE void load(isa::SharedAddress full, const tile::Work& work, int stage,
                      int k_tile) const {
    constexpr BlackwellConfig cfg = Tag::config;
    constexpr atom::OperandTile tile = tile_a(cfg);
    const isa::SharedAddress to = stages + stage * a_bytes(cfg);
    const int k = k_tile * tile_k(cfg);
    const int batch = work.tile.batch * p.operands.a_batch;
    if constexpr (halves(cfg) > 1) {
      WW_UNROLL for (int half = 0; half < halves(cfg); ++half) {
        isa::tensor_load_to<ctas_of_mma(cfg)>(ctas, to + half * atom::tile_bytes(tile),
                                              p.operands.a, full,
                                              isa::Coords{k, work.row, half, batch});
      }
    } else if constexpr (cfg.gated) {
      constexpr int group = ctas_of_mma(cfg);
      constexpr int each = 2 * warp_rows * atom::span_bytes(tile.swizzle);
      WW_UNROLL for (int i = 0; i < cfg.tile_m / (2 * warp_rows); ++i) {
        isa::tensor_load_to<group>(ctas, to + i * each, p.operands.a, full,
                                   isa::Coords{k, work.row + i * warp_rows, 0, batch});
      }
    } else {
      load_slice<Tag>(p.staged_a, ctas, to, p.operands.a, full, k, work.row + first,
                      p.operands.a_slice_rows, batch);
    }
  }

  const BlackwellGemmParams& p;
  int first;           ///< its first row, in the tile
  std::uint16_t ctas;  ///< to whom it goes, or 0: only to this CTA
  isa::SharedAddress stages;
};

/// One warp: fills stage after stage, tile after tile. One lane loads, or all gather tokens.
template <class Tag>
WW_DEVICE void load(const BlackwellCta<Tag>& cta, const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  const bool mine = isa::elect_one();
  if (!walks_by_warp(cfg) && !mine) return;
  isa::set_role("load");
  const RowSlice<Tag> rows(cta);
  ColumnsOf<Tag> columns(cta);
  auto tiles = cta.template tiles<BlackwellCta<Tag>::looking>(ready);
  tile::Work work;
  pipeline::PipelineState state;
  while (tiles.next(work)) {
    const TileMark<Tag::config.grouped, Tag::config.swap_ab> tile_mark(work.tile);
    columns.place(work);
    WW_NO_UNROLL for (int k_tile = work.first; k_tile < work.end; ++k_tile) {
      const isa::Mark block_mark("k_tile %", k_tile);
      if (mine) {
        const isa::SharedAddress full =
            cta.mainloop.acquire(state, more_bytes(cta) - columns.missing());
        rows.load(full, work, state.stage, k_tile);
      }
      columns.load(mine, cta.mainloop.full(state), work, state.stage, k_tile);
      if constexpr (is_scaled(cfg)) {
        if (mine) {
          by_scale(cta, [&](auto scale) {
            load_scales<decltype(scale)::value>(cta, work, k_tile, state);
          });
        }
      }
      state.advance(cfg.stages);
    }
  }
  if (!mine) return;
  isa::launch_dependents();
  cta.mainloop.producer_tail(state);
}

}  // namespace warpwright::kernel::blackwell
