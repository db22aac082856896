#pragma once

/// Floating-point formats described as values, and exact conversions between their codes and
/// double. Everything is constexpr and integer-only at heart, hence the same on host and device.
///
/// A double holds every value of every narrower format exactly, so decoding never rounds and
/// encoding rounds once. Where the PTX ISA fixes an answer (NaN codes, satfinite, the sign that
/// unsigned formats drop) the answer here is that of `cvt`.

#include <bit>
#include <cstdint>
#include <limits>

#include "warpwright/numeric/types.h"

namespace warpwright::numeric {

/// What the codes with the largest exponent mean.
enum class Specials : std::uint8_t {
  ieee,      ///< the whole top binade: infinity with mantissa 0, else NaN
  nan_only,  ///< only the all-ones code is special, and is NaN
  none,      ///< nothing is special: the format is finite
};

/// How a value between two codes is rounded; in PTX: rn, rna, rz, rp, rm.
enum class Rounding : std::uint8_t { nearest_even, nearest_away, toward_zero, up, down };

/// What becomes of a value beyond the largest finite one.
enum class Overflow : std::uint8_t {
  special,   ///< infinity, or NaN where there is no infinity; a finite format saturates anyway
  saturate,  ///< the largest finite value, for infinities too: PTX's .satfinite
};

/// 2 to the power `exponent`, which is at least -1074 and at most 1023.
constexpr double pow2(int exponent) {
  return exponent >= -1022
             ? std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52)
             : std::bit_cast<double>(std::uint64_t{1} << (exponent + 1074));
}

/// A binary floating-point format: [sign] exponent mantissa, from the upper bits to the lower.
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_sign = true;
  bool has_subnormals = true;  ///< false: exponent field 0 is one more binade, there is no zero
  Specials specials = Specials::ieee;
  int unused_low_bits = 0;  ///< below the mantissa in the stored word, ignored and written as 0

  /// The code of |x| with every bit set: the canonical NaN of a format that has a NaN.
  constexpr std::uint64_t magnitude_mask() const {
    return (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
  }
  /// The code of the largest finite value.
  constexpr std::uint64_t max_code() const {
    switch (specials) {
      case Specials::ieee:
        return magnitude_mask() - (std::uint64_t{1} << mantissa_bits);
      case Specials::nan_only:
        return magnitude_mask() - 1;
      case Specials::none:
        break;
    }
    return magnitude_mask();
  }
  /// The exponent of the smallest normal value.
  constexpr int min_exponent() const { return (has_subnormals ? 1 : 0) - bias; }
  /// The exponent of the largest finite value.
  constexpr int max_exponent() const {
    return static_cast<int>(max_code() >> mantissa_bits) - bias;
  }
  /// The largest finite value.
  constexpr double max() const {
    const std::uint64_t mantissa = max_code() & ((std::uint64_t{1} << mantissa_bits) - 1);
    const double fraction = static_cast<double>(mantissa) * pow2(-mantissa_bits);
    return (1.0 + fraction) * pow2(max_exponent());
  }
  /// The smallest value above zero.
  constexpr double min_positive() const { return pow2(min_exponent() - mantissa_bits); }
};

/// The format of a floating-point type; a format without bits for an integer type.
constexpr FloatFormat format_of(DType t) {
  switch (t) {
    case DType::f64:
      return {.exponent_bits = 11, .mantissa_bits = 52, .bias = 1023};
    case DType::f32:
      return {.exponent_bits = 8, .mantissa_bits = 23, .bias = 127};
    case DType::tf32:
      return {.exponent_bits = 8, .mantissa_bits = 10, .bias = 127, .unused_low_bits = 13};
    case DType::f16:
      return {.exponent_bits = 5, .mantissa_bits = 10, .bias = 15};
    case DType::bf16:
      return {.exponent_bits = 8, .mantissa_bits = 7, .bias = 127};
    case DType::e4m3:
      return {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .specials = Specials::nan_only};
    case DType::e5m2:
      return {.exponent_bits = 5, .mantissa_bits = 2, .bias = 15};
    case DType::e2m3:
      return {.exponent_bits = 2, .mantissa_bits = 3, .bias = 1, .specials = Specials::none};
    case DType::e3m2:
      return {.exponent_bits = 3, .mantissa_bits = 2, .bias = 3, .specials = Specials::none};
    case DType::e2m1:
      return {.exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .specials = Specials::none};
    case DType::ue8m0:
      return {.exponent_bits = 8,
              .mantissa_bits = 0,
              .bias = 127,
              .has_sign = false,
              .has_subnormals = false,
              .specials = Specials::nan_only};
    case DType::ue4m3:
      return {.exponent_bits = 4,
              .mantissa_bits = 3,
              .bias = 7,
              .has_sign = false,
              .specials = Specials::nan_only};
    case DType::s4:
    case DType::s8:
    case DType::u8:
    case DType::s32:
      break;
  }
  return {};
}

