// The MMA warp of a Blackwell kernel: it owns the tensor memory, and one of its threads multiplies
// out of the ring of stages into accumulators.
#pragma once

#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/scales.h"

namespace warpwright::kernel::blackwell {

/// One k_tile: the MMAs on the operands of a stage, which may have scales. The first of a tile
/// overwrites D.
template <class Tag>
WW_DEVICE void multiply_k_tile(const BlackwellCta<Tag>& cta, isa::TmemAddress d,
                               const pipeline::PipelineState& state, const ScalesAt& scales,
                               bool accumulate) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  constexpr atom::OperandTile a = tile_a(cfg);
  constexpr atom::OperandTile b = tile_b(cfg);
  const std::uint64_t a0 =
      atom::encode_umma(atom::descriptor(a, cta.base + smem.a + state.stage * atom::tile_bytes(a)));
  const std::uint64_t b0 =
      atom::encode_umma(atom::descriptor(b, cta.base + smem.b + state.stage * atom::tile_bytes(b)));
  WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(a); ++k_block) {
    const std::uint64_t at_a = atom::advance(a0, atom::k_block_offset<a>(k_block));
    const std::uint64_t at_b = atom::advance(b0, atom::k_block_offset<b>(k_block));
    const bool adds = accumulate || k_block > 0;
    if constexpr (is_scaled(cfg)) {
      multiply_scaled<Tag>(d, at_a, at_b, cta.p.instruction, scales, k_block, adds);
    } else {
      isa::tcgen05_mma<cfg.kind, ctas_of_mma(cfg)>(d, at_a, at_b, cta.p.instruction, adds);
    }
  }
}

/// One thread: the MMAs of tile after tile, an accumulator for each in turn.
template <class Tag>
WW_DEVICE void multiply(const BlackwellCta<Tag>& cta, isa::TmemAddress tmem) {
  constexpr BlackwellConfig cfg = Tag::config;
  auto tiles = cta.template tiles<pipeline::Reader::thread>();
  tile::Work work;
  pipeline::PipelineState state;
  pipeline::PipelineState accumulator;
  TmemScales<Tag> scales(tmem);
  while (tiles.next(work)) {
    if (cta.p.walk.k_tiles == 0) continue;
    const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
    cta.accumulators.acquire(accumulator);
    const isa::TmemAddress d = tmem + accumulator.stage * accumulator_columns(cfg);
    for (int k_tile = 0; k_tile < cta.p.walk.k_tiles; ++k_tile) {
      const isa::Mark block_mark("k_tile %", k_tile);
      cta.mainloop.wait(state);
      multiply_k_tile(cta, d, state, scales.copy(cta, state, work.column), k_tile > 0);
      cta.mainloop.release(state);
      state.advance(cfg.stages);
    }
    cta.accumulators.commit(accumulator);
    accumulator.advance(cfg.accumulators);
  }
  cta.accumulators.producer_tail(accumulator);
}

/// One warp: allocates the tensor memory, multiplies, and frees it when nobody needs it any more.
template <class Tag>
WW_DEVICE void mma(const BlackwellCta<Tag>& cta) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr int ctas = ctas_of_mma(cfg);
  isa::set_role("mma");
  // An allocation of a pair waits for the peer's, so both must run: the cluster barrier is behind
  // us.
  isa::tcgen05_allocate<ctas>(cta.base + smem_map(cfg).tmem, tmem_columns(cfg));
  isa::tcgen05_relinquish<ctas>();
  const isa::TmemAddress tmem = cta.published_tmem();
  if (!cfg.pair || atom::is_pair_leader(cta.rank)) {
    if (isa::elect_one()) multiply(cta, tmem);
    isa::sync_warp();
  } else {
    cta.accumulators.wait_for_issuer();
  }
  isa::tcgen05_deallocate<ctas>(tmem, tmem_columns(cfg));
}

}  // namespace warpwright::kernel::blackwell
