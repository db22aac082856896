// One value configures a Blackwell kernel, as kernel/hopper/config.h does for Hopper.
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/umma.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/umma_accumulator.h"
#include "warpwright/pipeline/umma_pipeline.h"

namespace warpwright::kernel {

/// What is fixed when a Blackwell GEMM kernel is compiled. Which operand types of the kind are
/// multiplied is a matter of the launch: the instruction descriptor says it.
struct BlackwellConfig {
  atom::UmmaKind kind = atom::UmmaKind::f16;
  DType result = DType::bf16;  ///< of C and D
  int tile_m = 128;            ///< rows of D that one CTA computes, a lane of tensor memory each
  int tile_n = 128;            ///< columns; with pairs both CTAs of one compute all of them
  int stages = 6;
  int accumulators = 1;  ///< in tensor memory; with 2 the epilogue of a tile hides behind the next
  bool pair = false;     ///< an MMA of two CTAs
  TileSource tiles = TileSource::one_tile;

  constexpr operator EpilogueShape() const;  // NOLINT: a configuration is asked for its epilogue
  friend constexpr bool operator==(const BlackwellConfig&, const BlackwellConfig&) = default;
};

// The parts that the warps of a CTA play.
inline constexpr int load_warp = 0;
inline constexpr int mma_warp = 1;  ///< also owns the tensor memory
inline constexpr int scheduler_warp = 2;
inline constexpr int first_epilogue_warp = 4;  ///< a multiple of 4: warp w reaches lanes 32 (w % 4)
inline constexpr int epilogue_warps = 4;

constexpr int threads(const BlackwellConfig& /*c*/) {
  return 32 * (first_epilogue_warp + epilogue_warps);
}

/// Registers a thread has at launch.
constexpr int launch_registers(const BlackwellConfig& c) {
  return launch_registers(threads(c), 1);
}

/// Whether the tiles come from CLC.
constexpr bool asks_for_tiles(const BlackwellConfig& c) {
  return c.tiles == TileSource::clc;
}
constexpr int ctas_of_mma(const BlackwellConfig& c) {
  return c.pair ? 2 : 1;
}

/// A type that stands for all of the kind: they have one width.
constexpr DType sample_type(atom::UmmaKind kind) {
  switch (kind) {
    case atom::UmmaKind::f16:
      return DType::bf16;
    case atom::UmmaKind::tf32:
      return DType::tf32;
    case atom::UmmaKind::f8f6f4:
    case atom::UmmaKind::mxf8f6f4:
      return DType::e4m3;
    case atom::UmmaKind::mxf4:
    case atom::UmmaKind::mxf4nvf4:
      break;
  }
  return DType::e2m1;
}

constexpr int operand_bits(const BlackwellConfig& c) {
  return numeric::bits(sample_type(c.kind));
}
/// K of a stage: one 128-byte swizzle span.
constexpr int tile_k(const BlackwellConfig& c) {
  return 1024 / operand_bits(c);
}

/// The MMA that multiplies operands of these types.
constexpr atom::UmmaAtom mma_atom(const BlackwellConfig& c, DType a, DType b) {
  return atom::umma_atom(a, b, DType::f32, c.tile_m * ctas_of_mma(c), c.tile_n, c.pair);
}

/// What one CTA holds of A and of B in a stage. Of a pair's B each CTA holds half of the columns.
constexpr atom::OperandTile tile_a(const BlackwellConfig& c) {
  return {c.tile_m, tile_k(c), operand_bits(c), atom::Major::k, atom::SmemSwizzle::b128};
}
constexpr atom::OperandTile tile_b(const BlackwellConfig& c) {
  return {c.tile_n / ctas_of_mma(c), tile_k(c), operand_bits(c), atom::Major::k,
          atom::SmemSwizzle::b128};
}

/// A warp has two groups of 16 rows, one below the other.
constexpr BlackwellConfig::operator EpilogueShape() const {
  return {.result = result,
          .tile_m = tile_m,
          .tile_n = tile_n,
          .warps = epilogue_warps,
          .row_atoms = 32 / warp_rows,
          .row_atom_step = warp_rows};
}
static_assert(EpilogueConfig<BlackwellConfig>);

/// Columns of tensor memory that one accumulator takes, and what the kernel allocates for all of
/// them (0: there are not so many).
constexpr int accumulator_columns(const BlackwellConfig& c) {
  return atom::umma_columns(mma_atom(c, sample_type(c.kind), sample_type(c.kind)));
}
constexpr int tmem_columns(const BlackwellConfig& c) {
  return atom::tmem_allocation(c.accumulators * accumulator_columns(c));
}

constexpr pipeline::UmmaPipelineShape mainloop_shape(const BlackwellConfig& c) {
  return {c.stages, atom::tile_bytes(tile_a(c)) + atom::tile_bytes(tile_b(c)), c.pair};
}
constexpr pipeline::UmmaAccumulatorShape accumulator_shape(const BlackwellConfig& c) {
  return {c.accumulators, epilogue_warps, c.pair};
}
/// Who reads the answers of CLC: in every CTA the scheduler, the load thread and the
/// epilogue warps, and the thread that issues MMAs.
constexpr pipeline::TileRingShape tile_ring_shape(const BlackwellConfig& c) {
  return {2, 2 + epilogue_warps, 1, c.pair};
}

/// Where things lie in dynamic shared memory, as byte offsets from its start.
struct BlackwellSmemMap {
  int a = 0;             ///< stages of A
  int b = 0;             ///< stages of B
  int epilogue = 0;      ///< buffers of the epilogue warps
  int tiles = 0;         ///< the ring of tiles from CLC
  int barriers = 0;      ///< full and empty of the main loop
  int c_barriers = 0;    ///< one a buffer, for loads of C
  int accumulators = 0;  ///< full and empty of the accumulators, and the one for the end
  int tmem = 0;          ///< the address of the tensor memory
  int bytes = 0;         ///< in all
};

constexpr BlackwellSmemMap smem_map(const BlackwellConfig& c) {
  BlackwellSmemMap map;
  map.b = map.a + c.stages * atom::tile_bytes(tile_a(c));
  map.epilogue = map.b + c.stages * atom::tile_bytes(tile_b(c));
  map.tiles = map.epilogue + epilogue_bytes(c);
  map.barriers = map.tiles + (asks_for_tiles(c) ? pipeline::ring_bytes(tile_ring_shape(c)) : 0);
  map.c_barriers = map.barriers + pipeline::barrier_bytes(mainloop_shape(c));
  map.accumulators = map.c_barriers + c_barrier_bytes(c);
  map.tmem = map.accumulators + pipeline::barrier_bytes(accumulator_shape(c));
  map.bytes = map.tmem + 8;
  return map;
}

/// The clusters that Blackwell kernels are launched with.
inline constexpr atom::ClusterShape blackwell_clusters[] = {{1, 1}, {2, 1}, {1, 2},
                                                            {2, 2}, {4, 2}, {4, 4}};

constexpr bool supports(const BlackwellConfig& c, atom::ClusterShape cluster) {
  if (atom::cluster_fault(cluster, c.pair) != atom::ClusterFault::none) return false;
  for (const atom::ClusterShape& known : blackwell_clusters) {
    if (known == cluster) {
      return atom::slices_evenly(c.tile_m, cluster.n) && atom::slices_evenly(c.tile_n, cluster.m);
    }
  }
  return false;
}

constexpr bool fits_smem(const BlackwellConfig& c) {
  return smem_map(c).bytes <= max_smem_bytes;
}

/// Why this configuration cannot be a kernel, as a sentence; null when it can.
constexpr const char* config_fault(const BlackwellConfig& c) {
  if (c.result != DType::bf16 && c.result != DType::f16 && c.result != DType::f32) {
    return "results are bf16, f16 or f32";
  }
  if (c.tile_m != 128) return "tile_m must be 128, the lanes of tensor memory";
  const char* const fault = atom::umma_fault(mma_atom(c, sample_type(c.kind), sample_type(c.kind)));
  if (fault != nullptr) return fault;
  if (const char* wrong = epilogue_fault(c)) return wrong;
  if (subtile_row_bytes(c) != 128) return "tile_n must be whole epilogue buffers";
  if (c.accumulators < 1 || tmem_columns(c) == 0) {
    return "the accumulators need more than the 512 columns of tensor memory";
  }
  if (atom::tile_fault(tile_a(c)) != nullptr || atom::tile_fault(tile_b(c)) != nullptr) {
    return "a tile is not an operand of an MMA";
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
