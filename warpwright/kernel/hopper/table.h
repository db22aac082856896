// The kernels of Hopper that are compiled, in one table. Everything that lists kernels (plans, both
// devices, the build) reads it.
#pragma once

#include <array>

#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/kernel/hopper/row_words.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// Operands, result, tile (grouped and swapped: weights x tokens), then what is special.
constexpr Name name_of(const GemmConfig& c) {
  const DType a = stored_a(c);
  const DType b = operand_b(c).type;
  Name name(is_grouped(c) ? "grouped_" : "hopper_");
  name += numeric::name(a);
  if (b != a) (name += "x") += numeric::name(b);
  (name += "_") += numeric::name(c.result);
  ((name += "_") += c.tile_m) += "x";
  name += c.tile_n;
  constexpr std::string_view groupings[] = {"", "_h", "_v", "_b"};
  constexpr std::string_view schedules[] = {"", "_pp", "_ms"};
  constexpr std::string_view sums[] = {"", "_pr", "_bs"};
  name += groupings[static_cast<int>(grouping(c))];
  name += schedules[static_cast<int>(schedule_of(c))];
  name += sums[static_cast<int>(sums_of(c))];
  if (is_swapped(c)) name += "_sw";
  if (has_widths(c)) name += "_w";
  if (splits_k(c)) name += "_sk";
  if (slices_k(c)) name += "_sl";
  if (shares_cluster_k(c)) name += "_ck";
  if (c.ctas_per_sm > 1) name += c.ctas_per_sm;
  if (has_zero_points(c)) name += "_zp";
  if (passes(c) > 1) (name += "_p") += passes(c);
  if (packed_a(c) && k_atoms(c) > 1) (name += "_k") += k_atoms(c);
  if (group_sums(c) == GroupSums::folded) name += "_fold";
  if (group_sums(c) == GroupSums::table) name += "_lut";
  if (c.gated) name += "_gated";
  if (c.quantises) name += "_q";
  if (has_group_maps(c)) name += "_gm";
  if (gathers(c)) name += "_ix";
  if (c.sums_slots) name += "_sum";
  if (is_dynamic_persistent(c)) name += "_dyn";
  const bool a_mn = operand_a(c).major == atom::Major::mn;
  const bool b_mn = operand_b(c).major == atom::Major::mn;
  if (a_mn || b_mn) name += !a_mn ? "_nn" : b_mn ? "_tt" : "_tn";
  return name;
}

