// One value configures a kernel: it compiles it, sizes its shared memory, launches it, names it,
// prints it, and runs it on the model.
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pipeline/tma_pipeline.h"

namespace warpwright::kernel {

/// How the consumer warpgroups of a CTA share its tiles.
enum class Schedule : std::uint8_t {
  /// Each multiplies its share of the rows of every tile.
  cooperative,
  /// They take whole tiles in turn: while one stores its tile, the other multiplies the next.
  pingpong,
};

/// What is fixed when a Hopper GEMM kernel is compiled. Problem extents, strides, alpha, beta and
/// the cluster are parameters of a launch.
struct GemmConfig {
  DType operand = DType::bf16;  ///< of A and B
  DType result = DType::bf16;   ///< of C and D
  int tile_m = 128;
  int tile_n = 256;
  int tile_k = 64;  ///< one 128-byte swizzle span of 16-bit elements
  int stages = 4;
  Schedule schedule = Schedule::cooperative;
  int consumer_warpgroups = 2;
  int producer_registers = 40;  ///< after setmaxnreg
  int consumer_registers = 232;

  friend constexpr bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

constexpr int consumer_warps(const GemmConfig& c) {
  return 4 * c.consumer_warpgroups;
}

/// Rows of a tile that one consumer warpgroup multiplies, and wgmma atoms of 64 rows in them.
constexpr int warpgroup_rows(const GemmConfig& c) {
  return c.schedule == Schedule::pingpong ? c.tile_m : c.tile_m / c.consumer_warpgroups;
}
constexpr int row_atoms(const GemmConfig& c) {
  return warpgroup_rows(c) / 64;
}

/// Rows from one atom's share of a warp to the next one's.
constexpr int row_atom_step(const GemmConfig& /*c*/) {
  return 64;
}

/// Consumer warps that read one stage: those of one warpgroup when they take turns.
constexpr int warps_per_stage(const GemmConfig& c) {
  return c.schedule == Schedule::pingpong ? 4 : consumer_warps(c);
}

constexpr int threads(const GemmConfig& c) {
  return 128 * (1 + c.consumer_warpgroups);
}

/// The part that a warp plays, as reports name it.
constexpr const char* role_of_warp(const GemmConfig& c, int warp) {
  if (warp == 0) return "producer";
  if (warp < 4) return "idle";
  return warp < 8 || c.consumer_warpgroups == 1 ? "consumer 0" : "consumer 1";
}

/// Registers a thread has at launch: what __launch_bounds__(threads, 1) leaves of 64 Ki, in steps
/// of 8.
constexpr int launch_registers(const GemmConfig& c) {
  const int each = 65536 / threads(c) / 8 * 8;
  return each > 255 ? 255 : each;
}

constexpr int operand_bytes(const GemmConfig& c) {
  return numeric::bits(c.operand) / 8;
}
constexpr int result_bytes(const GemmConfig& c) {
  return numeric::bits(c.result) / 8;
}

/// Columns of D that one epilogue buffer holds: one 128-byte swizzle span.
constexpr int epilogue_columns(const GemmConfig& c) {
  return 128 / result_bytes(c);
}
/// Rows of one epilogue buffer: those of a warp in the accumulator of a wgmma.
inline constexpr int epilogue_rows = 16;
/// Bytes of one epilogue buffer, a span wide.
inline constexpr int epilogue_buffer_bytes = epilogue_rows * 128;
/// Buffers a warp has: one is filled while the other is stored.
inline constexpr int epilogue_buffers = 2;

constexpr atom::OperandTile tile_a(const GemmConfig& c) {
  return {c.tile_m, c.tile_k, numeric::bits(c.operand), atom::Major::k, atom::SmemSwizzle::b128};
}
constexpr atom::OperandTile tile_b(const GemmConfig& c) {
  return {c.tile_n, c.tile_k, numeric::bits(c.operand), atom::Major::k, atom::SmemSwizzle::b128};
}

/// Where things lie in dynamic shared memory, as byte offsets from its start. Tiles start where the
/// 128-byte swizzle repeats (1024).
struct SmemMap {
  int a = 0;           ///< stages of A
  int b = 0;           ///< stages of B
  int epilogue = 0;    ///< buffers of all consumer warps
  int barriers = 0;    ///< full and empty of the main loop
  int c_barriers = 0;  ///< one a buffer, for loads of C
  int turns = 0;       ///< one a consumer warpgroup (ping-pong)
  int bytes = 0;       ///< in all
};

constexpr SmemMap smem_map(const GemmConfig& c) {
  SmemMap map;
  map.a = 0;
  map.b = map.a + c.stages * atom::tile_bytes(tile_a(c));
  map.epilogue = map.b + c.stages * atom::tile_bytes(tile_b(c));
  map.barriers = map.epilogue + consumer_warps(c) * epilogue_buffers * epilogue_buffer_bytes;
  map.c_barriers = map.barriers + pipeline::barrier_bytes(c.stages);
  map.turns = map.c_barriers + consumer_warps(c) * epilogue_buffers * 8;
  map.bytes = map.turns + c.consumer_warpgroups * 8;
  return map;
}

constexpr pipeline::TmaPipelineShape mainloop_shape(const GemmConfig& c) {
  return {c.stages, warps_per_stage(c), atom::tile_bytes(tile_a(c)) + atom::tile_bytes(tile_b(c))};
}

/// The clusters every kernel is launched with, and proved for at compile time.
inline constexpr atom::ClusterShape supported_clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}};

