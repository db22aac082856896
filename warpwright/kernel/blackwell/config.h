// One value configures a Blackwell kernel, as kernel/hopper/config.h does for Hopper.
#pragma once

#include <cstdint>
#include <numeric>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/facts/micro_format.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/pipeline/umma_accumulator.h"
#include "warpwright/pipeline/umma_pipeline.h"
#include "warpwright/tile/even_tiles.h"

namespace warpwright::kernel {

/// What is fixed when a Blackwell GEMM kernel is compiled. Which operand types of the kind are
/// multiplied is a matter of the launch: the instruction descriptor says it.
struct BlackwellConfig {
  atom::UmmaKind kind = atom::UmmaKind::f16;
  DType result = DType::bf16;  ///< of C and D
  /// Rows of the product that one CTA computes: 128, a lane of tensor memory each; for few tokens
  /// also 64, in half of the lanes; for gates with scales 128 of them and the 128 that they are
  /// for, each with an accumulator of its own.
  int tile_m = 128;
  int tile_n = 128;  ///< columns; with pairs both CTAs of one compute all of them
  int stages = 6;
  /// In tensor memory; with 2, which may share columns, the epilogue of a tile hides behind the
  /// next.
  int accumulators = 1;
  bool pair = false;  ///< an MMA of two CTAs
  /// Every k_tile has an accumulator of its own, which is added to float32 registers, times its
  /// scales where a launch has some (1 x 128 of A by 128 x 128 of B).
  bool blockwise = false;
  bool splits_k = false;  ///< clusters share tiles along K, where they are more than tiles
  TileSource tiles = TileSource::one_tile;
  /// For a launch, like the types: kernels of 16-bit operands take either, and the table has these.
  atom::Major a_major = atom::Major::k;
  atom::Major b_major = atom::Major::k;
  bool swap_ab = false;  ///< its A is the caller's B: few tokens lie on N, rows are columns of D
  bool grouped = false;  ///< for products in groups; its tokens are on N
  bool gated = false;  ///< a tile's rows are 16 of gates, then 16 of what they are for, and so on;
                       ///< with scales, whose atoms have 128 rows, 128 of each
  /// Along the tokens, swapped: tiles are cut evenly, and each is multiplied by an N of its own.
  tile::TileWidths widths = {};
  /// For the scales that the tensor core multiplies, each of micro_block(scale) elements of K; f32:
  /// it multiplies none.
  DType scale = DType::f32;
  bool plain_tokens = false;  ///< tokens have scales of 1 there, one for each in the epilogue
  bool long_k = false;        ///< MMAs of K 96, which only sm_103 has: eight on three stages
  /// For the scales of a D that is quantised, each of micro_block(d_scale) columns; f32: it is not.
  DType d_scale = DType::f32;

