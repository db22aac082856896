// The load warp of a Blackwell kernel: TMA loads of A and B into a ring of stages.
#pragma once

#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/scales.h"

namespace warpwright::kernel::blackwell {

/// One thread: fills stage after stage, tile after tile.
template <class Tag>
WW_DEVICE void load(const BlackwellCta<Tag>& cta) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  constexpr int ctas = ctas_of_mma(cfg);
  const auto& p = cta.p;
  constexpr int a_bytes = atom::tile_bytes(tile_a(cfg));
  constexpr int b_bytes = atom::tile_bytes(tile_b(cfg));
  constexpr int span = atom::span_bytes(atom::SmemSwizzle::b128);
  isa::set_role("load");
  const atom::ClusterCoord at = cta.at;
  // Which half of B, and which of the MMAs that share it along M.
  const int half = cfg.pair ? at.x & 1 : 0;
  const int mma = cfg.pair ? at.x / 2 : at.x;
  const bool shares_a = p.walk.cluster.n > 1;
  const bool shares_b = p.walk.cluster.m > ctas;
  const auto a_ctas = static_cast<std::uint16_t>(shares_a ? p.operands.a_ctas(at) : 0);
  const auto b_ctas =
      static_cast<std::uint16_t>(shares_b ? p.operands.b_ctas(at, p.walk.cluster) << half : 0);
  const int a_slice = at.y * p.operands.a_slice_rows;
  const int b_slice = mma * p.operands.b_slice_rows;
  auto tiles = cta.template tiles<pipeline::Reader::thread>();
  tile::Work work;
  pipeline::PipelineState state;
  while (tiles.next(work)) {
    const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
    const int row_a = work.row + a_slice;
    const int row_b = work.column + half * tile_b(cfg).rows + b_slice;
    for (int k_tile = 0; k_tile < p.walk.k_tiles; ++k_tile) {
      const isa::Mark block_mark("k_tile %", k_tile);
      const isa::SharedAddress full = acquire_stage(cta, state);
      const isa::SharedAddress a = cta.base + smem.a + state.stage * a_bytes + a_slice * span;
      const isa::SharedAddress b = cta.base + smem.b + state.stage * b_bytes + b_slice * span;
      const int k = k_tile * tile_k(cfg);
      isa::tensor_load_to<ctas>(a_ctas, a, p.operands.a, full,
                                isa::Coords{k, row_a, work.tile.batch * p.operands.a_batch});
      isa::tensor_load_to<ctas>(b_ctas, b, p.operands.b, full,
                                isa::Coords{k, row_b, work.tile.batch * p.operands.b_batch});
      if constexpr (is_scaled(cfg)) load_scales(cta, work, k_tile, state, full);
      state.advance(cfg.stages);
    }
  }
  isa::launch_dependents();
  cta.mainloop.producer_tail(state);
}

}  // namespace warpwright::kernel::blackwell
