#include "warpwright/device/quantise.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "warpwright/device/quantise_parts.h"
#include "warpwright/facts/share.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

// A matrix with its name in refusals.
struct NamedView {
  const MatrixView* view;
  const char* name;
};

// Rows of elements next to each other, which do not overlap.
Fault rows_fault(const NamedView& tensor) {
  const MatrixView& v = *tensor.view;
  if (v.batch != 1) {
    return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " is a batch of ", v.batch, "; ",
                  as_rule("rows are quantised of one matrix"), ": the nearest legal is ",
                  as_nearest("1"));
  }
  if (v.rows < 0 || v.columns < 0) {
    return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " has a negative extent (",
                  shape_of(v), "); ", as_rule("extents are 0 or more"));
  }
  if (v.rows > max_extent || v.columns > max_extent) {
    return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " is ", shape_of(v), "; ",
                  as_rule("the largest legal extent is ", max_extent));
  }
  if (v.rows == 0 || v.columns == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, as_tensor(tensor.name), " is a null pointer; ",
                  as_rule("a tensor of ", shape_of(v), " elements needs memory"));
  }
  if (alignment_of(v.data) % element_bytes(v.dtype) != 0) {
    return refuse(RefusalCode::bad_pointer, as_tensor(tensor.name),
                  "'s address is not a multiple of its element size, ", element_bytes(v.dtype),
                  " bytes");
  }
  if (v.columns > 1 && v.column_stride != 1) {
    return refuse(RefusalCode::bad_stride, as_tensor(tensor.name), " has a column stride of ",
                  v.column_stride, "; ", as_rule("its rows are contiguous"),
                  ": the nearest legal is ", as_nearest("1"));
  }
  if (v.rows > 1 && v.row_stride < v.columns) {
    return refuse(RefusalCode::bad_stride, as_tensor(tensor.name), " has a row stride of ",
                  v.row_stride, ", less than its ", v.columns, " columns; the nearest legal is ",
                  as_nearest(v.columns));
  }
  const std::int64_t step = whole_elements(1, v.dtype);
  if (v.columns % step != 0) {
    return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " have ", v.columns,
                  " columns of ", type_name(v.dtype), "; ", as_rule("rows are whole bytes"),
                  ": the nearest legal is ", as_nearest((v.columns + step - 1) / step * step));
  }
  if (v.rows > 1 && v.row_stride % step != 0) {
    return refuse(RefusalCode::bad_stride, as_tensor(tensor.name), " have a row stride of ",
                  v.row_stride, " elements of ", type_name(v.dtype), "; ",
                  as_rule("rows are whole bytes"), ": the nearest legal is ",
                  as_nearest((v.row_stride + step - 1) / step * step));
  }
  return std::nullopt;
}

MatrixView scales_of(const Quantisation& q) {
  const std::int64_t blocks = ScaleReach::count(q.x.columns, q.block());
  return matrix(nullptr, DType::f32, q.scaling == Scaling::tensor ? 1 : q.x.rows,
                q.scaling == Scaling::blockwise ? blocks : 1);
}

Fault scales_fault(const Quantisation& q) {
  const MatrixView& v = q.scales;
  const MatrixView want = scales_of(q);
  const std::string need = std::string(name(q.scaling)) + " scales of x (" + shape_of(q.x) +
                           ") are " + shape_of(want) + " of f32";
  if (v.dtype != DType::f32) {
    return refuse(RefusalCode::bad_type, "scales are ", type_name(v.dtype), "; ", as_rule(need));
  }
  if (v.rows != want.rows || v.columns != want.columns || v.batch != 1) {
    return refuse(RefusalCode::bad_shape, "scales are ", shape_of(v), "; ", as_rule(need));
  }
  if (v.rows == 0 || v.columns == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, "scales are a null pointer; ", as_rule(need));
  }
  if (alignment_of(v.data) % 4 != 0) {
    return refuse(RefusalCode::bad_pointer,
                  "the address of scales is not a multiple of their element size, 4 bytes");
  }
  for (const auto& [extent, stride, what] :
       {std::tuple{v.rows, v.row_stride, "row"}, {v.columns, v.column_stride, "column"}}) {
    if (extent > 1 && stride < 1) {
      return refuse(RefusalCode::bad_stride, "scales have a ", what, " stride of ", stride,
                    "; the nearest legal is ", as_nearest("1"));
    }
  }
  const bool both = v.rows > 1 && v.columns > 1;
  const bool by_rows = v.row_stride >= reach({{v.columns, v.column_stride}});
  const bool by_columns = v.column_stride >= reach({{v.rows, v.row_stride}});
  if (!both || by_rows || by_columns) return std::nullopt;
  return refuse(RefusalCode::overlap, "scales overlap each other: ",
                as_rule("their strides are ", v.row_stride, " and ", v.column_stride),
                "; the nearest legal are ", as_nearest(v.columns, " and 1"));
}

