// From a plan and addresses to the parameters of the kernel: the same for both devices, but for how
// a tensor map is encoded. Internal to device/.
#pragma once

#include <cstdint>
#include <utility>

#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/kernel/hopper/shared_sums.h"
#include "warpwright/kernel/params.h"
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
void set_scale_map(kernel::ScaleParams& p, const kernel::GemmConfig& c, const MatrixView& v,
                   const Encode& encode) {
  p.copies_tokens = kernel::copies_scales(c) && copyable_scales(v);
  if (!p.copies_tokens) return;
  MapRequest r =
      map_request("the scales of A", v, true, kernel::copied_scales(c), 1, atom::SmemSwizzle::none);
  if (v.columns <= 1) r.outer_stride = (v.rows + 3) / 4 * 4;  // never used, but must be a legal one
  if (r.batch == 1) r.batch_stride = r.outer_stride;
  p.token_map = encode(r);
}

inline kernel::ScaleMatrix scale_matrix(const MatrixView& v) {
  return {static_cast<const float*>(v.data), v.row_stride, v.column_stride,
          v.batch > 1 ? v.batch_stride : 0, static_cast<int>(v.rows)};
}

/// Bias and scales, as the kernel's rows and columns have them.
inline void set_vectors(kernel::GemmParams& p, bool swapped, const GemmOperands& o) {
  kernel::Vector* const rows = swapped ? &p.output.column_bias : &p.output.row_bias;
  kernel::Vector* const columns = swapped ? &p.output.row_bias : &p.output.column_bias;
  if (o.epilogue.bias == Bias::rows) *rows = vector_of(o.bias);
  if (o.epilogue.bias == Bias::columns) *columns = vector_of(o.bias);
  switch (o.scaling) {
    case Scaling::none:
      break;
    case Scaling::tensor:
      p.scales.tensor_a = static_cast<const float*>(o.scale_a.data);
      p.scales.tensor_b = static_cast<const float*>(o.scale_b.data);
      break;
    case Scaling::row_column:
      (swapped ? p.scales.columns : p.scales.rows) = vector_of(o.scale_a);
      (swapped ? p.scales.rows : p.scales.columns) = vector_of(o.scale_b);
      break;
    case Scaling::block:
      p.scales.tokens = scale_matrix(o.scale_a);
      p.scales.weights = scale_matrix(o.scale_b);
      break;
  }
  p.output.result_scale = static_cast<const float*>(o.scale_d.data);
}

