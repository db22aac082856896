// The kernels that are compiled, in one table. A tag names an instance and carries its
// configuration; everything that lists kernels (plans, both devices, the build) reads this table.
#pragma once

#include "warpwright/kernel/gemm_config.h"

// X(name, operand, result, tile_m, tile_n, stages, schedule); tile_k is 64.
// The build makes one .cu file of each line.
// clang-format off
#define WW_HOPPER_GEMM_INSTANCES(X) \
  X(hopper_bf16_bf16_128x256, bf16, bf16, 128, 256, 4, cooperative) \
  X(hopper_bf16_bf16_128x128, bf16, bf16, 128, 128, 6, pingpong) \
  X(hopper_bf16_f16_128x256, bf16, f16, 128, 256, 4, cooperative) \
  X(hopper_bf16_f16_128x128, bf16, f16, 128, 128, 6, pingpong) \
  X(hopper_bf16_f32_128x256, bf16, f32, 128, 256, 4, cooperative) \
  X(hopper_bf16_f32_128x128, bf16, f32, 128, 128, 6, pingpong) \
  X(hopper_f16_f16_128x256, f16, f16, 128, 256, 4, cooperative) \
  X(hopper_f16_f16_128x128, f16, f16, 128, 128, 6, pingpong) \
  X(hopper_f16_bf16_128x256, f16, bf16, 128, 256, 4, cooperative) \
  X(hopper_f16_bf16_128x128, f16, bf16, 128, 128, 6, pingpong) \
  X(hopper_f16_f32_128x256, f16, f32, 128, 256, 4, cooperative) \
  X(hopper_f16_f32_128x128, f16, f32, 128, 128, 6, pingpong)
// clang-format on

namespace warpwright::kernel {

#define WW_TAG(tag, operand_type, result_type, rows, columns, ring, how) \
  struct tag {                                                           \
    static constexpr const char* name = #tag;                            \
    static constexpr GemmConfig config{.operand = DType::operand_type,   \
                                       .result = DType::result_type,     \
                                       .tile_m = rows,                   \
                                       .tile_n = columns,                \
                                       .stages = ring,                   \
                                       .schedule = Schedule::how};       \
  };
WW_HOPPER_GEMM_INSTANCES(WW_TAG)
#undef WW_TAG

}  // namespace warpwright::kernel