  constexpr operator EpilogueShape() const;  // NOLINT: a configuration is asked for its epilogue
  friend constexpr bool operator==(const BlackwellConfig&, const BlackwellConfig&) = default;
};

// The parts that the warps of a CTA play.
inline constexpr int load_warp = 0;
inline constexpr int mma_warp = 1;  ///< also owns the tensor memory
inline constexpr int scheduler_warp = 2;
inline constexpr int offsets_warp = 3;  ///< checks the offsets of groups, where that is asked for
inline constexpr int first_epilogue_warp = 4;  ///< a multiple of 4: warp w reaches lanes 32 (w % 4)
inline constexpr int epilogue_warps = 4;

constexpr int threads(const BlackwellConfig& /*c*/) {
  return 32 * (first_epilogue_warp + epilogue_warps);
}

/// Registers a thread has at launch.
constexpr int launch_registers(const BlackwellConfig& c) {
  return launch_registers(threads(c), 1);
}

/// Does the tensor core multiply scales?
constexpr bool is_scaled(const BlackwellConfig& c) {
  return is_micro_scale(c.scale);
}
/// Are D codes, stored with their scales?
constexpr bool quantises(const BlackwellConfig& c) {
  return is_micro_scale(c.d_scale);
}
/// Packed elements have scales of either format: nvf4's, which the configuration says, or mxf4's,
/// half as many. A launch says which it multiplies, and which it makes.
constexpr bool takes_either_scale(const BlackwellConfig& c) {
  return c.kind == atom::UmmaKind::mxf4nvf4 && c.scale == DType::ue4m3;
}
constexpr bool makes_either_scale(const BlackwellConfig& c) {
  return c.result == DType::e2m1 && c.d_scale == DType::ue4m3;
}
/// What a launch with such scales multiplies: its atoms and its MMAs. (Stages and tensor memory
/// have room for those of the configuration.)
constexpr BlackwellConfig with_scale(BlackwellConfig c, DType scale) {
  c.scale = scale;
  return c;
}

/// Whether the tiles come from CLC.
constexpr bool asks_for_tiles(const BlackwellConfig& c) {
  return c.tiles == TileSource::clc;
}
constexpr int ctas_of_mma(const BlackwellConfig& c) {
  return c.pair ? 2 : 1;
}
constexpr bool has_widths(const BlackwellConfig& c) {
  return tile::count(c.widths) > 0;
}
/// May a launch name the tokens of groups by numbers, so that rows are gathered? (Scales of blocks
/// that epilogue warps multiply are those of tokens in their order.)
constexpr bool takes_index(const BlackwellConfig& c) {
  return c.grouped && !c.pair && !c.blockwise;
}
/// Are they cut evenly? Tiles with scales begin with an atom of their own.
constexpr bool cuts_evenly(const BlackwellConfig& c) {
  return has_widths(c) && (!is_scaled(c) || c.plain_tokens);
}
/// Whether the lanes of a warp look for its tiles together: groups are found 32 at a step.
constexpr bool walks_by_warp(const BlackwellConfig& c) {
  return c.grouped;
}

/// A type that stands for all of the kind: they take as many bits of shared memory, those of 4 and
/// 6 bits with padding.
constexpr DType sample_type(atom::UmmaKind kind) {
  if (atom::is_packed(kind)) return DType::e2m1;
  return kind == atom::UmmaKind::f16    ? DType::bf16
         : kind == atom::UmmaKind::tf32 ? DType::tf32
                                        : DType::e4m3;
}

/// Do the epilogue warps hold a tile's sums, before they store them or give them away?
constexpr bool sums_in_registers(const BlackwellConfig& c) {
  return c.blockwise || c.splits_k;
}

constexpr int operand_bits(const BlackwellConfig& c) {
  return numeric::bits(sample_type(c.kind));
}
/// K of a stage: one 128-byte swizzle span.
constexpr int tile_k(const BlackwellConfig& c) {
  return 1024 / operand_bits(c);
}

/// Accumulators side by side that make one tile: of gates, and of what they are for.
constexpr int halves(const BlackwellConfig& c) {
  return c.tile_m < atom::kTmemLanes ? 1 : c.tile_m / atom::kTmemLanes;
}
/// Rows of an accumulator, and 16s of them that an epilogue warp has, in lanes of its own.
constexpr int half_rows(const BlackwellConfig& c) {
  return c.tile_m / halves(c);
}
constexpr int warp_row_atoms(const BlackwellConfig& c) {
  return half_rows(c) / epilogue_warps / warp_rows;
}

/// The MMA that multiplies operands of these types.
constexpr atom::UmmaAtom mma_atom(const BlackwellConfig& c, DType a, DType b) {
  const int m = half_rows(c) * ctas_of_mma(c);
  if (is_scaled(c)) {
    atom::UmmaAtom mma =
        atom::scaled_umma_atom(c.kind, a, b, m, c.tile_n, c.pair, micro_block(c.scale), c.scale);
    if (c.long_k) mma.k = atom::kUmmaLongK;
    return mma;
  }
  atom::UmmaAtom mma = atom::umma_atom(a, b, DType::f32, m, c.tile_n, c.pair);
  mma.a_major = c.a_major;
  mma.b_major = c.b_major;
  return mma;
}
constexpr atom::UmmaAtom mma_atom(const BlackwellConfig& c) {
  return mma_atom(c, sample_type(c.kind), sample_type(c.kind));
}
/// Does a launch say which majors its operands have? (Tokens are K-major.)
constexpr bool takes_any_major(const BlackwellConfig& c) {
  return operand_bits(c) == 16 && !c.swap_ab;
}

/// Stages that MMAs are issued on together: of K 96 some begin in one and end in the next, and
/// every third ends with an MMA. K counts as a multiple of so many; what is behind it comes as
/// zeros.
constexpr int stages_together(const BlackwellConfig& c) {
  return c.long_k ? 3 : 1;
}
/// MMAs on them.
constexpr int k_blocks(const BlackwellConfig& c) {
  return stages_together(c) * tile_k(c) / mma_atom(c).k;
}

/// What one CTA holds of A (of each of its halves) and of B in a stage. For a pair's B each CTA
/// holds half of the columns.
constexpr atom::OperandTile tile_a(const BlackwellConfig& c) {
  return {half_rows(c), tile_k(c), operand_bits(c), c.a_major, atom::SmemSwizzle::b128};
}
constexpr atom::OperandTile tile_b(const BlackwellConfig& c) {
  return {c.tile_n / ctas_of_mma(c), tile_k(c), operand_bits(c), c.b_major,
          atom::SmemSwizzle::b128};
}

// --- scales --------------------------------------------------------------------------------------
// They come in atoms of 128 rows x 4 of K. A stage has those of the CTA's own rows of A, and of all
// columns of D, of a pair too: each CTA's tensor core reads them from its own tensor memory.

/// Atoms along K of a stage.
constexpr int scale_atoms(const BlackwellConfig& c) {
  return is_scaled(c) ? tile_k(c) / micro_block(c.scale) / atom::kScaleAtomDepth : 0;
}
/// Rows of atoms that hold the scales of a tile's columns: of 64 and 192 columns every other tile
/// begins in the middle of an atom.
constexpr int scale_rows_of_b(const BlackwellConfig& c) {
  const int latest = atom::kScaleAtomRows - std::gcd(c.tile_n, atom::kScaleAtomRows);
  return (c.tile_n + latest + atom::kScaleAtomRows - 1) / atom::kScaleAtomRows;
}
/// Bytes of A in a stage.
constexpr int a_bytes(const BlackwellConfig& c) {
  return halves(c) * atom::tile_bytes(tile_a(c));
}
/// Has A, or B, scales of 1, plain tokens'?
constexpr bool has_ones(const BlackwellConfig& c, bool of_a) {
  return c.plain_tokens && of_a != c.swap_ab;
}
/// Bytes of a row of atoms, and of those of one of A's halves and of B in a stage. (Those of plain
/// tokens are there once.)
constexpr int scale_row_bytes(const BlackwellConfig& c) {
  return scale_atoms(c) * atom::kScaleAtomBytes;
}
constexpr int sfa_bytes(const BlackwellConfig& c) {
  return has_ones(c, true) ? 0 : scale_row_bytes(c);
}
constexpr int sfb_bytes(const BlackwellConfig& c) {
  return has_ones(c, false) ? 0 : scale_rows_of_b(c) * scale_row_bytes(c);
}
/// 32-bit words of a row of atoms that one copy brings: a box has 256 at most.
constexpr int scale_box_words(const BlackwellConfig& c) {
  const int all = scale_row_bytes(c) / 4;
  return all < 256 ? all : 256;
}
/// Columns of tensor memory that the scales of a stage, or of those that MMAs are issued on
/// together, take: those of A's halves and then B's.
constexpr int sfa_columns(const BlackwellConfig& c) {
  return stages_together(c) * scale_atoms(c) * atom::kScaleAtomColumns;
}
constexpr int sfb_columns(const BlackwellConfig& c) {
  return scale_rows_of_b(c) * sfa_columns(c);
}
constexpr int scale_columns(const BlackwellConfig& c) {
  return halves(c) * sfa_columns(c) + sfb_columns(c);
}

/// Columns of tensor memory that one accumulator takes; for several halves they stand side by side.
constexpr int half_columns(const BlackwellConfig& c) {
  return atom::umma_columns(mma_atom(c));
}
constexpr int accumulator_columns(const BlackwellConfig& c) {
  return halves(c) * half_columns(c);
}
/// Do two accumulators share columns, because the scales need some of their own?
constexpr bool overlaps(const BlackwellConfig& c) {
  return c.accumulators == 2 && 2 * accumulator_columns(c) + scale_columns(c) > atom::kTmemColumns;
}
/// Those that the barriers of accumulators tell apart.
constexpr int accumulator_slots(const BlackwellConfig& c) {
  return overlaps(c) ? 1 : c.accumulators;
}

/// What widths are multiples of: N of MMAs of 128 rows is one of 16, of 64 rows and with scales of
/// 8, and of a pair of 32.
constexpr int width_unit(const BlackwellConfig& c) {
  return c.pair ? 32 : is_scaled(c) || half_rows(c) == 64 ? 8 : 16;
}
/// The widest part of a tile that all widths consist of, of 16 to 128 columns. (A tile of 8 columns
/// is half of one.)
constexpr int width_step(const BlackwellConfig& c) {
  int step = 128;
  for (const int width : c.widths.of) {
    while (width > 8 && width % step != 0) step /= 2;
  }
  return step;
}
/// Has it tiles that are half a part?
constexpr bool has_half_steps(const BlackwellConfig& c) {
  return has_widths(c) && c.widths.of[0] < width_step(c);
}

/// A warp has two groups of 16 rows, one below the other; gated, one of each half. Tiles of several
/// widths end where the next one begins, as those of groups do.
constexpr BlackwellConfig::operator EpilogueShape() const {
  return {.result = result,
          .tile_m = tile_m,
          .tile_n = tile_n,
          .warps = epilogue_warps,
          .row_atoms = halves(*this) * warp_row_atoms(*this),
          .row_atom_step = warp_rows,
          .swap_ab = swap_ab,
          .gated = gated,
          .store = grouped || has_widths(*this) || is_micro_scale(d_scale) ? Store::lanes
                                                                           : Store::tensor,
          .most_columns = width_step(*this),
          .grouped = grouped || has_widths(*this),
          .by_index = takes_index(*this),
          .by_index_or_not = true,
          .by_columns = overlaps(*this),
          .loops = swap_ab};
}
static_assert(EpilogueConfig<BlackwellConfig>);

/// Columns that two accumulators share, which an epilogue warp empties first: whole subtiles.
constexpr int shared_columns(const BlackwellConfig& c) {
  if (!overlaps(c)) return 0;
  const int subtile = subtile_columns(c);
  const int missing = 2 * accumulator_columns(c) + scale_columns(c) - atom::kTmemColumns;
  return (missing + subtile - 1) / subtile * subtile;
}
/// From the first column of an accumulator to that of the next.
constexpr int accumulator_step(const BlackwellConfig& c) {
  return accumulator_columns(c) - shared_columns(c);
}
/// Where the scales begin behind the accumulators, and how often there are those of a stage (or of
/// stages that MMAs are issued on together): twice, where that costs no larger allocation, so that
/// copies need not wait for the MMAs before them.
constexpr int first_scale_column(const BlackwellConfig& c) {
  return (c.accumulators - 1) * accumulator_step(c) + accumulator_columns(c);
}
constexpr int scale_buffers(const BlackwellConfig& c) {
  if (!is_scaled(c)) return 0;
  const int one = first_scale_column(c) + scale_columns(c);
  const int two = one + scale_columns(c);
  return atom::tmem_allocation(two) == atom::tmem_allocation(one) ? 2 : 1;
}
/// What the kernel allocates for all of them (0: there are not so many).
constexpr int tmem_columns(const BlackwellConfig& c) {
  return atom::tmem_allocation(first_scale_column(c) + scale_buffers(c) * scale_columns(c));
}

/// Bytes that the copies of a stage signal in one CTA: of operands with padding those of global
/// memory, which has none.
constexpr int stage_bytes(const BlackwellConfig& c, DType a, DType b) {
  const auto bytes = [&c](const atom::OperandTile& tile, DType type) {
    return is_scaled(c) ? tile.rows * tile.depth * numeric::bits(type) / 8 : atom::tile_bytes(tile);
  };
  return halves(c) * (bytes(tile_a(c), a) + sfa_bytes(c)) + bytes(tile_b(c), b) + sfb_bytes(c);
}
constexpr pipeline::UmmaPipelineShape mainloop_shape(const BlackwellConfig& c, DType a, DType b) {
  return {c.stages, stage_bytes(c, a, b), c.pair};
}
constexpr pipeline::UmmaPipelineShape mainloop_shape(const BlackwellConfig& c) {
  return mainloop_shape(c, sample_type(c.kind), sample_type(c.kind));
}
constexpr pipeline::UmmaAccumulatorShape accumulator_shape(const BlackwellConfig& c) {
  return {accumulator_slots(c), epilogue_warps, c.pair, overlaps(c)};
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
  int sfa = 0;           ///< stages of the scales of A
  int sfb = 0;           ///< and of B
  int tiles = 0;         ///< the ring of tiles from CLC
  int barriers = 0;      ///< full and empty of the main loop
  int c_barriers = 0;    ///< one a buffer, for loads of C
  int accumulators = 0;  ///< full and empty of the accumulators, and the one for the end
  int tmem = 0;          ///< the address of the tensor memory
  int bytes = 0;         ///< in all
};

constexpr BlackwellSmemMap smem_map(const BlackwellConfig& c) {
  BlackwellSmemMap map;
  map.b = map.a + c.stages * a_bytes(c);
  map.epilogue = map.b + c.stages * atom::tile_bytes(tile_b(c));
  // Behind what is swizzled, which begins at multiples of 1024 bytes.
  map.sfa = map.epilogue + (quantises(c) ? 0 : epilogue_bytes(c));
  const int ones = c.plain_tokens ? scale_row_bytes(c) : 0;
  map.sfb = map.sfa + (has_ones(c, true) ? ones : c.stages * halves(c) * sfa_bytes(c));
  map.tiles = map.sfb + (has_ones(c, false) ? ones : c.stages * sfb_bytes(c));
  map.barriers = map.tiles + (asks_for_tiles(c) ? pipeline::ring_bytes(tile_ring_shape(c)) : 0);
  map.c_barriers = map.barriers + pipeline::barrier_bytes(mainloop_shape(c));
  map.accumulators = map.c_barriers + (quantises(c) ? 0 : c_barrier_bytes(c));
  map.tmem = map.accumulators + pipeline::barrier_bytes(accumulator_shape(c));
  map.bytes = map.tmem + 8;
  return map;
}

/// The clusters that Blackwell kernels are launched with.
inline constexpr atom::ClusterShape blackwell_clusters[] = {{1, 1}, {2, 1}, {1, 2},
                                                            {2, 2}, {4, 2}, {4, 4}};

/// Rows of an operand that its slices are multiples of: MN-major ones are whole boxes.
constexpr int slice_unit(const atom::OperandTile& tile) {
  return tile.major == atom::Major::k ? 8 : atom::span_elements(tile);
}
constexpr bool supports(const BlackwellConfig& c, atom::ClusterShape cluster) {
  if (atom::cluster_fault(cluster, c.pair) != atom::ClusterFault::none) return false;
  if ((has_widths(c) || c.gated) && cluster.n > 1) return false;  // along the tokens
  for (const int width : c.widths.of) {  // in slices of four rows, as those that are gathered
    if (width % (4 * cluster.m) != 0) return false;
  }
  for (const atom::ClusterShape& known : blackwell_clusters) {
    if (known == cluster) {
      return atom::slices_evenly(c.tile_m, cluster.n, slice_unit(tile_a(c))) &&
             atom::slices_evenly(c.tile_n, cluster.m, slice_unit(tile_b(c)));
    }
  }
  return false;
}

constexpr bool fits_smem(const BlackwellConfig& c) {
  return smem_map(c).bytes <= max_smem_bytes;
}

}  // namespace warpwright::kernel
