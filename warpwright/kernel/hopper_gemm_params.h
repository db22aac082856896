// What a launch of the Hopper GEMM kernel takes, on the GPU and on the model.
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/isa/tma.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// Parameters of one launch: D[m, n] = alpha * A[m, k] * B[n, k]^T + beta * C[m, n].
struct HopperGemmParams {
  isa::TensorMap a;  ///< box: tile_k x (tile_m / cluster.n), 128-byte swizzle
  isa::TensorMap b;  ///< box: tile_k x (tile_n / cluster.m), 128-byte swizzle
  isa::TensorMap c;  ///< box: epilogue_columns x epilogue_rows, 128-byte swizzle; when c_by_tma
  isa::TensorMap d;  ///< the same box; when d_by_tma
  const void* c_data = nullptr;
  void* d_data = nullptr;
  std::int64_t c_pitch = 0;  ///< elements from row to row
  std::int64_t d_pitch = 0;
  int m = 0;
  int n = 0;
  int k = 0;
  float alpha = 1.0F;
  float beta = 0.0F;
  atom::ClusterShape cluster;
  std::uint16_t column_mask = 1;  ///< CTAs with x = 0, who share one A tile; of x: shifted by x
  std::uint16_t row_mask = 1;     ///< CTAs with y = 0, who share one B tile; of y: by y * cluster.m
  tile::Divisor cluster_m;        ///< divides by cluster.m
  int a_slice_rows = 0;           ///< rows of A that a CTA loads: tile_m / cluster.n
  int b_slice_rows = 0;           ///< rows of B that a CTA loads: tile_n / cluster.m
  tile::PreparedRaster raster;
  bool reads_c = false;   ///< beta is not 0
  bool c_by_tma = false;  ///< base and pitch of C are multiples of 16 bytes
  bool d_by_tma = false;  ///< those of D are
};

}  // namespace warpwright::kernel
