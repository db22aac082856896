// The kernels that are compiled, in one table. A tag names an instance and carries its
// configuration; everything that lists kernels (plans, both devices, the build) reads this table.
#pragma once

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/rows.h"

// X(name, what differs from a default GemmConfig...). Names: operands, result, tile, then what is
// special.
// clang-format off
#define WW_HOPPER_COMMON_INSTANCES(X) \
  X(hopper_bf16_bf16_128x256, .stages = 4) \
  X(hopper_bf16_bf16_128x128_pp, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x160_pp, .tile_n = 160, .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_256x128, .tile_m = 256, .tile_n = 128, .stages = 4) \
  X(hopper_bf16_bf16_128x192, .tile_n = 192, .stages = 4, .buffers = 3) \
  X(hopper_bf16_bf16_128x64_sw_sk, .tile_n = 64, .stages = 7, .swapped = true, \
    .sharing = Sharing::workspace) \
  X(hopper_bf16_bf16_128x64_sw_ck, .tile_n = 64, .stages = 7, .swapped = true, \
    .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_bf16_bf16_128x16_sw_ck, .tile_n = 16, .stages = 10, .swapped = true, \
    .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_bf16_bf16_128x32_sw_ck2, .tile_n = 32, .stages = 4, .consumer_warpgroups = 1, \
    .swapped = true, .sharing = Sharing::cluster, .store = Store::lanes, .ctas_per_sm = 2) \
  X(hopper_bf16_bf16_128x256_sk, .stages = 4, .sharing = Sharing::workspace) \
  X(hopper_bf16_bf16_128x160_sk, .tile_n = 160, .stages = 5, .sharing = Sharing::workspace) \
  X(hopper_bf16_bf16_128x176_pp, .tile_n = 176, .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_192x16_sw, .tile_m = 192, .tile_n = 16, .stages = 7, \
    .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_bf16_bf16_128x96_pp, .tile_n = 96, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_64x48, .tile_m = 64, .tile_n = 48, .stages = 14, .consumer_warpgroups = 1) \
  X(hopper_bf16_bf16_64x64, .tile_m = 64, .tile_n = 64, .stages = 12, .consumer_warpgroups = 1) \
  X(hopper_bf16_bf16_64x112, .tile_m = 64, .tile_n = 112, .stages = 9, \
    .consumer_warpgroups = 1) \
  X(hopper_bf16_bf16_64x16_sw, .tile_m = 64, .tile_n = 16, .stages = 8, \
    .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_bf16_bf16_64x32_sw, .tile_m = 64, .tile_n = 32, .stages = 12, \
    .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_bf16_bf16_128x64_sw, .tile_n = 64, .stages = 8, .swapped = true) \
  X(hopper_bf16_bf16_192x80_sw, .tile_m = 192, .tile_n = 80, .stages = 5, \
    .consumer_warpgroups = 3, .swapped = true) \
  X(hopper_bf16_bf16_128x128_ms, .tile_n = 128, .stages = 5, .schedule = Schedule::multistage) \
  X(hopper_bf16_bf16_128x256_gated, .stages = 4, .gated = true) \
  X(hopper_bf16_bf16_128x128_pp_tn, .a = {DType::bf16, atom::Major::mn}, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x128_pp_nn, .b = {DType::bf16, atom::Major::mn}, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x128_pp_tt, .a = {DType::bf16, atom::Major::mn}, .b = {DType::bf16, \
    atom::Major::mn}, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_f32_128x256, .result = DType::f32, .stages = 4) \
  X(hopper_bf16_f32_128x128_pp, .result = DType::f32, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_bf16_f16_128x256, .result = DType::f16, .stages = 4) \
  X(hopper_bf16_f16_128x128_pp, .result = DType::f16, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_f16_f16_128x256, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .stages = 4) \
  X(hopper_f16_f16_128x128_pp, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_f32_128x256, .a = DType::f16, .b = DType::f16, .result = DType::f32, \
    .stages = 4) \
  X(hopper_f16_f32_128x128_pp, .a = DType::f16, .b = DType::f16, .result = DType::f32, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_bf16_128x256, .a = DType::f16, .b = DType::f16, .stages = 4) \
  X(hopper_f16_bf16_128x128_pp, .a = DType::f16, .b = DType::f16, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_e4m3_bf16_128x256, .a = DType::e4m3, .b = DType::e4m3, .stages = 4) \
  X(hopper_e4m3_bf16_128x128_pp, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_bf16_128x160_pp, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 160, \
    .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_bf16_128x64_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x16_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .swapped = true, .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x64_sw_sk, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .swapped = true, .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_128x32_sw_ck2, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 32, \
    .stages = 4, .consumer_warpgroups = 1, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes, .ctas_per_sm = 2) \
  X(hopper_e4m3_bf16_128x192_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 192, \
    .stages = 4, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_128x160_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 160, \
    .stages = 5, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_128x192_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 192, \
    .stages = 4, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_128x256_sk, .a = DType::e4m3, .b = DType::e4m3, .stages = 4, \
    .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_128x160_sk, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 160, \
    .stages = 5, .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_128x176_pp, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 176, \
    .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_bf16_128x128_pr_sk, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted, .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_128x16_pr_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .sums = Sums::promoted, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x128_bs_sk, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::block_scaled, .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_64x48, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 48, \
    .stages = 14, .consumer_warpgroups = 1) \
  X(hopper_e4m3_bf16_64x112, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 112, \
    .stages = 9, .consumer_warpgroups = 1) \
  X(hopper_e4m3_bf16_64x16_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 16, \
    .stages = 8, .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_e4m3_bf16_64x32_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 32, \
    .stages = 12, .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_e4m3_bf16_64x16_pr_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, \
    .tile_n = 16, .stages = 8, .consumer_warpgroups = 1, .sums = Sums::promoted, \
    .swapped = true) \
  X(hopper_e4m3_bf16_64x48_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 48, \
    .stages = 14, .consumer_warpgroups = 1, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_64x112_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, \
    .tile_n = 112, .stages = 9, .consumer_warpgroups = 1, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_64x64_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, .tile_n = 64, \
    .stages = 12, .consumer_warpgroups = 1, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_64x128_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 64, \
    .tile_n = 128, .stages = 8, .consumer_warpgroups = 1, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_192x16_sw, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 192, \
    .tile_n = 16, .stages = 7, .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_e4m3_bf16_128x128_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_128x64_pr_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 7, .sums = Sums::promoted, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x128_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_128x64_bs_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, \
    .stages = 6, .sums = Sums::block_scaled, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x16_bs_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 16, \
    .stages = 10, .sums = Sums::block_scaled, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_e4m3_e4m3_128x128_gated, .a = DType::e4m3, .b = DType::e4m3, .result = DType::e4m3, \
    .tile_n = 128, .stages = 5, .gated = true) \
  X(hopper_e4m3_f32_128x128_pp, .a = DType::e4m3, .b = DType::e4m3, .result = DType::f32, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e5m2xe4m3_bf16_128x128_pp, .a = DType::e5m2, .b = DType::e4m3, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong)
