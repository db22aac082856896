// The MMA warp of a Blackwell kernel: it owns the tensor memory, and one of its threads multiplies
// out of the ring of stages into accumulators.
#pragma once

#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/scales.h"

namespace warpwright::kernel::blackwell {

/// The descriptor of an operand of a stage, and how far its k_blocks lie apart.
struct StageWords {
  std::uint64_t first = 0;
  std::uint32_t step = 0;
};
template <bool IsA, class Tag>
WW_DEVICE StageWords stage_words(const BlackwellCta<Tag>& cta, int stage) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr atom::OperandTile tile = IsA ? tile_a(cfg) : tile_b(cfg);
  const isa::SharedAddress start = cta.base + (IsA ? smem_map(cfg).a : smem_map(cfg).b) +
                                   stage * (IsA ? a_bytes(cfg) : atom::tile_bytes(tile));
  if constexpr (takes_any_major(cfg)) {
    const StagedOperand& staged = IsA ? cta.p.staged_a : cta.p.staged_b;
    return {atom::advance(staged.words, start & atom::kDescriptorAddressMask), staged.step};
  }
  return {atom::encode_umma(atom::descriptor(tile, start)), atom::k_block_offset<tile>(1)};
}

/// One k_tile: the MMAs on the operands of a stage, which may have scales. The first of a tile
/// overwrites D.
template <DType scale, class Tag>
WW_DEVICE void multiply_k_tile(const BlackwellCta<Tag>& cta, isa::TmemAddress d,
                               const pipeline::PipelineState& state, std::uint32_t instruction,
                               const ScalesAt& scales, bool accumulate) {
  constexpr BlackwellConfig cfg = Tag::config;
  const StageWords a = stage_words<true>(cta, state.stage);
  const StageWords b = stage_words<false>(cta, state.stage);
  WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(tile_a(cfg)); ++k_block) {
    const std::uint64_t at_b = atom::advance(b.first, k_block * b.step);
    const bool adds = accumulate || k_block > 0;
    WW_UNROLL for (int half = 0; half < halves(cfg); ++half) {
      const std::uint64_t at_a =
          atom::advance(a.first, half * atom::tile_bytes(tile_a(cfg)) + k_block * a.step);
      const isa::TmemAddress to = d + half * half_columns(cfg);
      if constexpr (is_scaled(cfg)) {
        multiply_scaled<scale, Tag>(to, at_a, at_b, instruction, scales, half, k_block, adds);
      } else {
        isa::tcgen05_mma<cfg.kind, ctas_of_mma(cfg)>(to, at_a, at_b, instruction, adds);
      }
    }
  }
}

/// One k_block of K 96, as a row's bytes are cut: 48 of them, which may begin in the stage before
/// the one they end in.
struct LongBlock {
  int begin = 0;  ///< byte of the stage it begins in
  int stage = 0;  ///< that it ends in
  bool crosses = false;
};
constexpr LongBlock long_block(int k_block) {
  constexpr int span = atom::span_bytes(atom::SmemSwizzle::b128);
  const int begin = k_block * atom::kLongStepBytes;
  const int stage = (begin + atom::kLongStepBytes - 1) / span;
  return {begin % span, stage, begin / span != stage};
}

/// The descriptor of such a k_block of an operand, which begins in one stage and ends in another,
/// or in the same.
template <bool IsA, class Tag>
WW_DEVICE std::uint64_t long_word(const BlackwellCta<Tag>& cta, int first, int last, int begin) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr atom::OperandTile tile = IsA ? tile_a(cfg) : tile_b(cfg);
  const isa::SharedAddress stages = cta.base + (IsA ? smem_map(cfg).a : smem_map(cfg).b);
  atom::Descriptor d = atom::descriptor(
      tile, stages + static_cast<std::uint32_t>(first * atom::tile_bytes(tile) + begin));
  d.leading = stages + static_cast<std::uint32_t>(last * atom::tile_bytes(tile));
  d.leading_is_address = true;
  return atom::encode_umma(d);
}