namespace hopper {

/// In the order in which plans look at them, of each type dense ones first. A row that says no
/// stages has as many as fit.
inline constexpr auto rows = std::to_array<Row<GemmConfig>>({
    // Dense products.
    common(bf16(128, 256)),
    common(pingpong(bf16(128, 128))),
    common(pingpong(bf16(128, 160))),
    common(bf16(256, 128)),
    common(buffers(3, bf16(128, 192))),
    common(split_k(swap_ab(bf16(128, 64)))),
    common(cluster_k(swap_ab(bf16(128, 64)))),
    common(cluster_k(swap_ab(bf16(128, 16)))),
    common(two_ctas(cluster_k(swap_ab(consumers(1, bf16(128, 32)))))),
    common(sliced_k(bf16(128, 64))),
    common(sliced_k(swap_ab(bf16(128, 64)))),
    common(sliced_k(swap_ab(bf16(128, 128)))),
    common(split_k(bf16(128, 256))),
    common(split_k(bf16(128, 160))),
    common(pingpong(bf16(128, 176))),
    common(swap_ab(consumers(1, bf16(192, 16)))),
    common(pingpong(bf16(128, 96))),
    common(bf16(64, 64)),
    common(bf16(64, 112)),
    common(deep(swap_ab(bf16(64, 16)))),
    common(deep(swap_ab(bf16(64, 32)))),
    common(bf16(64, 128)),
    common(pingpong(swap_ab(bf16(128, 128)))),
    common(pingpong(swap_ab(bf16(128, 160)))),
    common(pingpong(swap_ab(bf16(128, 176)))),
    common(swap_ab(bf16(64, 96))),
    common(swap_ab(bf16(64, 48))),
    common(swap_ab(bf16(64, 24))),
    common(swap_ab(bf16(64, 128))),
    common(swap_ab(bf16(128, 96))),
    common(swap_ab(bf16(128, 128))),
    common(swap_ab(bf16(192, 176))),
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
    common(cluster_k(swap_ab(e4m3(128, 64)))),
    common(cluster_k(swap_ab(e4m3(128, 16)))),
    common(split_k(swap_ab(e4m3(128, 64)))),
    common(two_ctas(cluster_k(swap_ab(consumers(1, e4m3(128, 32)))))),
    common(e4m3(64, 128)),
    common(swap_ab(e4m3(64, 96))),
    common(swap_ab(e4m3(64, 48))),
    common(deep(swap_ab(e4m3(64, 24)))),
    common(swap_ab(e4m3(64, 128))),
    common(swap_ab(e4m3(128, 96))),
    common(swap_ab(e4m3(128, 128))),
    common(swap_ab(e4m3(192, 176))),
    common(e4m3(128, 192)),
    common(e4m3(64, 64)),
    common(pingpong(e4m3(128, 96))),
    common(promoted(e4m3(128, 192))),
    common(promoted(e4m3(128, 160))),
    common(blockwise(e4m3(128, 192))),
    common(sliced_k(e4m3(128, 64))),
    common(sliced_k(swap_ab(e4m3(128, 64)))),
    common(sliced_k(swap_ab(e4m3(128, 128)))),
    common(split_k(e4m3(128, 256))),
    common(split_k(e4m3(128, 160))),
    common(pingpong(e4m3(128, 176))),
    common(split_k(promoted(e4m3(128, 128)))),
    common(cluster_k(swap_ab(promoted(e4m3(128, 16))))),
    common(split_k(blockwise(e4m3(128, 128)))),
    common(e4m3(64, 112)),
    common(swap_ab(e4m3(64, 16))),
    common(deep(swap_ab(e4m3(64, 32)))),
    common(swap_ab(promoted(e4m3(64, 16)))),
    common(promoted(e4m3(64, 48))),
    common(promoted(e4m3(64, 112))),
    common(blockwise(e4m3(64, 64))),
    common(blockwise(e4m3(64, 128))),
    common(promoted(e4m3(128, 128))),
    common(cluster_k(swap_ab(promoted(e4m3(128, 64))))),
    common(blockwise(e4m3(128, 128))),
    common(cluster_k(swap_ab(blockwise(e4m3(128, 64))))),
    common(cluster_k(swap_ab(blockwise(e4m3(128, 16))))),
    common(gated(to(DType::e4m3, e4m3(128, 128)))),
    common(pingpong(to(DType::f32, e4m3(128, 128)))),
    common(pingpong(operands(DType::e5m2, DType::e4m3, 128, 128))),
    common(quantised(gated(in_halves(blockwise(e4m3(128, 256)))))),
    common(quantised(blockwise(e4m3(128, 128)))),
    common(quantised(gated(swap_ab(blockwise(e4m3(256, 32)))))),
    common(quantised(gated(e4m3(128, 256)))),
    common(quantised(pingpong(e4m3(128, 128)))),
    // Int4 weights, dense products.
    common(two_ctas(cluster_k(exact_by_two(s4(128, 16))))),
    common(cluster_k(exact_by_two(s4(128, 64)))),
    common(exact(s4(128, 128))),
    common(s4(128, 256)),
    common(cluster_k(s4(128, 64))),
    common(cluster_k(blockwise(s4(128, 32)))),
    common(cluster_k(exact(to(DType::f16, s4(128, 64))))),
    common(cluster_k(folded(s4(128, 64)))),
    common(cluster_k(by_table(s4(128, 64)))),
    common(cluster_k(zero_points(exact(s4(128, 64))))),
    common(gated(consumers(1, exact(s4(128, 32))))),
    common(dynamic(pingpong(bf16(128, 128)))),
    common(dynamic(pingpong(swap_ab(bf16(128, 176))))),
    common(dynamic(pingpong(e4m3(128, 160)))),
    more(cluster_k(swap_ab(bf16(128, 8)))),
    more(cluster_k(swap_ab(bf16(128, 32)))),
    more(cluster_k(swap_ab(bf16(128, 128)))),
    more(gated(swap_ab(consumers(1, bf16(128, 64))))),
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
    more(cluster_k(swap_ab(f16(128, 16)))),
    more(cluster_k(swap_ab(f16(128, 64)))),
    more(split_k(swap_ab(f16(128, 64)))),
    more(swap_ab(consumers(1, f16(192, 16)))),
    more(gated(f16(128, 256))),
    more(split_k(swap_ab(to(DType::f32, bf16(128, 64))))),
    more(split_k(swap_ab(to(DType::f32, f16(128, 64))))),
    more(e4m3(256, 128)),
    more(blockwise(e4m3(128, 160))),
    more(cluster_k(swap_ab(blockwise(e4m3(128, 32))))),
    more(gated(e4m3(128, 256))),
    more(gated(blockwise(e4m3(128, 128)))),
    more(pingpong(to(DType::e4m3, e4m3(128, 128)))),
    more(gated(blockwise(to(DType::e4m3, e4m3(128, 128))))),
    more(pingpong(to(DType::f16, e4m3(128, 128)))),
    more(blockwise(to(DType::f32, e4m3(128, 128)))),
    more(pingpong(operands(DType::e4m3, DType::e5m2, 128, 128))),
    more(pingpong(e5m2(128, 128))),
    more(promoted(operands(DType::e4m3, DType::e5m2, 128, 128))),
    more(promoted(operands(DType::e5m2, DType::e4m3, 128, 128))),
    more(promoted(e5m2(128, 128))),
    more(cluster_k(exact(s4(128, 32)))),
    more(cluster_k(exact(to(DType::f16, s4(128, 16))))),
    more(exact(to(DType::f16, s4(128, 128)))),
    more(to(DType::f16, s4(128, 256))),
    more(s4(128, 128)),
    more(exact_in_halves(s4(192, 128))),
    more(s4(192, 176)),
    more(folded(s4(128, 256))),
    more(cluster_k(blockwise(s4(128, 64)))),
    more(quantised(swap_ab(blockwise(e4m3(128, 32))))),
    more(quantised(gated(swap_ab(e4m3(256, 32))))),
    // Grouped products.
    common(warp_scan(swap_ab(e4m3(128, 16)))),
    common(warp_scan(swap_ab(e4m3(128, 32)))),
    common(warp_scan(swap_ab(e4m3(128, 48)))),
    common(warp_scan(swap_ab(e4m3(128, 64)))),
    common(binary_search(swap_ab(e4m3(128, 64)))),
    common(linear_scan(swap_ab(e4m3(128, 64)))),
    common(warp_scan(swap_ab(e4m3(128, 128)))),
    common(binary_search(e4m3(128, 256))),
    common(binary_search(pingpong(e4m3(128, 128)))),
    common(group_maps(warp_scan(swap_ab(e4m3(128, 16))))),
    common(group_maps(binary_search(pingpong(e4m3(128, 128))))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 16))))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 32))))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 64))))),
    common(binary_search(blockwise(e4m3(128, 128)))),
    common(binary_search(blockwise(e4m3(128, 192)))),
    common(warp_scan(swap_ab(bf16(128, 16)))),
    common(warp_scan(swap_ab(bf16(128, 32)))),
    common(warp_scan(swap_ab(bf16(128, 64)))),
    common(binary_search(pingpong(bf16(128, 128)))),
    common(binary_search(bf16(128, 256))),
    common(warp_scan(swap_ab(f16(128, 32)))),
    common(binary_search(f16(128, 256))),
    common(warp_scan(swap_ab(gated(consumers(1, e4m3(128, 32)))))),
    common(binary_search(gated(e4m3(128, 256)))),
    common(warp_scan(swap_ab(gated(consumers(1, blockwise(e4m3(128, 32))))))),
    common(binary_search(gated(blockwise(e4m3(128, 128))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 16))))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 32))))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 64))))))),
    common(binary_search(quantised(gated(in_halves(blockwise(e4m3(128, 256))))))),
    common(warp_scan(quantised(gated(swap_ab(e4m3(256, 32)))))),
    common(binary_search(quantised(gated(e4m3(128, 256))))),
    common(warp_scan(swap_ab(gated(consumers(1, bf16(128, 32)))))),
    common(binary_search(gated(bf16(128, 256)))),
    common(warp_scan(buffers(1, consumers(4, exact_by_two(s4(256, 16)))))),
    common(two_ctas(warp_scan(exact_by_two(s4(128, 16))))),
    common(two_ctas(warp_scan(exact(s4(128, 32))))),
    common(warp_scan(buffers(1, consumers(4, exact_in_halves(s4(256, 64)))))),
    common(warp_scan(exact(s4(128, 128)))),
    common(two_ctas(warp_scan(s4(128, 64)))),
    common(warp_scan(s4(192, 176))),
    common(warp_scan(blockwise(s4(128, 32)))),
    common(warp_scan(exact(to(DType::f16, s4(128, 64))))),
    common(two_ctas(warp_scan(folded(s4(128, 64))))),
    common(two_ctas(warp_scan(by_table(s4(128, 64))))),
    common(two_ctas(warp_scan(zero_points(exact(s4(128, 32)))))),
    common(warp_scan(gated(consumers(1, exact(s4(128, 32)))))),
    common(warp_scan(gated(consumers(1, blockwise(s4(128, 32)))))),
    common(dynamic(binary_search(pingpong(e4m3(128, 128))))),
    // Grouped products whose tokens are read by index.
    common(by_index(warp_scan(swap_ab(bf16(128, 32))))),
    common(by_index(binary_search(pingpong(bf16(128, 128))))),
    common(by_index(warp_scan(swap_ab(e4m3(128, 32))))),
    common(by_index(binary_search(pingpong(e4m3(128, 128))))),
    common(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 32)))))),
    common(by_index(binary_search(blockwise(e4m3(128, 128))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 32))))))),
    common(by_index(binary_search(gated(bf16(128, 256))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, e4m3(128, 32))))))),
    common(by_index(binary_search(gated(e4m3(128, 256))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, blockwise(e4m3(128, 32)))))))),
    common(by_index(binary_search(gated(blockwise(e4m3(128, 128)))))),
    common(by_index(warp_scan(gated(consumers(1, exact(s4(128, 32))))))),
    common(by_index(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 16)))))))),
    common(by_index(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 24)))))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 8))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 16))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 64))))),
    more(by_index(warp_scan(swap_ab(e4m3(128, 16))))),
    more(by_index(warp_scan(swap_ab(e4m3(128, 64))))),
    more(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 16)))))),
    more(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 64)))))),
    more(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 16))))))),
    more(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 64))))))),
    more(by_index(two_ctas(warp_scan(exact(s4(128, 32)))))),
    more(by_index(two_ctas(warp_scan(exact_by_two(s4(128, 16)))))),
    // The last product of a mixture of few tokens.
    common(summing(warp_scan(swap_ab(bf16(128, 16))))),
    more(summing(warp_scan(swap_ab(bf16(128, 32))))),
    more(summing(warp_scan(swap_ab(bf16(128, 64))))),
    common(summing(warp_scan(swap_ab(e4m3(128, 16))))),
    more(summing(warp_scan(swap_ab(e4m3(128, 32))))),
    more(summing(warp_scan(swap_ab(e4m3(128, 64))))),
    common(summing(warp_scan(swap_ab(blockwise(e4m3(128, 16)))))),
    more(summing(warp_scan(swap_ab(blockwise(e4m3(128, 32)))))),
    more(summing(warp_scan(swap_ab(blockwise(e4m3(128, 64)))))),
    common(summing(warp_scan(exact_by_two(s4(128, 16))))),
    more(summing(warp_scan(exact(s4(128, 32))))),
    // For groups of some 64 to 512 tokens, cut evenly.
    common(widths<72, 112, 128, 136>(binary_search(pingpong(swap_ab(bf16(128, 144)))))),
    common(widths<72, 112, 128, 136>(binary_search(pingpong(swap_ab(e4m3(128, 144)))))),
    more(widths<136, 176, 216>(binary_search(swap_ab(bf16(128, 256))))),
    more(widths<136, 176, 216>(binary_search(swap_ab(e4m3(128, 256))))),
    more(widths<72, 112, 136>(binary_search(swap_ab(gated(bf16(256, 144)))))),
    more(widths<72, 112, 136>(binary_search(swap_ab(gated(e4m3(256, 144)))))),
    more(warp_scan(swap_ab(e4m3(128, 8)))),
    more(warp_scan(swap_ab(e4m3(128, 24)))),
    more(warp_scan(swap_ab(e4m3(128, 96)))),
    more(linear_scan(swap_ab(e4m3(128, 16)))),
    more(binary_search(swap_ab(e4m3(128, 16)))),
    more(binary_search(promoted(e4m3(128, 128)))),
    more(binary_search(blockwise(e4m3(128, 160)))),
    more(warp_scan(swap_ab(blockwise(e4m3(128, 8))))),
    more(warp_scan(quantised(swap_ab(blockwise(e4m3(128, 32)))))),
    more(binary_search(quantised(blockwise(e4m3(128, 128))))),
    more(warp_scan(quantised(gated(swap_ab(e4m3(256, 16)))))),
    more(warp_scan(quantised(gated(swap_ab(e4m3(256, 64)))))),
    more(group_maps(warp_scan(swap_ab(e4m3(128, 64))))),
    more(group_maps(binary_search(e4m3(128, 256)))),
    more(group_maps(binary_search(blockwise(e4m3(128, 128))))),
    more(two_ctas(warp_scan(exact(s4(128, 8))))),
    more(two_ctas(warp_scan(exact_in_halves(s4(128, 64))))),
    more(warp_scan(exact(s4(128, 64)))),
    more(warp_scan(exact_in_halves(s4(192, 128)))),
    more(warp_scan(exact(s4(128, 96)))),
    more(two_ctas(warp_scan(s4(128, 16)))),
    more(warp_scan(s4(128, 192))),
    more(warp_scan(s4(128, 128))),
    more(warp_scan(blockwise(s4(128, 64)))),
    more(warp_scan(exact(to(DType::f16, s4(128, 128))))),
    more(warp_scan(to(DType::f16, s4(128, 192)))),
    more(two_ctas(warp_scan(exact(to(DType::f16, s4(128, 16)))))),
    more(two_ctas(warp_scan(folded(s4(128, 16))))),
    more(warp_scan(folded(s4(128, 256)))),
    more(two_ctas(warp_scan(by_table(s4(128, 16))))),
    more(two_ctas(warp_scan(zero_points(exact(s4(128, 16)))))),
    more(warp_scan(zero_points(exact(s4(128, 64))))),
});

}  // namespace hopper

struct HopperRows {
  static constexpr const auto& rows = hopper::rows;
};

}  // namespace warpwright::kernel