// Only in builds that ask for them: WARPWRIGHT_KERNELS is all (the preset all), or names them.
#define WW_HOPPER_MORE_INSTANCES(X) \
  X(hopper_bf16_bf16_128x112_pp, .tile_n = 112, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x144_pp, .tile_n = 144, .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x176, .tile_n = 176, .stages = 5) \
  X(hopper_bf16_bf16_128x208, .tile_n = 208, .stages = 4) \
  X(hopper_bf16_bf16_128x224, .tile_n = 224, .stages = 4) \
  X(hopper_bf16_bf16_128x8_sw_ck, .tile_n = 8, .stages = 10, .swapped = true, \
    .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_bf16_bf16_128x32_sw_ck, .tile_n = 32, .stages = 9, .swapped = true, \
    .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_bf16_bf16_128x128_sw_ck, .tile_n = 128, .stages = 6, .swapped = true, \
    .sharing = Sharing::cluster, .store = Store::lanes) \
  X(hopper_bf16_bf16_128x64_sw_gated, .tile_n = 64, .stages = 7, .consumer_warpgroups = 1, \
    .swapped = true, .gated = true) \
  X(hopper_bf16_bf16_128x256_nn, .b = {DType::bf16, atom::Major::mn}, .stages = 4) \
  X(hopper_bf16_bf16_128x256_tn, .a = {DType::bf16, atom::Major::mn}, .stages = 4) \
  X(hopper_bf16_bf16_128x256_tt, .a = {DType::bf16, atom::Major::mn}, .b = {DType::bf16, \
    atom::Major::mn}, .stages = 4) \
  X(hopper_f16_f16_128x128_pp_tn, .a = {DType::f16, atom::Major::mn}, .b = DType::f16, \
    .result = DType::f16, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_f32_128x128_pp_tn, .a = {DType::bf16, atom::Major::mn}, .result = DType::f32, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_f32_128x128_pp_tn, .a = {DType::f16, atom::Major::mn}, .b = DType::f16, \
    .result = DType::f32, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_f16_128x128_pp_nn, .a = DType::f16, .b = {DType::f16, atom::Major::mn}, \
    .result = DType::f16, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_f32_128x128_pp_nn, .b = {DType::bf16, atom::Major::mn}, .result = DType::f32, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_f32_128x128_pp_nn, .a = DType::f16, .b = {DType::f16, atom::Major::mn}, \
    .result = DType::f32, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_f16_f16_128x128_pp_tt, .a = {DType::f16, atom::Major::mn}, .b = {DType::f16, \
    atom::Major::mn}, .result = DType::f16, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_bf16_f32_128x128_pp_tt, .a = {DType::bf16, atom::Major::mn}, .b = {DType::bf16, \
    atom::Major::mn}, .result = DType::f32, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_f16_f32_128x128_pp_tt, .a = {DType::f16, atom::Major::mn}, .b = {DType::f16, \
    atom::Major::mn}, .result = DType::f32, .tile_n = 128, .stages = 6, \
    .schedule = Schedule::pingpong) \
  X(hopper_f16_f16_128x160_pp, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 160, .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_f16_f16_256x128, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_m = 256, .tile_n = 128, .stages = 4) \
  X(hopper_f16_f16_128x192, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 192, .stages = 4, .buffers = 3) \
  X(hopper_f16_f16_128x16_sw_ck, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 16, .stages = 10, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_f16_f16_128x64_sw_ck, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 64, .stages = 7, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_f16_f16_128x64_sw_sk, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_n = 64, .stages = 7, .swapped = true, .sharing = Sharing::workspace) \
  X(hopper_f16_f16_192x16_sw, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .tile_m = 192, .tile_n = 16, .stages = 7, .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_f16_f16_128x256_gated, .a = DType::f16, .b = DType::f16, .result = DType::f16, \
    .stages = 4, .gated = true) \
  X(hopper_bf16_f32_128x64_sw_sk, .result = DType::f32, .tile_n = 64, .stages = 7, \
    .swapped = true, .sharing = Sharing::workspace) \
  X(hopper_f16_f32_128x64_sw_sk, .a = DType::f16, .b = DType::f16, .result = DType::f32, \
    .tile_n = 64, .stages = 7, .swapped = true, .sharing = Sharing::workspace) \
  X(hopper_e4m3_bf16_256x128, .a = DType::e4m3, .b = DType::e4m3, .tile_m = 256, .tile_n = 128, \
    .stages = 4) \
  X(hopper_e4m3_bf16_128x160_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 160, \
    .stages = 5, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_128x32_bs_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 32, \
    .stages = 8, .sums = Sums::block_scaled, .swapped = true, .sharing = Sharing::cluster, \
    .store = Store::lanes) \
  X(hopper_e4m3_bf16_128x256_gated, .a = DType::e4m3, .b = DType::e4m3, .stages = 4, \
    .gated = true) \
  X(hopper_e4m3_bf16_128x128_bs_gated, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::block_scaled, .gated = true) \
  X(hopper_e4m3_e4m3_128x128_pp, .a = DType::e4m3, .b = DType::e4m3, .result = DType::e4m3, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_e4m3_128x128_bs_gated, .a = DType::e4m3, .b = DType::e4m3, \
    .result = DType::e4m3, .tile_n = 128, .stages = 5, .sums = Sums::block_scaled, \
    .gated = true) \
  X(hopper_e4m3_f16_128x128_pp, .a = DType::e4m3, .b = DType::e4m3, .result = DType::f16, \
    .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_f32_128x128_bs, .a = DType::e4m3, .b = DType::e4m3, .result = DType::f32, \
    .tile_n = 128, .stages = 5, .sums = Sums::block_scaled) \
  X(hopper_e4m3xe5m2_bf16_128x128_pp, .a = DType::e4m3, .b = DType::e5m2, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e5m2_bf16_128x128_pp, .a = DType::e5m2, .b = DType::e5m2, .tile_n = 128, \
    .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e4m3xe5m2_bf16_128x128_pr, .a = DType::e4m3, .b = DType::e5m2, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted) \
  X(hopper_e5m2xe4m3_bf16_128x128_pr, .a = DType::e5m2, .b = DType::e4m3, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted) \
  X(hopper_e5m2_bf16_128x128_pr, .a = DType::e5m2, .b = DType::e5m2, .tile_n = 128, \
    .stages = 5, .sums = Sums::promoted)
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
WW_HOPPER_COMMON_INSTANCES(WW_COMMON)
WW_HOPPER_MORE_INSTANCES(WW_MORE)
#undef WW_MORE
#undef WW_COMMON
#undef WW_TAG

#define WW_ROW(tag, ...) , tag
/// The dense kernels of Hopper.
struct HopperRows
    : RowsAfter<Head WW_HOPPER_COMMON_INSTANCES(WW_ROW) WW_HOPPER_MORE_INSTANCES(WW_ROW)> {};
#undef WW_ROW

}  // namespace warpwright::kernel