/// Fills what all kernels take. Asks `encode(MapRequest) -> isa::TensorMap` for the maps that the
/// launch uses.
template <class Config, class Encode>
void fill_params(kernel::GemmParams& p, const Config& c, const Plan& plan, const GemmOperands& o,
                 const Encode& encode) {
  const kernel::EpilogueShape shape = c;
  p.output.d_rows = static_cast<int>(plan.problem.m);
  p.output.d_columns = static_cast<int>(result_columns(plan.problem));
  p.operands.half = static_cast<int>(plan.problem.n / 2);
  // alpha 0 reads neither A nor B (BLAS); the kernel then runs without a K block.
  p.operands.k = o.alpha == 0.0F ? 0 : static_cast<int>(plan.problem.k);
  p.walk.k_blocks = (p.operands.k + kernel::tile_k(c) - 1) / kernel::tile_k(c);
  p.output.has_sums = p.operands.k > 0;
  p.output.alpha = o.alpha;
  p.output.beta = o.beta;
  p.walk.cluster = plan.cluster;
  p.walk.cluster_k = plan.cluster_k;
  p.operands.column_mask = atom::column_set(plan.cluster, 0);
  p.operands.row_mask = atom::row_set(plan.cluster, 0);
  p.walk.cluster_m = tile::Divisor(plan.cluster.m);
  p.operands.a_slice_rows = c.tile_m / (kernel::gated_rows(shape) ? 2 : 1) / plan.cluster.n;
  p.operands.b_slice_rows = c.tile_n / (kernel::gated_columns(shape) ? 2 : 1) / plan.cluster.m;
  p.walk.raster = tile::PreparedRaster(plan.raster);
  p.output.reads_c = o.beta != 0.0F;
  p.output.d_aligned = plan.d_path == EpiloguePath::copy_engine;
  p.output.c_by_tma = p.output.reads_c && plan.c_path == EpiloguePath::copy_engine;
  p.output.d_data = o.d.data;
  p.output.d_pitch = o.d.row_stride;
  p.operands.a_batch = matrices(shape.swapped ? o.b : o.a) > 1 ? 1 : 0;
  p.operands.b_batch = matrices(shape.swapped ? o.a : o.b) > 1 ? 1 : 0;
  p.output.c_map_batch = matrices(o.c) > 1 ? 1 : 0;
  p.output.d_batch = o.d.batch > 1 ? o.d.batch_stride : 0;
  p.output.activation = activation_params(o.epilogue.activation);
  set_vectors(p, shape.swapped, o);
  p.output.is_plain = p.output.has_sums && !p.output.reads_c &&
                      o.epilogue.activation == Activation::none &&
                      p.output.row_bias.data == nullptr && p.output.column_bias.data == nullptr &&
                      p.scales.rows.data == nullptr && p.scales.columns.data == nullptr;
  if (p.operands.k > 0) {
    const auto operand = [&](const char* name, const MatrixView& v, atom::Major major, int rows) {
      const bool mn = major == atom::Major::mn;
      return encode(map_request(name, v, mn,
                                mn ? 1024 / kernel::operand_bits(c) : kernel::tile_k(c),
                                mn ? kernel::tile_k(c) : rows, atom::SmemSwizzle::b128));
    };
    p.operands.a = operand(shape.swapped ? "B" : "A", shape.swapped ? o.b : o.a,
                           kernel::tile_a(c).major, p.operands.a_slice_rows);
    p.operands.b = operand(shape.swapped ? "A" : "B", shape.swapped ? o.a : o.b,
                           kernel::tile_b(c).major, p.operands.b_slice_rows);
  }
  const auto result = [&](const char* name, const MatrixView& v) {
    return encode(map_request(name, v, false, kernel::chunk_inner(shape),
                              kernel::chunk_outer(shape), kernel::chunk_swizzle(shape)));
  };
  if (p.output.d_aligned && shape.store == kernel::Store::tensor) p.output.d = result("D", o.d);
  if (p.output.reads_c) {
    p.output.c_data = o.c.data;
    p.output.c_pitch = o.c.row_stride;
    p.output.c_batch = o.c.batch > 1 ? o.c.batch_stride : 0;
    if (p.output.c_by_tma) p.output.c = result("C", o.c);
  }
}

/// Parameters of a Hopper kernel. `workspace` is that of the plan.
template <class Encode>
kernel::HopperGemmParams make_params(const Plan& plan, const GemmOperands& o, void* workspace,
                                     const Encode& encode) {
  const kernel::GemmConfig& c = plan.config;
  kernel::HopperGemmParams p;
  fill_params(p, c, plan, o, encode);
  if (p.operands.k > 0 && o.scaling == Scaling::block)
    set_scale_map(p.scales, c, o.scale_a, encode);
  if (c.sharing == kernel::Sharing::workspace && p.operands.k > 0) {
    p.walk.split = tile::SplitPlan(p.walk.raster.count, p.walk.k_blocks,
                                   plan.ctas / atom::cluster_size(plan.cluster));
    p.walk.flags = static_cast<std::uint32_t*>(workspace);
    p.walk.partials = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) +
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
  p.operands.row_mask = atom::masks(plan.cluster, 0, c.pair).b;
  p.commit_row_mask = atom::row_set(plan.cluster, 0);
  p.commit_column_mask = atom::column_set(plan.cluster, 0);
  if (c.pair) p.commit_column_mask |= atom::column_set(plan.cluster, 1);
  p.instruction = atom::encode_instruction(kernel::mma_atom(c, plan.problem.a, plan.problem.b));
  p.cluster_size = tile::Divisor(atom::cluster_size(plan.cluster));
  return p;
}

}  // namespace warpwright::device
