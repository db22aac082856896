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
#include "warpwright/kernel/hopper/operands.h"
#include "warpwright/kernel/one_of.h"
#include "warpwright/kernel/sm_limits.h"
#include "warpwright/numeric/types.h"
#include "warpwright/tile/even_tiles.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

/// Tiles in their order; or drawn with a counter, without which a launch has them in order.
struct InOrder {
  friend constexpr bool operator==(const InOrder&, const InOrder&) = default;
};
struct Dynamic {
  friend constexpr bool operator==(const Dynamic&, const Dynamic&) = default;
};
/// In order, with tokens that are read by index: only in groups.
struct ByIndex {
  friend constexpr bool operator==(const ByIndex&, const ByIndex&) = default;
};
/// In order, cut evenly in these widths along the tokens, swapped.
struct InWidths {
  tile::TileWidths widths = {};

  friend constexpr bool operator==(const InWidths&, const InWidths&) = default;
};

/// The sums of a tile are only its CTA's.
struct Whole {
  bool in_turns = false;  ///< Schedule::pingpong
  OneOf<InOrder, Dynamic> tiles = InOrder{};

  friend constexpr bool operator==(const Whole&, const Whole&) = default;
};
/// The same of products in groups.
struct Grouped {
  Grouping search = Grouping::none;
  bool in_turns = false;
  OneOf<InOrder, Dynamic, ByIndex, InWidths> tiles = InOrder{};

  friend constexpr bool operator==(const Grouped&, const Grouped&) = default;
};
/// Several CTAs share a tile along K: parts of its sums go through the workspace.
struct SplitK {
  friend constexpr bool operator==(const SplitK&, const SplitK&) = default;
};
/// As many CTAs as the GPU has share few tiles along K through the workspace, one piece each, and
/// add up slices of the columns each.
struct SlicedK {
  friend constexpr bool operator==(const SlicedK&, const SlicedK&) = default;
};
/// The CTAs of a cluster, which then share nothing else, do: through their memory.
struct ClusterK {
  friend constexpr bool operator==(const ClusterK&, const ClusterK&) = default;
};

/// What is fixed when a Hopper GEMM kernel is compiled. Problem extents, strides, scalars, vectors,
/// the activation and the cluster are parameters of a launch. A, B, rows and columns are the
/// kernel's own.
struct GemmConfig {
  OneOf<SharedOperands, PackedOperands> operands = SharedOperands{};
  OneOf<Whole, Grouped, SplitK, SlicedK, ClusterK> walk = Whole{};
  DType result = DType::bf16;  ///< of C and D
  int tile_m = 128;
  int tile_n = 256;
  int stages = 4;
  int consumer_warpgroups = 2;
  bool side_by_side = false;  ///< each multiplies all rows of a tile, and its part of the columns
  bool gated = false;      ///< the caller's N has two halves, of which D gets act(first) * second
  bool quantises = false;  ///< D are e4m3 codes, with a scale for each 128 columns of a row
  int buffers = 2;         ///< of the epilogue, a warp
  int ctas_per_sm = 1;     ///< that fit at once: one streams while another starts or stores

