#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "warpwright/facts/format.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/tensor_rules.h"

namespace warpwright::weights {
namespace {

using Fault = std::optional<Refusal>;

// A layout of checkpoints. Facts and sources: docs/low_precision.md.
struct MicroRow {
  LayoutNames names;
  DType scale;                  // ue4m3 (e4m3 in files) or ue8m0 (a type of its own, or u8)
  bool divides = false;         // the scale of the tensor: what codes are divided by
  DType element = DType::e2m1;  // e4m3: with a scale for each 128 x 128
};

constexpr MicroRow kMicroRows[] = {
    {{"modelopt-nvfp4", ".weight", ".weight_scale", "", "", ".weight_scale_2"}, DType::ue4m3},
    {{"compressed-tensors-nvfp4", ".weight_packed", ".weight_scale", "", "",
      ".weight_global_scale"},
     DType::ue4m3,
     true},
    {{"compressed-tensors-mxfp4", ".weight_packed", ".weight_scale", "", "", ""}, DType::ue8m0},
    {{"quark-mxfp4", ".weight", ".weight_scale", "", "", ""}, DType::ue8m0},
    {{"gpt-oss", "_blocks", "_scales", "", "", ""}, DType::ue8m0},
    {{"gpt-oss-original", ".blocks", ".scales", "", "", ""}, DType::ue8m0},
    {{"deepseek-mxfp4", ".weight", ".scale", "", "", ""}, DType::ue8m0},
    {{"deepseek-fp8", ".weight", ".weight_scale_inv", "", "", ""},
     DType::ue8m0,
     false,
     DType::e4m3},
    {{"deepseek-fp8-ue8m0", ".weight", ".scale", "", "", ""}, DType::ue8m0, false, DType::e4m3},
};

constexpr auto kMicroNames = [] {
  std::array<LayoutNames, std::size(kMicroRows)> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = kMicroRows[i].names;
    names[i].format = micro_format(kMicroRows[i].element, kMicroRows[i].scale);
  }
  return names;
}();

// What a reader looks at: one matrix, or a batch of them.
struct MicroReader {
  const MicroRow& row;
  const CheckpointTensors& t;

  [[nodiscard]] Fault tensor_fault(std::string_view suffix, const MatrixView& v, bool is_legal_type,
                                   const char* types) const {
    return checkpoint_fault({row.names.layout, suffix, types, is_legal_type}, v, t.codes.batch);
  }

  // For fp8: as many scales as there are blocks of 128 x 128.
  [[nodiscard]] Fault blocks_fault() const {
    if (auto f = tensor_fault(row.names.codes, t.codes, t.codes.dtype == DType::e4m3, "e4m3")) {
      return f;
    }
    const DType scale = t.scales.dtype;
    if (auto f = tensor_fault(row.names.scales, t.scales,
                              scale == DType::f32 || scale == DType::ue8m0, "f32 or ue8m0")) {
      return f;
    }
    const std::int64_t down = (t.codes.rows + 127) / 128;
    const std::int64_t across = (t.codes.columns + 127) / 128;
    if (t.scales.rows == down && t.scales.columns == across) return std::nullopt;
    return refuse(RefusalCode::bad_shape, tensor_name(row.names.scales), " is ", shape_of(t.scales),
                  "; ",
                  as_rule("codes of ", shape_of(t.codes),
                          " have a scale for each 128 x 128: ", shape_of(down, across)),
                  ".");
  }

  [[nodiscard]] Fault shapes_fault() const {
    if (row.element == DType::e4m3) return blocks_fault();
    const DType code = t.codes.dtype;
    if (auto f = tensor_fault(row.names.codes, t.codes,
                              code == DType::u8 || code == DType::s8 || code == DType::e2m1,
                              "u8, s8 or e2m1")) {
      return f;
    }
    const bool nvf4 = row.scale == DType::ue4m3;
    const DType scale = t.scales.dtype;
    if (auto f = tensor_fault(row.names.scales, t.scales,
                              nvf4 ? scale == DType::e4m3 || scale == DType::ue4m3
                                   : scale == DType::u8 || scale == DType::ue8m0,
                              nvf4 ? "e4m3" : "u8 or ue8m0")) {
      return f;
    }
    if (code == DType::e2m1 && t.codes.columns % 2 != 0) {
      return refuse(RefusalCode::bad_shape, tensor_name(row.names.codes), " is ", shape_of(t.codes),
                    "; ", as_rule("two codes are a byte: K is even"), ".");
    }
    const int block = micro_block(row.scale);
    const std::int64_t k = depth();
    if (t.scales.rows == t.codes.rows && t.scales.columns * block == k) return std::nullopt;
    return refuse(RefusalCode::bad_shape, tensor_name(row.names.scales), " is ", shape_of(t.scales),
                  "; ",
                  as_rule("codes for ", shape_of(t.codes.rows, k), " have a scale for each ", block,
                          " of K: ", shape_of(t.codes.rows, (k + block - 1) / block)),
                  k % block == 0 ? "" : ", and K a multiple of that",
                  k % block == 0 ? "" : zeros_behind, ".");
  }

