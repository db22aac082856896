// One value configures a kernel: it compiles it, sizes its shared memory, launches it, names it,
// prints it, and runs it on the model.
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/facts/packed_weights.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

/// Where the sums are kept. Of packed weights the scales of a group are multiplied to what is added
/// to registers (exact); sums in the accumulators are multiplied, where one group follows another,
/// by the quotient of their scales (chained).
enum class Sums : std::uint8_t {
  tensor_core,   ///< in wgmma's accumulators, from the first K block to the last
  promoted,      ///< added to float32 registers after every K block (128 of fp8), or group
  block_scaled,  ///< the same, times the scales of the block (of packed weights: of tokens alone)
};

/// Who adds up a tile's sums along K.
enum class Sharing : std::uint8_t {
  whole,      ///< its CTA alone
  workspace,  ///< several CTAs: parts of the sums go through the workspace
  cluster,    ///< the CTAs of a cluster, which then share nothing else, through their memory
};

/// Where the tensor cores read an operand.
enum class Source : std::uint8_t { shared, registers };

/// A or B of a kernel.
struct Operand {
  DType stored = DType::bf16;      ///< in memory
  DType multiplied = DType::bf16;  ///< by the tensor cores
  atom::Major major = atom::Major::k;
  Source source = Source::shared;

  constexpr Operand() = default;
  /// Multiplied as it is stored.
  constexpr Operand(DType type, atom::Major is_major = atom::Major::k)  // NOLINT: `.a = e4m3`
      : stored(type), multiplied(type), major(is_major) {}

  friend constexpr bool operator==(const Operand&, const Operand&) = default;
  /// Which of its types?
  friend constexpr bool operator==(const Operand&, DType) = delete;
};

/// What is fixed when a Hopper GEMM kernel is compiled. Problem extents, strides, scalars, vectors,
/// the activation and the cluster are parameters of a launch. A, B, rows and columns are the
/// kernel's own: with `swapped` its A is the caller's B, so that few tokens lie on wgmma's N, which
/// may be as small as 8, and its rows are the columns of D.
struct GemmConfig {
  Operand a = DType::bf16;
  Operand b = DType::bf16;
  DType result = DType::bf16;  ///< of C and D
  int tile_m = 128;
  int tile_n = 256;
  int stages = 4;
  int k_spans = 1;  ///< 128-byte spans along K of a stage: more make a barrier serve more copies
  Schedule schedule = Schedule::cooperative;
  int consumer_warpgroups = 2;
  Sums sums = Sums::tensor_core;
  bool swapped = false;
  bool zero_points = false;  ///< packed weights have some
  bool folds = false;        ///< their scales are multiplied to the codes
  bool tables = false;       ///< which are looked up in a table of a group's row
  int passes = 1;            ///< over their tokens, so that the sums of a part wait to be added
  bool gated = false;        ///< the caller's N has two halves, of which D gets act(first) * second
  Sharing sharing = Sharing::whole;
  Store store = Store::tensor;
  int buffers = 2;      ///< of the epilogue, a warp
  int ctas_per_sm = 1;  ///< that fit at once: one streams while another starts or stores
  Grouping grouped = Grouping::none;
  /// static_persistent, or drawn: then a launch without a counter walks as the other does.
  TileSource tiles = TileSource::static_persistent;

