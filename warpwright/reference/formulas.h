// What a right GEMM gives, as formulas of one element:
//   D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d
// with the operands of plan/product/problem.h and the modes of plan/product/modes.h. Each is
// written here once, for the host and for CUDA.
//
// `batch` is the matrix of A, C and D, `group` that of B and of what goes with it: the same number
// in a batch of whole products.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"

#ifdef __CUDACC__
#define WW_FORMULA __host__ __device__ inline
#else
#define WW_FORMULA inline
#endif

namespace warpwright::reference {

// --- elements ------------------------------------------------------------------------------------

/// The word `place` words behind `data`.
template <class Word>
WW_FORMULA Word word_at(const void* data, std::int64_t place) {
#ifdef __CUDA_ARCH__
  return static_cast<const Word*>(data)[place];
#else
  Word word{};  // of any alignment
  std::memcpy(&word, static_cast<const Word*>(data) + place, sizeof word);
  return word;
#endif
}

/// The code of `bits` < 8 that begins so many bits behind `data`, from the low bits of a byte up.
WW_FORMULA std::uint64_t code_in_bits(const void* data, int bits, std::int64_t first) {
  const auto shift = static_cast<int>(first % 8);
  unsigned word = word_at<std::uint8_t>(data, first / 8);
  if (shift + bits > 8) {
    word |= static_cast<unsigned>(word_at<std::uint8_t>(data, first / 8 + 1)) << 8;
  }
  return word >> shift & ((1U << bits) - 1);
}

/// The value of the code `place` elements behind `data`, exactly. Those of 4 and 6 bits lie
/// densely.
WW_FORMULA double read(const void* data, DType type, std::int64_t place) {
  std::uint64_t code = 0;
  switch (numeric::bits(type)) {
    case 64:
      code = word_at<std::uint64_t>(data, place);
      break;
    case 32:
      code = word_at<std::uint32_t>(data, place);
      break;
    case 16:
      code = word_at<std::uint16_t>(data, place);
      break;
    case 8:
      code = word_at<std::uint8_t>(data, place);
      break;
    default:
      code = code_in_bits(data, numeric::bits(type), place * numeric::bits(type));
  }
  return numeric::to_double(type, code);
}

/// Elements from the first matrix of a view to another one; one matrix serves any batch.
WW_FORMULA std::int64_t matrix_begin(const MatrixView& v, std::int64_t matrix) {
  return v.batch == 1 ? 0 : matrix * v.batch_stride;
}

/// Element (row, column) of a matrix of a view.
WW_FORMULA double element(const MatrixView& v, std::int64_t matrix, std::int64_t row,
                          std::int64_t column) {
  return read(v.data, v.dtype,
              matrix_begin(v, matrix) + row * v.row_stride + column * v.column_stride);
}

/// What a packed weight stands for; without zero points `zero_point` is 8.
WW_FORMULA double packed_value(double code, double scale, int zero_point = 8) {
  return scale * (code + 8 - zero_point);
}

// --- scales --------------------------------------------------------------------------------------

/// The operands of a product.
enum class Side : std::uint8_t { a, b };

WW_FORMULA constexpr ScaleReach scale_reach(const GemmOperands& o, Side side) {
  return warpwright::scale_reach(o, side == Side::a);
}

/// Where the scale of element (row, k) of A or B lies: elements from the begin of its scales. For
/// scales that the tensor core multiplies `row` is theirs: in groups another than A's (operand.h).
WW_FORMULA std::int64_t scale_place(const GemmOperands& o, Side side, std::int64_t batch,
                                    std::int64_t group, std::int64_t row, std::int64_t k) {
  const bool of_a = side == Side::a;
  const MatrixView& v = of_a ? o.scale_a : o.scale_b;
  if (o.scaling == Scaling::group) return v.rows == 1 ? 0 : group * v.row_stride;
  const ScaleReach reach = scale_reach(o, side);
  const std::int64_t i = reach.rows == 0 ? 0 : row / reach.rows;
  const std::int64_t j = reach.depth == 0 ? 0 : k / reach.depth;
  return matrix_begin(v, of_a ? batch : group) + (is_micro_scale(v.dtype)
                                                      ? block_scales::place(i, j, v.columns)
                                                      : i * v.row_stride + j * v.column_stride);
}

/// The scale of element (row, k) of A or B; 1 where there is none.
WW_FORMULA double scale_of(const GemmOperands& o, Side side, std::int64_t batch, std::int64_t group,
                           std::int64_t row, std::int64_t k) {
  const MatrixView& v = side == Side::a ? o.scale_a : o.scale_b;
  if (o.scaling == Scaling::none || v.data == nullptr) return 1;
  return read(v.data, v.dtype, scale_place(o, side, batch, group, row, k));
}

// --- alpha, C and the bias -----------------------------------------------------------------------

/// What the sums of a group are multiplied by: alpha, and the factors of the operands' tensors.
WW_FORMULA double factor_of_sums(const GemmOperands& o, std::int64_t group) {
  auto factor = static_cast<double>(o.sum_factor());
  if (o.factor_a.data != nullptr) factor *= element(o.factor_a, 0, 0, 0);
  if (o.factor_b.data != nullptr) {
    factor *= element(o.factor_b, 0, o.factor_b.rows > 1 ? group : 0, 0);
  }
  return factor;
}

/// alpha * x, of the sum and of its bounds. As BLAS has it, an alpha of 0 drops x, NaN and all.
WW_FORMULA double times_alpha(double alpha, double x) {
  return alpha == 0 ? 0.0 : alpha * x;
}

/// What is added to alpha times the sum, in this order.
struct Terms {
  double term[2] = {};
  int count = 0;
};

/// beta * C and the bias at element (row, column) of the product, where there are any. As BLAS has
/// it, a beta of 0 drops C.
WW_FORMULA Terms terms_of(const GemmOperands& o, std::int64_t batch, std::int64_t group,
                          std::int64_t row, std::int64_t column) {
  Terms terms;
  if (o.c.data != nullptr && o.beta != 0) {
    terms.term[terms.count++] = static_cast<double>(o.beta) * element(o.c, batch, row, column);
  }
  if (o.epilogue.bias == Bias::rows) terms.term[terms.count++] = element(o.bias, batch, row, 0);
  if (o.epilogue.bias == Bias::columns) {
    terms.term[terms.count++] = element(o.bias, group, column, 0);
  }
  return terms;
}

/// Element (row, column) of the product before the activation, whose scaled sum is `sum`.
WW_FORMULA double before_activation(const GemmOperands& o, std::int64_t batch, std::int64_t group,
                                    std::int64_t row, std::int64_t column, double sum) {
  double x = times_alpha(factor_of_sums(o, group), sum);
  const Terms terms = terms_of(o, batch, group, row, column);
  for (int i = 0; i < terms.count; ++i) x += terms.term[i];
  return x;
}

// --- activations ---------------------------------------------------------------------------------

/// Is it neither x nor a cut?
WW_FORMULA constexpr bool is_curved(const ActivationForm& form) {
  return form.is_smooth || form.by_erf;
}

/// z of a smooth activation x / (1 + exp(-z)). Far below 0 exp(-x^2 / 2) takes its place in that of
/// the error function.
template <class Float>
WW_FORMULA Float exponent_of(const ActivationForm& form, Float x) {
  if (form.by_erf) return x * std::abs(x) / 2;
  return x * (static_cast<Float>(form.slope) + static_cast<Float>(form.cubic) * x * x);
}

/// activation(x), in the type in which it is computed. NaN stays, and so does an infinity of an
/// activation that is not 0 there.
template <class Float>
WW_FORMULA Float activated(const ActivationForm& form, Float x) {
  if (form.by_erf && std::isfinite(x)) {
    return x * (std::erfc(x * static_cast<Float>(-0.70710678118654752)) / 2);
  }
  if (!form.cuts && !is_curved(form)) return x;
  if (form.squares) return x < 0 ? 0 : x * x;
  if (form.cuts || !std::isfinite(x)) return x < 0 ? 0 : x;
  return x / (1 + std::exp(-exponent_of(form, x)));
}

/// The steepest slope of an activation; where it squares, that of its cut.
WW_FORMULA constexpr double steepest(const ActivationForm& form) {
  return is_curved(form) ? 1.13 : 1;
}

// --- from the product to D -----------------------------------------------------------------------

/// A value, and by how much a right kernel's may differ from it.
template <class Float>
struct Bounded {
  Float value = 0;
  Float bound = 0;
};

/// Whether bounds grow by what a kernel rounds in the epilogue, in float32 and by the hardware's
/// exponential (smooth_loss), or what does is left to the caller.
enum class Roundings : std::uint8_t { left_out, counted };

/// What the hardware's exponential may lose of a smooth activation's `value`, as z is: exp(-z) is
/// off by |z| 2^-22 and a little of itself, which counts where it is more than the 1 beside it.
/// From z = -80 on it may be infinite, and the value 0.
template <class Float>
WW_FORMULA Float smooth_loss(Float value, Float z) {
  const Float size = std::abs(value);
  const Float below = z < 0 ? -z : 0;
  return (z < -80 ? size : size * (below + 8) * static_cast<Float>(0x1p-21)) +
         static_cast<Float>(0x1p-100);
}

/// What a rounding of float32 may change in a value, where that is counted.
template <Roundings How, class Float>
WW_FORMULA Float rounding_of(Float value) {
  if constexpr (How == Roundings::left_out) return 0;
  return static_cast<Float>(0x1p-24) * std::abs(value);
}

/// The activation of a value, which is taken to be `at_least` so steep.
template <Roundings How, class Float>
WW_FORMULA Bounded<Float> activated(const ActivationForm& form, const Bounded<Float>& x,
                                    Float at_least = 1) {
  const auto own = static_cast<Float>(steepest(form));
  const Float value = activated(form, x.value);
  if (form.squares) {  // of what is cut, which is off by no more than x
    const Float cut = x.value < 0 ? 0 : x.value;
    const Float bound = (own > at_least ? own : at_least) * x.bound;
    const Float lost = How == Roundings::counted ? static_cast<Float>(0x1p-126) : 0;
    return {value, (2 * cut + bound) * bound + rounding_of<How>(value) + lost};
  }
  if (is_curved(form) && !std::isfinite(x.value)) return {value, 0};
  Float bound = (own > at_least ? own : at_least) * x.bound;
  if (!is_curved(form)) return {value, bound};
  const Float z = exponent_of(form, x.value);
  // Far below 0 it is next to 0 however far x is off: no more than at its upper end.
  if (z < -80 && exponent_of(form, x.value + x.bound) < -2) {
    const Float most = std::abs(activated(form, x.value + x.bound));
    bound = most < bound ? most : bound;
  }
  if constexpr (How == Roundings::counted) bound += smooth_loss(value, z);
  return {value, bound};
}

/// At most `most`. NaN stays. What is surely beyond is known exactly.
template <class Float>
WW_FORMULA Bounded<Float> cut_above(const Bounded<Float>& x, Float most) {
  if (!(x.value > most)) return x;
  const bool is_beyond = !std::isfinite(x.value) || x.value - x.bound >= most;
  return {most, is_beyond ? Float{0} : x.bound};
}
template <class Float>
WW_FORMULA Bounded<Float> cut_below(const Bounded<Float>& x, Float least) {
  const Bounded<Float> cut = cut_above(Bounded<Float>{-x.value, x.bound}, -least);
  return {-cut.value, cut.bound};
}

/// activation(gate) times what it is for, with the limits and the offset of an activation that has
/// some.
template <Roundings How, class Float>
WW_FORMULA Bounded<Float> gated(const ActivationForm& form, Bounded<Float> gate, Bounded<Float> up,
                                Float at_least) {
  if (form.limit > 0) {
    const auto limit = static_cast<Float>(form.limit);
    gate = cut_above(gate, limit);
    up = cut_below(cut_above(up, limit), -limit);
  }
  if (form.offset != 0) {
    up.value += static_cast<Float>(form.offset);
    up.bound += rounding_of<How>(up.value);
  }
  const Bounded<Float> x = activated<How>(form, gate, at_least);
  const Float value = x.value * up.value;
  const Float bound =
      std::abs(x.value) * up.bound + std::abs(up.value) * x.bound + x.bound * up.bound;
  return {value, bound + 2 * rounding_of<How>(value)};
}

/// Where an element of D is.
struct Place {
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// An element of D before scale_d, from that of the product before the activation (where the
/// epilogue is gated the gate's) and, of a gated epilogue, from that which the gate is for. An
/// activation is taken to be `at_least` so steep.
template <Roundings How, class Float>
WW_FORMULA Bounded<Float> unscaled(const GemmOperands& o, const Bounded<Float>& product,
                                   const Bounded<Float>& up = {}, Float at_least = 1) {
  const ActivationForm form = form_of(o.epilogue);
  return o.epilogue.gated ? gated<How>(form, product, up, at_least)
                          : activated<How>(form, product, at_least);
}

/// The same times scale_d, where there is one.
template <Roundings How, class Float>
WW_FORMULA Bounded<Float> scaled_d(const GemmOperands& o, const Place& at,
                                   const Bounded<Float>& x) {
  if (o.scale_d.data == nullptr || !o.scales_values()) return x;
  const auto scale = static_cast<Float>(element(o.scale_d, at.batch, 0, 0));
  const Float value = x.value * scale;
  return {value, x.bound * std::abs(scale) + rounding_of<How>(value)};
}

/// An element of D before it is rounded: both.
template <Roundings How, class Float>
WW_FORMULA Bounded<Float> finished(const GemmOperands& o, const Place& at,
                                   const Bounded<Float>& product, const Bounded<Float>& up = {},
                                   Float at_least = 1) {
  return scaled_d<How>(o, at, unscaled<How>(o, product, up, at_least));
}

// --- D's type ------------------------------------------------------------------------------------

/// Does a kernel store the largest number of the type for what lies beyond, rather than infinity?
WW_FORMULA constexpr bool saturates(DType d) {
  return numeric::bits(d) == 8;
}

/// x within what a type that saturates holds. NaN stays.
template <class Float>
WW_FORMULA Float saturated(DType d, Float x) {
  if (!saturates(d)) return x;
  const auto most = static_cast<Float>(numeric::format_of(d).max());
  return x > most ? most : x < -most ? -most : x;
}

/// The code of x in D's type, rounded to nearest even.
WW_FORMULA std::uint64_t code_of(DType d, double x) {
  return numeric::from_double(
      d, x, numeric::Rounding::nearest_even,
      saturates(d) ? numeric::Overflow::saturate : numeric::Overflow::special);
}

/// x rounded to D's type.
WW_FORMULA double rounded(DType d, double x) {
  return numeric::to_double(d, code_of(d, x));
}

/// No less than the distance between neighbours of the type at `size`, which is not negative:
/// cheaper than numeric::ulp, and up to twice that.
template <class Float>
WW_FORMULA Float spacing(DType d, Float size) {
  const numeric::FloatFormat f = numeric::format_of(d);
  return size * static_cast<Float>(numeric::pow2(-f.mantissa_bits)) +
         static_cast<Float>(f.min_positive());
}

}  // namespace warpwright::reference
