// From a plan and addresses to the parameters of the kernel: the same for both devices, but for how
// a tensor map is encoded. Internal to device/.
#pragma once

#include <cstdint>

#include "warpwright/kernel/blackwell_gemm_params.h"
#include "warpwright/kernel/hopper_gemm_params.h"
#include "warpwright/plan/plan.h"

namespace warpwright::device {

/// A row-major matrix and the box in which it is copied, 128-byte swizzled.
struct MapRequest {
  const char* tensor = "";
  const void* base = nullptr;
  DType dtype = DType::bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  int box_rows = 0;
  int box_columns = 0;
};

/// What the boxes of the maps are.
struct Boxes {
  int a_rows = 0;  ///< rows of A that a CTA loads
  int b_rows = 0;  ///< rows of B that a CTA loads
  int k = 0;       ///< columns of both
  int result_columns = 0;
};

/// Fills what all kernels take. Asks `encode(MapRequest) -> isa::TensorMap` for the maps that the
/// launch uses.
template <class Encode>
void fill_params(kernel::HopperGemmParams& p, const Plan& plan, const GemmOperands& o,
                 const Boxes& boxes, const Encode& encode) {
  p.m = static_cast<int>(plan.problem.m);
  p.n = static_cast<int>(plan.problem.n);
  // alpha 0 reads neither A nor B (BLAS); the kernel then runs without a K block.
  p.k = o.alpha == 0.0F ? 0 : static_cast<int>(plan.problem.k);
  p.alpha = o.alpha;
  p.beta = o.beta;
  p.cluster = plan.cluster;
  p.column_mask = atom::column_set(plan.cluster, 0);
  p.row_mask = atom::row_set(plan.cluster, 0);
  p.cluster_m = tile::Divisor(plan.cluster.m);
  p.a_slice_rows = boxes.a_rows;
  p.b_slice_rows = boxes.b_rows;
  p.raster = tile::PreparedRaster(plan.raster);
  p.reads_c = o.beta != 0.0F;
  p.d_by_tma = plan.d_path == EpiloguePath::copy_engine;
  p.c_by_tma = p.reads_c && plan.c_path == EpiloguePath::copy_engine;
  p.d_data = o.d.data;
  p.d_pitch = o.d.row_stride;
  if (p.k > 0) {
    p.a = encode(MapRequest{"A", o.a.data, o.a.dtype, o.a.rows, o.a.columns, o.a.row_stride,
                            boxes.a_rows, boxes.k});
    p.b = encode(MapRequest{"B", o.b.data, o.b.dtype, o.b.rows, o.b.columns, o.b.row_stride,
                            boxes.b_rows, boxes.k});
  }
  const auto result = [&](const char* name, const MatrixView& v) {
    return encode(MapRequest{name, v.data, v.dtype, v.rows, v.columns, v.row_stride,
                             kernel::epilogue_rows, boxes.result_columns});
  };
  if (p.d_by_tma) p.d = result("D", o.d);
  if (p.reads_c) {
    p.c_data = o.c.data;
    p.c_pitch = o.c.row_stride;
    if (p.c_by_tma) p.c = result("C", o.c);
  }
}

/// Parameters of a Hopper kernel.
template <class Encode>
kernel::HopperGemmParams make_params(const Plan& plan, const GemmOperands& o,
                                     const Encode& encode) {
  const kernel::GemmConfig& c = plan.config;
  kernel::HopperGemmParams p;
  fill_params(
      p, plan, o,
      {c.tile_m / plan.cluster.n, c.tile_n / plan.cluster.m, c.tile_k, kernel::epilogue_columns(c)},
      encode);
  return p;
}

/// Parameters of a Blackwell kernel.
template <class Encode>
kernel::BlackwellGemmParams make_blackwell_params(const Plan& plan, const GemmOperands& o,
                                                  const Encode& encode) {
  const kernel::BlackwellConfig& c = *plan.blackwell;
  kernel::BlackwellGemmParams p;
  fill_params(p, plan, o,
              {c.tile_m / plan.cluster.n, c.tile_n / plan.cluster.m, kernel::tile_k(c),
               kernel::epilogue_columns(c)},
              encode);
  p.row_mask = atom::masks(plan.cluster, 0, c.pair).b;
  p.commit_row_mask = atom::row_set(plan.cluster, 0);
  p.commit_column_mask = atom::column_set(plan.cluster, 0);
  if (c.pair) p.commit_column_mask |= atom::column_set(plan.cluster, 1);
  p.instruction = atom::encode_instruction(kernel::mma_atom(c, plan.problem.a, plan.problem.b));
  p.cluster_size = tile::Divisor(atom::cluster_size(plan.cluster));
  return p;
}

}  // namespace warpwright::device
