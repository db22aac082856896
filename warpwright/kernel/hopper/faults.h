// What cannot be a configuration: why, as a sentence; null when it can.
#pragma once

#include "warpwright/kernel/hopper/config.h"

namespace warpwright::kernel {

constexpr const char* operand_fault(const GemmConfig& c) {
  const auto fp8 = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  const DType a = c.a.multiplied;
  const DType b = c.b.multiplied;
  const bool half = a == DType::bf16 || a == DType::f16;
  if (!(half && a == b) && !(fp8(a) && fp8(b))) {
    return "operands are both bf16, both f16, or any of e4m3 and e5m2";
  }
  if (packed_a(c)) {
    if (c.a.stored != DType::s4 || a != DType::e4m3 || b != DType::e4m3) {
      return "operands from registers are packed int4 weights beside tokens of e4m3";
    }
    if (!c.swapped || row_atoms(c) != (c.gated ? 2 : 1) || c.schedule != Schedule::cooperative) {
      return "packed weights are A of swapped cooperative kernels, 64 rows a warpgroup and half";
    }
    if (c.folds ? c.sums != Sums::tensor_core : c.tables) {
      return "folded sums stay in the tensor core, and tables are folded";
    }
    if (c.k_spans > 1 && (c.sums != Sums::promoted || c.passes != 1 || c.gated)) {
      return "stages of several K blocks of packed weights are added up, all tokens in one pass";
    }
    if (c.passes != 1 && (c.sums == Sums::tensor_core || c.tile_n % (8 * c.passes) != 0)) {
      return "passes are made where sums are added, over eights of tokens";
    }
  } else if (c.a.stored != a || c.zero_points || c.folds || c.tables || c.passes != 1) {
    return "operands from shared memory are multiplied as they are stored";
  }
  if (c.b.stored != b || c.b.source != Source::shared) {
    return "B is multiplied as it is stored, out of shared memory";
  }
  if (atom::wgmma_fault(atom::wgmma_atom(a, b, DType::f32, c.tile_n), c.a.major, c.b.major) !=
      nullptr) {
    return "tile_n must be an N of wgmma, and only 16-bit operands may be MN-major";
  }
  if (atom::tile_fault(tile_a(c)) != nullptr || atom::tile_fault(tile_b(c)) != nullptr) {
    return "a tile is not an operand of wgmma";
  }
  if (c.k_spans < 1 || (c.k_spans > 1 && !packed_a(c) &&
                        (c.a.major == atom::Major::mn || c.b.major == atom::Major::mn ||
                         c.sums != Sums::tensor_core))) {
    return "stages of several spans are of K-major operands that the tensor core sums as stored";
  }
  if (c.tile_m > 256) return "tile_m is at most 256, the rows of a TMA box";
  return nullptr;
}

constexpr const char* schedule_fault(const GemmConfig& c) {
  if (c.consumer_warpgroups < 1 || c.consumer_warpgroups > 4 || warpgroup_rows(c) % 64 != 0 ||
      row_atoms(c) < 1) {
    return "a consumer warpgroup multiplies whole atoms of 64 rows";
  }
  if (c.schedule == Schedule::pingpong && c.consumer_warpgroups != 2) {
    return "ping-pong is played by two consumer warpgroups";
  }
  return nullptr;
}

constexpr const char* sums_fault(const GemmConfig& c) {
  if (operand_bits(c) > 8 && c.sums != Sums::tensor_core) {
    return "only sums of 8-bit products are promoted";
  }
  if (sum_registers(c) > 200) return "the sums do not fit into the registers";
  if (c.sums != Sums::block_scaled) return nullptr;
  if (!has_producer(c)) return "block scales are fetched by a warp beside the producer";
  if ((c.swapped ? c.tile_m : c.tile_n) % (c.gated || c.swapped ? 64 : 32) != 0) {
    return "block scales go with tiles of 64s, or of 32s along N";
  }
  if (copies_scales(c) && copied_scales(c) > 256) return "a copy brings at most 256 scales";
  return nullptr;
}

constexpr const char* sharing_fault(const GemmConfig& c) {
  if (c.sharing == Sharing::whole) return nullptr;
  if (c.schedule == Schedule::pingpong) {
    return "tiles shared along K are multiplied by all warpgroups together";
  }
  if (c.sharing == Sharing::workspace) return nullptr;
  if (c.gated || !has_producer(c)) {
    return "a tile shared in a cluster has a producer in every CTA, and is not gated";
  }
  if (4 * c.tile_m * c.tile_n > smem_map(c).epilogue) {
    return "sums that are exchanged in a cluster must fit where the stages were";
  }
  return nullptr;
}

constexpr const char* grouping_fault(const GemmConfig& c) {
  if (!is_grouped(c)) return nullptr;
  if (!has_producer(c)) return "the tiles of groups are found by a producer";
  if (c.sharing != Sharing::whole) return "tiles of groups are not shared along K";
  if (has_group_maps(c) && (c.swapped ? c.b : c.a).major != atom::Major::k) {
    return "the maps of the groups are made for K-major tokens";
  }
  return nullptr;
}

constexpr const char* tiles_fault(const GemmConfig& c) {
  if (c.tiles == TileSource::static_persistent) return nullptr;
  if (!draws_tiles(c)) return "tiles are static shares, or drawn";
  if (!has_producer(c)) return "tiles are drawn by a warp beside the producer";
  if (c.sharing != Sharing::whole) return "tiles that are drawn go whole";
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

/// Of the whole configuration.
constexpr const char* config_fault(const GemmConfig& c) {
  if (const char* fault = schedule_fault(c)) return fault;
  if (const char* fault = operand_fault(c)) return fault;
  if (const char* fault = epilogue_fault(c)) return fault;
  if (const char* fault = sums_fault(c)) return fault;
  if (const char* fault = sharing_fault(c)) return fault;
  if (const char* fault = grouping_fault(c)) return fault;
  if (const char* fault = tiles_fault(c)) return fault;
  if (const char* fault = space_fault(c)) return fault;
  for (const atom::ClusterShape& cluster : supported_clusters) {
    if (!pipeline::counts_match(mainloop_shape(c), cluster)) {
      return "arrival counts do not match the signals";
    }
  }
  return nullptr;
}

}  // namespace warpwright::kernel