/// The value of a code, exactly. A NaN code gives a quiet NaN. Bits above the format's are ignored.
constexpr double decode(const FloatFormat& f, std::uint64_t code) {
  code >>= f.unused_low_bits;
  const std::uint64_t magnitude = code & f.magnitude_mask();
  const bool negative =
      f.has_sign && ((code >> (f.exponent_bits + f.mantissa_bits)) & std::uint64_t{1}) != 0;
  double value = 0;
  if (magnitude > f.max_code()) {
    const bool infinite = f.specials == Specials::ieee && magnitude == f.max_code() + 1;
    if (!infinite) return std::numeric_limits<double>::quiet_NaN();
    value = std::numeric_limits<double>::infinity();
  } else {
    const std::uint64_t hidden = std::uint64_t{1} << f.mantissa_bits;
    const std::uint64_t mantissa = magnitude & (hidden - 1);
    const int field = static_cast<int>(magnitude >> f.mantissa_bits);
    if (field == 0 && f.has_subnormals) {
      value = static_cast<double>(mantissa) * f.min_positive();
    } else {
      value = std::bit_cast<double>((static_cast<std::uint64_t>(field - f.bias + 1023) << 52) |
                                    (mantissa << (52 - f.mantissa_bits)));
    }
  }
  return negative ? -value : value;
}

/// Does a magnitude with this remainder grow by a unit? `half` is half of one.
constexpr bool rounds_away(Rounding rounding, std::uint64_t rest, std::uint64_t half, bool is_odd,
                           bool is_negative) {
  switch (rounding) {
    case Rounding::nearest_even:
      return rest > half || (rest == half && is_odd);
    case Rounding::nearest_away:
      return rest >= half;
    case Rounding::toward_zero:
      break;
    case Rounding::up:
      return rest != 0 && !is_negative;
    case Rounding::down:
      // Without a sign the value is |x|, which `down` truncates.
      return rest != 0 && is_negative;
  }
  return false;
}

/// The code of a value, rounded once.
///
/// NaN becomes the canonical NaN (all ones, no sign), or the largest value where the format has no
/// NaN. A format without a sign takes |x|. A format without a zero takes what rounds below its
/// smallest value to that value. With mantissa_bits = 0, nearest_even sends ties up.
constexpr std::uint64_t encode(const FloatFormat& f, double x,
                               Rounding rounding = Rounding::nearest_even,
                               Overflow overflow = Overflow::special) {
  const auto word = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t fraction = word & ((std::uint64_t{1} << 52) - 1);
  const int field = static_cast<int>((word >> 52) & 0x7ff);
  const bool negative = f.has_sign && (word >> 63) != 0;
  const std::uint64_t sign = static_cast<std::uint64_t>(negative)
                             << (f.exponent_bits + f.mantissa_bits);
  if (field == 0x7ff && fraction != 0) {
    return (f.specials == Specials::none ? f.max_code() : f.magnitude_mask()) << f.unused_low_bits;
  }

  std::uint64_t magnitude = 0;
  bool to_special = field == 0x7ff;  // an infinity, or a value that rounds past the largest
  if (!to_special && (field | fraction) != 0) {
    // |x| = significand * 2^exponent. The code counts in units of 2^quantum, the spacing at |x|.
    const std::uint64_t significand = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
    const int exponent = (field == 0 ? 1 : field) - 1075;
    // A double holds the significand exactly. (nvcc makes std::bit_width 0 in device code.)
    const auto as_double = std::bit_cast<std::uint64_t>(static_cast<double>(significand));
    const int log2 = exponent + static_cast<int>(as_double >> 52) - 1023;
    const int binade = log2 > f.min_exponent() ? log2 : f.min_exponent();
    const int shift = binade - f.mantissa_bits - exponent;
    std::uint64_t units = 0;
    if (shift <= 0) {
      units = significand << -shift;
    } else {
      // Far below the smallest value any shift gives 0 units and a remainder under one half.
      const int s = shift < 60 ? shift : 60;
      units = significand >> s;
      const std::uint64_t rest = significand & ((std::uint64_t{1} << s) - 1);
      const std::uint64_t half = std::uint64_t{1} << (s - 1);
      const bool away = rounds_away(rounding, rest, half, (units & 1) != 0, negative);
      units += static_cast<std::uint64_t>(away);
    }
    // Adding the units to the binade's start lets a carry walk into the next binade by itself.
    const auto start = static_cast<std::uint64_t>(binade - f.min_exponent()) << f.mantissa_bits;
    magnitude = start + units;
    if (!f.has_subnormals) magnitude = magnitude == 0 ? 0 : magnitude - 1;
    if (magnitude > f.max_code()) {
      const bool inward = rounding == Rounding::toward_zero ||
                          (rounding == Rounding::up && negative) ||
                          (rounding == Rounding::down && !negative);
      magnitude = f.max_code();
      to_special = !inward;
    }
  }
  if (to_special) {
    if (overflow == Overflow::saturate || f.specials == Specials::none) {
      magnitude = f.max_code();
    } else {
      magnitude = f.specials == Specials::ieee ? f.max_code() + 1 : f.magnitude_mask();
    }
  }
  return (sign | magnitude) << f.unused_low_bits;
}