constexpr bool supports(const GemmConfig& c, atom::ClusterShape cluster) {
  for (const atom::ClusterShape& known : supported_clusters) {
    if (known == cluster) {
      return atom::slices_evenly(c.tile_m, cluster.n) && atom::slices_evenly(c.tile_n, cluster.m);
    }
  }
  return false;
}

/// The largest dynamic shared memory of a CTA on sm_90.
inline constexpr int max_smem_bytes = 227 * 1024;

/// Why this configuration cannot be a kernel, as a sentence; null when it can.
constexpr const char* config_fault(const GemmConfig& c) {
  if (c.operand != DType::bf16 && c.operand != DType::f16) return "operands are bf16 or f16";
  if (c.result != DType::bf16 && c.result != DType::f16 && c.result != DType::f32) {
    return "results are bf16, f16 or f32";
  }
  if (c.consumer_warpgroups < 1 || warpgroup_rows(c) % 64 != 0 || row_atoms(c) < 1) {
    return "a consumer warpgroup multiplies whole atoms of 64 rows";
  }
  if (c.schedule == Schedule::pingpong && c.consumer_warpgroups != 2) {
    return "ping-pong is played by two consumer warpgroups";
  }
  if (row_atoms(c) * c.tile_n > 256) return "the accumulator does not fit into the registers";
  if (atom::wgmma_fault(atom::wgmma_atom(c.operand, c.operand, DType::f32, c.tile_n)) != nullptr) {
    return "tile_n must be an N of wgmma";
  }
  if (c.tile_n % epilogue_columns(c) != 0) return "tile_n must be whole epilogue buffers";
  if (c.tile_k != 128 / operand_bytes(c)) return "tile_k must be one 128-byte swizzle span";
  if (atom::tile_fault(tile_a(c)) != nullptr || atom::tile_fault(tile_b(c)) != nullptr) {
    return "a tile is not an operand of wgmma";
  }
  if (smem_map(c).bytes > max_smem_bytes) return "the stages do not fit into shared memory";
  const int pool = launch_registers(c) * threads(c);
  if (128 * (c.producer_registers + c.consumer_warpgroups * c.consumer_registers) > pool) {
    return "the register split asks for more than the kernel has at launch";
  }
  for (const atom::ClusterShape& cluster : supported_clusters) {
    if (!pipeline::counts_match(mainloop_shape(c), cluster)) {
      return "arrival counts do not match the signals";
    }
  }
  return nullptr;
}

}  // namespace warpwright::kernel