  constexpr operator EpilogueShape() const;  // NOLINT: a configuration is asked for its epilogue
  friend constexpr bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

/// Bits of a multiplied element: the same of A and B.
constexpr int operand_bits(const GemmConfig& c) {
  return numeric::bits(c.a.multiplied);
}
/// K of one 128-byte swizzle span, the inner extent of a K-major box.
constexpr int span_k(const GemmConfig& c) {
  return 1024 / operand_bits(c);
}
/// K of a stage.
constexpr int tile_k(const GemmConfig& c) {
  return c.k_spans * span_k(c);
}

constexpr bool has_producer(const GemmConfig& c) {
  return c.schedule != Schedule::multistage;
}
constexpr bool is_grouped(const GemmConfig& c) {
  return c.grouped != Grouping::none;
}
/// Whether A are int4 weights in their packed form: bytes that are copied as they lie, and
/// converted on the way to the registers.
constexpr bool packed_a(const GemmConfig& c) {
  return c.a.source == Source::registers;
}
/// How the sums of packed weights meet their scales: kernel/hopper/decode/ has a file for each.
constexpr GroupSums group_sums(const GemmConfig& c) {
  if (c.folds) return c.tables ? GroupSums::table : GroupSums::folded;
  return c.sums == Sums::tensor_core ? GroupSums::chained : GroupSums::exact;
}
/// Parts of a stage, each a group of weights, that are multiplied at once: of several K blocks two,
/// so that codes are converted and sums added while the tensor cores multiply.
constexpr int in_flight(const GemmConfig& c) {
  return packed_a(c) && c.k_spans > 1 ? 2 : 1;
}
/// Whether other warpgroups of the SM leave a consumer few registers.
constexpr bool shares_registers(const GemmConfig& c) {
  return packed_a(c) && (c.ctas_per_sm > 1 || c.consumer_warpgroups > 2);
}
constexpr bool has_group_maps(const GemmConfig& c) {
  return c.store == Store::tensor_per_group;
}
constexpr bool draws_tiles(const GemmConfig& c) {
  return c.tiles == TileSource::drawn;
}
/// The warp that draws them.
inline constexpr int drawing_warp = 3;
/// The first consumer warp: a producer has a warpgroup of its own.
constexpr int first_consumer_warp(const GemmConfig& c) {
  return has_producer(c) ? 4 : 0;
}
constexpr int consumer_warps(const GemmConfig& c) {
  return 4 * c.consumer_warpgroups;
}
constexpr int threads(const GemmConfig& c) {
  return 32 * (first_consumer_warp(c) + consumer_warps(c));
}

/// Rows of a tile that one consumer warpgroup multiplies, and wgmma atoms of 64 rows in them.
constexpr int warpgroup_rows(const GemmConfig& c) {
  return c.schedule == Schedule::pingpong ? c.tile_m : c.tile_m / c.consumer_warpgroups;
}
constexpr int row_atoms(const GemmConfig& c) {
  return warpgroup_rows(c) / 64;
}

/// Consumer warps that read one stage: those of one warpgroup when they take turns.
constexpr int warps_per_stage(const GemmConfig& c) {
  return c.schedule == Schedule::pingpong ? 4 : consumer_warps(c);
}

constexpr GemmConfig::operator EpilogueShape() const {
  return {.result = result,
          .tile_m = tile_m,
          .tile_n = tile_n,
          .warps = consumer_warps(*this),
          .row_atoms = kernel::row_atoms(*this),
          .row_atom_step = 64,
          .swapped = swapped,
          .gated = gated,
          .store = store,
          .buffers = buffers,
          .most_columns = shares_registers(*this) ? 32 : 128,
          .shares_columns = sharing == Sharing::cluster,
          .grouped = is_grouped(*this)};
}
static_assert(EpilogueConfig<GemmConfig>);

/// Row of the tile where atom `i` of warpgroup `w` begins. A warpgroup with gated rows holds the
/// same rows of both halves.
constexpr int atom_row(const GemmConfig& c, int w, int i) {
  const int first = c.schedule == Schedule::pingpong ? 0 : w;
  if (!gated_rows(c)) return first * warpgroup_rows(c) + 64 * i;
  const int half = row_atoms(c) / 2;
  return i / half * (c.tile_m / 2) + first * warpgroup_rows(c) / 2 + 64 * (i % half);
}

// --- registers ----------------------------------------------------------------------------------
/// Registers a thread has at launch.
constexpr int launch_registers(const GemmConfig& c) {
  return launch_registers(threads(c), c.ctas_per_sm);
}
/// Float32 registers of sums in a consumer's thread.
constexpr int sum_registers(const GemmConfig& c) {
  const int all = row_atoms(c) * c.tile_n / 2;
  return all + (c.sums == Sums::tensor_core ? 0 : in_flight(c) * all / c.passes);
}
/// Whether the producer's registers are given to the consumers (setmaxnreg).
constexpr bool moves_registers(const GemmConfig& c) {
  return has_producer(c) &&
         sum_registers(c) + (c.sharing == Sharing::workspace ? 110 : 90) > launch_registers(c);
}
constexpr int producer_registers(const GemmConfig& c) {
  if (!moves_registers(c)) return launch_registers(c);
  if (c.sums == Sums::block_scaled) {
    if (sum_registers(c) > 128) return sum_registers(c) > 160 ? 40 : 80;
    return c.sharing == Sharing::workspace ? 88 : 104;
  }
  // Its scheduler holds more.
  if (c.sharing == Sharing::workspace) return c.sums == Sums::tensor_core ? 56 : 72;
  if (shares_registers(c)) return 32;
  return sum_registers(c) > 128 ? 24 : 40;
}
constexpr int consumer_registers(const GemmConfig& c) {
  if (!moves_registers(c)) return launch_registers(c);
  const int pool = launch_registers(c) * threads(c) - 128 * producer_registers(c);
  const int each = pool / (128 * c.consumer_warpgroups) / 8 * 8;
  return each > 240 ? 240 : each;
}

// --- operands in shared memory ------------------------------------------------------------------
constexpr atom::OperandTile tile_a(const GemmConfig& c) {
  return {c.tile_m, tile_k(c), operand_bits(c), c.a.major, atom::SmemSwizzle::b128};
}
constexpr atom::OperandTile tile_b(const GemmConfig& c) {
  return {c.tile_n, tile_k(c), operand_bits(c), c.b.major, atom::SmemSwizzle::b128};
}

/// Room for a packed tile of any format that the kernel takes.
constexpr int most_packed_tile(const GemmConfig& c) {
  const ZeroPoints zeros = c.zero_points ? ZeroPoints::groups : ZeroPoints::none;
  return packed::tile_bytes({.group = 32, .scale = DType::f32, .zero_points = zeros});
}
/// Bytes of A in a stage.
constexpr int stage_a_bytes(const GemmConfig& c) {
  if (packed_a(c)) return c.tile_m / packed::kTileRows * c.k_spans * most_packed_tile(c);
  return atom::tile_bytes(tile_a(c));
}

/// Block scales of a stage: a vector along the tokens, one float for each row (swapped: column),
/// and one float for every 64 (or 32, where the tile is no multiple of that) of the other
/// dimension, whose blocks have 128.
constexpr int weights_per_scale(const GemmConfig& c) {
  return (c.swapped ? c.tile_m : c.tile_n) % 64 == 0 ? 64 : 32;
}
constexpr int token_scales(const GemmConfig& c) {
  if (c.sums != Sums::block_scaled) return 0;
  return c.swapped ? c.tile_n : c.tile_m;
}
constexpr int weight_scales(const GemmConfig& c) {
  if (c.sums != Sums::block_scaled || packed_a(c)) return 0;
  return (c.swapped ? c.tile_m : c.tile_n) / weights_per_scale(c);
}
/// Floats a copy of the vector brings: groups begin at any token, copies at every fourth.
constexpr int copied_scales(const GemmConfig& c) {
  return token_scales(c) + (is_grouped(c) ? 4 : 0);
}
constexpr int scale_bytes(const GemmConfig& c) {
  return ((copied_scales(c) + weight_scales(c)) * 4 + 127) / 128 * 128;
}
/// Whether the copy engine may bring the vector, where its layout allows: not in small tiles, whose
/// products wait for memory, and would wait for one copy more.
constexpr bool copies_scales(const GemmConfig& c) {
  return c.sums == Sums::block_scaled && !c.swapped && c.tile_m >= 128;
}

/// Where things lie in dynamic shared memory, as byte offsets from its start. Tiles start where the
/// 128-byte swizzle repeats (1024).
struct SmemMap {
  int a = 0;           ///< stages of A
  int b = 0;           ///< stages of B
  int epilogue = 0;    ///< buffers of all consumer warps
  int scales = 0;      ///< stages of block scales
  int groups = 0;      ///< the table of a vertical search
  int tiles = 0;       ///< the ring of tiles that are drawn
  int barriers = 0;    ///< full and empty of the main loop
  int c_barriers = 0;  ///< one a buffer, for loads of C
  int turns = 0;       ///< one a consumer warpgroup (ping-pong)
  int bytes = 0;       ///< in all
};

constexpr int group_table_bytes(const GemmConfig& c) {
  if (c.grouped != Grouping::vertical) return 0;
  return (tile::VerticalTable::bytes(threads(c)) + 15) / 16 * 16;
}

/// Who must know the next tile: in every CTA the scheduler, the producer, the warp that fetches
/// scales and all consumer warps, which count the stages of each other's tiles when they take
/// turns. Four answers, because with few K blocks the producer is some tiles ahead.
constexpr pipeline::TileRingShape tile_ring_shape(const GemmConfig& c) {
  return {4, 2 + (c.sums == Sums::block_scaled ? 1 : 0) + consumer_warps(c)};
}

constexpr SmemMap smem_map(const GemmConfig& c) {
  SmemMap map;
  map.a = 0;
  map.b = (map.a + c.stages * stage_a_bytes(c) + 1023) / 1024 * 1024;
  const int operands = map.b + c.stages * atom::tile_bytes(tile_b(c));
  map.epilogue = (operands + 1023) / 1024 * 1024;
  map.scales = map.epilogue + epilogue_bytes(c);
  map.groups = map.scales + c.stages * scale_bytes(c);
  map.tiles = map.groups + group_table_bytes(c);
  map.barriers = map.tiles + (draws_tiles(c) ? pipeline::ring_bytes(tile_ring_shape(c)) : 0);
  map.c_barriers = map.barriers + pipeline::barrier_bytes(c.stages);
  map.turns = map.c_barriers + c_barrier_bytes(c);
  map.bytes = map.turns + c.consumer_warpgroups * 8;
  return map;
}

constexpr pipeline::TmaPipelineShape mainloop_shape(const GemmConfig& c) {
  const bool scales = c.sums == Sums::block_scaled;
  return {.stages = c.stages,
          .consumer_warps = warps_per_stage(c),
          // The bytes of a packed tile depend on the launch.
          .stage_bytes = (packed_a(c) ? 0 : stage_a_bytes(c)) + atom::tile_bytes(tile_b(c)),
          .writer_warps = scales ? 1 : 0,
          .consumers_load = !has_producer(c),
          .wgmma_only = !scales && !packed_a(c)};
}

/// The clusters every kernel is launched with, and proved for at compile time.
inline constexpr atom::ClusterShape supported_clusters[] = {
    {1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}, {8, 1}, {1, 8}, {4, 4}};

/// Whether an operand tile can be loaded in `slices` by as many CTAs: in whole boxes of each half.
constexpr bool slices_evenly(const atom::OperandTile& tile, bool gated, int slices) {
  const int unit = tile.major == atom::Major::k ? 8 : atom::span_elements(tile);
  return atom::slices_evenly(gated ? tile.rows / 2 : tile.rows, slices, unit);
}

constexpr bool supports(const GemmConfig& c, atom::ClusterShape cluster) {
  if (packed_a(c) && cluster.n > 1) return false;  // packed tiles are not multicast
  for (const atom::ClusterShape& known : supported_clusters) {
    if (known == cluster) {
      return slices_evenly(tile_a(c), gated_rows(c), cluster.n) &&
             slices_evenly(tile_b(c), gated_columns(c), cluster.m);
    }
  }
  return false;
}

constexpr bool fits_smem(const GemmConfig& c) {
  return c.ctas_per_sm * (smem_map(c).bytes + reserved_smem_bytes) <= sm_smem_bytes;
}

/// The part that a warp plays, as reports name it.
constexpr const char* role_of_warp(const GemmConfig& c, int warp) {
  if (has_producer(c) && warp == 0) return "producer";
  if (has_producer(c) && warp == 1 && c.sums == Sums::block_scaled) return "scales";
  if (draws_tiles(c) && warp == drawing_warp) return "scheduler";
  if (warp < first_consumer_warp(c)) return "idle";
  constexpr const char* consumers[] = {"consumer 0", "consumer 1", "consumer 2", "consumer 3"};
  return consumers[(warp - first_consumer_warp(c)) / 4 % 4];
}

}  // namespace warpwright::kernel
