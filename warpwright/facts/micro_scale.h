// How values become codes of e4m3, e5m2, e2m3, e3m2 or e2m1 and the one-byte scale that a few
// neighbours along K share (mxf8, mxf6, mxf4, nvf4): one recipe for the host, for kernels that
// quantise and for epilogues that do. All of it is arithmetic on the bits of floats, or IEEE
// operations one at a time, so that host, GPU and model have the same bits. docs/low_precision.md
// has the decisions: zeros, NaN, infinities, ties and the direction of the tensor's scale.
//
//   std::uint32_t largest = 0;                                   // of the 16 or 32 that share
//   for (...) largest = micro::larger(largest, micro::magnitude(x[i], type));
//   const unsigned scale = micro::power_scale(Recipe::up, type, largest);      // ue8m0
//   const float factor = micro::power_inverse(scale);
//   for (...) code[i] = micro::code(type, unless_infinite(x[i] * factor, x[i]));
//                                                                // or cvt.rn.satfinite: the same
//
// With ue4m3 (nvf4) the scale is nested_scale(largest, s), and what is rounded to codes is
// x / nested_divisor(scale, s), s being the tensor's scale. Where micro::clears(scale) all codes
// are 0.
#pragma once

#include <bit>
#include <cstdint>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/facts/micro_format.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright {

/// How the scale of a block follows from its largest magnitude. `floor` and `up` give powers of two
/// (ue8m0), the others a ue4m3 times a float32 of the whole tensor (nvf4).
enum class Recipe : std::uint8_t {
  floor,          ///< OCP MX 1.0: the power of two below the largest over that below the largest
                  ///< code. What is beyond the codes becomes the largest: up to a quarter is lost
  up,             ///< the least power of two with which nothing is beyond the codes
  nested,         ///< nvf4: the largest becomes 6
  nested_4_or_6,  ///< nvf4: the largest becomes 6 or 4, whichever has the smaller squared error
};

namespace micro {

/// The word of a recipe.
constexpr const char* name(Recipe recipe) {
  constexpr const char* names[] = {"floor", "up", "nested", "4-or-6"};
  return names[static_cast<int>(recipe)];
}

/// Are the scales powers of two (ue8m0)?
constexpr bool is_power(Recipe recipe) {
  return recipe == Recipe::floor || recipe == Recipe::up;
}

/// The type of the scales of a recipe.
constexpr DType scale_type(Recipe recipe) {
  return is_power(recipe) ? DType::ue8m0 : DType::ue4m3;
}

/// Has it a code for NaN? Where it has none, a NaN or an infinity makes the scale of its block NaN.
constexpr bool has_nan(DType element) {
  return element == DType::e4m3 || element == DType::e5m2;
}

/// The scale of a block of zeros, and what lies in the padding of tiles of scales: 1, or 0.
constexpr std::uint32_t neutral_scale(DType scale) {
  return scale == DType::ue8m0 ? 127 : 0;
}
/// The code of a NaN scale.
constexpr std::uint32_t nan_scale(DType scale) {
  return scale == DType::ue8m0 ? 0xff : 0x7f;
}
inline constexpr std::uint32_t kInfinity = 0x7f800000;  ///< the bits of infinity

/// What counts of x for the scale of its block, as the bits of a float: |x|. Infinities and NaN
/// become NaN: where elements have one they count as 0, otherwise as kInfinity or more, which makes
/// the scale NaN. They are in the order of unsigned integers.
constexpr std::uint32_t magnitude(float x, DType element) {
  const std::uint32_t size = std::bit_cast<std::uint32_t>(x) & 0x7fffffff;
  return size < kInfinity || !has_nan(element) ? size : 0;
}
constexpr std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}

