// The kernels of Hopper that are compiled, in one table. Everything that lists kernels (plans, both
// devices, the build) reads it.
#pragma once

#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// Operands, result, tile (grouped and swapped: weights x tokens), then what is special.
constexpr Name name_of(const GemmConfig& c) {
  Name name(is_grouped(c) ? "grouped_" : "hopper_");
  name += numeric::name(c.a.stored);
  if (c.b.stored != c.a.stored) (name += "x") += numeric::name(c.b.stored);
  (name += "_") += numeric::name(c.result);
  ((name += "_") += c.tile_m) += "x";
  name += c.tile_n;
  constexpr std::string_view groupings[] = {"", "_h", "_v", "_b"};
  constexpr std::string_view schedules[] = {"", "_pp", "_ms"};
  constexpr std::string_view sums[] = {"", "_pr", "_bs"};
  name += groupings[static_cast<int>(c.grouped)];
  name += schedules[static_cast<int>(c.schedule)];
  name += sums[static_cast<int>(c.sums)];
  if (c.swapped) name += "_sw";
  if (c.sharing == Sharing::workspace) name += "_sk";
  if (c.sharing == Sharing::cluster) name += "_ck";
  if (c.ctas_per_sm > 1) name += c.ctas_per_sm;
  if (c.zero_points) name += "_zp";
  if (c.passes > 1) (name += "_p") += c.passes;
  if (packed_a(c) && c.k_spans > 1) (name += "_k") += c.k_spans;
  if (c.folds) name += c.tables ? "_lut" : "_fold";
  if (c.gated) name += "_gated";
  if (has_group_maps(c)) name += "_gm";
  if (draws_tiles(c)) name += "_dyn";
  const bool a_mn = c.a.major == atom::Major::mn;
  const bool b_mn = c.b.major == atom::Major::mn;
  if (a_mn || b_mn) name += !a_mn ? "_nn" : b_mn ? "_tt" : "_tn";
  return name;
}

