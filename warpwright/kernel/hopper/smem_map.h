// Where the stages, buffers and barriers of a configuration lie in shared memory.
#pragma once

#include "warpwright/kernel/cluster_parts.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

/// Where things lie in dynamic shared memory, as byte offsets from its start. Tiles start where the
/// 128-byte swizzle repeats (1024).
struct SmemMap {
  int a = 0;              ///< stages of A
  int b = 0;              ///< stages of B
  int epilogue = 0;       ///< buffers of all consumer warps
  int scales = 0;         ///< stages of block scales
  int groups = 0;         ///< the table of a binary search
  int tiles = 0;          ///< the ring of dynamic persistent tiles
  int barriers = 0;       ///< full and empty of the main loop
  int c_barriers = 0;     ///< one a buffer, for loads of C
  int turns = 0;          ///< one a consumer warpgroup (ping-pong)
  int parts = 0;          ///< sums that other CTAs of the cluster send
  int part_barriers = 0;  ///< one a consumer warp
  int bytes = 0;          ///< in all
};

/// How a cluster adds up the sums of a tile that it shares along K.
constexpr ClusterParts cluster_parts(const GemmConfig& c) {
  return {consumer_warps(c), c.tile_n / 8, row_atoms(c)};
}

/// Who must know the next tile: in every CTA the scheduler, the producer, the warp that fetches
/// scales and all consumer warps (in turns they count the other's stages). Four answers, because
/// with few k_tiles the producer is some tiles ahead.
constexpr pipeline::TileRingShape tile_ring_shape(const GemmConfig& c) {
  return {4, 2 + (is_blockwise(c) ? 1 : 0) + consumer_warps(c)};
}

constexpr SmemMap smem_map(const GemmConfig& c) {
  SmemMap map;
  map.a = 0;
  map.b = (map.a + c.stages * stage_a_bytes(c) + 1023) / 1024 * 1024;
  const int operands = map.b + c.stages * atom::tile_bytes(tile_b(c));
  map.epilogue = (operands + 1023) / 1024 * 1024;
  map.scales = map.epilogue + epilogue_bytes(c);
  map.groups = map.scales + c.stages * scale_bytes(c);
  const bool has_table = grouping(c) == Grouping::binary_search;
  map.tiles = map.groups + (has_table ? tile::GroupTable::bytes(threads(c)) + 15 : 0) / 16 * 16;
  map.barriers =
      map.tiles + (is_dynamic_persistent(c) ? pipeline::ring_bytes(tile_ring_shape(c)) : 0);
  map.c_barriers = map.barriers + pipeline::barrier_bytes(c.stages);
  map.turns = map.c_barriers + c_barrier_bytes(c);
  map.parts = (map.turns + c.consumer_warpgroups * 8 + 15) / 16 * 16;
  map.part_barriers = map.parts + (shares_cluster_k(c) ? cluster_parts(c).bytes() : 0);
  map.bytes = map.part_barriers + (shares_cluster_k(c) ? consumer_warps(c) * 8 : 0);
  return map;
}

constexpr pipeline::TmaPipelineShape mainloop_shape(const GemmConfig& c) {
  const bool scales = is_blockwise(c);
  return {.stages = c.stages,
          .consumer_warps = warps_per_stage(c),
          // The bytes of a packed tile depend on the launch.
          .stage_bytes = (packed_a(c) || (gathers(c) && !is_swapped(c)) ? 0 : stage_a_bytes(c)) +
                         (gathers(c) && is_swapped(c) ? 0 : atom::tile_bytes(tile_b(c))),
          .writer_warps = scales ? 1 : 0,
          .copying_lanes = gathers(c) ? row_warps * 32 : 0,
          .wgmma_only = !scales && !packed_a(c)};
}

}  // namespace warpwright::kernel
