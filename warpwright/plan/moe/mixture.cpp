#include "warpwright/plan/moe/mixture.h"

#include <algorithm>

#include "warpwright/facts/block_scales.h"
#include "warpwright/plan/moe/layers.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

constexpr std::int64_t multiple_of(std::int64_t x, std::int64_t to) {
  return (x + to - 1) / to * to;
}

// Rows that begin at multiples of 128 bytes.
PlannedMatrix spaced_rows(DType type, std::int64_t rows, std::int64_t columns) {
  PlannedMatrix m = packed_matrix(type, rows, columns);
  m.row_stride = multiple_of(columns, 1024 / numeric::bits(type));
  return m;
}

// The scales of quantised rows; for blocks those of neighbouring rows lie side by side. Those that
// the tensor core multiplies lie by the rows of experts, in tiles.
PlannedMatrix scales_for(const MixtureProblem& p, std::int64_t rows, std::int64_t columns) {
  if (p.scaling == Scaling::none || !p.quantises()) return {};
  if (p.is_micro()) {
    const DType type = p.micro_scale();
    return packed_matrix(type, block_scales::grouped_rows(p.slots(), p.experts()),
                         block_scales::padded_columns(columns, micro_block(type)));
  }
  if (p.scaling == Scaling::row_column) return packed_matrix(DType::f32, rows, 1);
  PlannedMatrix m = packed_matrix(DType::f32, rows, ScaleReach::count(columns, p.scale_block()));
  m.row_stride = 1;
  m.column_stride = multiple_of(rows, 4);
  return m;
}

// Addresses are of operands; in a problem there are none.
const void* data_of(const MatrixView& v) {
  return v.data;
}
const void* data_of(const PlannedMatrix& /*shape*/) {
  return nullptr;
}

// The scales of an x of e4m3, a row of them for each token.
template <class Matrix>
Matrix scales_of_x(const Mixture<Matrix>& m) {
  Matrix scales = m.scale_x;
  if (scales.rows == 1 && m.tokens() > 1) {
    scales.rows = m.tokens();
    scales.row_stride = 0;
  }
  return scales;
}

// Are its products in groups? One launch does the rows of the only expert so, too.
template <class Matrix>
bool in_groups(const Mixture<Matrix>& m, MixtureWay way) {
  return m.is_routed() || way.one_launch();
}

// What both products have.
template <class Matrix>
Product<Matrix> mixture_product(const Mixture<Matrix>& m, const Matrix& a, const Matrix& scale_a,
                                const Matrix& b, const std::optional<PackedWeights>& form,
                                const Matrix& scale_b, const Matrix& factor_a,
                                const Matrix& factor_b, const Matrix& bias, const Matrix& d,
                                const Matrix& offsets, MixtureWay way) {
  Product<Matrix> p;
  p.a = a;
  p.b = b;
  p.packed = form;
  p.d = d;
  p.scaling = m.scaling;
  if (m.scaling != Scaling::none) {
    if (m.quantises()) p.scale_a = scale_a;
    p.scale_b = scale_b;
    p.factor_a = factor_a;
    p.factor_b = factor_b;
  }
  if (is_given(bias)) {
    p.epilogue.bias = Bias::columns;
    p.bias = bias;
  }
  if (!in_groups(m, way)) return p;
  Groups groups{data_of(offsets), OffsetType::int32};
  groups.expected_lengths = m.expected_lengths;
  groups.expected_zipf = m.expected_zipf;
  if (m.total() > m.experts()) {
    groups.expected_tokens =
        std::max(static_cast<double>(m.slots()) / static_cast<double>(m.total()), 1.0);
  }
  p.groups = groups;
  return p;
}

}  // namespace

template <class Matrix>
void set_operands(const Mixture<Matrix>& m, MixtureParts<Matrix>& parts) {
  using enum MixturePart;
  parts[x] = m.x;
  parts[topk_ids] = m.topk_ids;
  if (m.weighs_results()) parts[topk_weights] = m.topk_weights;
  if (m.apply_router_weight_on_input) parts[input_weights] = m.topk_weights;
  parts[factor_x] = m.factor_x;
  parts[factor_inner] = m.factor_inner;
  parts[scale_x] = scales_of_x(m);
  parts[shared_output] = m.shared_output;
  parts[d] = m.d;
}

