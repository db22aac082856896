// From a plan and addresses to the parameters that all kernels take. Internal to the families.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "warpwright/facts/block_scales.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/params.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {

/// Matrices of a batch that lie apart: one, where a batch_stride of 0 has all of it share one.
/// TMA has no stride of 0, so such a batch is mapped, and walked, as that one matrix.
inline std::int64_t matrices(const MatrixView& v) {
  return v.batch_stride == 0 ? 1 : v.batch;
}

/// The same matrix as bytes, where two of its elements are one.
inline MatrixView as_copied(MatrixView v) {
  if (numeric::bits(v.dtype) >= 8) return v;
  v.dtype = DType::u8;
  v.columns /= 2;
  v.row_stride /= 2;
  v.batch_stride /= 2;
  return v;
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

/// The request for an operand whose tiles are `tile`, in boxes of `box_outer` rows.
inline MapRequest operand_request(const char* name, const MatrixView& v,
                                  const atom::OperandTile& tile, int box_outer) {
  MapRequest r =
      map_request(name, tile.element_bits < 8 ? v : as_copied(v), tile.major == atom::Major::mn,
                  atom::span_elements(tile), box_outer, tile.swizzle);
  r.padded = tile.padded;
  return r;
}

/// The request for a matrix whose rows are gathered into tiles `tile`.
inline MapRequest rows_request(const char* name, const MatrixView& v,
                               const atom::OperandTile& tile) {
  MapRequest r = operand_request(name, v, tile, 1);
  r.by_rows = true;
  return r;
}

/// The same of weights that are gates and ups: rows of each in a dimension of their own, whichever
/// way they lie.
inline MapRequest split_gate(MapRequest r, bool rows_inside, const GatePlaces& gate) {
  const std::int64_t from_row_to_row = rows_inside ? 1 : r.outer_stride;
  (rows_inside ? r.inner : r.outer) /= 2;
  if (!rows_inside) r.outer_stride *= gate.step;
  r.parts = 2;
  r.part_stride = gate.apart * from_row_to_row;
  return r;
}

inline kernel::ActivationParams activation_params(const ActivationForm& form) {
  using Limits = std::numeric_limits<float>;
  // Without a limit there is no offset either: one that is infinite cuts nothing.
  const double limit = form.limit == 0 && form.offset != 0 ? Limits::infinity() : form.limit;
  return {.relu = form.cuts,
          .smooth = form.is_smooth,
          .squares = form.squares,
          .by_erf = form.by_erf,
          .slope = static_cast<float>(form.slope),
          // Where it is left out, so little that it changes no finite value.
          .cubic = std::max(static_cast<float>(form.cubic), Limits::min()),
          .limit = static_cast<float>(limit),
          .offset = static_cast<float>(form.offset)};
}

inline kernel::Vector vector_of(const MatrixView& v) {
  // One value for each row: neighbours are a row apart, wherever there are neighbours.
  return {v.data, v.batch > 1 ? v.batch_stride : 0, v.dtype, v.rows > 1 ? v.row_stride : 1};
}

inline kernel::ScaleMatrix scale_matrix(const MatrixView& v) {
  return {static_cast<const float*>(v.data), v.row_stride, v.column_stride,
          v.batch > 1 ? v.batch_stride : 0, static_cast<int>(v.rows)};
}

/// The scales of A or B that are multiplied to sums; those of elements are in maps.
inline void set_scales(kernel::ScaleParams& p, bool swap_ab, const GemmOperands& o, bool of_a) {
  const MatrixView& v = of_a ? o.scale_a : o.scale_b;
  const ScaleReach reach = scale_reach(o, of_a);
  if (reach.depth > 0) {
    // Packed weights bring theirs.
    if (of_a || !o.packed) (of_a ? p.tokens : p.weights) = scale_matrix(v);
  } else if (reach.rows > 0) {
    (of_a != swap_ab ? p.rows : p.columns) = vector_of(v);
  } else {
    (of_a ? p.tensor_a : p.tensor_b) = static_cast<const float*>(v.data);
    // One for each group, where there are several.
    (of_a ? p.tensor_a_stride : p.tensor_b_stride) =
        v.rows > 1 ? static_cast<int>(v.row_stride) : 0;
  }
}

/// Bias and scales, as the kernel's rows and columns have them.
inline void set_vectors(kernel::GemmParams& p, bool swap_ab, const GemmOperands& o) {
  kernel::Vector* const rows = swap_ab ? &p.output.column_bias : &p.output.row_bias;
  kernel::Vector* const columns = swap_ab ? &p.output.row_bias : &p.output.column_bias;
  if (o.epilogue.bias == Bias::rows) *rows = vector_of(o.bias);
  if (o.epilogue.bias == Bias::columns) *columns = vector_of(o.bias);
  p.output.result_scale = static_cast<const float*>(o.scale_d.data);
  p.output.d_scales = {o.d_scales.data, o.d_scales.row_stride, o.d_scales.column_stride,
                       o.d_scales.batch > 1 ? o.d_scales.batch_stride : 0};
  if (p.operands.k == 0 || o.scaling == Scaling::none) return;
  if (scales_elements(o.scaling)) {
    if (has_plain_tokens(o)) set_scales(p.scales, swap_ab, o, true);
    p.scales.tensor_a = static_cast<const float*>(o.factor_a.data);
    p.scales.tensor_b = static_cast<const float*>(o.factor_b.data);
    if (o.factor_b.rows > 1) p.scales.tensor_b_stride = static_cast<int>(o.factor_b.row_stride);
    return;
  }
  for (const bool of_a : {true, false}) set_scales(p.scales, swap_ab, o, of_a);
}

/// Which vectors there are.
inline kernel::VectorUse vector_use(const kernel::GemmParams& p) {
  const kernel::Vector& scales = p.scales.columns;
  const bool biases_of_rows = p.output.row_bias.data != nullptr;
  const bool others = p.output.column_bias.data != nullptr || p.scales.rows.data != nullptr;
  if (others || (biases_of_rows && scales.data == nullptr)) return kernel::VectorUse::all;
  if (scales.data == nullptr) return kernel::VectorUse::none;
  const bool by_index = p.scales.index.is_there();
  return scales.dtype == DType::f32 && !by_index ? kernel::VectorUse::column_scales
                                                 : kernel::VectorUse::all;
}

/// Where packed weights lie, and what their tiles are made of.
inline kernel::PackedParams packed_params(const GemmOperands& o) {
  const PackedFormat& f = o.packed->format;
  const packed::Extents extents{o.b.batch, o.b.rows, o.b.columns};
  return {.data = static_cast<const std::byte*>(o.b.data),
          .tile_bytes = packed::tile_bytes(f),
          .row_tiles = static_cast<int>(packed::row_tiles(extents)),
          .k_tiles = static_cast<int>(packed::k_tiles(extents)),
          // Where exponents are of rows all of a tile is one group.
          .group = f.exponents == Exponents::of_rows ? packed::kTileK : f.group,
          .slice_bytes = packed::slice_bytes(f),
          .carries = packed::carries_of(f.encoding),
          .scale = f.scale,
          .zero_points = packed::zero_points_begin(f)};
}

/// The maps of scales that the tensor core multiplies: rows of atoms of 128 rows x 4 as rows of
/// float32 words, of which a copy brings `box` (at most 256).
inline void set_scale_maps(kernel::ScaleMaps& p, const GemmOperands& o, int box, bool swap_ab,
                           Encode encode) {
  const auto request = [&](const char* name, const MatrixView& v) {
    constexpr int tile_rows = block_scales::kTileRows;
    MatrixView words = matrix(v.data, DType::f32, v.rows / tile_rows, v.columns * tile_rows / 4);
    words.batch = v.batch;
    words.batch_stride = v.batch_stride / 4;
    return map_request(name, words, false, box, 1, atom::SmemSwizzle::none);
  };
  if (o.reads_ab() && o.a.columns > 0) {
    if (!has_plain_tokens(o)) {
      (swap_ab ? p.sfb : p.sfa) = encode(request("the scales of A", o.scale_a));
    }
    (swap_ab ? p.sfa : p.sfb) = encode(request("the scales of B", o.scale_b));
  }
  (swap_ab ? p.sfb_batch : p.sfa_batch) = matrices(o.scale_a) > 1 ? 1 : 0;
  (swap_ab ? p.sfa_batch : p.sfb_batch) = matrices(o.scale_b) > 1 ? 1 : 0;
}

/// Fills what all kernels take, but for tensor maps.
template <class Config>
void fill_numbers(kernel::GemmParams& p, const Config& c, const Plan& plan, const GemmOperands& o) {
  const kernel::EpilogueShape shape = c;
  p.output.d_rows = static_cast<int>(plan.problem.m());
  p.output.d_columns = static_cast<int>(result_columns(plan.problem));
  const GatePlaces gate = gate_places(o);
  p.operands.gate = p.output.gate = {static_cast<int>(gate.step), static_cast<int>(gate.apart)};
  if (o.is_by_index()) {
    p.scales.index = tile::TokenIndex(o.groups->rows, o.groups->rows_divisor,
                                      static_cast<int>(plan.problem.a.rows));
    const int bytes = element_bytes(o.a.dtype);
    p.operands.tokens = {static_cast<const std::byte*>(o.a.data), o.a.row_stride * bytes / 16,
                         plan.problem.k() * bytes};
  }
  // alpha 0 reads neither A nor B (BLAS); the kernel then runs without a k_tile.
  p.operands.k = o.reads_ab() ? static_cast<int>(plan.problem.k()) : 0;
  p.walk.k_tiles = (p.operands.k + tile_k(c) - 1) / tile_k(c);
  p.output.has_sums = p.operands.k > 0;
  p.output.alpha = o.sum_factor();
  p.output.beta = beta_of(o);
  p.walk.cluster = plan.cluster;
  p.walk.cluster_k = plan.cluster_k;
  p.operands.column_mask = atom::column_set(plan.cluster, 0);
  p.operands.row_mask = atom::row_set(plan.cluster, 0);
  p.walk.cluster_m = tile::Divisor(plan.cluster.m);
  p.operands.a_slice_rows = c.tile_m / (kernel::gated_rows(shape) ? 2 : 1) / plan.cluster.n;
  p.operands.b_slice_rows = c.tile_n / (kernel::gated_columns(shape) ? 2 : 1) / plan.cluster.m;
  p.walk.raster = tile::PreparedRaster(plan.raster);
  p.output.reads_c = p.output.beta != 0.0F;
  p.output.d_aligned = plan.d_path == EpiloguePath::tma;
  // In place, where CTAs store columns of a tile each, a copy would read what others write.
  const bool shared_in_place = plan.cluster_k > 1 && o.c.data == o.d.data;
  p.output.c_by_tma = p.output.reads_c && plan.c_path == EpiloguePath::tma && !shared_in_place;
  p.output.d_data = o.d.data;
  p.output.d_pitch = o.d.row_stride;
  p.operands.a_batch = (o.packed ? o.b.batch : matrices(shape.swap_ab ? o.b : o.a)) > 1 ? 1 : 0;
  p.operands.b_batch = matrices(shape.swap_ab ? o.a : o.b) > 1 ? 1 : 0;
  p.output.c_map_batch = matrices(o.c) > 1 ? 1 : 0;
  p.output.d_batch = o.d.batch > 1 ? o.d.batch_stride : 0;
  p.output.activation = activation_params(form_of(o.epilogue));
  set_vectors(p, shape.swap_ab, o);
  p.output.is_linear =
      p.output.has_sums && !p.output.reads_c && o.epilogue.activation == Activation::none;
  p.output.vectors = vector_use(p);
  p.output.is_plain =
      p.output.is_linear && p.output.d_aligned && p.output.vectors == kernel::VectorUse::none;
  if (!p.output.reads_c) return;
  p.output.c_data = o.c.data;
  p.output.c_pitch = o.c.row_stride;
  p.output.c_batch = o.c.batch > 1 ? o.c.batch_stride : 0;
  // A box may reach into the rows of the next group, which may be written where C is D.
  if (o.groups && o.c.data == o.d.data) p.output.c_by_tma = false;
}

/// A kernel's tile of A, or of B, as copies bring it: elements of 4 and 6 bits may be padded.
inline atom::OperandTile loaded_tile(const GemmOperands& o, bool of_a, atom::OperandTile tile) {
  if (!is_padded(o, of_a)) return tile;
  tile.element_bits = numeric::bits((of_a ? o.a : o.b).dtype);
  tile.padded = true;
  return tile;
}

/// Fills what all kernels take that copy by tensor maps, and encodes those that the launch uses.
template <class Config>
void fill_params(kernel::GemmParams& p, const Config& c, const Plan& plan, const GemmOperands& o,
                 Encode encode) {
  fill_numbers(p, c, plan, o);
  const kernel::EpilogueShape shape = c;
  if (p.operands.k > 0) {
    const auto operand = [&](bool of_b, const atom::OperandTile& stored, int rows) {
      const atom::OperandTile tile = loaded_tile(o, !of_b, stored);
      const bool mn = tile.major == atom::Major::mn;
      const MapRequest whole =
          operand_request(of_b ? "B" : "A", of_b ? o.b : o.a, tile, mn ? tile_k(c) : rows);
      if (!of_b || !shape.gated) return encode(whole);
      MapRequest split = split_gate(whole, mn, gate_places(o));
      if (kernel::gated_atoms(shape)) {  // as many rows as lanes have, of both halves
        split.box_outer = kernel::warp_rows;
        split.box_parts = 2;
      }
      return encode(split);
    };
    // Tokens by index have no map.
    const bool maps_a = !o.is_by_index() || shape.swap_ab;
    const bool maps_b = !o.is_by_index() || !shape.swap_ab;
    if (o.packed) {
      p.operands.packed = packed_params(o);
      // As much as a ring holds; where groups have a tile of tokens each, a CTA's first tile is
      // known without their offsets.
      const bool known =
          !plan.problem.groups || expected_tokens(plan.problem) <= static_cast<double>(c.tile_n);
      if (known) p.operands.packed.ahead = std::min(c.stages, p.operands.packed.k_tiles);
    } else if (maps_a) {
      p.operands.a = operand(shape.swap_ab, tile_a(c), p.operands.a_slice_rows);
    }
    if (maps_b) p.operands.b = operand(!shape.swap_ab, tile_b(c), p.operands.b_slice_rows);
  }
  const auto result = [&](const char* name, const MatrixView& v) {
    return encode(map_request(name, v, false, kernel::subtile_inner(shape),
                              kernel::subtile_outer(shape), kernel::subtile_swizzle(shape)));
  };
  if (p.output.d_aligned && shape.store == kernel::Store::tensor) p.output.d = result("D", o.d);
  if (p.output.c_by_tma) p.output.c = result("C", o.c);
}

/// Encodes the maps of the narrower of a kernel's tile widths, for the tokens, A.
template <class Params, class Config>
void narrower_maps(Params& p, const Config& c, const tile::TileWidths& widths,
                   const GemmOperands& o, Encode encode) {
  if (p.operands.k == 0) return;
  const atom::OperandTile tile = loaded_tile(o, true, tile_b(c));
  for (int i = 0; i + 1 < tile::count(widths); ++i) {
    p.narrower[i] = encode(operand_request("A", o.a, tile, widths.of[i] / p.walk.cluster.m));
  }
}

}  // namespace warpwright
