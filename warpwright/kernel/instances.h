// The kernels that are compiled, in one table. A tag names an instance and carries its
// configuration; everything that lists kernels (plans, both devices, the build) reads this table.
#pragma once

#include "warpwright/kernel/gemm_config.h"

// X(name, what differs from a default GemmConfig...). The build makes source files of each line
// (cmake/cuda.cmake, cmake/instances.cmake). Names: operands, result, tile, then what is special.
// clang-format off
#define WW_HOPPER_COMMON_INSTANCES(X) \
  X(hopper_bf16_bf16_128x256, .tile_n = 256, .stages = 4) \
  X(hopper_bf16_bf16_128x256_b4, .tile_n = 256, .stages = 3, .buffers = 4) \
  X(hopper_bf16_bf16_128x128_pp, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_128x128_pp_b4, .tile_n = 128, .stages = 5, .schedule = Schedule::pingpong, .buffers = 4) \
  X(hopper_bf16_bf16_128x160_pp, .tile_n = 160, .stages = 5, .schedule = Schedule::pingpong) \
  X(hopper_bf16_bf16_256x128, .tile_m = 256, .tile_n = 128, .stages = 4) \
  X(hopper_bf16_bf16_128x192, .tile_n = 192, .stages = 4, .buffers = 3) \
  X(hopper_bf16_bf16_128x176, .tile_n = 176, .stages = 5) \
  X(hopper_bf16_bf16_128x64_sw_sk, .tile_n = 64, .stages = 7, .swapped = true, .splits_k = true) \
  X(hopper_bf16_bf16_128x64_sw_ck, .tile_n = 64, .stages = 7, .swapped = true, .cluster_k = true, .tma_store = false) \
  X(hopper_bf16_bf16_192x64_sw_ck, .tile_m = 192, .tile_n = 64, .stages = 5, .consumer_warpgroups = 3, .swapped = true, .cluster_k = true, .tma_store = false) \
  X(hopper_bf16_bf16_128x128_sw_ck, .tile_n = 128, .stages = 6, .swapped = true, .cluster_k = true, .tma_store = false) \
  X(hopper_bf16_bf16_128x16_sw_ck, .tile_n = 16, .stages = 10, .swapped = true, .cluster_k = true, .tma_store = false) \
  X(hopper_bf16_bf16_192x16_sw, .tile_m = 192, .tile_n = 16, .stages = 7, .consumer_warpgroups = 1, .swapped = true) \
  X(hopper_bf16_bf16_128x128_ms, .tile_n = 128, .stages = 5, .schedule = Schedule::multistage) \
  X(hopper_e4m3_bf16_128x256, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 256, .stages = 4) \
  X(hopper_e4m3_bf16_128x256_b4, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 256, .stages = 3, .buffers = 4) \
  X(hopper_e4m3_bf16_128x128_pp, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, .stages = 6, .schedule = Schedule::pingpong) \
  X(hopper_e4m3_bf16_128x64_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, .stages = 7, .swapped = true, .cluster_k = true, .tma_store = false) \
  X(hopper_e4m3_bf16_128x128_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, .stages = 5, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_128x192_bs, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 192, .stages = 4, .sums = Sums::block_scaled) \
  X(hopper_e4m3_bf16_128x128_pr, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 128, .stages = 5, .sums = Sums::promoted) \
  X(hopper_e4m3_bf16_128x64_bs_sw_ck, .a = DType::e4m3, .b = DType::e4m3, .tile_n = 64, .stages = 6, .sums = Sums::block_scaled, .swapped = true, .cluster_k = true, .tma_store = false)
#define WW_HOPPER_MORE_INSTANCES(X)
// clang-format on
#if defined(WARPWRIGHT_ALL_KERNELS)
#define WW_HOPPER_GEMM_INSTANCES(X) WW_HOPPER_COMMON_INSTANCES(X) WW_HOPPER_MORE_INSTANCES(X)
#else
#define WW_HOPPER_GEMM_INSTANCES(X) WW_HOPPER_COMMON_INSTANCES(X)
#endif

namespace warpwright::kernel {

#define WW_TAG(tag, ...)                         \
  struct tag {                                   \
    static constexpr const char* name = #tag;    \
    static constexpr GemmConfig config{__VA_ARGS__}; \
  };
WW_HOPPER_GEMM_INSTANCES(WW_TAG)
#undef WW_TAG

}  // namespace warpwright::kernel
