// What cannot be a configuration: why, as a sentence; null when it can.
#pragma once

#include "warpwright/kernel/hopper/limits.h"

namespace warpwright::kernel {

constexpr const char* packed_fault(const GemmConfig& c) {
  if (!packed_a(c)) return nullptr;
  const int parts = c.gated ? 2 : 1;
  // One or two warpgroups may have as many rows as with a gate.
  const int most_atoms = c.consumer_warpgroups <= 2 ? 2 : parts;
  if (takes_turns(c) || row_atoms(c) < parts || row_atoms(c) > most_atoms ||
      in_flight(c) * row_atoms(c) > 2) {
    return "packed weights are multiplied by all warpgroups together, each 64 rows, or one or two "
           "128, and half of the k_tiles by two";
  }
  if (!is_decoded(c.operands.as<PackedOperands>())) {
    return "no decoder makes such sums: for 16-bit tokens those of e2m1 are folded, of int4 plain "
           "exact ones or, for bf16, folded; e2m1 has neither chained sums nor zero points";
  }
  return nullptr;
}

constexpr const char* operand_fault(const GemmConfig& c) {
  const Operand a = operand_a(c);
  const Operand b = operand_b(c);
  if (const char* fault = packed_fault(c)) return fault;
  if (const char* fault = atom::wgmma_fault(
          atom::wgmma_atom(a.type, b.type, DType::f32, warpgroup_columns(c) / passes(c)), a.major,
          b.major)) {
    return fault;
  }
  if (const char* fault = atom::tile_fault(tile_a(c))) return fault;
  if (const char* fault = atom::tile_fault(tile_b(c))) return fault;
  if (c.tile_m > 256 || c.tile_n > 256) return "a tile has at most 256 rows and columns";
  if (k_atoms(c) < 1 ||
      (k_atoms(c) > 1 && !packed_a(c) &&
       (a.major == atom::Major::mn || b.major == atom::Major::mn || sums_in_registers(c)))) {
    return "stages of several spans are of K-major operands that the tensor core sums as stored";
  }
  return nullptr;
}

constexpr const char* schedule_fault(const GemmConfig& c) {
  if (c.consumer_warpgroups < 1 || c.consumer_warpgroups > 4 || warpgroup_rows(c) % 64 != 0 ||
      row_atoms(c) < 1 || (takes_turns(c) && c.consumer_warpgroups != 2)) {
    return "one to four consumer warpgroups multiply whole atoms of 64 rows, two of them ping-pong";
  }
  if (!c.side_by_side) return nullptr;
  if (takes_turns(c) || packed_a(c) || sums_in_registers(c) || !takes_whole_tiles(c) ||
      has_widths(c) || operand_b(c).major != atom::Major::k ||
      c.tile_n % (8 * c.consumer_warpgroups) != 0) {
    return "consumers side by side take whole tiles of one width together, with whole eights of "
           "the K-major columns each, and sums in the tensor core";
  }
  return nullptr;
}

constexpr const char* sums_fault(const GemmConfig& c) {
  if (!packed_a(c) &&
      ((operand_bits(c) > 8 && sums_in_registers(c)) || (passes(c) > 1 && !sums_in_registers(c)))) {
    return "only sums of 8-bit products are promoted, and only promoted ones are of several passes";
  }
  const int block = scale_block(c);
  const int weights = is_swapped(c) ? c.tile_m : c.tile_n;
  const bool is_small = block != 128;
  if ((is_small && block != 64 && block != 32) ||
      (is_small && (!is_blockwise(c) || passes(c) > 1 || c.gated || c.quantises)) ||
      (is_blockwise(c) && weights % (c.gated || is_swapped(c) ? 64 : 32) != 0) ||
      (copies_scales(c) && copied_scales(c) > 256)) {
    return "block scales are of 128, 64 or 32, less of them in one pass without a gate, into a D "
           "that is not quantised; they go with tiles of 64s, or of 32s along N, and a copy brings "
           "at most 256";
  }
  return nullptr;
}

constexpr const char* walk_fault(const GemmConfig& c) {
  if (is_grouped(c) && (is_swapped(c) ? operand_b(c) : operand_a(c)).major != atom::Major::k) {
    return "tokens of groups are K-major";
  }
  if (!has_widths(c)) return nullptr;
  const tile::TileWidths& widths = tile_widths(c);
  bool is_legal = is_swapped(c) && !c.quantises &&
                  (!packed_a(c) || sums_straight(c.operands.as<PackedOperands>()));
  int before = 0;
  for (int i = 0; i < tile::count(widths); ++i) {
    is_legal = is_legal && widths.of[i] > before && widths.of[i] % 8 == 0;
    before = widths.of[i];
  }
  return is_legal && before == c.tile_n
             ? nullptr
             : "widths ascend in multiples of 8 to tile_n, of tokens on wgmma's N, into a D that "
               "is not quantised; packed weights have them with straight sums";
}

constexpr const char* space_fault(const GemmConfig& c) {
  // A k_tile's stage is given back when the next one's has come.
  if (c.ctas_per_sm < 1 || c.stages < 2 || !fits_smem(c)) {
    return "a ring has two stages or more, which fit into shared memory";
  }
  const int pool = launch_registers(c) * threads(c);
  if (sum_registers(c) > 200 ||
      128 * (producer_registers(c) + c.consumer_warpgroups * consumer_registers(c)) > pool) {
    return "the sums, or the split of registers, take more than the kernel has at launch";
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
  return space_fault(c);
}

/// Do the signals of its ring come as often as its barriers count, in every cluster? A kernel
/// asserts it.
constexpr bool signals_match(const GemmConfig& c) {
  for (const atom::ClusterShape& cluster : supported_clusters) {
    if (!pipeline::counts_match(mainloop_shape(c), cluster)) return false;
  }
  return true;
}

}  // namespace warpwright::kernel