// What rows are made of: operands of a type and a tile, and then everything that differs from the
// usual.
namespace hopper {

constexpr GemmConfig operands(DType a, DType b, int tile_m, int tile_n) {
  GemmConfig c;
  c.a = a;
  c.b = b;
  c.tile_m = tile_m;
  c.tile_n = tile_n;
  c.stages = 0;
  c.consumer_warpgroups = tile_m % 128 == 0 ? 2 : tile_m / 64;
  return c;
}
constexpr GemmConfig e4m3(int tile_m, int tile_n) {
  return operands(DType::e4m3, DType::e4m3, tile_m, tile_n);
}
constexpr GemmConfig e5m2(int tile_m, int tile_n) {
  return operands(DType::e5m2, DType::e5m2, tile_m, tile_n);
}
/// Packed int4 weights and tokens of e4m3.
constexpr GemmConfig s4(int tile_weights, int tile_tokens) {
  GemmConfig c = e4m3(tile_weights, tile_tokens);
  c.a.stored = DType::s4;
  c.a.source = Source::registers;
  c.swapped = true;
  return c;
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
/// Stages of so many spans along K.
constexpr GemmConfig deep(int spans, GemmConfig c) {
  c.k_spans = spans;
  return c;
}
constexpr GemmConfig consumers(int warpgroups, GemmConfig c) {
  c.consumer_warpgroups = warpgroups;
  return c;
}
constexpr GemmConfig buffers(int a_warp, GemmConfig c) {
  c.buffers = a_warp;
  return c;
}
/// The configuration with a value of one member.
template <auto member, auto value>
constexpr GemmConfig with(GemmConfig c) {
  c.*member = value;
  return c;
}
inline constexpr auto two_ctas = with<&GemmConfig::ctas_per_sm, 2>;
inline constexpr auto pingpong = with<&GemmConfig::schedule, Schedule::pingpong>;
inline constexpr auto multistage = with<&GemmConfig::schedule, Schedule::multistage>;
inline constexpr auto promoted = with<&GemmConfig::sums, Sums::promoted>;
inline constexpr auto block_scaled = with<&GemmConfig::sums, Sums::block_scaled>;
inline constexpr auto swapped = with<&GemmConfig::swapped, true>;
inline constexpr auto gated = with<&GemmConfig::gated, true>;
inline constexpr auto zero_points = with<&GemmConfig::zero_points, true>;
inline constexpr auto folded = with<&GemmConfig::folds, true>;
inline constexpr auto in_halves = with<&GemmConfig::passes, 2>;
inline constexpr auto looked_up = with<&GemmConfig::tables, true>;
inline constexpr auto drawn = with<&GemmConfig::tiles, TileSource::drawn>;
inline constexpr auto split_k = with<&GemmConfig::sharing, Sharing::workspace>;

constexpr GemmConfig mn_major_a(GemmConfig c) {
  c.a.major = atom::Major::mn;
  return c;
}
constexpr GemmConfig mn_major_b(GemmConfig c) {
  c.b.major = atom::Major::mn;
  return c;
}
constexpr GemmConfig mn_major_ab(const GemmConfig& c) {
  return mn_major_a(mn_major_b(c));
}
constexpr GemmConfig cluster_k(GemmConfig c) {
  c.sharing = Sharing::cluster;
  c.store = Store::lanes;
  return c;
}
// A group may end in the middle of a tile, so only kernels with a map a group store by the copy
// engine; and beside many sums only the vertical search has room in the registers.
template <Grouping search>
constexpr GemmConfig grouped(GemmConfig c) {
  c.grouped = search;
  c.store = Store::lanes;
  return c;
}
inline constexpr auto horizontal = grouped<Grouping::horizontal>;
inline constexpr auto vertical = grouped<Grouping::vertical>;
inline constexpr auto ballot = grouped<Grouping::ballot>;
constexpr GemmConfig group_maps(GemmConfig c) {
  c.store = Store::tensor_per_group;
  return c;
}

/// In the order in which plans look at them, of each type dense ones first. A row that says no
/// stages has as many as fit.
inline constexpr std::array rows = {
    // Dense products.
    common(bf16(128, 256)),
    common(pingpong(bf16(128, 128))),
    common(pingpong(bf16(128, 160))),
    common(bf16(256, 128)),
    common(buffers(3, bf16(128, 192))),
    common(split_k(swapped(bf16(128, 64)))),
    common(cluster_k(swapped(bf16(128, 64)))),
    common(cluster_k(swapped(bf16(128, 16)))),
    common(two_ctas(cluster_k(swapped(consumers(1, bf16(128, 32)))))),
    common(split_k(bf16(128, 256))),
    common(split_k(bf16(128, 160))),
    common(pingpong(bf16(128, 176))),
    common(swapped(consumers(1, bf16(192, 16)))),
    common(pingpong(bf16(128, 96))),
    common(bf16(64, 64)),
    common(bf16(64, 112)),
    common(deep(2, swapped(bf16(64, 16)))),
    common(deep(2, swapped(bf16(64, 32)))),
    common(bf16(64, 128)),
    common(pingpong(swapped(bf16(128, 128)))),
    common(pingpong(swapped(bf16(128, 160)))),
    common(pingpong(swapped(bf16(128, 176)))),
    common(swapped(bf16(64, 96))),
    common(swapped(bf16(64, 48))),
    common(swapped(bf16(64, 24))),
    common(swapped(bf16(64, 128))),
    common(swapped(bf16(128, 96))),
    common(swapped(bf16(128, 128))),
    common(swapped(bf16(192, 176))),
    common(stages(5, multistage(bf16(128, 128)))),
    common(gated(bf16(128, 256))),
    common(mn_major_a(pingpong(bf16(128, 128)))),
    common(mn_major_b(pingpong(bf16(128, 128)))),
    common(mn_major_ab(pingpong(bf16(128, 128)))),
    common(to(DType::f32, bf16(128, 256))),
    common(pingpong(to(DType::f32, bf16(128, 128)))),
    common(to(DType::f16, bf16(128, 256))),
    common(pingpong(to(DType::f16, bf16(128, 128)))),
    common(f16(128, 256)),
    common(pingpong(f16(128, 128))),
    common(to(DType::f32, f16(128, 256))),
    common(pingpong(to(DType::f32, f16(128, 128)))),
    common(to(DType::bf16, f16(128, 256))),
    common(pingpong(to(DType::bf16, f16(128, 128)))),
    common(e4m3(128, 256)),
    common(pingpong(e4m3(128, 128))),
    common(pingpong(e4m3(128, 160))),
    common(cluster_k(swapped(e4m3(128, 64)))),
    common(cluster_k(swapped(e4m3(128, 16)))),
    common(split_k(swapped(e4m3(128, 64)))),
    common(two_ctas(cluster_k(swapped(consumers(1, e4m3(128, 32)))))),
    common(e4m3(64, 128)),
    common(swapped(e4m3(64, 96))),
    common(swapped(e4m3(64, 48))),
    common(deep(2, swapped(e4m3(64, 24)))),
    common(swapped(e4m3(64, 128))),
    common(swapped(e4m3(128, 96))),
    common(swapped(e4m3(128, 128))),
    common(swapped(e4m3(192, 176))),
    common(e4m3(128, 192)),
    common(e4m3(64, 64)),
    common(pingpong(e4m3(128, 96))),
    common(promoted(e4m3(128, 192))),
    common(promoted(e4m3(128, 160))),
    common(block_scaled(e4m3(128, 192))),
    common(split_k(e4m3(128, 256))),
    common(split_k(e4m3(128, 160))),
    common(pingpong(e4m3(128, 176))),
    common(split_k(promoted(e4m3(128, 128)))),
    common(cluster_k(swapped(promoted(e4m3(128, 16))))),
    common(split_k(block_scaled(e4m3(128, 128)))),
    common(e4m3(64, 112)),
    common(swapped(e4m3(64, 16))),
    common(deep(2, swapped(e4m3(64, 32)))),
    common(swapped(promoted(e4m3(64, 16)))),
    common(promoted(e4m3(64, 48))),
    common(promoted(e4m3(64, 112))),
    common(block_scaled(e4m3(64, 64))),
    common(block_scaled(e4m3(64, 128))),
    common(promoted(e4m3(128, 128))),
    common(cluster_k(swapped(promoted(e4m3(128, 64))))),
    common(block_scaled(e4m3(128, 128))),
    common(cluster_k(swapped(block_scaled(e4m3(128, 64))))),
    common(cluster_k(swapped(block_scaled(e4m3(128, 16))))),
    common(gated(to(DType::e4m3, e4m3(128, 128)))),
    common(pingpong(to(DType::f32, e4m3(128, 128)))),
    common(pingpong(operands(DType::e5m2, DType::e4m3, 128, 128))),
    // Int4 weights, dense products.
    common(two_ctas(cluster_k(deep(2, promoted(s4(128, 16)))))),
    common(cluster_k(deep(2, promoted(s4(128, 64))))),
    common(promoted(s4(128, 128))),
    common(s4(128, 256)),
    common(cluster_k(s4(128, 64))),
    common(cluster_k(block_scaled(s4(128, 32)))),
    common(cluster_k(promoted(to(DType::f16, s4(128, 64))))),
    common(cluster_k(folded(s4(128, 64)))),
    common(cluster_k(looked_up(folded(s4(128, 64))))),
    common(cluster_k(zero_points(promoted(s4(128, 64))))),
    common(gated(consumers(1, promoted(s4(128, 32))))),
    common(drawn(pingpong(bf16(128, 128)))),
    common(drawn(pingpong(swapped(bf16(128, 176))))),
    common(drawn(pingpong(e4m3(128, 160)))),
    more(cluster_k(swapped(bf16(128, 8)))),
    more(cluster_k(swapped(bf16(128, 32)))),
    more(cluster_k(swapped(bf16(128, 128)))),
    more(gated(swapped(consumers(1, bf16(128, 64))))),
    more(mn_major_b(bf16(128, 256))),
    more(mn_major_a(bf16(128, 256))),
    more(mn_major_ab(bf16(128, 256))),
    more(mn_major_a(pingpong(f16(128, 128)))),
    more(mn_major_a(pingpong(to(DType::f32, bf16(128, 128))))),
    more(mn_major_a(pingpong(to(DType::f32, f16(128, 128))))),
    more(mn_major_b(pingpong(f16(128, 128)))),
    more(mn_major_b(pingpong(to(DType::f32, bf16(128, 128))))),
    more(mn_major_b(pingpong(to(DType::f32, f16(128, 128))))),
    more(mn_major_ab(pingpong(f16(128, 128)))),
    more(mn_major_ab(pingpong(to(DType::f32, bf16(128, 128))))),
    more(mn_major_ab(pingpong(to(DType::f32, f16(128, 128))))),
    more(pingpong(f16(128, 160))),
    more(f16(256, 128)),
    more(cluster_k(swapped(f16(128, 16)))),
    more(cluster_k(swapped(f16(128, 64)))),
    more(split_k(swapped(f16(128, 64)))),
    more(swapped(consumers(1, f16(192, 16)))),
    more(gated(f16(128, 256))),
    more(split_k(swapped(to(DType::f32, bf16(128, 64))))),
    more(split_k(swapped(to(DType::f32, f16(128, 64))))),
    more(e4m3(256, 128)),
    more(block_scaled(e4m3(128, 160))),
    more(cluster_k(swapped(block_scaled(e4m3(128, 32))))),
    more(gated(e4m3(128, 256))),
    more(gated(block_scaled(e4m3(128, 128)))),
    more(pingpong(to(DType::e4m3, e4m3(128, 128)))),
    more(gated(block_scaled(to(DType::e4m3, e4m3(128, 128))))),
    more(pingpong(to(DType::f16, e4m3(128, 128)))),
    more(block_scaled(to(DType::f32, e4m3(128, 128)))),
    more(pingpong(operands(DType::e4m3, DType::e5m2, 128, 128))),
    more(pingpong(e5m2(128, 128))),
    more(promoted(operands(DType::e4m3, DType::e5m2, 128, 128))),
    more(promoted(operands(DType::e5m2, DType::e4m3, 128, 128))),
    more(promoted(e5m2(128, 128))),
    more(cluster_k(promoted(s4(128, 32)))),
    more(cluster_k(promoted(to(DType::f16, s4(128, 16))))),
    more(promoted(to(DType::f16, s4(128, 128)))),
    more(to(DType::f16, s4(128, 256))),
    more(s4(128, 128)),
    more(in_halves(promoted(s4(192, 128)))),
    more(s4(192, 176)),
    more(folded(s4(128, 256))),
    more(cluster_k(block_scaled(s4(128, 64)))),
    // Grouped products.
    common(ballot(swapped(e4m3(128, 16)))),
    common(ballot(swapped(e4m3(128, 32)))),
    common(ballot(swapped(e4m3(128, 48)))),
    common(ballot(swapped(e4m3(128, 64)))),
    common(vertical(swapped(e4m3(128, 64)))),
    common(horizontal(swapped(e4m3(128, 64)))),
    common(ballot(swapped(e4m3(128, 128)))),
    common(vertical(e4m3(128, 256))),
    common(vertical(pingpong(e4m3(128, 128)))),
    common(group_maps(ballot(swapped(e4m3(128, 16))))),
    common(group_maps(vertical(pingpong(e4m3(128, 128))))),
    common(ballot(swapped(block_scaled(e4m3(128, 16))))),
    common(ballot(swapped(block_scaled(e4m3(128, 32))))),
    common(ballot(swapped(block_scaled(e4m3(128, 64))))),
    common(vertical(block_scaled(e4m3(128, 128)))),
    common(vertical(block_scaled(e4m3(128, 192)))),
    common(ballot(swapped(bf16(128, 16)))),
    common(ballot(swapped(bf16(128, 32)))),
    common(ballot(swapped(bf16(128, 64)))),
    common(vertical(pingpong(bf16(128, 128)))),
    common(vertical(bf16(128, 256))),
    common(ballot(swapped(f16(128, 32)))),
    common(vertical(f16(128, 256))),
    common(ballot(swapped(gated(consumers(1, e4m3(128, 32)))))),
    common(vertical(gated(e4m3(128, 256)))),
    common(ballot(swapped(gated(consumers(1, block_scaled(e4m3(128, 32))))))),
    common(vertical(gated(block_scaled(e4m3(128, 128))))),
    common(ballot(swapped(gated(consumers(1, bf16(128, 32)))))),
    common(vertical(gated(bf16(128, 256)))),
    common(ballot(buffers(1, consumers(4, deep(2, promoted(s4(256, 16))))))),
    common(two_ctas(ballot(deep(2, promoted(s4(128, 16)))))),
    common(two_ctas(ballot(promoted(s4(128, 32))))),
    common(ballot(buffers(1, consumers(4, in_halves(promoted(s4(256, 64))))))),
    common(ballot(promoted(s4(128, 128)))),
    common(two_ctas(ballot(s4(128, 64)))),
    common(ballot(s4(192, 176))),
    common(ballot(block_scaled(s4(128, 32)))),
    common(ballot(promoted(to(DType::f16, s4(128, 64))))),
    common(two_ctas(ballot(folded(s4(128, 64))))),
    common(two_ctas(ballot(looked_up(folded(s4(128, 64)))))),
    common(two_ctas(ballot(zero_points(promoted(s4(128, 32)))))),
    common(ballot(gated(consumers(1, promoted(s4(128, 32)))))),
    common(drawn(vertical(pingpong(e4m3(128, 128))))),
    more(ballot(swapped(e4m3(128, 8)))),
    more(ballot(swapped(e4m3(128, 24)))),
    more(ballot(swapped(e4m3(128, 96)))),
    more(horizontal(swapped(e4m3(128, 16)))),
    more(vertical(swapped(e4m3(128, 16)))),
    more(vertical(promoted(e4m3(128, 128)))),
    more(vertical(block_scaled(e4m3(128, 160)))),
    more(ballot(swapped(block_scaled(e4m3(128, 8))))),
    more(group_maps(ballot(swapped(e4m3(128, 64))))),
    more(group_maps(vertical(e4m3(128, 256)))),
    more(group_maps(vertical(block_scaled(e4m3(128, 128))))),
    more(two_ctas(ballot(promoted(s4(128, 8))))),
    more(two_ctas(ballot(in_halves(promoted(s4(128, 64)))))),
    more(ballot(promoted(s4(128, 64)))),
    more(ballot(in_halves(promoted(s4(192, 128))))),
    more(ballot(promoted(s4(128, 96)))),
    more(two_ctas(ballot(s4(128, 16)))),
    more(ballot(s4(128, 192))),
    more(ballot(s4(128, 128))),
    more(ballot(block_scaled(s4(128, 64)))),
    more(ballot(promoted(to(DType::f16, s4(128, 128))))),
    more(ballot(to(DType::f16, s4(128, 192)))),
    more(two_ctas(ballot(promoted(to(DType::f16, s4(128, 16)))))),
    more(two_ctas(ballot(folded(s4(128, 16))))),
    more(ballot(folded(s4(128, 256)))),
    more(two_ctas(ballot(looked_up(folded(s4(128, 16)))))),
    more(two_ctas(ballot(zero_points(promoted(s4(128, 16)))))),
    more(ballot(zero_points(promoted(s4(128, 64))))),
};

}  // namespace hopper

struct HopperRows {
  static constexpr const auto& rows = hopper::rows;
};

}  // namespace warpwright::kernel