/// Three k_tiles by eight MMAs of K 96: waits for a stage after the other, issues what ends in it,
/// and releases the one before behind the MMA that begins there. `state` goes on.
template <DType scale, class Tag>
WW_DEVICE void multiply_long(const BlackwellCta<Tag>& cta, isa::TmemAddress d,
                             pipeline::PipelineState& state, std::uint32_t instruction,
                             TmemScales<Tag>& scales, int column, bool accumulate) {
  constexpr BlackwellConfig cfg = Tag::config;
  pipeline::PipelineState before = state;
  WW_UNROLL for (int part = 0; part < stages_together(cfg); ++part) {
    cta.mainloop.wait(state);
    const ScalesAt at = scales.template copy<scale>(cta, state, column, part);
    WW_UNROLL for (int k_block = 0; k_block < k_blocks(cfg); ++k_block) {
      const LongBlock block = long_block(k_block);
      if (block.stage != part) continue;
      const int first = block.crosses ? before.stage : state.stage;
      multiply_scaled<scale, Tag>(d, long_word<true>(cta, first, state.stage, block.begin),
                                  long_word<false>(cta, first, state.stage, block.begin),
                                  instruction, at, 0, k_block, accumulate || k_block > 0);
      if (block.crosses) cta.mainloop.release(before);
    }
    before = state;
    state.advance(cfg.stages);
  }
  cta.mainloop.release(before);
}

/// The descriptor of the MMAs of a tile, as wide as it is.
template <class Tag>
WW_DEVICE std::uint32_t instruction_of(const BlackwellCta<Tag>& cta,
                                       [[maybe_unused]] const tile::Work& work) {
  if constexpr (has_widths(Tag::config)) {
    return atom::with_n(cta.p.instruction, columns_of<Tag>(work));
  } else {
    return cta.p.instruction;
  }
}

/// One warp, of which one thread issues the MMAs of tile after tile, an accumulator for each in
/// turn, or for each k_tile.
template <class Tag>
WW_DEVICE void multiply(const BlackwellCta<Tag>& cta, isa::TmemAddress tmem,
                        const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  const bool mine = isa::elect_one();
  if (!walks_by_warp(cfg) && !mine) return;
  auto tiles = cta.template tiles<BlackwellCta<Tag>::looking>(ready);
  tile::Work work;
  pipeline::PipelineState state;
  pipeline::PipelineState accumulator;
  TmemScales<Tag> scales(tmem);
  while (tiles.next(work)) {
    if (work.first == work.end || !mine) continue;
    const TileMark<Tag::config.grouped, Tag::config.swap_ab> tile_mark(work.tile);
    const std::uint32_t instruction = instruction_of(cta, work);
    for (int k_tile = work.first; k_tile < work.end; k_tile += stages_together(cfg)) {
      const isa::Mark block_mark("k_tile %", k_tile);
      const bool begins = cfg.blockwise || k_tile == work.first;
      if (begins) cta.accumulators.acquire(accumulator);
      const isa::TmemAddress d = tmem + cta.accumulator_column(accumulator);
      by_scale(cta, [&](auto by) {
        constexpr DType scale = decltype(by)::value;
        if constexpr (Tag::config.long_k) {
          multiply_long<scale>(cta, d, state, instruction, scales, work.column, !begins);
        } else {
          cta.mainloop.wait(state);
          const ScalesAt at = scales.template copy<scale>(cta, state, work.column);
          multiply_k_tile<scale>(cta, d, state, instruction, at, !begins);
          cta.mainloop.release(state);
          state.advance(Tag::config.stages);
        }
      });
      if (cfg.blockwise || k_tile + stages_together(cfg) == work.end) {
        cta.accumulators.commit(accumulator);
        accumulator.advance(accumulator_slots(cfg));
      }
    }
  }
  if (mine) cta.accumulators.producer_tail(accumulator);
}

/// One warp: allocates the tensor memory, multiplies, and frees it when nobody needs it any more.
template <class Tag>
WW_DEVICE void mma(const BlackwellCta<Tag>& cta, const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr int ctas = ctas_of_mma(cfg);
  isa::set_role("mma");
  // An allocation of a pair waits for the peer's, so both must run: the cluster barrier is behind
  // us.
  isa::tcgen05_allocate<ctas>(cta.base + smem_map(cfg).tmem, tmem_columns(cfg));
  isa::tcgen05_relinquish<ctas>();
  const isa::TmemAddress tmem = cta.published_tmem();
  if (!cfg.pair || atom::is_pair_leader(cta.rank)) {
    multiply(cta, tmem, ready);
    isa::sync_warp();
  } else {
    cta.accumulators.wait_for_issuer();
  }
  isa::tcgen05_deallocate<ctas>(tmem, tmem_columns(cfg));
}

}  // namespace warpwright::kernel::blackwell