/// The code of a ue8m0 scale by `floor` or `up`, of a block with that largest magnitude. Never more
/// than 253 but for NaN.
constexpr std::uint32_t power_scale(Recipe recipe, DType element, std::uint32_t largest) {
  if (largest == 0) return neutral_scale(DType::ue8m0);
  if (largest >= kInfinity) return nan_scale(DType::ue8m0);
  const numeric::FloatFormat f = numeric::format_of(element);
  // A float below the least normal one has a field of 0, and a scale of 2^-127 in any case.
  const int field = static_cast<int>(largest >> 23) - f.max_exponent();
  const auto top = static_cast<std::uint32_t>(f.max_code() & ((1U << f.mantissa_bits) - 1))
                   << (23 - f.mantissa_bits);
  const int above = recipe == Recipe::up && (largest & 0x7fffff) > top ? 1 : 0;
  return static_cast<std::uint32_t>(field + above > 0 ? field + above : 0);
}

/// 1 over a ue8m0 scale, exactly, of codes to 254: what x is multiplied by. 0 for NaN.
constexpr float power_inverse(std::uint32_t scale) {
  const std::uint32_t bits = scale < 254 ? (254 - scale) << 23 : 0x00400000;
  return std::bit_cast<float>(scale > 254 ? 0 : bits);
}

