#include "warpwright/device/scale_order.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "warpwright/device/scale_rows.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/facts/share.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

std::int64_t offset_at(const ScaleGroups& groups, std::int64_t i) {
  if (groups.type == OffsetType::int32) return static_cast<const std::int32_t*>(groups.offsets)[i];
  return static_cast<const std::int64_t*>(groups.offsets)[i];
}

Fault rows_fault(const ScaleReordering& r) {
  const MatrixView& v = r.rows;
  if (!is_micro_scale(v.dtype)) {
    return refuse(RefusalCode::bad_type, "scales are ", type_name(v.dtype), "; ",
                  as_rule("those of blocks are ue8m0 or ue4m3"), ": the nearest is ",
                  as_nearest("ue8m0"));
  }
  if (v.rows < 0 || v.columns < 0 || v.batch < 0 || v.rows > max_extent || v.columns > max_extent) {
    return refuse(RefusalCode::bad_shape, "scales in rows are ", v.batch, " matrices of ",
                  shape_of(v), "; ", as_rule("extents are 0 to ", max_extent));
  }
  if (r.groups.count > 0 && v.batch != 1) {
    return refuse(RefusalCode::bad_shape, "scales in rows are a batch of ", v.batch, "; ",
                  as_rule("groups are of one matrix"), ": the nearest legal is ", as_nearest("1"));
  }
  if (v.rows == 0 || v.columns == 0 || v.batch == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, "scales in rows are a null pointer; ",
                  as_rule(shape_of(v), " of them need memory"));
  }
  if (v.columns > 1 && v.column_stride != 1) {
    return refuse(RefusalCode::bad_stride, "scales in rows have a column stride of ",
                  v.column_stride, "; the nearest legal is ", as_nearest("1"));
  }
  if (v.rows > 1 && v.row_stride < v.columns) {
    return refuse(RefusalCode::bad_stride, "scales in rows have a row stride of ", v.row_stride,
                  ", less than their ", v.columns, " columns; the nearest legal is ",
                  as_nearest(v.columns));
  }
  const std::int64_t matrix = reach({{v.rows, v.row_stride}, {v.columns, v.column_stride}});
  if (v.batch > 1 && v.batch_stride < matrix) {
    return refuse(RefusalCode::bad_stride, "scales in rows have a batch stride of ", v.batch_stride,
                  ", and a matrix reaches over ", matrix, "; the nearest legal is ",
                  as_nearest(matrix));
  }
  return std::nullopt;
}

}  // namespace

MatrixView scale_tiles_of(DType scale, std::int64_t rows, std::int64_t blocks,
                          const ScaleGroups& groups, std::int64_t batch) {
  const std::int64_t all = groups.count > 0 ? block_scales::grouped_rows(rows, groups.count)
                                            : block_scales::padded_rows(rows);
  MatrixView v = matrix(nullptr, scale, all, block_scales::padded_columns(blocks, 1));
  v.batch = batch;
  v.batch_stride = v.rows * v.columns;
  return v;
}

Fault tiles_fault(const MatrixView& v, const MatrixView& want, const std::string& need) {
  if (v.dtype != want.dtype) {
    return refuse(RefusalCode::bad_type, "scales in tiles are ", type_name(v.dtype), "; ",
                  as_rule(need, " are ", type_name(want.dtype)));
  }
  if (v.rows != want.rows || v.columns != want.columns || v.batch != want.batch) {
    return refuse(RefusalCode::bad_shape, "scales in tiles are ", v.batch, " x ", shape_of(v), "; ",
                  as_rule(need, " are ", want.batch, " x ", shape_of(want)));
  }
  if (v.rows == 0 || v.columns == 0 || v.batch == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, "scales in tiles are a null pointer; ",
                  as_rule(need, " are ", shape_of(want), ", which need memory"));
  }
  if (alignment_of(v.data) < 16) {
    return refuse(RefusalCode::bad_pointer,
                  "scales in tiles have an address that is a multiple of ", alignment_of(v.data),
                  "; ", as_rule("it must be one of 16"));
  }
  const bool packed = v.column_stride == 1 && v.row_stride == v.columns &&
                      (v.batch == 1 || v.batch_stride == v.rows * v.columns);
  if (packed) return std::nullopt;
  return refuse(RefusalCode::bad_stride, "scales in tiles have strides of ", v.batch_stride, ", ",
                v.row_stride, " and ", v.column_stride, "; ",
                as_rule("tiles follow each other without a gap"), ": the nearest legal are ",
                as_nearest(v.rows * v.columns, ", ", v.columns, " and 1"));
}

