#include "warpwright/plan/moe/mixture.h"

namespace warpwright {
namespace {

// What both products have.
template <class Matrix>
Product<Matrix> mixture_product(const Mixture<Matrix>& m, const Matrix& a, const Matrix& scale_a,
                                const Matrix& b, const std::optional<PackedWeights>& form,
                                const Matrix& scale_b, const Matrix& factor_a,
                                const Matrix& factor_b, const Matrix& bias, const Matrix& d,
                                const void* offsets) {
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
  Groups groups{offsets, OffsetType::int32};
  groups.expected_lengths = m.expected_lengths;
  groups.expected_zipf = m.expected_zipf;
  if (m.total() > m.experts()) {
    const double each = static_cast<double>(m.slots()) / static_cast<double>(m.total());
    groups.expected_tokens = each < 1 ? 1 : each;
  }
  p.groups = groups;
  return p;
}

}  // namespace

template <class Matrix>
Product<Matrix> first_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                              FirstWay way, const void* offsets, const std::int32_t* slots) {
  auto p = mixture_product(m, parts.tokens, parts.token_scales, m.w13, m.packed13, m.scale_w13,
                           m.factor_x, m.factor_w13, m.bias13,
                           way.fused ? parts.codes : parts.inner, offsets);
  p.epilogue.gated = true;
  p.epilogue.activation = m.activation;
  p.epilogue.gate = m.gate;
  p.epilogue.interleaved = m.interleaved;
  if (way.by_index) {
    p.groups->rows = slots;
    p.groups->rows_divisor = static_cast<int>(m.top_k());
  }
  if (way.fused) {
    p.epilogue.quantise = !m.is_micro()                     ? QuantiseD::block_1x128
                          : m.micro_scale() == DType::ue4m3 ? QuantiseD::nvf4_1x16
                          : m.token_type() == DType::e2m1   ? QuantiseD::mxf4_1x32
                                                            : QuantiseD::mxf8_1x32;
    p.d_scales = parts.code_scales;
    if (m.is_micro()) p.scale_d = m.factor_inner;
  }
  return p;
}

template <class Matrix>
Product<Matrix> second_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                               const void* offsets) {
  return mixture_product(m, m.quantises() ? parts.codes : parts.inner, parts.code_scales, m.w2,
                         m.packed2, m.scale_w2, m.factor_inner, m.factor_w2, m.bias2, parts.rows,
                         offsets);
}

template Product<MatrixView> first_product(const MixtureOperands&, const MixtureParts<MatrixView>&,
                                           FirstWay, const void*, const std::int32_t*);
template Product<PlannedMatrix> first_product(const MixtureProblem&,
                                              const MixtureParts<PlannedMatrix>&, FirstWay,
                                              const void*, const std::int32_t*);
template Product<MatrixView> second_product(const MixtureOperands&, const MixtureParts<MatrixView>&,
                                            const void*);
template Product<PlannedMatrix> second_product(const MixtureProblem&,
                                               const MixtureParts<PlannedMatrix>&, const void*);

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