  [[nodiscard]] std::int64_t depth() const {
    const bool is_pair = row.element == DType::e2m1 && t.codes.dtype != DType::e2m1;
    return t.codes.columns * (is_pair ? 2 : 1);
  }
  [[nodiscard]] std::int64_t scales_of_matrix() const { return t.scales.rows * t.scales.columns; }

  // The factor of a matrix.
  [[nodiscard]] Result<float> tensor_scale(std::int64_t batch) const {
    if (row.names.tensor_scale.empty() && t.tensor_scale.data == nullptr) return 1.0F;
    if (row.names.tensor_scale.empty()) {
      return refuse(RefusalCode::bad_value, "Weights in layout ", row.names.layout,
                    " have no scale of the tensor: ", as_rule("leave it out"), ".");
    }
    MatrixView v = t.tensor_scale;
    // A gate's and an up's, where both are in one matrix: one, where they are alike.
    const bool is_pair =
        v.data != nullptr && v.rows * v.columns == 1 && v.batch == 2 * t.codes.batch;
    if (is_pair) v.batch = t.codes.batch;
    if (auto f = tensor_fault(row.names.tensor_scale, v, v.dtype == DType::f32, "f32")) return *f;
    if (v.rows * v.columns != 1) {
      return refuse(RefusalCode::bad_shape, tensor_name(row.names.tensor_scale), " is ",
                    shape_of(v), "; ", as_rule("there is one number for each matrix"), ".");
    }
    const auto at = [&](std::int64_t i) {
      float value = 0;
      std::memcpy(&value, static_cast<const std::byte*>(v.data) + 4 * i, 4);
      return value;
    };
    const float stored = at(is_pair ? 2 * batch : batch);
    if (is_pair && at(2 * batch + 1) != stored) {
      return refuse(RefusalCode::unsupported, tensor_name(row.names.tensor_scale), " has ",
                    warpwright::format("%.9g and %.9g", static_cast<double>(stored),
                                       static_cast<double>(at(2 * batch + 1))),
                    " for gate and up of expert ", batch, ": ",
                    as_rule("a packed matrix has one factor, and a product takes one for each row"),
                    ": the nearest legal is ", as_nearest("1"),
                    " for both, and the two as scales of rows (scale_w13, scale_b), each of its "
                    "half.");
    }
    if (auto f = tensor_scale_fault(tensor_name(row.names.tensor_scale), stored, row.divides, 0)) {
      return *f;
    }
    return row.divides ? 1 / stored : stored;
  }
};

const MicroRow* find_micro_row(std::string_view layout) {
  for (const MicroRow& row : kMicroRows) {
    if (row.names.layout == layout) return &row;
  }
  return nullptr;
}

// The scales of a matrix, whatever their number.
struct MatrixScales {
  const Source& s;
  const std::byte* data;
  std::size_t expert;

  [[nodiscard]] std::int64_t columns() const {
    return s.blocks_of_128 ? (s.extents.k + 127) / 128 : s.extents.k / s.group;
  }
  [[nodiscard]] std::int64_t count() const {
    return (s.blocks_of_128 ? (s.extents.n + 127) / 128 : s.extents.n) * columns();
  }

  // The first of float32 that is no power of two.
  [[nodiscard]] Fault powers_fault() const {
    for (std::int64_t i = 0; i < count(); ++i) {
      float value = 0;
      std::memcpy(&value, data + 4 * i, sizeof value);
      int exponent = 0;
      const bool is_power =
          std::isfinite(value) && std::frexp(value, &exponent) == 0.5F && exponent >= -126;
      if (is_power) continue;
      return refuse(RefusalCode::bad_value, "The scale of rows from ", i / columns() * 128,
                    " and k = ", i % columns() * 128, " of expert ", expert, " is ",
                    warpwright::format("%.9g", static_cast<double>(value)), ": ",
                    as_rule("as mxf8 the scales of weights are powers of two, and others are for "
                            "products with blockwise scaling"),
                    ".");
    }
    return std::nullopt;
  }

  // The first that is no number from 0 on; finds the largest.
  [[nodiscard]] Fault fault(float& largest) const {
    if (s.scale == DType::f32) return powers_fault();
    std::uint32_t most = 0;
    for (std::int64_t i = 0; i < count(); ++i) {
      const auto code = static_cast<std::uint32_t>(data[i]);
      const bool negative = s.scale == DType::ue4m3 && code >= 0x80;
      if (negative || code == micro::nan_scale(s.scale)) {
        const bool nan = code == 0xff || !negative;
        return refuse(RefusalCode::bad_value, "The scale of row ", i / columns(),
                      " and k = ", i % columns() * micro_block(s.scale), " of expert ", expert,
                      " is ", warpwright::format("0x%02x, ", code), nan ? "NaN" : "negative", ": ",
                      as_rule("scales of weights are numbers from 0 on"), ".");
      }
      most = std::max(most, code);
    }
    largest = micro::value(s.scale, most);
    return std::nullopt;
  }
};

}  // namespace

