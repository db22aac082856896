// Which configurations of the Blackwell kernel are none, and why.
#pragma once

#include "warpwright/kernel/blackwell/config.h"

namespace warpwright::kernel {

/// Why one whose sums pass through registers cannot be a kernel, as a sentence; null when it can.
constexpr const char* sums_fault(const BlackwellConfig& c) {
  if (!sums_in_registers(c)) return nullptr;
  if (c.tile_n % (c.swap_ab ? 16 : 32) != 0 || c.tile_n > 128) {
    return "sums in registers are those of 32s of columns up to 128, of 16s where they are tokens: "
           "a thread has one of each";
  }
  if (c.blockwise && operand_bits(c) != 8) return "blocks of 128 of K are k_tiles of 8 bits";
  if (c.splits_k && c.tiles != TileSource::static_persistent) {
    return "tiles are split along K in static persistent tiles";
  }
  if (c.splits_k && (c.grouped || c.gated)) {
    return "groups, and tiles of gates and what they are for, are not split along K";
  }
  if (overlaps(c)) return "accumulators that share columns are given back in parts";
  return nullptr;
}

/// The same of what serves few tokens and groups.
constexpr const char* token_fault(const BlackwellConfig& c) {
  if ((c.grouped || c.gated || has_widths(c)) && !c.swap_ab) {
    return "groups, gates and tiles of several widths have the tokens on N";
  }
  if (c.grouped && c.tiles != TileSource::static_persistent) {
    return "groups are walked over in static persistent tiles";
  }
  int before = 0;
  for (int i = 0; i < tile::count(c.widths); ++i) {
    const int width = c.widths.of[i];
    if (width <= before || width % width_unit(c) != 0) {
      return "widths ascend in multiples of 16, of MMAs of 64 rows or with scales of 8, with pairs "
             "of 32";
    }
    if (width % 16 != 0 && width > 8) return "behind 8 columns a tile has whole parts of 16";
    before = width;
  }
  return !has_widths(c) || before == c.tile_n ? nullptr : "the last of the widths is tile_n";
}

/// Why it cannot store its results, as a sentence; null when it can.
constexpr const char* result_fault(const BlackwellConfig& c) {
  if (quantises(c)) {
    if (sums_in_registers(c)) return "what is quantised comes out of tensor memory";
    if (micro_format(c.result, c.d_scale) == nullptr || numeric::bits(c.result) == 6) {
      return "what is quantised becomes mxf8, mxf4 or nvf4";
    }
    if (c.swap_ab && !is_scaled(c)) return "tokens that become codes had scales before";
    // Four scales of a row are a word.
    const int block = micro_block(makes_either_scale(c) ? DType::ue8m0 : c.d_scale);
    if (!c.swap_ab && c.tile_n % (atom::kScaleAtomDepth * block) != 0) {
      return "tile_n must be whole atoms of the scales of D";
    }
    return nullptr;
  }
  if (c.result != DType::bf16 && c.result != DType::f16 && c.result != DType::f32) {
    return "results are bf16, f16 or f32";
  }
  if (const char* wrong = epilogue_fault(c)) return wrong;
  const bool whole = c.swap_ab || subtile_row_bytes(c) == 128;
  return whole ? nullptr : "tile_n must be whole epilogue buffers";
}

/// The same of its scales.
constexpr const char* scale_fault(const BlackwellConfig& c) {
  if (is_scaled(c) != atom::is_block_scaled(c.kind)) {
    return "kinds mxf8f6f4, mxf4 and mxf4nvf4 multiply scales, and no others";
  }
  if (!is_scaled(c)) return nullptr;
  if (c.blockwise) {
    return "scales are multiplied by the tensor core, or where k_tiles are added up, not by both";
  }
  if (c.splits_k && c.long_k) {
    return "MMAs of K 96 take three stages together, and tiles are cut along K at any of them";
  }
  if (c.swap_ab && (c.pair || c.tile_n != atom::kScaleAtomRows)) {
    return "tokens with scales that the tensor core multiplies come 128 a tile, to MMAs of one SM";
  }
  if (c.plain_tokens && (c.kind != atom::UmmaKind::mxf8f6f4 || quantises(c))) {
    return "plain tokens are of kind mxf8f6f4, and the epilogue of values multiplies their scales";
  }
  if (c.long_k && (!atom::is_packed(c.kind) || c.swap_ab)) {
    return "MMAs of K 96 are of kinds mxf4 and mxf4nvf4, and have no tokens on N here";
  }
  if (c.stages < stages_together(c) - 1) {
    return "an MMA of K 96 reads two stages at once, so that a ring has at least two";
  }
  if (c.tile_n % 64 != 0) {
    return "a tile's scales of B begin with an atom or in its middle: tile_n is a multiple of 64";
  }
  return nullptr;
}

/// Why this configuration cannot be a kernel, as a sentence; null when it can.
constexpr const char* config_fault(const BlackwellConfig& c) {
  const bool is_half = c.tile_m == atom::kTmemLanes / 2;
  if (is_half && (!c.swap_ab || c.pair || is_scaled(c) || c.gated || c.blockwise)) {
    return "64 rows are of few tokens, by MMAs of one SM that multiply no scales, without a gate";
  }
  if (!is_half && c.tile_m != (c.gated && is_scaled(c) ? 2 : 1) * atom::kTmemLanes) {
    return "tile_m must be 128, the lanes of tensor memory, or half of them; for gates with scales "
           "twice as many";
  }
  if (const char* wrong = scale_fault(c)) return wrong;
  if (const char* wrong = atom::umma_fault(mma_atom(c))) return wrong;
  if (const char* wrong = result_fault(c)) return wrong;
  if (const char* wrong = sums_fault(c)) return wrong;
  if (const char* wrong = token_fault(c)) return wrong;
  if (overlaps(c) && halves(c) > 1) {
    return "two accumulators of a gate and what it is for, and the scales of a stage, need more "
           "than "
           "the 512 columns of tensor memory";
  }
  if (overlaps(c) && quantises(c)) return "accumulators that share columns do not become codes";
  if (c.accumulators < 1 || accumulator_step(c) <= 0 || tmem_columns(c) == 0) {
    return "the accumulators, and the scales of a stage, need more than the 512 columns of tensor "
           "memory";
  }
  if (atom::tile_fault(tile_a(c)) != nullptr || atom::tile_fault(tile_b(c)) != nullptr) {
    return "a tile is not an operand of an MMA";
  }
  if (smem_map(c).b % 1024 != 0 || smem_map(c).epilogue % 1024 != 0) {
    return "what is swizzled begins at a multiple of 1024 bytes";
  }
  if (!fits_smem(c)) return "the stages do not fit into shared memory";
  for (const atom::ClusterShape& cluster : blackwell_clusters) {
    if (supports(c, cluster) && !pipeline::counts_match(mainloop_shape(c), cluster)) {
      return "arrival counts do not match the signals";
    }
  }
  return nullptr;
}

}  // namespace warpwright::kernel
