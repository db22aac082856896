// What cannot be a configuration: why, as a sentence; null when it can.
#pragma once

#include "warpwright/kernel/hopper/limits.h"

namespace warpwright::kernel {

constexpr const char* operand_fault(const GemmConfig& c) {
  const auto fp8 = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  const Operand a = operand_a(c);
  const Operand b = operand_b(c);
  const bool half = a.type == DType::bf16 || a.type == DType::f16;
  if (!(half && a.type == b.type) && !(fp8(a.type) && fp8(b.type))) {
    return "operands are both bf16, both f16, or any of e4m3 and e5m2";
  }
  const int parts = c.gated ? 2 : 1;
  if (packed_a(c) && (schedule_of(c) != Schedule::cooperative || row_atoms(c) != parts ||
                      in_flight(c) * parts > 2)) {
    return "packed weights are multiplied by all warpgroups together, each 64 rows and half of K "
           "blocks by two";
  }
  if (packed_a(c) && has_float_codes(c)) {
    const PackedOperands& packed = c.operands.as<PackedOperands>();
    const bool in_tensor_core = packed.sums == PackedSums::folded;
    const bool chains = packed.sums == PackedSums::chained || packed.sums == PackedSums::table;
    if (packed.zero_points || chains || (half && !in_tensor_core)) {
      return "e2m1 weights have exact or folded sums, those for 16-bit tokens folded ones, and no "
             "zero points";
    }
  } else if (packed_a(c) && half) {
    const PackedSums sums = c.operands.as<PackedOperands>().sums;
    const bool folded = sums == PackedSums::folded && a.type == DType::bf16;
    if (sums != PackedSums::exact && !folded) {
      return "int4 weights are multiplied by bf16 with exact or folded sums, by f16 with exact "
             "ones";
    }
    if (has_zero_points(c) && sums == PackedSums::folded) {
      return "weights with zero points have exact sums";
    }
  }
  if (atom::wgmma_fault(
          atom::wgmma_atom(a.type, b.type, DType::f32, warpgroup_columns(c) / passes(c)), a.major,
          b.major) != nullptr) {
    return "tile_n, or a warpgroup's part of it, must be an N of wgmma, and only 16-bit operands "
           "may be MN-major";
  }
  if (atom::tile_fault(tile_a(c)) != nullptr || atom::tile_fault(tile_b(c)) != nullptr) {
    return "a tile is not an operand of wgmma";
  }
  if (k_atoms(c) < 1 ||
      (k_atoms(c) > 1 && !packed_a(c) &&
       (a.major == atom::Major::mn || b.major == atom::Major::mn || sums_in_registers(c)))) {
    return "stages of several spans are of K-major operands that the tensor core sums as stored";
  }
  if (c.tile_m > 256 || c.tile_n > 256) return "a tile has at most 256 rows, those of a TMA box";
  return nullptr;
}

constexpr const char* schedule_fault(const GemmConfig& c) {
  if (c.consumer_warpgroups < 1 || c.consumer_warpgroups > 4 || warpgroup_rows(c) % 64 != 0 ||
      row_atoms(c) < 1) {
    return "a consumer warpgroup multiplies whole atoms of 64 rows";
  }
  if (takes_turns(c) && c.consumer_warpgroups != 2) {
    return "ping-pong is played by two consumer warpgroups";
  }
  if (!c.side_by_side) return nullptr;
  if (takes_turns(c) || packed_a(c) || sums_in_registers(c) || !takes_whole_tiles(c) ||
      has_widths(c) || operand_b(c).major != atom::Major::k) {
    return "consumers side by side take whole tiles of one width together, with K-major columns "
           "and sums in the tensor core";
  }
  return c.tile_n % (8 * c.consumer_warpgroups) == 0 ? nullptr
                                                     : "consumers side by side have whole eights "
                                                       "of the columns each";
}

constexpr const char* sums_fault(const GemmConfig& c) {
  if (operand_bits(c) > 8 && sums_in_registers(c) && !packed_a(c))
    return "only sums of 8-bit products are promoted";
  if (passes(c) > 1 && !sums_in_registers(c)) return "several passes are of sums in registers";
  if (sum_registers(c) > 200) return "the sums do not fit into the registers";
  if (!is_block_scaled(c)) return nullptr;
  if (!has_producer(c)) return "block scales are fetched by a warp beside the producer";
  if ((is_swapped(c) ? c.tile_m : c.tile_n) % (c.gated || is_swapped(c) ? 64 : 32) != 0) {
    return "block scales go with tiles of 64s, or of 32s along N";
  }
  if (copies_scales(c) && copied_scales(c) > 256) return "a copy brings at most 256 scales";
  return nullptr;
}

constexpr const char* widths_fault(const GemmConfig& c) {
  if (!has_widths(c)) return nullptr;
  if (!is_grouped(c) || !is_swapped(c) || packed_a(c) || is_dynamic_persistent(c) ||
      operand_b(c).major != atom::Major::k) {
    return "tiles of several widths are of groups with K-major tokens on wgmma's N, in static "
           "persistent tiles";
  }
  const tile::TileWidths& widths = tile_widths(c);
  int before = 0;
  for (int i = 0; i < tile::count(widths); ++i) {
    if (widths.of[i] <= before || widths.of[i] % 8 != 0) return "widths ascend in multiples of 8";
    before = widths.of[i];
  }
  return before == c.tile_n ? nullptr : "the last of the widths is tile_n";
}

constexpr const char* walk_fault(const GemmConfig& c) {
  if (shares_cluster_k(c) && c.gated) return "a tile shared in a cluster is not gated";
  if (slices_k(c) && c.gated) return "a tile whose columns several CTAs store is not gated";
  if (const char* fault = widths_fault(c)) return fault;
  if (has_widths(c) && (gathers(c) || c.quantises)) {
    return "tiles of several widths are not read by index, nor are their results quantised";
  }
  if (gathers(c) && !is_grouped(c)) return "tokens are read by index in groups";
  if (gathers(c) && (!has_producer(c) || is_dynamic_persistent(c))) {
    return "tokens by index are copied by two warps beside the producer, which draw no tiles";
  }
  if (gathers(c) && (is_swapped(c) ? operand_b(c) : operand_a(c)).major != atom::Major::k) {
    return "rows by index are of K-major tokens";
  }
  return nullptr;
}

constexpr const char* space_fault(const GemmConfig& c) {
  if (c.ctas_per_sm < 1 || !fits_smem(c)) return "the stages do not fit into shared memory";
  const int pool = launch_registers(c) * threads(c);
  if (has_producer(c) &&
      128 * (producer_registers(c) + c.consumer_warpgroups * consumer_registers(c)) > pool) {
    return "the register split asks for more than the kernel has at launch";
  }
  return nullptr;
}

/// For the whole configuration.
constexpr const char* config_fault(const GemmConfig& c) {
  if (const char* fault = schedule_fault(c)) return fault;
  if (const char* fault = operand_fault(c)) return fault;
  if (const char* fault = epilogue_fault(c)) return fault;
  if (const char* fault = sums_fault(c)) return fault;
  if (const char* fault = walk_fault(c)) return fault;
  if (const char* fault = space_fault(c)) return fault;
  for (const atom::ClusterShape& cluster : supported_clusters) {
    if (!pipeline::counts_match(mainloop_shape(c), cluster)) {
      return "arrival counts do not match the signals";
    }
  }
  return nullptr;
}

}  // namespace warpwright::kernel
