// The Blackwell kernels that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/rows.h"

// X(name, kind, result, tile_n, stages, accumulators, pair, tiles); tile_m is 128.
// clang-format off
#define WW_BLACKWELL_F16_INSTANCES(X) \
  X(blackwell_f16_bf16_one, f16, bf16, 128, 6, 1, false, one_tile) \
  X(blackwell_f16_bf16_pair, f16, bf16, 256, 6, 1, true, one_tile) \
  X(blackwell_f16_bf16_one_static, f16, bf16, 128, 6, 2, false, static_persistent) \
  X(blackwell_f16_bf16_pair_static, f16, bf16, 256, 6, 2, true, static_persistent) \
  X(blackwell_f16_bf16_one_clc, f16, bf16, 128, 6, 2, false, launch_control) \
  X(blackwell_f16_bf16_pair_clc, f16, bf16, 256, 6, 2, true, launch_control) \
  X(blackwell_f16_f16_one, f16, f16, 128, 6, 1, false, one_tile) \
  X(blackwell_f16_f16_pair, f16, f16, 256, 6, 1, true, one_tile) \
  X(blackwell_f16_f16_one_static, f16, f16, 128, 6, 2, false, static_persistent) \
  X(blackwell_f16_f16_pair_static, f16, f16, 256, 6, 2, true, static_persistent) \
  X(blackwell_f16_f16_one_clc, f16, f16, 128, 6, 2, false, launch_control) \
  X(blackwell_f16_f16_pair_clc, f16, f16, 256, 6, 2, true, launch_control) \
  X(blackwell_f16_f32_one, f16, f32, 128, 6, 1, false, one_tile) \
  X(blackwell_f16_f32_pair, f16, f32, 256, 6, 1, true, one_tile) \
  X(blackwell_f16_f32_one_static, f16, f32, 128, 6, 2, false, static_persistent) \
  X(blackwell_f16_f32_pair_static, f16, f32, 256, 6, 2, true, static_persistent) \
  X(blackwell_f16_f32_one_clc, f16, f32, 128, 6, 2, false, launch_control) \
  X(blackwell_f16_f32_pair_clc, f16, f32, 256, 6, 2, true, launch_control)
#define WW_BLACKWELL_F8F6F4_INSTANCES(X) \
  X(blackwell_f8f6f4_bf16_one, f8f6f4, bf16, 128, 6, 1, false, one_tile) \
  X(blackwell_f8f6f4_bf16_pair, f8f6f4, bf16, 256, 6, 1, true, one_tile) \
  X(blackwell_f8f6f4_bf16_one_static, f8f6f4, bf16, 128, 6, 2, false, static_persistent) \
  X(blackwell_f8f6f4_bf16_pair_static, f8f6f4, bf16, 256, 6, 2, true, static_persistent) \
  X(blackwell_f8f6f4_bf16_one_clc, f8f6f4, bf16, 128, 6, 2, false, launch_control) \
  X(blackwell_f8f6f4_bf16_pair_clc, f8f6f4, bf16, 256, 6, 2, true, launch_control) \
  X(blackwell_f8f6f4_f16_one, f8f6f4, f16, 128, 6, 1, false, one_tile) \
  X(blackwell_f8f6f4_f16_pair, f8f6f4, f16, 256, 6, 1, true, one_tile) \
  X(blackwell_f8f6f4_f16_one_static, f8f6f4, f16, 128, 6, 2, false, static_persistent) \
  X(blackwell_f8f6f4_f16_pair_static, f8f6f4, f16, 256, 6, 2, true, static_persistent) \
  X(blackwell_f8f6f4_f16_one_clc, f8f6f4, f16, 128, 6, 2, false, launch_control) \
  X(blackwell_f8f6f4_f16_pair_clc, f8f6f4, f16, 256, 6, 2, true, launch_control) \
  X(blackwell_f8f6f4_f32_one, f8f6f4, f32, 128, 6, 1, false, one_tile) \
  X(blackwell_f8f6f4_f32_pair, f8f6f4, f32, 256, 6, 1, true, one_tile) \
  X(blackwell_f8f6f4_f32_one_static, f8f6f4, f32, 128, 6, 2, false, static_persistent) \
  X(blackwell_f8f6f4_f32_pair_static, f8f6f4, f32, 256, 6, 2, true, static_persistent) \
  X(blackwell_f8f6f4_f32_one_clc, f8f6f4, f32, 128, 6, 2, false, launch_control) \
  X(blackwell_f8f6f4_f32_pair_clc, f8f6f4, f32, 256, 6, 2, true, launch_control)
#define WW_BLACKWELL_GEMM_INSTANCES(X) \
  WW_BLACKWELL_F16_INSTANCES(X) \
  WW_BLACKWELL_F8F6F4_INSTANCES(X)
// clang-format on

namespace warpwright::kernel {

#define WW_TAG(tag, operand_kind, result_type, columns, ring, buffers, two, source) \
  struct tag {                                                                      \
    static constexpr const char* name = #tag;                                       \
    static constexpr bool common = true;                                            \
    static constexpr BlackwellConfig config{.kind = atom::UmmaKind::operand_kind,   \
                                            .result = DType::result_type,           \
                                            .tile_n = columns,                      \
                                            .stages = ring,                         \
                                            .accumulators = buffers,                \
                                            .pair = two,                            \
                                            .tiles = TileSource::source};           \
  };
WW_BLACKWELL_GEMM_INSTANCES(WW_TAG)
#undef WW_TAG

#define WW_ROW(tag, ...) , tag
/// The dense kernels of Blackwell.
struct BlackwellRows : RowsAfter<Head WW_BLACKWELL_GEMM_INSTANCES(WW_ROW)> {};
#undef WW_ROW

}  // namespace warpwright::kernel