/// The ue8m0 of a float32 by its bits: its own exponent; NaN (0xff) where it is no power of two
/// from 2^-127 to 2^127.
constexpr std::uint8_t power_code(std::uint32_t bits) {
  constexpr std::uint32_t least = 0x0040'0000;  // 2^-127, which float32 has as a subnormal
  if (bits == least) return 0;
  const std::uint32_t exponent = bits >> 23;
  const bool is_power = (bits & 0x007f'ffff) == 0 && exponent > 0 && exponent < 0xff;
  return static_cast<std::uint8_t>(is_power ? exponent : 0xff);
}

/// The code of x, to nearest, ties to even; beyond the largest code it is that one, and so is NaN
/// where there is no code for it (otherwise 0x7f). As cvt.rn.satfinite has it.
constexpr std::uint32_t code(DType element, float x) {
  const numeric::FloatFormat f = numeric::format_of(element);
  const int m = f.mantissa_bits;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t size = bits & 0x7fffffff;
  const auto most = static_cast<std::uint32_t>(f.max_code());
  const int sign_at = f.exponent_bits + m;
  const std::uint32_t sign = f.has_sign ? bits >> 31 << sign_at : 0;
  if (size > kInfinity) return f.specials == numeric::Specials::none ? most : 0x7f;
  const auto least = static_cast<std::uint32_t>(f.min_exponent() + 127) << 23;  // normal
  std::uint32_t rounded = 0;
  if (size < least) {
    // The sum has the spacing of codes: its last bits are the code.
    const auto lift = static_cast<std::uint32_t>(f.min_exponent() - m + 127 + 23) << 23;
    const float sum = std::bit_cast<float>(size) + std::bit_cast<float>(lift);
    rounded = std::bit_cast<std::uint32_t>(sum) - lift;
  } else {
    const int cut = 23 - m;
    const std::uint32_t even = size + (1U << (cut - 1)) - 1 + (size >> cut & 1);
    rounded = (even >> cut) - (static_cast<std::uint32_t>(f.min_exponent() + 126) << m);
  }
  return sign | (rounded < most ? rounded : most);
}

/// The value of a code of an element or a scale, exactly. A code without a number, of infinity or
/// NaN, is NaN.
constexpr float value(DType t, std::uint32_t code) {
  const numeric::FloatFormat f = numeric::format_of(t);
  const int m = f.mantissa_bits;
  const std::uint32_t size = code & static_cast<std::uint32_t>(f.magnitude_mask());
  if (size > f.max_code()) return std::bit_cast<float>(0x7fc00000U);
  const std::uint32_t sign = f.has_sign ? (code >> (f.exponent_bits + m) & 1) << 31 : 0;
  std::uint32_t bits = (size << (23 - m)) + (static_cast<std::uint32_t>(127 - f.bias) << 23);
  if (size >> m == 0) {  // no leading one
    const auto least = static_cast<std::uint32_t>(f.min_exponent() - m + 127) << 23;
    const float units = static_cast<float>(size) * std::bit_cast<float>(least);
    bits = f.has_subnormals ? std::bit_cast<std::uint32_t>(units) : 0x00400000U;
  }
  return std::bit_cast<float>(sign | bits);
}

/// Are all codes 0 under that scale: is it 0 or NaN?
constexpr bool clears(DType scale, std::uint32_t code) {
  return code == nan_scale(scale) || (scale == DType::ue4m3 && code == 0);
}

// --- nvf4: a ue4m3 of each block times a float32 of the tensor
// ------------------------------------

/// The largest scale that blocks of a tensor get. 4-or-6 leaves room for a largest of 4.
constexpr float nested_top(Recipe recipe) {
  return recipe == Recipe::nested_4_or_6 ? 256.0F : 448.0F;
}
/// The least scale of a tensor, so that no divisor is below the normal floats.
inline constexpr float least_tensor_scale = 0x1p-117F;

/// The scale of a tensor with that largest finite magnitude: what codes and the blocks' scales are
/// multiplied by. 1 where there is none but 0.
constexpr float tensor_scale(Recipe recipe, float largest) {
  if (largest == 0) return 1;
  const float scale = largest / (6 * nested_top(recipe));
  return scale < least_tensor_scale ? least_tensor_scale : scale;
}

/// The code of a block's ue4m3 scale: `largest` over `to` (6, or 4) times the tensor's, to nearest,
/// at most 448. 0 where that is less than 2^-10.
constexpr std::uint32_t nested_scale(std::uint32_t largest, float tensor, float to = 6) {
  if (largest >= kInfinity) return nan_scale(DType::ue4m3);
  const float divisor = to * tensor;
  return code(DType::ue4m3, std::bit_cast<float>(largest) / divisor);
}

/// What elements are divided by: the product of both scales, rounded once, kept between the least
/// and the largest normal float.
constexpr float nested_divisor(std::uint32_t scale, float tensor) {
  const float divisor = value(DType::ue4m3, scale) * tensor;
  if (divisor < 0x1p-126F) return 0x1p-126F;
  return divisor > 0x1.fffffep127F ? 0x1.fffffep127F : divisor;
}

/// The scale of a block by the usual recipe of its format, and what its elements become by it.
template <DType element, DType scale_type>
struct Block {
  static constexpr bool powers = scale_type == DType::ue8m0;

  /// That of a block with such a scale. `tensor`: the scale of the tensor, of nvf4.
  constexpr Block(std::uint32_t code, float tensor)
      : scale(code), factor(powers ? power_inverse(code) : nested_divisor(code, tensor)) {}
  /// The same of a block whose magnitudes have that largest.
  static constexpr Block of(std::uint32_t largest, float tensor) {
    return {powers ? power_scale(Recipe::up, element, largest) : nested_scale(largest, tensor),
            tensor};
  }

  /// What is rounded to the code of x, in a block of that factor. (An infinity in a block of
  /// elements without NaN has cleared it.)
  static constexpr float scaled_by(float factor, float x) {
    if (!powers) return x / factor;
    return has_nan(element) ? unless_infinite(x * factor, x) : x * factor;
  }
  [[nodiscard]] constexpr float scaled(float x) const { return scaled_by(factor, x); }
  /// Are all codes 0?
  [[nodiscard]] constexpr bool clears() const { return micro::clears(scale_type, scale); }

  std::uint32_t scale;  ///< its code
  float factor;
};

/// Whether the block's scale is that with which its largest becomes 4, of the squared errors of
/// both in units of their divisors. For equals it is not.
constexpr bool takes_four(std::uint32_t scale6, float errors6, std::uint32_t scale4,
                          float errors4) {
  if (clears(DType::ue4m3, scale6)) return !clears(DType::ue4m3, scale4);
  const float six = value(DType::ue4m3, scale6);
  const float four = value(DType::ue4m3, scale4);
  const float squared6 = six * six;
  const float squared4 = four * four;
  return errors4 * squared4 < errors6 * squared6;
}

/// One element's part of those errors, added to what there is: of x / divisor, whose code it gets.
/// `multiply_add` rounds once (std::fma, isa::multiply_add). What is not finite does not count.
template <class MultiplyAdd>
constexpr float add_error(float errors, float quotient, const MultiplyAdd& multiply_add) {
  const float off = quotient - value(DType::e2m1, code(DType::e2m1, quotient));
  return off - off == 0 ? multiply_add(off, off, errors) : errors;
}

}  // namespace micro
}  // namespace warpwright