MixtureParts<PlannedMatrix> planned_parts(const MixtureProblem& p, MixtureWay way) {
  using enum MixturePart;
  MixtureParts<PlannedMatrix> parts;
  set_operands(p, parts);
  const auto numbers = [](std::int64_t count) { return packed_matrix(DType::s32, 1, count); };
  if (way.one_launch()) parts[flags] = numbers(layer_flag_bytes(p, way) / 4);
  parts[status] = numbers(1);
  parts[offsets] = numbers(p.experts() + 1);
  parts[slots] = parts[rows] = numbers(p.slots());
  const DType operand = p.token_type();
  const std::int64_t count = way.by_index ? p.tokens() : p.slots();
  const bool as_given = way.by_index && !p.makes_tokens();
  parts[tokens] = as_given ? p.x : spaced_rows(operand, count, p.hidden());
  parts[token_scales] =
      as_given && p.has_codes() ? parts[scale_x] : scales_for(p, count, p.hidden());
  if (way.gates_behind) parts[gate_up] = spaced_rows(p.row_type(), p.slots(), 2 * p.inner());
  parts[inner] = spaced_rows(p.row_type(), p.slots(), p.inner());
  if (p.quantises()) parts[codes] = spaced_rows(operand, p.slots(), p.inner());
  parts[code_scales] = scales_for(p, p.slots(), p.inner());
  parts[results] = in_groups(p, way) ? spaced_rows(p.row_type(), p.slots(), p.hidden()) : p.d;
  parts[partials] = spaced_rows(DType::f32, way.k_parts * p.slots(), p.hidden());
  return parts;
}

template <class Matrix>
Product<Matrix> first_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                              MixtureWay way) {
  using enum MixturePart;
  auto p = mixture_product(m, parts[tokens], parts[token_scales], m.w13, m.packed13, m.scale_w13,
                           m.factor_x, m.factor_w13, m.bias13,
                           way.gates_behind ? parts[gate_up]
                           : way.fused      ? parts[codes]
                                            : parts[inner],
                           parts[offsets], way);
  if (!way.gates_behind) {
    p.epilogue.gated = m.is_gated;
    p.epilogue.activation = m.activation;
    p.epilogue.gate = m.gate;
    p.epilogue.interleaved = m.interleaved;
  }
  if (way.by_index && p.groups) {
    p.groups->rows = static_cast<const std::int32_t*>(data_of(parts[slots]));
    p.groups->rows_divisor = static_cast<int>(m.top_k());
  }
  if (way.fused) {
    p.epilogue.quantise = !m.is_micro()                     ? QuantiseD::block_1x128
                          : m.micro_scale() == DType::ue4m3 ? QuantiseD::nvf4_1x16
                          : m.token_type() == DType::e2m1   ? QuantiseD::mxf4_1x32
                                                            : QuantiseD::mxf8_1x32;
    p.d_scales = parts[code_scales];
    if (m.is_micro()) p.scale_d = m.factor_inner;
  }
  return p;
}

template <class Matrix>
Product<Matrix> second_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                               MixtureWay way) {
  using enum MixturePart;
  return mixture_product(m, m.quantises() ? parts[codes] : parts[inner], parts[code_scales], m.w2,
                         m.packed2, m.scale_w2, m.factor_inner, m.factor_w2, m.bias2,
                         parts[results], parts[offsets], way);
}

template void set_operands(const MixtureOperands&, MixtureParts<MatrixView>&);
template Product<MatrixView> first_product(const MixtureOperands&, const MixtureParts<MatrixView>&,
                                           MixtureWay);
template Product<PlannedMatrix> first_product(const MixtureProblem&,
                                              const MixtureParts<PlannedMatrix>&, MixtureWay);
template Product<MatrixView> second_product(const MixtureOperands&, const MixtureParts<MatrixView>&,
                                            MixtureWay);
template Product<PlannedMatrix> second_product(const MixtureProblem&,
                                               const MixtureParts<PlannedMatrix>&, MixtureWay);

MatrixView stored(const MixtureOperands& o, const MatrixView& tensor) {
  if (!o.is_packed() || tensor.dtype != o.w13.dtype) return tensor;
  return stored_weights(tensor, tensor.data == o.w13.data ? o.packed13 : o.packed2);
}

bool has_memory(const MixtureOperands& o) {
  bool known = true;
  for_each_field(o, [&](const char*, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const MatrixView&>) {
      known = known && (field.data != nullptr || field.rows == 0 || field.columns == 0);
    }
  });
  return known;
}

}  // namespace warpwright