Fault look_at_micro_scales(const Source& source) {
  const MicroRow* const row = find_micro_row(source.origin);
  for (std::size_t e = 0; e < source.experts.size(); ++e) {
    float largest = 0;
    const Source::Matrix& m = source.experts[e];
    if (auto f = MatrixScales{source, m.scales, e}.fault(largest)) return f;
    if (row == nullptr || row->names.tensor_scale.empty()) continue;
    if (auto f =
            tensor_scale_fault(tensor_name(row->names.tensor_scale),
                               row->divides ? 1 / m.tensor : m.tensor, row->divides, largest)) {
      return f;
    }
  }
  return std::nullopt;
}

std::span<const LayoutNames> micro_layouts() {
  return kMicroNames;
}

Fault not_finite_fault(std::span<const MatrixView> weights, std::string_view format) {
  std::int64_t expert = 0;
  for (const MatrixView& view : weights) {
    std::vector<float> row(static_cast<std::size_t>(view.columns));
    for (std::int64_t b = 0; b < view.batch; ++b, ++expert) {
      for (std::int64_t n = 0; n < view.rows; ++n) {
        const std::int64_t first = b * view.batch_stride + n * view.row_stride;
        numeric::widen_from(
            static_cast<const std::byte*>(view.data) + first * numeric::bits(view.dtype) / 8,
            row.data(), row.size(), view.dtype);
        const auto bad =
            std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
        if (bad == row.end()) continue;
        return refuse(RefusalCode::bad_value, "The weight of row ", n, " of expert ", expert,
                      ", k = ", bad - row.begin(), ", is ", std::isnan(*bad) ? "NaN" : "infinite",
                      ": ", as_rule(format, " has no code for it"), ".");
      }
    }
  }
  return std::nullopt;
}

Fault tensor_scale_fault(const std::string& name, float stored, bool divides, float largest) {
  const float factor = divides ? 1 / stored : stored;
  const auto text = [](double x) { return warpwright::format("%.6g", x); };
  if (!(factor > 0) || factor - factor != 0 || stored - stored != 0) {
    return refuse(RefusalCode::bad_value, name, " is ", text(static_cast<double>(stored)), "; ",
                  as_rule("the scale of a tensor is a positive number"), ".");
  }
  const double most = 6.0 * static_cast<double>(largest) * static_cast<double>(factor);
  constexpr double limit = 6.0 * 448;
  if (most <= limit) return std::nullopt;
  return refuse(RefusalCode::bad_value, name, " is ", text(static_cast<double>(stored)),
                ", by which codes and scales are ", divides ? "divided" : "multiplied",
                ": weights would go up to ", text(most), ", so it looks like a ",
                divides ? "factor" : "divisor", ": ",
                as_rule("the nearest legal is ", as_nearest(text(1 / static_cast<double>(stored)))),
                ".");
}

Result<Source> read_micro_places(const LayoutNames& layout,
                                 std::span<const CheckpointTensors> tensors) {
  const MicroRow* const row = find_micro_row(layout.layout);
  Source source;
  source.origin = layout.layout;
  source.format = layout.format;
  source.group = micro_block(row->scale);
  bool first_is_f32 = false;
  for (const CheckpointTensors& t : tensors) {
    const MicroReader reader{*row, t};
    if (auto f = reader.shapes_fault()) return *f;
    const packed::Extents extents{1, t.codes.rows, reader.depth()};
    if (source.experts.empty()) {
      source.extents = extents;
    } else if (extents != packed::Extents{1, source.extents.n, source.extents.k}) {
      return refuse(RefusalCode::bad_shape, "Expert ", source.experts.size(),
                    " has N = ", extents.n, " and K = ", extents.k, "; ",
                    as_rule("expert 0 has N = ", source.extents.n, " and K = ", source.extents.k),
                    ".");
    }
    source.blocks_of_128 = row->element == DType::e4m3;
    source.scale = row->scale == DType::ue4m3     ? row->scale
                   : t.scales.dtype == DType::f32 ? DType::f32
                                                  : DType::ue8m0;
    if (!source.experts.empty() && (t.scales.dtype == DType::f32) != first_is_f32) {
      return refuse(RefusalCode::bad_type, "Expert ", source.experts.size(), " has scales of ",
                    type_name(t.scales.dtype), "; ", as_rule("those of all experts are alike"),
                    ".");
    }
    first_is_f32 = t.scales.dtype == DType::f32;
    const std::int64_t code_bytes =
        extents.n * extents.k * numeric::bits(source.format->element) / 8;
    const std::int64_t scale_bytes = reader.scales_of_matrix() * numeric::bits(source.scale) / 8;
    for (std::int64_t e = 0; e < t.codes.batch; ++e) {
      const auto tensor = reader.tensor_scale(e);
      if (!tensor) return tensor.refusal();
      source.experts.push_back({static_cast<const std::byte*>(t.codes.data) + e * code_bytes,
                                static_cast<const std::byte*>(t.scales.data) + e * scale_bytes,
                                nullptr, *tensor});
    }
  }
  source.extents.experts = static_cast<std::int64_t>(source.experts.size());
  return source;
}

}  // namespace warpwright::weights
