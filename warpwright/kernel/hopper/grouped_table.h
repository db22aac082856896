// The kernels for grouped products, in one table like that of kernel/hopper/table.h.
#pragma once

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/rows.h"

// X(name, what differs from a default GemmConfig...).
// Names: operands, result, tile (weights x tokens where swapped), how tiles are found (h, v or b:
// Grouping), then what is special. A group may end in the middle of a tile, so only those with a
// map a group (gm) store by the copy engine; and beside many sums only the vertical search has room
// in the registers.
// clang-format off
#define WW_HOPPER_GROUPED_COMMON_INSTANCES(X) \
  X(grouped_e4m3_bf16_128x16_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x32_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 32, \
    .stages = 9, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x64_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x64_v_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .store = Store::lanes, .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x64_h_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .store = Store::lanes, .grouped = Grouping::horizontal) \
  X(grouped_e4m3_bf16_128x128_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 6, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x256_v, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 256, \
    .stages = 4, .store = Store::lanes, .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x128_v_pp, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong, .store = Store::lanes, \
    .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x16_b_sw_gm, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .swapped = true, .store = Store::tensor_per_group, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x128_v_pp_gm, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong, .store = Store::tensor_per_group, \
    .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x16_b_bs_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .sums = Sums::block_scaled, .swapped = true, .store = Store::lanes, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x32_b_bs_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 32, \
    .stages = 9, .sums = Sums::block_scaled, .swapped = true, .store = Store::lanes, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x64_b_bs_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .sums = Sums::block_scaled, .swapped = true, .store = Store::lanes, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x128_v_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::block_scaled, .store = Store::lanes, \
    .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x192_v_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 192, \
    .stages = 4, .sums = Sums::block_scaled, .store = Store::lanes, \
    .grouped = Grouping::vertical) \
  X(grouped_bf16_bf16_128x16_b_sw, .tile_n = 16, .stages = 10, .swapped = true, \
    .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_bf16_bf16_128x32_b_sw, .tile_n = 32, .stages = 9, .swapped = true, \
    .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_bf16_bf16_128x64_b_sw, .tile_n = 64, .stages = 7, .swapped = true, \
    .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_bf16_bf16_128x128_v_pp, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong, \
    .store = Store::lanes, .grouped = Grouping::vertical) \
  X(grouped_bf16_bf16_128x256_v, .tile_n = 256, .stages = 4, .store = Store::lanes, \
    .grouped = Grouping::vertical)
#define WW_HOPPER_GROUPED_MORE_INSTANCES(X) \
  X(grouped_e4m3_bf16_128x8_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 8, \
    .stages = 11, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x24_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 24, \
    .stages = 10, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x48_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 48, \
    .stages = 8, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x96_b_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 96, \
    .stages = 6, .swapped = true, .store = Store::lanes, .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x16_h_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .swapped = true, .store = Store::lanes, .grouped = Grouping::horizontal) \
  X(grouped_e4m3_bf16_128x16_v_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .swapped = true, .store = Store::lanes, .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x128_v_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted, .store = Store::lanes, .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x160_v_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 160, \
    .stages = 5, .sums = Sums::block_scaled, .store = Store::lanes, \
    .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x8_b_bs_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 8, \
    .stages = 11, .sums = Sums::block_scaled, .swapped = true, .store = Store::lanes, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x64_b_sw_gm, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .store = Store::tensor_per_group, \
    .grouped = Grouping::ballot) \
  X(grouped_e4m3_bf16_128x256_v_gm, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 256, \
    .stages = 4, .store = Store::tensor_per_group, .grouped = Grouping::vertical) \
  X(grouped_e4m3_bf16_128x128_v_bs_gm, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::block_scaled, .store = Store::tensor_per_group, \
    .grouped = Grouping::vertical) \
  X(grouped_f16_f16_128x32_b_sw, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 32, .stages = 9, .swapped = true, .store = Store::lanes, \
    .grouped = Grouping::ballot) \
  X(grouped_f16_f16_128x256_v, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 256, .stages = 4, .store = Store::lanes, .grouped = Grouping::vertical)
// clang-format on

namespace warpwright::kernel {

#define WW_TAG(is_common, tag, ...)                  \
  struct tag {                                       \
    static constexpr const char* name = #tag;        \
    static constexpr bool common = is_common;        \
    static constexpr GemmConfig config{__VA_ARGS__}; \
  };
#define WW_COMMON(...) WW_TAG(true, __VA_ARGS__)
#define WW_MORE(...) WW_TAG(false, __VA_ARGS__)
WW_HOPPER_GROUPED_COMMON_INSTANCES(WW_COMMON)
WW_HOPPER_GROUPED_MORE_INSTANCES(WW_MORE)
#undef WW_MORE
#undef WW_COMMON
#undef WW_TAG

#define WW_ROW(tag, ...) , tag
/// The grouped kernels of Hopper.
struct GroupedRows : RowsAfter<Head WW_HOPPER_GROUPED_COMMON_INSTANCES(WW_ROW)
                                   WW_HOPPER_GROUPED_MORE_INSTANCES(WW_ROW)> {};
#undef WW_ROW

}  // namespace warpwright::kernel