Fault groups_fault(const ScaleGroups& groups) {
  if (groups.count < 0 || groups.count > max_extent) {
    return refuse(RefusalCode::bad_shape, "there are ", groups.count, " groups; ",
                  as_rule("there are 0 to ", max_extent));
  }
  if (groups.count == 0) return std::nullopt;
  const int width = groups.type == OffsetType::int32 ? 4 : 8;
  if (groups.offsets != nullptr && alignment_of(groups.offsets) >= width) return std::nullopt;
  return refuse(
      RefusalCode::bad_pointer, "the offsets of groups are ",
      groups.offsets == nullptr ? "a null pointer" : "not at a multiple of their size", "; ",
      as_rule(groups.count, " groups have ", groups.count + 1, " of ", width, " bytes each"));
}

Fault fault(const ScaleReordering& r) {
  if (auto f = rows_fault(r)) return f;
  if (auto f = groups_fault(r.groups)) return f;
  const MatrixView want =
      scale_tiles_of(r.rows.dtype, r.rows.rows, r.rows.columns, r.groups, r.rows.batch);
  const std::string need = "those of " + number(r.rows.batch) + " x " + shape_of(r.rows) +
                           (r.groups.count > 0 ? " in " + number(r.groups.count) + " groups" : "");
  if (auto f = tiles_fault(r.tiles, want, need)) return f;
  if (overlap(r.rows, r.tiles)) {
    return refuse(RefusalCode::overlap, "scales in rows overlap those in tiles; ",
                  as_rule("they must lie apart"));
  }
  return std::nullopt;
}

std::vector<std::int64_t> scale_rows_on_host(const ScaleGroups& groups, std::int64_t rows) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(rows), groups.count > 0 ? -1 : 0);
  if (groups.count == 0) {
    for (std::int64_t i = 0; i < rows; ++i) places[static_cast<std::size_t>(i)] = i;
    return places;
  }
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const std::int64_t begin = std::clamp<std::int64_t>(offset_at(groups, g), 0, rows);
    const std::int64_t end = std::clamp<std::int64_t>(offset_at(groups, g + 1), begin, rows);
    for (std::int64_t i = begin; i < end; ++i) {
      places[static_cast<std::size_t>(i)] = first + i - begin;
    }
    first += block_scales::padded_rows(end - begin);
  }
  return places;
}

Fault reorder_scales_on_host(const ScaleReordering& r) {
  if (auto f = fault(r)) return f;
  const std::int64_t columns = r.tiles.columns;
  const std::int64_t matrix = r.tiles.rows * columns;
  const std::vector<std::int64_t> places = scale_rows_on_host(r.groups, r.rows.rows);
  auto* const tiles = static_cast<std::uint8_t*>(r.tiles.data);
  auto* const rows = static_cast<std::uint8_t*>(r.rows.data);
  if (r.to == ScaleOrder::tiles && matrix * r.rows.batch > 0) {
    std::memset(tiles, static_cast<int>(micro::neutral_scale(r.rows.dtype)),
                static_cast<std::size_t>(matrix * r.rows.batch));
  }
  share(r.rows.batch * r.rows.rows, 0, [&](int) {
    return [&](std::int64_t piece) {
      const std::int64_t batch = piece / r.rows.rows;
      const std::int64_t row = piece % r.rows.rows;
      const std::int64_t place = places[static_cast<std::size_t>(row)];
      if (place < 0 || place >= r.tiles.rows) return;
      for (std::int64_t block = 0; block < r.rows.columns; ++block) {
        std::uint8_t& plain = rows[batch * r.rows.batch_stride + row * r.rows.row_stride + block];
        std::uint8_t& tiled = tiles[batch * matrix + block_scales::place(place, block, columns)];
        if (r.to == ScaleOrder::tiles) {
          tiled = plain;
        } else {
          plain = tiled;
        }
      }
    };
  });
  return std::nullopt;
}

}  // namespace warpwright
