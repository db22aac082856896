// What a launch of the Hopper GEMM kernel takes, on the GPU and on the model.
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/isa/tma.h"
#include "warpwright/numeric/types.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright::kernel {

/// One value for each row or column of the product, in global memory: of f32, or of bf16 or f16.
/// Data null: there is none.
struct Vector {
  const void* data = nullptr;
  std::int64_t batch_stride = 0;  ///< elements
  DType dtype = DType::f32;
  std::int64_t stride = 1;  ///< elements, from value to value
};

/// Float32 scales of blocks: element (i, block of K).
struct ScaleMatrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;    ///< elements
  std::int64_t block_stride = 0;  ///< from one block of K to the next
  std::int64_t batch_stride = 0;
  int rows = 0;
};

/// The activation, as numbers: relu cuts at 0; the smooth ones are
/// x * sigmoid(x * (slope + cubic * x^2)).
struct ActivationParams {
  bool relu = false;
  bool smooth = false;
  float slope = 0;
  float cubic = 0;
};

/// Parameters of one launch. Rows and columns are the kernel's (see GemmConfig): the product is
/// P[row, column] = sum over k of A[row, k] * B[column, k].
struct HopperGemmParams {
  isa::TensorMap a;  ///< K-major box: tile_k x rows of a slice; MN-major: span x tile_k
  isa::TensorMap b;
  isa::TensorMap c;  ///< box: chunk_inner x chunk_outer; when c_by_tma
  isa::TensorMap d;  ///< the same box; when d_by_vectors and the kernel stores by copies
  const void* c_data = nullptr;
  void* d_data = nullptr;
  std::int64_t c_pitch = 0;  ///< elements from row to row
  std::int64_t d_pitch = 0;
  std::int64_t c_batch = 0;  ///< elements from matrix to matrix
  std::int64_t d_batch = 0;
  int d_rows = 0;  ///< of one matrix
  int d_columns = 0;
  int a_batch = 1;  ///< 0 where one matrix serves the whole batch
  int b_batch = 1;
  int c_map_batch = 1;
  int k = 0;
  int k_blocks = 0;
  int half = 0;  ///< rows (columns) of P that belong to the first half, when gated
  float alpha = 1.0F;
  float beta = 0.0F;
  atom::ClusterShape cluster;  ///< CTAs that share operands; 1 x 1 where they share tiles along K
  int cluster_k = 1;           ///< CTAs that share a tile along K
  std::uint16_t column_mask = 1;  ///< CTAs with x = 0, who share one A tile; of x: shifted by x
  std::uint16_t row_mask = 1;     ///< CTAs with y = 0, who share one B tile; of y: by y * cluster.m
  tile::Divisor cluster_m;        ///< divides by cluster.m
  int a_slice_rows = 0;           ///< rows of A's box that a CTA loads: a cluster.n-th
  int b_slice_rows = 0;
  tile::PreparedRaster raster;
  bool reads_c = false;       ///< beta is not 0
  bool c_by_tma = false;      ///< base and pitch of C are multiples of 16 bytes
  bool d_by_vectors = false;  ///< those of D are
  bool is_plain = true;       ///< D = alpha * P: no C, activation or vectors; k is not 0
  ActivationParams activation;
  Vector row_bias;
  Vector column_bias;
  Vector row_scale;
  Vector column_scale;
  const float* tensor_scale_a = nullptr;  ///< one float each, multiplied to alpha; null is 1
  const float* tensor_scale_b = nullptr;
  int tensor_scale_a_stride = 0;  ///< from group to group, in floats; 0: one for all
  int tensor_scale_b_stride = 0;
  const float* result_scale = nullptr;  ///< multiplied to D's elements
  ScaleMatrix vector_scales;            ///< of blocks: along the tokens, 1 x 128
  ScaleMatrix unit_scales;              ///< of blocks: along the weights, 128 x 128
  isa::TensorMap vector_map;            ///< of vector_scales, where the copy engine brings them
  bool copies_scales = false;
  tile::SplitPlan split;      ///< when the kernel splits K
  float* partials = nullptr;  ///< workspace: sums of CTAs, tile_m x tile_n floats each
  tile::GroupedTiles groups;  ///< when the kernel is grouped
  /// Where to say whether the offsets are in order, or null.
  std::uint32_t* offsets_status = nullptr;
  std::uint32_t* flags =
      nullptr;  ///< workspace: one a consumer warp of a CTA; all 0 between launches
  /// Of X at 2 g and of Y at 2 g + 1, for every group g with tokens; when the kernel has them.
  const isa::TensorMap* group_maps = nullptr;
};

}  // namespace warpwright::kernel
