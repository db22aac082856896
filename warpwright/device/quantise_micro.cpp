// Scaling::block_scaled of device/quantise.h: what is refused, and the host's part.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "warpwright/device/quantise_parts.h"
#include "warpwright/device/scale_rows.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/share.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

Fault format_fault(const Quantisation& q) {
  const DType scale = q.scales.dtype;
  if (!is_micro_element(q.codes.dtype)) {
    return refuse(RefusalCode::bad_type, "the codes are ", type_name(q.codes.dtype), "; ",
                  as_rule("with scales of blocks they are ", listed(all_types, is_micro_element)),
                  ": the nearest is ", as_nearest("e4m3"));
  }
  if (micro_format(q.codes.dtype, scale) == nullptr) {
    return refuse(RefusalCode::bad_type, "scales are ", type_name(scale), "; ",
                  as_rule("those of blocks of ", type_name(q.codes.dtype), " are ue8m0",
                          q.codes.dtype == DType::e2m1 ? " or ue4m3" : ""),
                  ": the nearest is ", as_nearest(type_name(micro_scale(q.codes.dtype))));
  }
  if (micro::scale_type(q.its_recipe()) != scale) {
    return refuse(RefusalCode::bad_value, "the recipe is ", micro::name(q.its_recipe()),
                  " and scales are ", type_name(scale), "; ",
                  as_rule("floor and up are of ue8m0, nested and 4-or-6 of ue4m3"),
                  ": the nearest is ", as_nearest(scale == DType::ue8m0 ? "up" : "nested"));
  }
  return std::nullopt;
}

Fault tensor_scale_fault(const Quantisation& q) {
  const MatrixView& v = q.tensor_scale;
  if (v.data == nullptr) {
    if (!q.given) return std::nullopt;
    return refuse(RefusalCode::bad_pointer, "a scale is given and the tensor's is a null pointer; ",
                  as_rule("leave one of both out"));
  }
  if (q.scales.dtype != DType::ue4m3) {
    return refuse(RefusalCode::bad_value,
                  "there is a scale of the tensor and scales of blocks are ",
                  type_name(q.scales.dtype), "; ", as_rule("there is one only beside ue4m3"),
                  ": leave it out");
  }
  if (v.dtype != DType::f32 || v.rows != 1 || v.columns != 1 || v.batch != 1) {
    return refuse(RefusalCode::bad_shape, "the scale of the tensor is ", shape_of(v), " of ",
                  type_name(v.dtype), "; ", as_rule("it is 1 x 1 of f32"));
  }
  if (alignment_of(v.data) % 4 == 0) return std::nullopt;
  return refuse(RefusalCode::bad_pointer,
                "the address of the tensor's scale is not a multiple of its size, 4 bytes");
}

Fault order_fault(const Quantisation& q) {
  const std::int64_t blocks = ScaleReach::count(q.x.columns, micro_block(q.scales.dtype));
  const std::string need = "those of x (" + shape_of(q.x) + ")" +
                           (q.groups.count > 0 ? " in " + number(q.groups.count) + " groups" : "");
  if (q.order == ScaleOrder::tiles) {
    return tiles_fault(q.scales, scale_tiles_of(q.scales.dtype, q.x.rows, blocks, q.groups), need);
  }
  const MatrixView& v = q.scales;
  if (v.rows != q.x.rows || v.columns != blocks || v.batch != 1) {
    return refuse(RefusalCode::bad_shape, "scales in rows are ", shape_of(v), "; ",
                  as_rule(need, " are ", shape_of(q.x.rows, blocks)));
  }
  if (v.rows == 0 || v.columns == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, "scales in rows are a null pointer; ",
                  as_rule(need, " need memory"));
  }
  const bool packed = v.columns <= 1 || v.column_stride == 1;
  if (packed && (v.rows <= 1 || v.row_stride >= v.columns)) return std::nullopt;
  return refuse(RefusalCode::bad_stride, "scales in rows have strides of ", v.row_stride, " and ",
                v.column_stride, "; ", as_rule("those of a row lie next to each other"),
                ": the nearest legal are ", as_nearest(v.columns, " and 1"));
}

// One block of a row becomes codes, a byte each.
struct BlockCodes {
  std::uint32_t scale;
  std::uint32_t codes[32];
};

// What elements of a block are rounded to codes from, by scales of nvf4.
void nested_quotients(const float* x, int count, std::uint32_t scale, float tensor, float* to) {
  const float divisor = micro::nested_divisor(scale, tensor);
  for (int i = 0; i < count; ++i) to[i] = x[i] / divisor;
}

// How far the codes are off, in the order in which all add up: halves of a block apart.
float errors_of(const float* quotients) {
  float halves[2] = {0, 0};
  for (int i = 0; i < 16; ++i) {
    halves[i / 8] = micro::add_error(halves[i / 8], quotients[i],
                                     [](float x, float y, float z) { return std::fma(x, y, z); });
  }
  return halves[0] + halves[1];
}

