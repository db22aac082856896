// Which kernels a quantisation without fault runs, and scales put in order: by `on`, a stream of a
// CUDA device (on_cuda.cuh) or the model, which does
//   on.fill(address, byte, bytes)
//   on.template run<Kernel>(ctas, params)
// one after the other. Internal to device/ and to tests.
#pragma once

#include <cstdint>

#include "warpwright/device/quantise.h"
#include "warpwright/kernel/quantise/e4m3_rows.h"
#include "warpwright/kernel/quantise/micro_blocks.h"
#include "warpwright/kernel/quantise/reorder_scales.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::device {

/// The offsets of groups as kernels read them, of so many rows.
inline tile::GroupOffsets offsets_of(const ScaleGroups& groups, std::int64_t rows) {
  return {groups.offsets, groups.type == OffsetType::int64, static_cast<int>(groups.count),
          groups.count > 0 ? static_cast<int>(rows) : 0};
}

/// Do rows of x and of the codes begin where vectors may?
inline bool is_whole(const Quantisation& q) {
  const auto begins = [&](const MatrixView& v, std::int64_t bytes) {
    const std::int64_t pitch = v.row_stride * numeric::bits(v.dtype) / 8;
    return reinterpret_cast<std::uintptr_t>(v.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
           (q.x.rows <= 1 || pitch % bytes == 0);
  };
  const int bits = numeric::bits(q.codes.dtype);
  return begins(q.x, kernel::QuantiseShape::each * element_bytes(q.x.dtype)) &&
         begins(q.codes, bits == 8   ? 8
                         : bits == 6 ? 2
                                     : 4);
}

template <DType type, bool whole, class On>
void quantise_e4m3(const Quantisation& q, const kernel::QuantisedRows& r, On& on) {
  using kernel::QuantiseShape;
  if (q.scaling == Scaling::row_column) {
    using Kernel = kernel::QuantiseRows<type, whole>;
    if (r.rows > 0) on.template run<Kernel>(Kernel::ctas(r), r);
  } else if (q.scaling == Scaling::blockwise) {
    on.template run<kernel::QuantiseBlocks<type, whole>>(QuantiseShape::ctas(r), r);
  } else {
    if (!q.given) {
      on.fill(r.scales, 0, sizeof(float));
      on.template run<kernel::FindLargest<type, whole>>(QuantiseShape::ctas(r), r);
      on.template run<kernel::MakeScale>(1, {r.scales});
    }
    on.template run<kernel::QuantiseTensor<type, whole>>(QuantiseShape::ctas(r), r);
  }
}

template <DType type, bool whole, class On>
void quantise_micro(const Quantisation& q, kernel::QuantisedRows r, On& on) {
  const bool padded = q.order == ScaleOrder::tiles && q.groups.count == 0;
  const kernel::QuantiseMicroParams p{.x = r,
                                      .scales = static_cast<std::uint8_t*>(q.scales.data),
                                      .tensor = static_cast<const float*>(q.tensor_scale.data),
                                      .pitch = q.scales.row_stride,
                                      .scale_rows = q.scales.rows,
                                      .columns = static_cast<int>(q.scales.columns),
                                      .used = padded ? static_cast<int>(q.scales.rows) : r.rows,
                                      .in_rows = q.order == ScaleOrder::rows,
                                      .recipe = q.its_recipe(),
                                      .groups = offsets_of(q.groups, q.x.rows),
                                      .whole = whole};
  if (q.tensor_scale.data != nullptr && !q.given) {
    r.scales = static_cast<float*>(q.tensor_scale.data);
    on.fill(r.scales, 0, sizeof(float));
    on.template run<kernel::FindLargest<type, whole>>(kernel::QuantiseShape::ctas(r), r);
    on.template run<kernel::MakeScale>(1, {r.scales, true, p.recipe});
  }
  if (q.groups.count > 0) {  // between the groups there is padding
    on.fill(p.scales, static_cast<int>(micro::neutral_scale(q.scales.dtype)),
            p.scale_rows * p.columns);
  }
  const auto by = [&]<DType element, DType scale>() {
    using Kernel = kernel::QuantiseMicro<type, element, scale>;
    on.template run<Kernel>(Kernel::ctas(p), p);
  };
  switch (q.codes.dtype) {
    case DType::e4m3:
      return by.template operator()<DType::e4m3, DType::ue8m0>();
    case DType::e5m2:
      return by.template operator()<DType::e5m2, DType::ue8m0>();
    case DType::e2m3:
      return by.template operator()<DType::e2m3, DType::ue8m0>();
    case DType::e3m2:
      return by.template operator()<DType::e3m2, DType::ue8m0>();
    default:
      return q.scales.dtype == DType::ue8m0 ? by.template operator()<DType::e2m1, DType::ue8m0>()
                                            : by.template operator()<DType::e2m1, DType::ue4m3>();
  }
}

template <class On>
void quantise_by(const Quantisation& q, On& on) {
  const bool micro = q.scaling == Scaling::block_scaled;
  const int k = static_cast<int>(q.x.columns);
  const kernel::QuantisedRows r{
      .x = static_cast<const unsigned char*>(q.x.data),
      .codes = static_cast<unsigned char*>(q.codes.data),
      .scales = micro ? nullptr : static_cast<float*>(q.scales.data),
      .x_pitch = q.x.row_stride * element_bytes(q.x.dtype),
      .codes_pitch = q.codes.row_stride * numeric::bits(q.codes.dtype) / 8,
      .scale_pitch = q.scales.row_stride,
      .scale_step = q.scales.column_stride,
      .rows = static_cast<int>(q.x.rows),
      .k = k,
      .block = static_cast<int>(q.block()),
      .across = kernel::QuantiseShape::ctas_across(k)};
  const auto by = [&]<DType type, bool whole>() {
    micro ? quantise_micro<type, whole>(q, r, on) : quantise_e4m3<type, whole>(q, r, on);
  };
  const auto of = [&]<DType type>() {
    is_whole(q) ? by.template operator()<type, true>() : by.template operator()<type, false>();
  };
  if (q.x.dtype == DType::f32) return of.template operator()<DType::f32>();
  q.x.dtype == DType::bf16 ? of.template operator()<DType::bf16>()
                           : of.template operator()<DType::f16>();
}

/// For what has no fault.
template <class On>
void reorder_by(const ScaleReordering& what, On& on) {
  const MatrixView& rows = what.rows;
  const kernel::ReorderScalesParams p{.rows = static_cast<unsigned char*>(rows.data),
                                      .tiles = static_cast<unsigned char*>(what.tiles.data),
                                      .pitch = rows.row_stride,
                                      .batch_pitch = rows.batch_stride,
                                      .count = rows.rows * what.rows_each,
                                      .blocks = rows.columns * what.blocks_each,
                                      .tile_rows = what.tiles.rows,
                                      .tile_columns = what.tiles.columns,
                                      .batch = rows.batch,
                                      .groups = offsets_of(what.groups, rows.rows),
                                      .to_tiles = what.to == ScaleOrder::tiles,
                                      .is_f32 = rows.dtype == DType::f32,
                                      .rows_each = what.rows_each,
                                      .blocks_each = what.blocks_each};
  const std::int64_t bytes = p.batch * p.tile_rows * p.tile_columns;
  if (bytes == 0) return;
  if (p.to_tiles) {
    on.fill(p.tiles, static_cast<int>(micro::neutral_scale(what.tiles.dtype)), bytes);
  }
  if (rows.rows > 0) on.template run<kernel::ReorderScales>(kernel::ReorderScales::ctas(p), p);
}

}  // namespace warpwright::device