  constexpr operator EpilogueShape() const;  // NOLINT: a configuration is asked for its epilogue
  friend constexpr bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

// --- its operands, whatever their form ----------------------------------------------------------
constexpr bool packed_a(const GemmConfig& c) {
  return c.operands.is<PackedOperands>();
}
constexpr Operand operand_a(const GemmConfig& c) {
  return packed_a(c) ? Operand{multiplied_as(c.operands.as<PackedOperands>())}
                     : c.operands.as<SharedOperands>().a;
}
constexpr Operand operand_b(const GemmConfig& c) {
  return packed_a(c) ? Operand{c.operands.as<PackedOperands>().tokens}
                     : c.operands.as<SharedOperands>().b;
}
/// The type of A in memory. (B is multiplied as it is stored.)
constexpr DType stored_a(const GemmConfig& c) {
  return packed_a(c) ? c.operands.as<PackedOperands>().code : operand_a(c).type;
}
constexpr bool is_swapped(const GemmConfig& c) {
  return packed_a(c) || c.operands.as<SharedOperands>().swap_ab;
}
/// For packed weights; the defaults for other sums than exact ones.
constexpr const ExactSums& exact_sums(const GemmConfig& c) {
  return c.operands.as<PackedOperands>().sums.as<ExactSums>();
}
/// Exact sums of packed weights are promoted, or block scaled; others stay in the tensor core.
constexpr Sums sums_of(const GemmConfig& c) {
  if (!packed_a(c)) return c.operands.as<SharedOperands>().sums;
  const auto& sums = c.operands.as<PackedOperands>().sums;
  if (!sums.is<ExactSums>()) return Sums::tensor_core;
  return exact_sums(c).way == ExactSums::Way::scaled ? Sums::blockwise : Sums::promoted;
}
/// Or in the accumulators.
constexpr bool sums_in_registers(const GemmConfig& c) {
  return sums_of(c) != Sums::tensor_core;
}
constexpr bool is_blockwise(const GemmConfig& c) {
  return sums_of(c) == Sums::blockwise;
}
/// For packed weights: a file each in decode/.
constexpr GroupSums group_sums(const GemmConfig& c) {
  const auto& sums = c.operands.as<PackedOperands>().sums;
  if (sums.is<ChainedSums>()) return GroupSums::chained;
  if (sums.is<FoldedSums>()) return GroupSums::folded;
  return sums.is<TableSums>() ? GroupSums::table : GroupSums::exact;
}
constexpr bool has_zero_points(const GemmConfig& c) {
  return exact_sums(c).zero_points;
}
/// Groups of weights of a stage that are multiplied at once: codes are converted meanwhile. As many
/// packed tiles along K are in it.
constexpr int in_flight(const GemmConfig& c) {
  return exact_sums(c).way == ExactSums::Way::by_two ? 2 : 1;
}
/// Over the columns of a tile.
constexpr int passes(const GemmConfig& c) {
  return packed_a(c) ? exact_sums(c).passes : c.operands.as<SharedOperands>().passes;
}
/// Rows of weights, and K, that a block scale serves; and the parts of a k_tile that have scales of
/// their own, and are summed by themselves.
constexpr int scale_block(const GemmConfig& c) {
  return packed_a(c) ? 128 : c.operands.as<SharedOperands>().scale_block;
}
constexpr int scale_parts(const GemmConfig& c) {
  return is_blockwise(c) ? 128 / scale_block(c) : 1;
}
/// Spans of 128 bytes along K in a stage. A packed tile has one, or two for tokens of 16 bits.
constexpr int k_atoms(const GemmConfig& c) {
  if (!packed_a(c)) return c.operands.as<SharedOperands>().k_atoms;
  return in_flight(c) * numeric::bits(c.operands.as<PackedOperands>().tokens) / 8;
}
/// Are its weights packed floats of 4 bits?
constexpr bool has_float_codes(const GemmConfig& c) {
  return has_float_codes(c.operands.as<PackedOperands>());
}
/// Are they only taken where their exponents are of rows? Groups of 32 would make the code of
/// several passes four times as long.
constexpr bool folds_alone(const GemmConfig& c) {
  return packed_a(c) && has_float_codes(c) && passes(c) > 1;
}

// --- its walk -----------------------------------------------------------------------------------
constexpr bool splits_k(const GemmConfig& c) {
  return c.walk.is<SplitK>();
}
constexpr bool slices_k(const GemmConfig& c) {
  return c.walk.is<SlicedK>();
}
constexpr bool shares_cluster_k(const GemmConfig& c) {
  return c.walk.is<ClusterK>();
}
constexpr bool takes_whole_tiles(const GemmConfig& c) {
  return c.walk.is<Whole>() || c.walk.is<Grouped>();
}
/// Does a CTA store some columns of its tile by itself?
constexpr bool shares_columns(const GemmConfig& c) {
  return slices_k(c) || shares_cluster_k(c);
}
constexpr Grouping grouping(const GemmConfig& c) {
  return c.walk.as<Grouped>().search;
}
constexpr bool is_grouped(const GemmConfig& c) {
  return grouping(c) != Grouping::none;
}
/// Are tokens read by index, a row at a time?
constexpr bool gathers(const GemmConfig& c) {
  return c.walk.as<Grouped>().tiles.is<ByIndex>();
}
constexpr tile::TileWidths tile_widths(const GemmConfig& c) {
  return c.walk.as<Grouped>().tiles.as<InWidths>().widths;
}
constexpr bool has_widths(const GemmConfig& c) {
  return count(tile_widths(c)) > 0;
}
constexpr bool is_dynamic_persistent(const GemmConfig& c) {
  return c.walk.as<Whole>().tiles.is<Dynamic>() || c.walk.as<Grouped>().tiles.is<Dynamic>();
}
constexpr bool takes_turns(const GemmConfig& c) {
  return c.walk.as<Whole>().in_turns || c.walk.as<Grouped>().in_turns;
}
constexpr Schedule schedule_of(const GemmConfig& c) {
  return takes_turns(c) ? Schedule::pingpong : Schedule::cooperative;
}
/// Does the producer ask for the weights of its first tile before the grid before has ended, where
/// the launch says so (WalkParams::weights_early)? Its warp finds that tile by itself; weights are
/// A. (Packed ones L2 is asked for. Who reads tokens by index is directly behind the sort, and
/// knows no tile before that ends.)
constexpr bool asks_early(const GemmConfig& c) {
  return grouping(c) == Grouping::warp_scan && is_swapped(c) && !packed_a(c) && !gathers(c);
}
/// A group may end in the middle of a tile, of which there is no store by TMA, nor is there one for
/// a part of a tile. Where D is quantised one buffer is enough.
constexpr Store store_of(const GemmConfig& c) {
  return is_grouped(c) || shares_columns(c) || c.quantises ? Store::lanes : Store::tensor;
}

/// Bits of a multiplied element: the same of A and B.
constexpr int operand_bits(const GemmConfig& c) {
  return numeric::bits(operand_a(c).type);
}
/// K of one 128-byte swizzle span, the inner extent of a K-major box.
constexpr int span_k(const GemmConfig& c) {
  return 1024 / operand_bits(c);
}
/// K of a stage.
constexpr int tile_k(const GemmConfig& c) {
  return k_atoms(c) * span_k(c);
}

/// Whether other warpgroups of the SM leave a consumer few registers.
constexpr bool shares_registers(const GemmConfig& c) {
  return packed_a(c) && (c.ctas_per_sm > 1 || c.consumer_warpgroups > 2);
}
/// The warps that copy tokens by index.
inline constexpr int first_row_warp = 2;
inline constexpr int row_warps = 2;
/// Before the consumers: the producer has a warpgroup of its own.
inline constexpr int loading_warps = 4;
constexpr int consumer_warps(const GemmConfig& c) {
  return 4 * c.consumer_warpgroups;
}
constexpr int threads(const GemmConfig& c) {
  return 32 * (loading_warps + consumer_warps(c));
}

/// Rows of a tile that one consumer warpgroup multiplies, and wgmma atoms of 64 rows in them.
constexpr int warpgroup_rows(const GemmConfig& c) {
  return takes_turns(c) || c.side_by_side ? c.tile_m : c.tile_m / c.consumer_warpgroups;
}
/// And columns.
constexpr int warpgroup_columns(const GemmConfig& c) {
  return c.side_by_side ? c.tile_n / c.consumer_warpgroups : c.tile_n;
}
constexpr int row_atoms(const GemmConfig& c) {
  return warpgroup_rows(c) / 64;
}

/// Consumer warps that read one stage: those of one warpgroup when they take turns.
constexpr int warps_per_stage(const GemmConfig& c) {
  return takes_turns(c) ? 4 : consumer_warps(c);
}

/// What is ahead takes registers beside a tile's sums, and code: it is for launches whose tokens or
/// rows of weights have scales, where ptxas has room.
constexpr VectorLoads vector_loads(const GemmConfig& c) {
  if (operand_bits(c) != 8 || is_blockwise(c) || splits_k(c)) return VectorLoads::by_turns;
  if (packed_a(c) && !(c.gated && c.ctas_per_sm > 1)) return VectorLoads::early;
  return c.gated ? VectorLoads::by_turns : VectorLoads::ahead;
}

/// Columns that a buffer of the epilogue takes at most: each lane has a part of them in registers.
constexpr int buffer_columns(const GemmConfig& c) {
  if (c.quantises) return 32;
  if (!shares_registers(c)) return 128;
  return c.consumer_warpgroups == 3 ? 48 : 32;
}

constexpr GemmConfig::operator EpilogueShape() const {
  return {.result = result,
          .tile_m = tile_m,
          .tile_n = tile_n,
          .column_parts = side_by_side ? consumer_warpgroups : 1,
          .warps = consumer_warps(*this),
          .row_atoms = kernel::row_atoms(*this),
          .row_atom_step = 64,
          .swap_ab = is_swapped(*this),
          .gated = gated,
          .store = store_of(*this),
          .buffers = buffers,
          .most_columns = buffer_columns(*this),
          .shares_columns = kernel::shares_columns(*this),
          .c_by_elements = slices_k(*this),
          .grouped = is_grouped(*this),
          .quantises = quantises,
          .by_index = gathers(*this),
          .vectors = vector_loads(*this)};
}
static_assert(EpilogueConfig<GemmConfig>);

/// Row of the tile where atom `i` of warpgroup `w` begins. A warpgroup with gated rows holds the
/// same rows of both halves.
constexpr int atom_row(const GemmConfig& c, int w, int i) {
  const int first = takes_turns(c) || c.side_by_side ? 0 : w;
  if (!gated_rows(c)) return first * warpgroup_rows(c) + 64 * i;
  const int half = row_atoms(c) / 2;
  return i / half * (c.tile_m / 2) + first * warpgroup_rows(c) / 2 + 64 * (i % half);
}

/// Column of the tile where those of warpgroup `w` begin.
constexpr int first_column(const GemmConfig& c, int w) {
  return c.side_by_side ? w * warpgroup_columns(c) : 0;
}

// --- registers ----------------------------------------------------------------------------------
/// Registers a thread has at launch.
constexpr int launch_registers(const GemmConfig& c) {
  return launch_registers(threads(c), c.ctas_per_sm);
}
/// Float32 registers of sums in a consumer's thread.
constexpr int sum_registers(const GemmConfig& c) {
  const int all = row_atoms(c) * warpgroup_columns(c) / 2;
  return all + (sums_in_registers(c) ? in_flight(c) * all / passes(c) : 0);
}
/// Whether the producer's registers are given to the consumers (setmaxnreg).
constexpr bool moves_registers(const GemmConfig& c) {
  // Parts of sums that are on their way take 128; two atoms of weights of 16 bits 64.
  const bool is_wide = packed_a(c) && !c.gated && operand_bits(c) == 16 && row_atoms(c) == 2;
  const int beside = slices_k(c) ? 160 : is_wide ? 130 : splits_k(c) ? 110 : 90;
  return sum_registers(c) + beside > launch_registers(c);
}
constexpr int producer_registers(const GemmConfig& c) {
  if (!moves_registers(c)) return launch_registers(c);
  if (is_blockwise(c)) {
    if (sum_registers(c) > 128) return sum_registers(c) > 160 ? 40 : 80;
    return splits_k(c) ? 88 : 104;
  }
  // Its scheduler holds more.
  if (splits_k(c)) return sums_in_registers(c) ? 72 : 56;
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
  return {c.tile_m, tile_k(c), operand_bits(c), operand_a(c).major, atom::SmemSwizzle::b128};
}
constexpr atom::OperandTile tile_b(const GemmConfig& c) {
  return {c.tile_n, tile_k(c), operand_bits(c), operand_b(c).major, atom::SmemSwizzle::b128};
}

/// Room for a packed tile of any format that the kernel takes.
constexpr int most_packed_tile(const GemmConfig& c) {
  if (has_float_codes(c)) {
    const bool nv = operand_bits(c) == 16;
    return packed::tile_bytes(
        {.group = nv ? 16 : 32, .scale = nv ? DType::ue4m3 : DType::ue8m0, .code = DType::e2m1});
  }
  const ZeroPoints zeros = has_zero_points(c) ? ZeroPoints::groups : ZeroPoints::none;
  return packed::tile_bytes({.group = 32, .scale = DType::f32, .zero_points = zeros});
}
/// Bytes of A in a stage.
constexpr int stage_a_bytes(const GemmConfig& c) {
  if (packed_a(c)) return c.tile_m / packed::kTileRows * in_flight(c) * most_packed_tile(c);
  return atom::tile_bytes(tile_a(c));
}

/// Block scales of a stage: a float for each token, and one for every 128 of the other dimension
/// where tiles begin and end with its blocks, else for every 64, or 32. So for each part of it.
constexpr int weights_per_scale(const GemmConfig& c) {
  if (!is_swapped(c) && !c.gated && c.tile_n / passes(c) % 128 == 0 && scale_block(c) == 128) {
    return 128;
  }
  const int each = (is_swapped(c) ? c.tile_m : c.tile_n) % 64 == 0 ? 64 : 32;
  return scale_block(c) < each ? scale_block(c) : each;
}
constexpr int token_scales(const GemmConfig& c) {
  if (!is_blockwise(c)) return 0;
  return is_swapped(c) ? c.tile_n : c.tile_m;
}
constexpr int weight_scales(const GemmConfig& c) {
  if (!is_blockwise(c) || packed_a(c)) return 0;
  return (is_swapped(c) ? c.tile_m : c.tile_n) / weights_per_scale(c);
}
/// Floats a copy of the vector brings: groups begin at any token, copies at every fourth.
constexpr int copied_scales(const GemmConfig& c) {
  return token_scales(c) + (is_grouped(c) ? 4 : 0);
}
/// Floats of a part: it begins at 16 bytes.
constexpr int part_scales(const GemmConfig& c) {
  return (copied_scales(c) + weight_scales(c) + 3) / 4 * 4;
}
constexpr int scale_bytes(const GemmConfig& c) {
  return (scale_parts(c) * part_scales(c) * 4 + 127) / 128 * 128;
}
/// Whether TMA may bring the vector, where its layout allows: not in small tiles, whose
/// products wait for memory, and would wait for one copy more; nor those of tokens by index, which
/// lie anywhere; nor those of several parts.
constexpr bool copies_scales(const GemmConfig& c) {
  return is_blockwise(c) && scale_parts(c) == 1 && !is_swapped(c) && c.tile_m >= 128 && !gathers(c);
}

}  // namespace warpwright::kernel