BlockCodes quantise_block(const Quantisation& q, float tensor, const float* x, int count) {
  const DType type = q.codes.dtype;
  const Recipe recipe = q.its_recipe();
  std::uint32_t largest = 0;
  for (int i = 0; i < count; ++i) largest = micro::larger(largest, micro::magnitude(x[i], type));
  BlockCodes made{};
  float quotients[32] = {};
  if (micro::is_power(recipe)) {
    made.scale = micro::power_scale(recipe, type, largest);
    const float factor = micro::power_inverse(made.scale);
    for (int i = 0; i < count; ++i) quotients[i] = unless_infinite(x[i] * factor, x[i]);
  } else {
    made.scale = micro::nested_scale(largest, tensor);
    nested_quotients(x, count, made.scale, tensor, quotients);
    if (recipe == Recipe::nested_4_or_6) {
      float others[16] = {};
      const std::uint32_t four = micro::nested_scale(largest, tensor, 4);
      nested_quotients(x, count, four, tensor, others);
      if (micro::takes_four(made.scale, errors_of(quotients), four, errors_of(others))) {
        made.scale = four;
        std::copy(others, others + 16, quotients);
      }
    }
  }
  if (micro::clears(q.scales.dtype, made.scale)) return made;
  for (int i = 0; i < count; ++i) made.codes[i] = micro::code(type, quotients[i]);
  return made;
}

}  // namespace

Fault micro_fault(const Quantisation& q) {
  if (auto r = format_fault(q)) return r;
  if (auto r = groups_fault(q.groups)) return r;
  if (q.groups.count > 0 && q.order == ScaleOrder::rows) {
    return refuse(RefusalCode::bad_value, "there are ", q.groups.count,
                  " groups and scales lie in rows; ", as_rule("groups are of tiles"),
                  ": leave them out");
  }
  if (auto r = order_fault(q)) return r;
  if (auto r = tensor_scale_fault(q)) return r;
  if (overlap(q.tensor_scale, q.x) || overlap(q.tensor_scale, q.codes) ||
      overlap(q.tensor_scale, q.scales)) {
    return refuse(RefusalCode::overlap, "the scale of the tensor overlaps x, codes or scales; ",
                  as_rule("they must lie apart"));
  }
  return std::nullopt;
}

Fault plain_fault(const Quantisation& q) {
  const char* what = q.recipe                         ? "a recipe"
                     : q.tensor_scale.data != nullptr ? "a scale of the tensor beside others"
                     : q.groups.count != 0            ? "groups"
                     : q.order != ScaleOrder::tiles   ? "an order of scales"
                                                      : nullptr;
  if (what == nullptr) return std::nullopt;
  return refuse(RefusalCode::bad_value, what, " is given and scaling is ", name(q.scaling), "; ",
                as_rule("that is only for block_scaled: leave it out"));
}

void quantise_micro_on_host(const Quantisation& q) {
  float tensor = 1;
  if (q.tensor_scale.data != nullptr) {
    auto* const place = static_cast<float*>(q.tensor_scale.data);
    if (!q.given) *place = micro::tensor_scale(q.its_recipe(), largest_of(q.x));
    tensor = *place;
  }
  const bool tiles = q.order == ScaleOrder::tiles;
  auto* const scales = static_cast<std::uint8_t*>(q.scales.data);
  const std::int64_t columns = q.scales.columns;
  if (tiles && q.scales.rows * columns > 0) {
    std::memset(scales, static_cast<int>(micro::neutral_scale(q.scales.dtype)),
                static_cast<std::size_t>(q.scales.rows * columns));
  }
  const std::vector<std::int64_t> places = scale_rows_on_host(q.groups, q.x.rows);
  const int bits = numeric::bits(q.codes.dtype);
  const std::int64_t k = q.x.columns;
  const std::int64_t block = micro_block(q.scales.dtype);
  share(q.x.rows, 0, [&](int) {
    return [&, values = std::vector<float>(static_cast<std::size_t>(k)),
            bytes = std::vector<std::uint8_t>(static_cast<std::size_t>(k * bits / 8 + 1))](
               std::int64_t row) mutable {
      widen_row(q.x, row, 0, values);
      std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
      const std::int64_t place = places[static_cast<std::size_t>(row)];
      for (std::int64_t first = 0; first < k; first += block) {
        const int count = static_cast<int>(std::min(block, k - first));
        const BlockCodes made = quantise_block(q, tensor, values.data() + first, count);
        for (int i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>((first + i) * bits);
          const std::uint32_t code = made.codes[i] << at % 8;
          bytes[at / 8] = static_cast<std::uint8_t>(bytes[at / 8] | code);
          bytes[(at + 7) / 8] = static_cast<std::uint8_t>(bytes[(at + 7) / 8] | code >> 8);
        }
        if (tiles && (place < 0 || place >= q.scales.rows)) continue;
        scales[tiles ? block_scales::place(place, first / block, columns)
                     : row * q.scales.row_stride + first / block] =
            static_cast<std::uint8_t>(made.scale);
      }
      if (k == 0) return;
      std::memcpy(static_cast<std::uint8_t*>(q.codes.data) + row * q.codes.row_stride * bits / 8,
                  bytes.data(), static_cast<std::size_t>(k * bits / 8));
    };
  });
}

}  // namespace warpwright
