// From a plan and addresses to the parameters of the kernel: the same for both devices, but for how
// a tensor map is encoded. Internal to device/.
#pragma once

#include <cstdint>
#include <utility>

#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/kernel/hopper/params.h"
#include "warpwright/kernel/hopper/shared_sums.h"
#include "warpwright/plan/plan.h"

namespace warpwright::device {

/// A batch of matrices and the box in which they are copied. Extents and strides in elements.
struct MapRequest {
  const char* tensor = "";
  const void* base = nullptr;
  DType dtype = DType::bf16;
  std::int64_t inner = 0;  ///< extent of the dimension whose neighbours are neighbours in memory
  std::int64_t outer = 0;
  std::int64_t batch = 1;
  std::int64_t outer_stride = 0;
  std::int64_t batch_stride = 0;
  int box_inner = 0;
  int box_outer = 0;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::b128;

  friend constexpr bool operator==(const MapRequest&, const MapRequest&) = default;
};

/// Matrices of a batch that lie apart: one, where a batch_stride of 0 has all of it share one. The
/// copy engine has no stride of 0, so such a batch is mapped, and walked, as that one matrix.
inline std::int64_t matrices(const MatrixView& v) {
  return v.batch_stride == 0 ? 1 : v.batch;
}

/// The request for `v` with its contiguous dimension, rows or columns, inside.
inline MapRequest map_request(const char* name, const MatrixView& v, bool rows_inside,
                              int box_inner, int box_outer, atom::SmemSwizzle swizzle) {
  MapRequest r{name,         v.data,         v.dtype,   v.columns, v.rows, matrices(v),
               v.row_stride, v.batch_stride, box_inner, box_outer, swizzle};
  if (rows_inside) {
    std::swap(r.inner, r.outer);
    r.outer_stride = v.column_stride;
  }
  // The stride of a dimension of extent 1 is never used, but must be a legal one.
  if (r.batch == 1) r.batch_stride = r.outer_stride;
  return r;
}

inline kernel::ActivationParams activation_params(Activation a) {
  switch (a) {
    case Activation::relu:
      return {.relu = true};
    case Activation::silu:
      return {.smooth = true, .slope = 1.0F, .cubic = 0.0F};
    case Activation::gelu:  // x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))
      return {.smooth = true, .slope = 1.5957691F, .cubic = 0.071354816F};
    case Activation::none:
      break;
  }
  return {};
}

inline kernel::Vector vector_of(const MatrixView& v) {
  // One value for each row: neighbours are a row apart, wherever there are neighbours.
  return {v.data, v.batch > 1 ? v.batch_stride : 0, v.dtype, v.rows > 1 ? v.row_stride : 1};
}

/// A stride of a tensor map is below this many bytes.
inline constexpr std::int64_t most_map_stride = std::int64_t{1} << 40;

/// Whether the copy engine can read a matrix of block scales, tokens x blocks: tokens side by side,
/// blocks apart, everything at multiples of 16 bytes.
inline bool copyable_scales(const MatrixView& v) {
  const auto aligned = [](std::int64_t extent, std::int64_t stride) {
    return extent <= 1 || (stride > 0 && stride % 4 == 0 && stride < most_map_stride / 4);
  };
  return v.row_stride == 1 && reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 &&
         (v.columns <= 1 || v.column_stride >= v.rows) && aligned(v.columns, v.column_stride) &&
         aligned(matrices(v), v.batch_stride);
}

/// Has the copy engine bring the scales of the tokens, `v`, where it can.
template <class Encode>
void set_scale_map(kernel::HopperGemmParams& p, const kernel::GemmConfig& c, const MatrixView& v,
                   const Encode& encode) {
  p.copies_scales = kernel::copies_scales(c) && copyable_scales(v);
  if (!p.copies_scales) return;
  MapRequest r =
      map_request("the scales of A", v, true, kernel::copied_scales(c), 1, atom::SmemSwizzle::none);
  if (v.columns <= 1) r.outer_stride = (v.rows + 3) / 4 * 4;  // never used, but must be a legal one
  if (r.batch == 1) r.batch_stride = r.outer_stride;
  p.vector_map = encode(r);
}

inline kernel::ScaleMatrix scale_matrix(const MatrixView& v) {
  return {static_cast<const float*>(v.data), v.row_stride, v.column_stride,
          v.batch > 1 ? v.batch_stride : 0, static_cast<int>(v.rows)};
}

/// Bias and scales, as the kernel's rows and columns have them.
inline void set_vectors(kernel::HopperGemmParams& p, bool swapped, const GemmOperands& o) {
  kernel::Vector* const rows = swapped ? &p.column_bias : &p.row_bias;
  kernel::Vector* const columns = swapped ? &p.row_bias : &p.column_bias;
  if (o.epilogue.bias == Bias::rows) *rows = vector_of(o.bias);
  if (o.epilogue.bias == Bias::columns) *columns = vector_of(o.bias);
  switch (o.scaling) {
    case Scaling::none:
      break;
    case Scaling::tensor:
      p.tensor_scale_a = static_cast<const float*>(o.scale_a.data);
      p.tensor_scale_b = static_cast<const float*>(o.scale_b.data);
      break;
    case Scaling::row_column:
      (swapped ? p.column_scale : p.row_scale) = vector_of(o.scale_a);
      (swapped ? p.row_scale : p.column_scale) = vector_of(o.scale_b);
      break;
    case Scaling::block:
      p.vector_scales = scale_matrix(o.scale_a);
      p.unit_scales = scale_matrix(o.scale_b);
      break;
  }
  p.result_scale = static_cast<const float*>(o.scale_d.data);
}

/// Fills what all kernels take. Asks `encode(MapRequest) -> isa::TensorMap` for the maps that the
/// launch uses.
template <class Config, class Encode>
void fill_params(kernel::HopperGemmParams& p, const Config& c, const Plan& plan,
                 const GemmOperands& o, const Encode& encode) {
  p.d_rows = static_cast<int>(plan.problem.m);
  p.d_columns = static_cast<int>(result_columns(plan.problem));
  p.half = static_cast<int>(plan.problem.n / 2);
  // alpha 0 reads neither A nor B (BLAS); the kernel then runs without a K block.
  p.k = o.alpha == 0.0F ? 0 : static_cast<int>(plan.problem.k);
  p.k_blocks = (p.k + kernel::tile_k(c) - 1) / kernel::tile_k(c);
  p.alpha = o.alpha;
  p.beta = o.beta;
  p.cluster = plan.cluster;
  p.cluster_k = plan.cluster_k;
  p.column_mask = atom::column_set(plan.cluster, 0);
  p.row_mask = atom::row_set(plan.cluster, 0);
  p.cluster_m = tile::Divisor(plan.cluster.m);
  p.a_slice_rows = c.tile_m / (kernel::gated_rows(c) ? 2 : 1) / plan.cluster.n;
  p.b_slice_rows = c.tile_n / (kernel::gated_columns(c) ? 2 : 1) / plan.cluster.m;
  p.raster = tile::PreparedRaster(plan.raster);
  p.reads_c = o.beta != 0.0F;
  p.d_by_vectors = plan.d_path == EpiloguePath::copy_engine;
  p.c_by_tma = p.reads_c && plan.c_path == EpiloguePath::copy_engine;
  p.d_data = o.d.data;
  p.d_pitch = o.d.row_stride;
  p.a_batch = matrices(c.swapped ? o.b : o.a) > 1 ? 1 : 0;
  p.b_batch = matrices(c.swapped ? o.a : o.b) > 1 ? 1 : 0;
  p.c_map_batch = matrices(o.c) > 1 ? 1 : 0;
  p.d_batch = o.d.batch > 1 ? o.d.batch_stride : 0;
  p.activation = activation_params(o.epilogue.activation);
  set_vectors(p, c.swapped, o);
  p.is_plain = p.k > 0 && !p.reads_c && o.epilogue.activation == Activation::none &&
               p.row_bias.data == nullptr && p.column_bias.data == nullptr &&
               p.row_scale.data == nullptr && p.column_scale.data == nullptr;
  if (p.k > 0) {
    const auto operand = [&](const char* name, const MatrixView& v, atom::Major major, int rows) {
      const bool mn = major == atom::Major::mn;
      return encode(map_request(name, v, mn,
                                mn ? 1024 / kernel::operand_bits(c) : kernel::tile_k(c),
                                mn ? kernel::tile_k(c) : rows, atom::SmemSwizzle::b128));
    };
    p.a = operand(c.swapped ? "B" : "A", c.swapped ? o.b : o.a, c.a_major, p.a_slice_rows);
    p.b = operand(c.swapped ? "A" : "B", c.swapped ? o.a : o.b, c.b_major, p.b_slice_rows);
  }
  const auto result = [&](const char* name, const MatrixView& v) {
    return encode(map_request(name, v, false, kernel::chunk_inner(c), kernel::chunk_outer(c),
                              kernel::chunk_swizzle(c)));
  };
  if (p.d_by_vectors && c.tma_store) p.d = result("D", o.d);
  if (p.reads_c) {
    p.c_data = o.c.data;
    p.c_pitch = o.c.row_stride;
    p.c_batch = o.c.batch > 1 ? o.c.batch_stride : 0;
    if (p.c_by_tma) p.c = result("C", o.c);
  }
}

/// Parameters of a Hopper kernel. `workspace` is that of the plan.
template <class Encode>
kernel::HopperGemmParams make_params(const Plan& plan, const GemmOperands& o, void* workspace,
                                     const Encode& encode) {
  const kernel::GemmConfig& c = plan.config;
  kernel::HopperGemmParams p;
  fill_params(p, c, plan, o, encode);
  if (p.k > 0 && o.scaling == Scaling::block) set_scale_map(p, c, o.scale_a, encode);
  if (c.splits_k && p.k > 0) {
    p.split =
        tile::SplitPlan(p.raster.count, p.k_blocks, plan.ctas / atom::cluster_size(plan.cluster));
    p.flags = static_cast<std::uint32_t*>(workspace);
    p.partials = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) +
                                          kernel::split_flag_bytes(c, plan.ctas));
  }
  return p;
}

/// Parameters of a Blackwell kernel.
template <class Encode>
kernel::BlackwellGemmParams make_blackwell_params(const Plan& plan, const GemmOperands& o,
                                                  const Encode& encode) {
  const kernel::BlackwellConfig& c = *plan.blackwell;
  kernel::BlackwellGemmParams p;
  fill_params(p, c, plan, o, encode);
  p.row_mask = atom::masks(plan.cluster, 0, c.pair).b;
  p.commit_row_mask = atom::row_set(plan.cluster, 0);
  p.commit_column_mask = atom::column_set(plan.cluster, 0);
  if (c.pair) p.commit_column_mask |= atom::column_set(plan.cluster, 1);
  p.instruction = atom::encode_instruction(kernel::mma_atom(c, plan.problem.a, plan.problem.b));
  p.cluster_size = tile::Divisor(atom::cluster_size(plan.cluster));
  return p;
}

}  // namespace warpwright::device
