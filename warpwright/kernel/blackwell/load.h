// The load warp of a Blackwell kernel: TMA loads of A and B into a ring of stages.
#pragma once

#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/blackwell/cta.h"

namespace warpwright::kernel::blackwell {

/// A k_tile's slice of one operand, its rows from `row` on: a box of all of them, or, MN-major,
/// boxes of a span of rows each.
template <bool IsA, class Tag>
WW_DEVICE void load_slice(const BlackwellCta<Tag>& cta, std::uint16_t ctas, isa::SharedAddress to,
                          isa::SharedAddress full, int k, int row, int batch) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr atom::OperandTile tile = IsA ? tile_a(cfg) : tile_b(cfg);
  const BlackwellGemmParams& p = cta.p;
  const isa::TensorMap& map = IsA ? p.operands.a : p.operands.b;
  if (!takes_any_major(cfg) || !(IsA ? p.staged_a : p.staged_b).mn_major) {
    isa::tensor_load_to<ctas_of_mma(cfg)>(ctas, to, map, full, isa::Coords{k, row, batch});
    return;
  }
  constexpr int box = atom::span_elements(tile);
  const int rows = IsA ? p.operands.a_slice_rows : p.operands.b_slice_rows;
  WW_NO_UNROLL for (int r = 0; r < rows; r += box) {
    isa::tensor_load_to<ctas_of_mma(cfg)>(ctas, to + r * atom::span_bytes(tile.swizzle), map, full,
                                          isa::Coords{row + r, k, batch});
  }
}

/// One thread: fills stage after stage, tile after tile.
template <class Tag>
WW_DEVICE void load(const BlackwellCta<Tag>& cta) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  constexpr int ctas = ctas_of_mma(cfg);
  const BlackwellGemmParams& p = cta.p;
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
    for (int k_tile = work.first; k_tile < work.end; ++k_tile) {
      const isa::Mark block_mark("k_tile %", k_tile);
      const isa::SharedAddress full = cta.mainloop.acquire(state);
      const isa::SharedAddress a = cta.base + smem.a + state.stage * a_bytes + a_slice * span;
      const isa::SharedAddress b = cta.base + smem.b + state.stage * b_bytes + b_slice * span;
      const int k = k_tile * tile_k(cfg);
      load_slice<true>(cta, a_ctas, a, full, k, row_a, work.tile.batch * p.operands.a_batch);
      load_slice<false>(cta, b_ctas, b, full, k, row_b, work.tile.batch * p.operands.b_batch);
      state.advance(cfg.stages);
    }
  }
  isa::launch_dependents();
  cta.mainloop.producer_tail(state);
}

}  // namespace warpwright::kernel::blackwell