/// The value of a code of type `t`, integers (two's complement) included.
constexpr double to_double(DType t, std::uint64_t code) {
  switch (t) {
    case DType::s4:
      return static_cast<double>(static_cast<int>((code & 15) ^ 8) - 8);
    case DType::s8:
      return static_cast<double>(static_cast<std::int8_t>(code & 0xff));
    case DType::u8:
      return static_cast<double>(code & 0xff);
    case DType::s32:
      return static_cast<double>(static_cast<std::int32_t>(code & 0xffffffffu));
    default:
      return decode(format_of(t), code);
  }
}

/// The code of `x` in type `t`, rounded once. Integers always saturate, and NaN becomes 0 there.
constexpr std::uint64_t from_double(DType t, double x, Rounding rounding = Rounding::nearest_even,
                                    Overflow overflow = Overflow::special) {
  if (is_float(t)) return encode(format_of(t), x, rounding, overflow);
  const int width = bits(t);
  const bool is_signed = t != DType::u8;
  const double low = is_signed ? -pow2(width - 1) : 0.0;
  const double high = (is_signed ? pow2(width - 1) : pow2(width)) - 1.0;
  if (!(x == x)) return 0;
  if (x < low) x = low;
  if (x > high) x = high;
  auto whole = static_cast<std::int64_t>(x);  // truncated
  double rest = x - static_cast<double>(whole);
  if (rest < 0) {  // from here on: the floor and what lies above it
    rest += 1;
    whole -= 1;
  }
  bool add = false;
  switch (rounding) {
    case Rounding::nearest_even:
      add = rest > 0.5 || (rest == 0.5 && (whole & 1) != 0);
      break;
    case Rounding::nearest_away:
      add = rest > 0.5 || (rest == 0.5 && whole >= 0);
      break;
    case Rounding::toward_zero:
      add = rest > 0 && whole < 0;
      break;
    case Rounding::up:
      add = rest > 0;
      break;
    case Rounding::down:
      break;
  }
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  return static_cast<std::uint64_t>(whole + static_cast<std::int64_t>(add)) & mask;
}

/// The spacing of the type's values at |value|: the distance from the code at or below |value| to
/// the next. Below the smallest normal it is the smallest value, beyond the largest (and for an
/// infinity) that of the top binade, for NaN it is NaN, and 1 for an integer type.
constexpr double ulp(DType t, double value) {
  if (!is_float(t)) return 1.0;
  if (!(value == value)) return value;
  const FloatFormat f = format_of(t);
  const auto word = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  int binade = static_cast<int>(word >> 52) - 1023;  // a double's subnormals clamp below anyway
  if (binade < f.min_exponent()) binade = f.min_exponent();
  if (binade > f.max_exponent()) binade = f.max_exponent();
  return pow2(binade - f.mantissa_bits);
}

}  // namespace warpwright::numeric
