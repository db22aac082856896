// The words in which the table of Hopper's kernels is written.
#pragma once

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

// What rows are made of: operands of a type and a tile, and then everything that differs from the
// usual.
namespace hopper {

constexpr GemmConfig tile(int tile_m, int tile_n) {
  GemmConfig c;
  c.tile_m = tile_m;
  c.tile_n = tile_n;
  c.stages = 0;
  c.consumer_warpgroups = tile_m % 128 == 0 ? 2 : tile_m / 64;
  return c;
}
constexpr GemmConfig operands(DType a, DType b, int tile_m, int tile_n) {
  GemmConfig c = tile(tile_m, tile_n);
  c.operands = SharedOperands{.a = {a}, .b = {b}};
  return c;
}
constexpr GemmConfig e4m3(int tile_m, int tile_n) {
  return operands(DType::e4m3, DType::e4m3, tile_m, tile_n);
}
constexpr GemmConfig e5m2(int tile_m, int tile_n) {
  return operands(DType::e5m2, DType::e5m2, tile_m, tile_n);
}
/// Packed int4 weights and tokens of e4m3, with chained sums.
constexpr GemmConfig s4(int tile_weights, int tile_tokens) {
  GemmConfig c = tile(tile_weights, tile_tokens);
  c.operands = PackedOperands{};
  return c;
}
/// The same for tokens of bf16, with folded sums, and of f16, with exact ones.
constexpr GemmConfig s4_bf16(int tile_weights, int tile_tokens) {
  GemmConfig c = tile(tile_weights, tile_tokens);
  c.operands = PackedOperands{.sums = FoldedSums{}, .tokens = DType::bf16};
  return c;
}
constexpr GemmConfig s4_f16(int tile_weights, int tile_tokens) {
  GemmConfig c = tile(tile_weights, tile_tokens);
  c.operands = PackedOperands{.sums = ExactSums{}, .tokens = DType::f16};
  c.result = DType::f16;
  return c;
}
/// Packed e2m1 weights (mxf4; for tokens of 16 bits nvf4 too), with folded sums.
constexpr GemmConfig e2m1(DType tokens, int tile_weights, int tile_tokens) {
  GemmConfig c = tile(tile_weights, tile_tokens);
  c.result = tokens == DType::f16 ? DType::f16 : DType::bf16;
  c.operands = PackedOperands{.sums = FoldedSums{}, .code = DType::e2m1, .tokens = tokens};
  return c;
}
constexpr GemmConfig mxf4(int tile_weights, int tile_tokens) {
  return e2m1(DType::e4m3, tile_weights, tile_tokens);
}
constexpr GemmConfig fp4_bf16(int tile_weights, int tile_tokens) {
  return e2m1(DType::bf16, tile_weights, tile_tokens);
}
constexpr GemmConfig fp4_f16(int tile_weights, int tile_tokens) {
  return e2m1(DType::f16, tile_weights, tile_tokens);
}
constexpr GemmConfig to(DType result, GemmConfig c) {
  c.result = result;
  return c;
}
constexpr GemmConfig bf16(int tile_m, int tile_n) {
  return operands(DType::bf16, DType::bf16, tile_m, tile_n);
}
constexpr GemmConfig f16(int tile_m, int tile_n) {
  return to(DType::f16, operands(DType::f16, DType::f16, tile_m, tile_n));
}

constexpr GemmConfig stages(int count, GemmConfig c) {
  c.stages = count;
  return c;
}
constexpr GemmConfig consumers(int warpgroups, GemmConfig c) {
  c.consumer_warpgroups = warpgroups;
  return c;
}
/// Two consumers that share the columns: for rows that are no multiples of 128.
constexpr GemmConfig side_by_side(GemmConfig c) {
  c.consumer_warpgroups = 2;
  c.side_by_side = true;
  return c;
}
constexpr GemmConfig buffers(int a_warp, GemmConfig c) {
  c.buffers = a_warp;
  return c;
}
constexpr GemmConfig two_ctas(GemmConfig c) {
  c.ctas_per_sm = 2;
  return c;
}
constexpr GemmConfig gated(GemmConfig c) {
  c.gated = true;
  return c;
}
/// With a D of codes and scales.
constexpr GemmConfig quantised(GemmConfig c) {
  c.result = DType::e4m3;
  c.quantises = true;
  c.buffers = 1;
  return c;
}

// A word of a form that the configuration has not does not compile: see OneOf::as.

/// The configuration with a value of one member of its operands; with sums of packed weights.
template <auto member, auto value>
constexpr GemmConfig shared(GemmConfig c) {
  c.operands.as<SharedOperands>().*member = value;
  return c;
}
template <class PackedSums>
constexpr GemmConfig summed(const PackedSums& sums, GemmConfig c) {
  c.operands.as<PackedOperands>().sums = sums;
  return c;
}
inline constexpr auto swap_ab = shared<&SharedOperands::swap_ab, true>;
inline constexpr auto promoted = shared<&SharedOperands::sums, Sums::promoted>;
/// Stages of two spans along K.
inline constexpr auto deep = shared<&SharedOperands::k_atoms, 2>;
constexpr GemmConfig exact(const GemmConfig& c) {
  return summed(ExactSums{}, c);
}
constexpr GemmConfig exact_by_two(const GemmConfig& c) {
  return summed(ExactSums{.way = ExactSums::Way::by_two}, c);
}
constexpr GemmConfig folded(const GemmConfig& c) {
  return summed(FoldedSums{}, c);
}
constexpr GemmConfig by_table(const GemmConfig& c) {
  return summed(TableSums{}, c);
}
constexpr GemmConfig zero_points(GemmConfig c) {
  c.operands.as<PackedOperands>().sums.as<ExactSums>().zero_points = true;
  return c;
}
/// Some of the columns after the others: half of them, or a quarter.
template <int passes>
constexpr GemmConfig in_passes(GemmConfig c) {
  if (!packed_a(c)) return shared<&SharedOperands::passes, passes>(c);
  c.operands.as<PackedOperands>().sums.as<ExactSums>().passes = passes;
  return c;
}
inline constexpr auto in_halves = in_passes<2>;
inline constexpr auto in_quarters = in_passes<4>;
constexpr GemmConfig blockwise(const GemmConfig& c) {
  return packed_a(c) ? summed(ExactSums{.way = ExactSums::Way::scaled}, c)
                     : shared<&SharedOperands::sums, Sums::blockwise>(c);
}
/// With a scale for every 64 x 64 or 32 x 32 of weights.
template <int block>
constexpr GemmConfig in_blocks_of(const GemmConfig& c) {
  return shared<&SharedOperands::scale_block, block>(blockwise(c));
}
constexpr GemmConfig mn_major_a(GemmConfig c) {
  c.operands.as<SharedOperands>().a.major = atom::Major::mn;
  return c;
}
constexpr GemmConfig mn_major_b(GemmConfig c) {
  c.operands.as<SharedOperands>().b.major = atom::Major::mn;
  return c;
}
constexpr GemmConfig mn_major_ab(const GemmConfig& c) {
  return mn_major_a(mn_major_b(c));
}

constexpr GemmConfig pingpong(GemmConfig c) {
  c.walk.as<Whole>().in_turns = true;
  return c;
}
/// Groups, whose tiles are looked for in that way.
template <Grouping search>
constexpr GemmConfig grouped(GemmConfig c) {
  if (c.walk.as<Whole>().tiles.is<Dynamic>()) throw "drawn before they are grouped";
  c.walk = Grouped{search, takes_turns(c)};
  return c;
}
// Beside many sums only the binary search has room in the registers.
inline constexpr auto linear_scan = grouped<Grouping::linear_scan>;
inline constexpr auto binary_search = grouped<Grouping::binary_search>;
inline constexpr auto warp_scan = grouped<Grouping::warp_scan>;
/// Which tiles a walk has, of one that has them in order.
template <class Walk, class Tiles>
constexpr GemmConfig with_tiles(const Tiles& tiles, GemmConfig c) {
  if (!c.walk.as<Walk>().tiles.template is<InOrder>()) throw "two kinds of tiles";
  c.walk.as<Walk>().tiles = tiles;
  return c;
}
constexpr GemmConfig dynamic(const GemmConfig& c) {
  return is_grouped(c) ? with_tiles<Grouped>(Dynamic{}, c) : with_tiles<Whole>(Dynamic{}, c);
}
constexpr GemmConfig by_index(const GemmConfig& c) {
  return with_tiles<Grouped>(ByIndex{}, c);
}
/// Tiles of these widths along the tokens, beside the tile's own.
template <std::int16_t... narrower>
constexpr GemmConfig widths(const GemmConfig& c) {
  return with_tiles<Grouped>(InWidths{{{narrower..., static_cast<std::int16_t>(c.tile_n)}}}, c);
}
template <class Walk>
constexpr GemmConfig walks(GemmConfig c) {
  if (!(c.walk == GemmConfig().walk)) throw "two walks";  // does not compile either
  c.walk = Walk{};
  return c;
}
inline constexpr auto split_k = walks<SplitK>;
inline constexpr auto sliced_k = walks<SlicedK>;
inline constexpr auto cluster_k = walks<ClusterK>;

}  // namespace hopper
}  // namespace warpwright::kernel