void narrow_row(const MatrixView& codes, std::int64_t row, std::int64_t first, float scale,
                std::vector<float>& values) {
  auto* const to = static_cast<std::uint8_t*>(codes.data) + row * codes.row_stride + first;
  for (float& v : values) v = unless_infinite(v / scale, v);
  numeric::narrow(values.data(), to, values.size(), DType::e4m3, numeric::Overflow::saturate);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) to[i] = 0x7f;
  }
}

}  // namespace

void widen_row(const MatrixView& x, std::int64_t row, std::int64_t first, std::vector<float>& out) {
  const std::int64_t at = (row * x.row_stride + first) * element_bytes(x.dtype);
  numeric::widen_from(static_cast<const std::byte*>(x.data) + at, out.data(), out.size(), x.dtype);
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, finite_magnitude(v));
  return largest;
}

float largest_of(const MatrixView& x) {
  std::vector<float> largest(static_cast<std::size_t>(x.rows), 0.0F);
  share(x.rows, 0, [&](int) {
    return [&, values = std::vector<float>(static_cast<std::size_t>(x.columns))](
               std::int64_t row) mutable {
      widen_row(x, row, 0, values);
      largest[static_cast<std::size_t>(row)] = largest_of(values);
    };
  });
  return largest_of(largest);
}

std::optional<Refusal> fault(const Quantisation& q) {
  const bool micro = q.scaling == Scaling::block_scaled;
  if (q.scaling != Scaling::tensor && q.scaling != Scaling::row_column &&
      q.scaling != Scaling::blockwise && !micro) {
    return refuse(RefusalCode::bad_value, "scaling is ", name(q.scaling), "; ",
                  as_rule("what is quantised has scales of the tensor, its rows or its blocks"),
                  ": the nearest is ", as_nearest("row-column"));
  }
  if (q.given && q.scaling != Scaling::tensor && !micro) {
    return refuse(RefusalCode::bad_value, "a scale is given and scaling is ", name(q.scaling), "; ",
                  as_rule("only that of a tensor can be: leave it out"));
  }
  if (q.x.dtype != DType::f32 && !is_16bit_float(q.x.dtype)) {
    return refuse(RefusalCode::bad_type, "x is ", type_name(q.x.dtype), "; ",
                  as_rule("f32, bf16 and fp16 are quantised"), ": the nearest is ",
                  as_nearest("bf16"));
  }
  if (!micro && q.codes.dtype != DType::e4m3) {
    return refuse(RefusalCode::bad_type, "the codes are ", type_name(q.codes.dtype),
                  "; the nearest legal type is ", as_nearest("e4m3"));
  }
  for (const NamedView& each : {NamedView{&q.x, "x"}, {&q.codes, "the codes"}}) {
    if (auto r = rows_fault(each)) return r;
  }
  if (q.codes.rows != q.x.rows || q.codes.columns != q.x.columns) {
    return refuse(RefusalCode::bad_shape, "the codes are ", shape_of(q.codes), " and x is ",
                  shape_of(q.x), "; ", as_rule("they must be of one shape"));
  }
  if (auto r = micro ? micro_fault(q) : plain_fault(q)) return r;
  if (auto r = micro ? std::nullopt : scales_fault(q)) return r;
  if (overlap(q.codes, q.x)) {
    return refuse(RefusalCode::overlap, "the codes overlap x; ", as_rule("they must lie apart"));
  }
  if (overlap(q.scales, q.x) || overlap(q.scales, q.codes)) {
    return refuse(RefusalCode::overlap, "the scales overlap x or the codes; ",
                  as_rule("they must lie apart"));
  }
  return std::nullopt;
}

std::optional<Refusal> quantise_on_host(const Quantisation& q) {
  if (auto r = fault(q)) return r;
  if (q.scaling == Scaling::block_scaled) {
    quantise_micro_on_host(q);
    return std::nullopt;
  }
  auto* const scales = static_cast<float*>(q.scales.data);
  const std::int64_t k = q.x.columns;
  const std::int64_t block = q.block();
  const auto width = static_cast<std::size_t>(k);
  if (q.scaling == Scaling::tensor && !q.given) *scales = e4m3_scale(largest_of(q.x));
  share(q.x.rows, 0, [&](int) {
    return [&, values = std::vector<float>(width)](std::int64_t row) mutable {
      if (q.scaling != Scaling::blockwise) {
        values.resize(width);
        widen_row(q.x, row, 0, values);
        float scale = 0;
        if (q.scaling == Scaling::tensor) {
          scale = *scales;
        } else {
          scale = scales[row * q.scales.row_stride] = e4m3_scale(largest_of(values));
        }
        narrow_row(q.codes, row, 0, scale, values);
        return;
      }
      for (std::int64_t first = 0; first < k; first += block) {
        values.resize(static_cast<std::size_t>(std::min(block, k - first)));
        widen_row(q.x, row, first, values);
        const float scale = e4m3_scale(largest_of(values));
        scales[row * q.scales.row_stride + first / block * q.scales.column_stride] = scale;
        narrow_row(q.codes, row, first, scale, values);
      }
    };
  });
  return std::nullopt;
}

}  // namespace warpwright
