// What compiles a kernel whose operands and sums lie in registers (mma.sync).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/mma.h"
#include "warpwright/atom/swizzle.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/facts/micro_format.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/tma_pipeline.h"

namespace warpwright::kernel {

/// How the threads of a CTA bring A and B into a stage.
enum class Feed : std::uint8_t {
  copy_async,  ///< cp.async (sm_80 and later), several stages ahead
  registers,   ///< plain loads, a block ahead of the two stages: they wait in registers
  producer,    ///< TMA copies (sm_90 and later), which a warp beside those that multiply starts
};

/// A CTA's tile of D, and how its warps and its ring of stages divide it. A is M x K, B N x K, both
/// K-major.
struct RegisterConfig {
  atom::Mma mma = {};
  int tile_m = 128;
  int tile_n = 128;
  int tile_k = 32;  ///< elements: 64 or 128 bytes, a row of a stage
  int warps_m = 2;
  int warps_n = 2;
  int stages = 4;
  DType result = DType::bf16;  ///< of C and D
  int ctas_per_sm = 1;         ///< for which registers and shared memory are to suffice
  bool splits_k = false;       ///< where CTAs are more than tiles; takes registers
  bool any_alignment = false;  ///< rows of A and B begin anywhere, not at multiples of 16 bytes
  Feed feed = Feed::copy_async;
  /// With a producer: all its consumers share a tile, or two groups of warps_m x warps_n warps take
  /// tiles in turn. The others are multistage.
  Schedule schedule = Schedule::multistage;
  TileSource tiles = TileSource::static_persistent;  ///< or, with a producer, clc
  int buffers = 2;                                   ///< of the epilogue, a warp
  bool grouped = false;  ///< rows of A fall into groups (tile/groups.h), each with a B of its own

