#include "warpwright/device/scale_order.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "warpwright/device/scale_rows.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
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

// Does each of the scales in rows serve one row and one block, as in tiles?
bool one_by_one(const ScaleReordering& r) {
  return r.rows_each == 1 && r.blocks_each == 1;
}

// A reach, or a type, that some scales in rows have and tiles do not.
Fault spread_fault(const ScaleReordering& r) {
  constexpr std::int64_t rows = block_scales::kTileRows;
  constexpr int blocks = 4;
  for (const auto& [name, value, wide] :
       {std::tuple{"rows_each", std::int64_t{r.rows_each}, rows},
        std::tuple{"blocks_each", std::int64_t{r.blocks_each}, std::int64_t{blocks}}}) {
    if (value == 1 || value == wide) continue;
    return refuse(RefusalCode::bad_value, name, " is ", value, "; ",
                  as_rule("a scale serves 1 or 128 rows, and 1 or 4 blocks of K"),
                  ": the nearest is ", as_nearest(value < wide / 2 ? 1 : wide));
  }
  const bool is_spread = !one_by_one(r);
  if (is_spread && r.to == ScaleOrder::rows) {
    return refuse(RefusalCode::bad_value, "rows_each is ", r.rows_each, " and blocks_each ",
                  r.blocks_each, ", and scales go from tiles into rows; ",
                  as_rule("there each serves one row and one block: leave them out"));
  }
  if (r.rows_each > 1 && r.groups.count > 0) {
    return refuse(RefusalCode::bad_value, "rows_each is ", r.rows_each, ", and rows are in ",
                  r.groups.count, " groups, which begin anywhere: the nearest is ", as_nearest(1));
  }
  if (r.rows.dtype != DType::f32 && !(is_spread && r.rows.dtype == DType::ue4m3)) {
    return std::nullopt;
  }
  if (r.to == ScaleOrder::tiles && r.tiles.dtype == DType::ue8m0 && r.rows.dtype == DType::f32) {
    return std::nullopt;
  }
  return refuse(RefusalCode::bad_type, "scales in rows are ", type_name(r.rows.dtype),
                " and in tiles ", type_name(r.tiles.dtype), "; ",
                as_rule("those of blocks of 128, and float32, become ue8m0 in tiles"),
                ": the nearest is ", as_nearest("ue8m0"));
}

// The first value that is no power of two; only for float32 in rows.
Fault power_fault(const ScaleReordering& r) {
  const MatrixView& v = r.rows;
  if (v.dtype != DType::f32) return std::nullopt;
  for (std::int64_t batch = 0; batch < v.batch; ++batch) {
    for (std::int64_t i = 0; i < v.rows * v.columns; ++i) {
      const std::int64_t row = i / v.columns;
      const std::int64_t column = i % v.columns;
      const float* const at =
          static_cast<const float*>(v.data) + batch * v.batch_stride + row * v.row_stride + column;
      std::uint32_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      if (micro::power_code(bits) != 0xff) continue;
      return refuse(RefusalCode::bad_value, "the scale in row ", row, ", column ", column, " is ",
                    format("%.9g", static_cast<double>(*at)), "; ",
                    as_rule("as ue8m0 it is a power of two, 2^-127 to 2^127, and others are for "
                            "products with blockwise scaling"));
    }
  }
  return std::nullopt;
}

Fault rows_fault(const ScaleReordering& r) {
  const MatrixView& v = r.rows;
  if (!is_micro_scale(v.dtype) && v.dtype != DType::f32) {
    return refuse(RefusalCode::bad_type, "scales are ", type_name(v.dtype), "; ",
                  as_rule("those of blocks are ue8m0 or ue4m3, or powers of two as f32"),
                  ": the nearest is ", as_nearest("ue8m0"));
  }
  if (auto f = spread_fault(r)) return f;
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
  const DType type = r.rows.dtype == DType::f32 ? DType::ue8m0 : r.rows.dtype;
  const MatrixView want = scale_tiles_of(type, r.rows.rows * r.rows_each,
                                         r.rows.columns * r.blocks_each, r.groups, r.rows.batch);
  const std::string need =
      "those of " + number(r.rows.batch) + " x " + shape_of(r.rows) +
      (one_by_one(r) ? "" : ", each of " + number(r.rows_each) + " x " + number(r.blocks_each)) +
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
  if (auto f = power_fault(r)) return f;
  const std::int64_t columns = r.tiles.columns;
  const std::int64_t matrix = r.tiles.rows * columns;
  const std::int64_t count = r.rows.rows * r.rows_each;
  const std::vector<std::int64_t> places = scale_rows_on_host(r.groups, count);
  auto* const tiles = static_cast<std::uint8_t*>(r.tiles.data);
  auto* const rows = static_cast<std::uint8_t*>(r.rows.data);
  const int bytes = numeric::bits(r.rows.dtype) / 8;
  if (r.to == ScaleOrder::tiles && matrix * r.rows.batch > 0) {
    std::memset(tiles, static_cast<int>(micro::neutral_scale(r.tiles.dtype)),
                static_cast<std::size_t>(matrix * r.rows.batch));
  }
  share(r.rows.batch * count, 0, [&](int) {
    return [&](std::int64_t piece) {
      const std::int64_t batch = piece / count;
      const std::int64_t row = piece % count;
      const std::int64_t place = places[static_cast<std::size_t>(row)];
      if (place < 0 || place >= r.tiles.rows) return;
      std::uint8_t* const of_row =
          rows + (batch * r.rows.batch_stride + row / r.rows_each * r.rows.row_stride) * bytes;
      for (std::int64_t block = 0; block < r.rows.columns * r.blocks_each; ++block) {
        std::uint8_t& plain = of_row[block / r.blocks_each * bytes];
        std::uint8_t& tiled = tiles[batch * matrix + block_scales::place(place, block, columns)];
        if (bytes == 4) {
          std::uint32_t bits = 0;
          std::memcpy(&bits, &plain, sizeof bits);
          tiled = micro::power_code(bits);
        } else if (r.to == ScaleOrder::tiles) {
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