  constexpr operator EpilogueShape() const;  // NOLINT: a configuration is asked for its epilogue
  friend constexpr bool operator==(const RegisterConfig&, const RegisterConfig&) = default;
};

constexpr bool has_producer(const RegisterConfig& c) {
  return c.feed == Feed::producer;
}
/// Does CLC say which tiles are a CTA's?
constexpr bool asks_for_tiles(const RegisterConfig& c) {
  return c.tiles == TileSource::clc;
}
constexpr bool is_grouped(const RegisterConfig& c) {
  return c.grouped;
}
constexpr bool takes_turns(const RegisterConfig& c) {
  return c.schedule == Schedule::pingpong;
}
/// The warp that asks; the producer is warp 0.
inline constexpr int asking_warp = 3;
/// Warps that multiply a tile together; all that multiply, the first of which stands behind the
/// producer's warpgroup, whose registers they are given.
constexpr int tile_warps(const RegisterConfig& c) {
  return c.warps_m * c.warps_n;
}
constexpr int consumer_warps(const RegisterConfig& c) {
  return tile_warps(c) * (takes_turns(c) ? 2 : 1);
}
constexpr int first_consumer_warp(const RegisterConfig& c) {
  return has_producer(c) ? 4 : 0;
}
constexpr int threads(const RegisterConfig& c) {
  return 32 * (first_consumer_warp(c) + consumer_warps(c));
}
/// Bytes of a row of a stage: of operands that are multiplied out of bytes a byte an element,
/// however narrow these are.
constexpr int row_bytes(const RegisterConfig& c) {
  return c.tile_k * atom::register_bits(c.mma, c.mma.a) / 8;
}
/// k_blocks of a stage, 32 bytes each, and the MMAs of a k_block; and those of a warp along M and
/// N.
inline constexpr int k_block_bytes = 32;
constexpr int k_blocks(const RegisterConfig& c) {
  return row_bytes(c) / k_block_bytes;
}
constexpr int mmas_a_k_block(const RegisterConfig& c) {
  return k_block_bytes * 8 / (c.mma.k * atom::register_bits(c.mma, c.mma.a));
}
/// Does the MMA take scales of blocks along K? They come with a producer, and stand behind A and B
/// in a stage, in whole tiles (facts/block_scales.h); bytes of those of one operand.
constexpr bool is_block_scaled(const RegisterConfig& c) {
  return c.mma.scale_block > 0;
}
/// The formats of A and B.
constexpr MicroFormat format_a(const RegisterConfig& c) {
  return known_micro_format(c.mma.a, c.mma.scale);
}
constexpr MicroFormat format_b(const RegisterConfig& c) {
  return known_micro_format(c.mma.b, c.mma.scale);
}
constexpr int scale_bytes(const RegisterConfig& c, int rows) {
  return is_block_scaled(c) ? rows * c.tile_k / c.mma.scale_block : 0;
}
/// Volta's MMA by quad pairs, of which a warp makes one of 16 x 16.
constexpr bool is_quad_pair(const RegisterConfig& c) {
  return c.mma.kind == atom::MmaKind::quad_pair;
}
constexpr int m_tiles(const RegisterConfig& c) {
  return c.tile_m / c.warps_m / 16;
}
constexpr int n_tiles(const RegisterConfig& c) {
  return c.tile_n / c.warps_n / (is_quad_pair(c) ? 16 : c.mma.n);
}
/// Rows that the threads copy at once, 16 bytes each.
constexpr int copied_rows(const RegisterConfig& c) {
  return threads(c) * 16 / row_bytes(c);
}
/// The swizzle by which eight rows of an ldmatrix lie in eight groups of banks.
constexpr atom::SmemSwizzle swizzle(const RegisterConfig& c) {
  return row_bytes(c) == 128 ? atom::SmemSwizzle::b128 : atom::SmemSwizzle::b64;
}
constexpr int stage_bytes(const RegisterConfig& c) {
  return (c.tile_m + c.tile_n) * row_bytes(c) + scale_bytes(c, c.tile_m + c.tile_n);
}
constexpr int shared_bytes(const RegisterConfig& c) {
  return c.stages * stage_bytes(c);
}

// What all families are asked for.
constexpr int tile_k(const RegisterConfig& c) {
  return c.tile_k;
}
constexpr int launch_registers(const RegisterConfig& c) {
  return launch_registers(threads(c), c.ctas_per_sm);
}
/// Whether the producer's registers are given to the consumers (setmaxnreg); who has how many then.
constexpr bool moves_registers(const RegisterConfig& c) {
  return has_producer(c);
}
constexpr int producer_registers(const RegisterConfig& c) {
  return has_producer(c) ? 40 : launch_registers(c);
}
constexpr int consumer_registers(const RegisterConfig& c) {
  const int pool = launch_registers(c) * threads(c) - 128 * producer_registers(c);
  const int each = has_producer(c) ? pool / (32 * consumer_warps(c)) / 8 * 8 : launch_registers(c);
  return each > 240 && has_producer(c) ? 240 : each;
}
/// Are elements of such an operand narrower than the bytes that they are multiplied out of? Copies
/// leave 16 of them in 16 bytes then, with padding behind them.
constexpr bool is_padded(const RegisterConfig& c, DType type) {
  return numeric::bits(type) < atom::register_bits(c.mma, type);
}
/// An operand of a stage, as TMA brings it: two of packed e2m1 are a byte.
constexpr atom::OperandTile operand_tile(const RegisterConfig& c, int rows, DType type) {
  const bool padded = is_padded(c, type);
  const int bits = padded ? numeric::bits(type) : std::max(8, numeric::bits(type));
  const int depth = row_bytes(c) * 8 / std::max(8, bits);
  return {rows, depth, bits, atom::Major::k, swizzle(c), padded};
}
constexpr atom::OperandTile tile_a(const RegisterConfig& c) {
  return operand_tile(c, c.tile_m, c.mma.a);
}
constexpr atom::OperandTile tile_b(const RegisterConfig& c) {
  return operand_tile(c, c.tile_n, c.mma.b);
}
/// Elements of K of a stage as they are copied: the same of A and B.
constexpr int copied_k(const RegisterConfig& c) {
  return tile_a(c).depth;
}
/// What the copies of a stage signal: bytes of global memory.
constexpr int loaded_bytes(const RegisterConfig& c) {
  return atom::loaded_bytes(tile_a(c)) + atom::loaded_bytes(tile_b(c)) +
         scale_bytes(c, c.tile_m + c.tile_n);
}
/// A row of tiles of scales of a stage, in float32 words, as they are copied.
constexpr int scale_words(const RegisterConfig& c) {
  return scale_bytes(c, block_scales::kTileRows) / 4;
}
constexpr pipeline::TmaPipelineShape mainloop_shape(const RegisterConfig& c) {
  return {.stages = c.stages, .consumer_warps = tile_warps(c), .stage_bytes = loaded_bytes(c)};
}
/// The scheduler, the producer and all consumer warps, which pass the tiles of others too.
constexpr pipeline::TileRingShape tile_ring_shape(const RegisterConfig& c) {
  return {4, 2 + consumer_warps(c)};
}
/// A warp stores the rows and columns that it has summed.
constexpr RegisterConfig::operator EpilogueShape() const {
  return {.result = result,
          .tile_m = tile_m,
          .tile_n = tile_n / warps_n,
          .warps = consumer_warps(*this),
          .row_atoms = m_tiles(*this),
          .row_atom_step = warp_rows,
          .store = Store::lanes,
          .buffers = buffers,
          .grouped = grouped,
          .tma = has_producer(*this)};
}
static_assert(EpilogueConfig<RegisterConfig>);
/// For D in a CTA's tile: its warps' epilogues have parts of the columns.
constexpr int result_rows(const RegisterConfig& c) {
  return c.tile_m;
}
constexpr int result_columns(const RegisterConfig& c) {
  return c.tile_n;
}

/// Where things lie in dynamic shared memory, as byte offsets from its start: first the stages. The
/// buffers of the epilogue lie where they were, or, with a producer that goes on, behind them.
struct RegisterSmemMap {
  int epilogue = 0;
  int tiles = 0;       ///< the ring of tiles from CLC
  int barriers = 0;    ///< full and empty of the main loop
  int c_barriers = 0;  ///< one a buffer, for loads of C
  int turns = 0;       ///< one a group of warps (ping-pong)
  int bytes = 0;       ///< in all
};
constexpr RegisterSmemMap smem_map(const RegisterConfig& c) {
  RegisterSmemMap map;
  if (!has_producer(c)) {
    map.bytes = std::max(shared_bytes(c), epilogue_bytes(c));
    return map;
  }
  map.epilogue = shared_bytes(c);
  map.tiles = map.epilogue + epilogue_bytes(c);
  map.barriers = map.tiles + (asks_for_tiles(c) ? pipeline::ring_bytes(tile_ring_shape(c)) : 0);
  map.c_barriers = map.barriers + pipeline::barrier_bytes(c.stages);
  map.turns = map.c_barriers + c_barrier_bytes(c);
  map.bytes = map.turns + (takes_turns(c) ? 16 : 0);
  return map;
}

/// Where kernels run, by cp.async or without.
inline constexpr int register_targets[] = {70, 75, 80, 86, 89, 90, 120, 121};
constexpr bool is_register_target(int target) {
  return std::find(std::begin(register_targets), std::end(register_targets), target) !=
         std::end(register_targets);
}

/// Why this takes no scales of blocks along K, as a sentence; null when it does.
constexpr const char* block_scale_fault(const RegisterConfig& c) {
  if (!has_producer(c)) return "a producer brings the scales of blocks along K";
  if (c.tile_m != block_scales::kTileRows || c.tile_n != block_scales::kTileRows) {
    return "scales come by 128 rows of A and of B: tiles of block-scaled operands are 128 x 128";
  }
  if (c.tile_k % (block_scales::kTileColumns * c.mma.scale_block) != 0) {
    return "a stage has whole tiles of scales, four along K";
  }
  if (is_padded(c, c.mma.a) || is_padded(c, c.mma.b)) {
    if (c.tile_k != padded_copy_elements) return "copies that pad bring 128 elements of K";
  }
  if (m_tiles(c) % 2 != 0 || n_tiles(c) % 4 != 0) {
    return "a register of scales is of 32 rows of A or columns of B, of which a warp has whole "
           "ones";
  }
  return nullptr;
}

/// Why this is no main loop for the target (N of sm_N), as a sentence; null when it is one.
constexpr const char* config_fault(const RegisterConfig& c, int target) {
  if (const char* fault = atom::mma_fault(c.mma, target)) return fault;
  const int k_bits = c.mma.k * numeric::bits(c.mma.a);
  if (is_quad_pair(c)) {
    if (c.mma.a_major != atom::Major::k || c.mma.b_major != atom::Major::k) {
      return "A and B stand K-major in the stages: for m8n8k4 the TN form";
    }
  } else if (is_block_scaled(c)) {
    if (const char* fault = block_scale_fault(c)) return fault;
  } else if (c.mma.kind != atom::MmaKind::warp || c.mma.m != 16 || numeric::bits(c.mma.a) < 8 ||
             (k_bits != 256 && k_bits != 128)) {
    return "the MMA is m8n8k4, or takes 16 rows and 16 or 32 bytes of K: k8 and k16 of f16 and "
           "bf16, k4 and k8 of tf32, k16 and k32 of 8 bits";
  }
  if (c.feed == Feed::copy_async && (target < 80 || !is_register_target(target))) {
    return "cp.async is of sm_80, 86, 89, 90 and 120";
  }
  if (!is_register_target(target)) return "kernels of mma.sync run on sm_70 to sm_90 and sm_120";
  if (c.result == DType::bf16 && target < 80) return "bf16 begins with sm_80";
  if (has_producer(c) && target < 90) return "a producer copies by TMA, which begins with sm_90";
  if (asks_for_tiles(c) && target < 120) return "CLC of these kernels is of sm_120";
  if (row_bytes(c) != 64 && row_bytes(c) != 128) return "tile_k is 64 or 128 bytes";
  if (c.warps_m < 1 || c.warps_n < 1 || threads(c) > 512) return "a CTA has 1 to 16 warps";
  if (c.tile_m < 1 || c.tile_m % (16 * c.warps_m) != 0) {
    return "tile_m is a multiple of 16 rows for every warp along M";
  }
  if (c.tile_n < 1 || c.tile_n % (16 * c.warps_n) != 0) {
    return "tile_n is a multiple of 16 columns, two MMAs, for every warp along N";
  }
  const int rows = has_producer(c) ? 8 : copied_rows(c);
  if (rows % 8 != 0 || c.tile_m % rows != 0 || c.tile_n % rows != 0) {
    return "the threads copy whole rows, 16 bytes each, in turns of which the tile is a multiple";
  }
  if (c.stages < 2) return "one stage is read while another is filled: stages are 2 or more";
  if (c.feed == Feed::registers && c.stages != 2) {
    return "what waits in registers goes into the other one of two stages";
  }
  if (shared_bytes(c) > max_smem_bytes_of(target)) {
    return "the stages exceed the target's shared memory";
  }
  return nullptr;
}

/// Why there is no such producer, or none is needed; null where all is well.
constexpr const char* producer_fault(const RegisterConfig& c) {
  if (has_producer(c) != (c.schedule != Schedule::multistage)) {
    return "a producer, and nothing else, feeds cooperative kernels and ping-pong";
  }
  if (c.grouped && !is_block_scaled(c)) {
    return "products in groups have scales for every few elements";
  }
  if (!has_producer(c)) {
    return c.tiles == TileSource::static_persistent
               ? nullptr
               : "without a producer tiles are static persistent";
  }
  if (c.mma.sums != DType::f32) return "with a producer sums are float32";
  if (c.grouped && asks_for_tiles(c)) {
    return "who asks CLC for tiles would have to know how many the groups have";
  }
  if (c.splits_k || c.any_alignment) {
    return "a producer brings whole tiles of rows that begin at multiples of 16 bytes";
  }
  if (consumer_warps(c) % 4 != 0 || (takes_turns(c) && tile_warps(c) != pipeline::turn_arrivals)) {
    return "consumers are whole warpgroups; in ping-pong a tile is one's";
  }
  if (c.tile_m > 256 || c.tile_n > 256) return "a TMA copy brings at most 256 rows";
  if (c.tiles != TileSource::static_persistent && !asks_for_tiles(c)) {
    return "tiles are static persistent, or come from CLC";
  }
  return nullptr;
}

/// The oldest target that has the MMA, and what feeds it.
constexpr int first_target(const RegisterConfig& c) {
  if (has_producer(c)) return asks_for_tiles(c) || is_block_scaled(c) ? 120 : 90;
  if (numeric::is_float(c.mma.a) && numeric::bits(c.mma.a) == 8) return 89;
  if (c.feed == Feed::copy_async) return 80;
  for (const int target : {70, 75}) {
    if (atom::mma_fault(c.mma, target) == nullptr) return target;
  }
  return 80;
}
/// The target with the least shared memory of those that a kernel is made for: later ones than the
/// first have less of it than an A100.
constexpr int smallest_target(const RegisterConfig& c) {
  return first_target(c) < 80 ? first_target(c) : 89;
}
constexpr bool fits_smem(const RegisterConfig& c) {
  return smem_map(c).bytes <= max_smem_bytes_of(smallest_target(c));
}

/// Why this is no kernel for any target, as a sentence; null when it is one.
constexpr const char* config_fault(const RegisterConfig& c) {
  if (const char* fault = config_fault(c, first_target(c))) return fault;
  if (const char* fault = producer_fault(c)) return fault;
  if (c.mma.sums != DType::f32 && c.mma.sums != DType::s32) {
    return "the epilogue takes sums of 32 bits";
  }
  if (const char* fault = epilogue_fault(c)) return fault;
  if (c.result != DType::bf16 && c.result != DType::f16 && c.result != DType::f32) {
    return "results are bf16, f16 or f32";
  }
  if (!fits_smem(c))
    return "the stages exceed the 99 KB of sm_86 and sm_89, or 96 KB and 64 KB of sm_70 and sm_75";
  const int target = smallest_target(c);
  const int shared = smem_map(c).bytes + reserved_smem_bytes_of(target);
  if (c.ctas_per_sm < 1 || c.ctas_per_sm * shared > sm_smem_bytes_of(target)) {
    return "the CTAs of an SM exceed the 100 KB of sm_86 and sm_89, or 96 KB and 64 KB of sm_70 "
           "and sm_75";
  }
  return nullptr;
}

}  // namespace warpwright::kernel
