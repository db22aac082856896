#pragma once

/// The element types of a tensor: their names and widths. Light enough to be included by anything,
/// device code too.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace warpwright {

/// An element type. The floats that the tensor cores read or write come first, then the
/// block-scaled types and scale factors, then the integers.
enum class DType : std::uint8_t {
  f64,    ///< IEEE binary64
  f32,    ///< IEEE binary32
  tf32,   ///< 8-bit exponent, 10-bit mantissa, kept in the upper 19 bits of a 32-bit word
  f16,    ///< IEEE binary16
  bf16,   ///< the upper half of a binary32
  e4m3,   ///< fp8, no infinity, NaN is 0x7f and 0xff, largest 448
  e5m2,   ///< fp8, IEEE-like, largest 57344
  e2m3,   ///< fp6, finite only, largest 7.5
  e3m2,   ///< fp6, finite only, largest 28
  e2m1,   ///< fp4, finite only, largest 6
  ue8m0,  ///< unsigned power of two (a scale factor), NaN is 0xff
  ue4m3,  ///< e4m3 without a sign (a scale factor of nvfp4): codes 0x00 to 0x7e, NaN is 0x7f
  s4,     ///< signed 4-bit integer, two's complement
  s8,     ///< signed 8-bit integer
  u8,     ///< unsigned 8-bit integer
  s32,    ///< signed 32-bit integer
};

/// How many values `DType` has; they are numbered from 0 without gaps.
inline constexpr int kDTypeCount = 16;

namespace numeric {

using warpwright::DType;

/// Width of one element's code in bits. A tf32 element occupies a whole 32-bit word in memory; a
/// 6- or 4-bit element has no byte of its own: packing is the tensor's business.
constexpr int bits(DType t) {
  switch (t) {
    case DType::f64:
      return 64;
    case DType::f32:
    case DType::tf32:
    case DType::s32:
      return 32;
    case DType::f16:
    case DType::bf16:
      return 16;
    case DType::e4m3:
    case DType::e5m2:
    case DType::ue8m0:
    case DType::ue4m3:
    case DType::s8:
    case DType::u8:
      return 8;
    case DType::e2m3:
    case DType::e3m2:
      return 6;
    case DType::e2m1:
    case DType::s4:
      return 4;
  }
  return 0;
}

/// Has an element 8 bits?
constexpr bool is_8bit(DType t) {
  return bits(t) == 8;
}

/// Is the type a floating-point type (scale factors included)?
constexpr bool is_float(DType t) {
  return t != DType::s4 && t != DType::s8 && t != DType::u8 && t != DType::s32;
}

/// Bytes that `count` packed elements occupy, rounded up to a whole byte.
constexpr std::int64_t packed_bytes(DType t, std::int64_t count) {
  return count / 8 * bits(t) + (count % 8 * bits(t) + 7) / 8;
}

/// The type's one-word name: "f32", "bf16", "e4m3" ...
constexpr std::string_view name(DType t) {
  switch (t) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::tf32:
      return "tf32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::e4m3:
      return "e4m3";
    case DType::e5m2:
      return "e5m2";
    case DType::e2m3:
      return "e2m3";
    case DType::e3m2:
      return "e3m2";
    case DType::e2m1:
      return "e2m1";
    case DType::ue8m0:
      return "ue8m0";
    case DType::ue4m3:
      return "ue4m3";
    case DType::s4:
      return "s4";
    case DType::s8:
      return "s8";
    case DType::u8:
      return "u8";
    case DType::s32:
      return "s32";
  }
  return "?";
}

/// The type as messages and help name it: fp16, where kernels' names and PTX have f16.
constexpr std::string_view word(DType t) {
  return t == DType::f16 ? "fp16" : name(t);
}

/// The type of that name, or of one of its usual other names (fp16, half, float, fp8_e4m3, int8
/// ...); nothing when there is none.
constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (name(t) == text) return t;
  }
  struct Alias {
    std::string_view text;
    DType type;
  };
  constexpr Alias aliases[] = {
      {"fp64", DType::f64},      {"double", DType::f64},    {"float64", DType::f64},
      {"fp32", DType::f32},      {"float", DType::f32},     {"float32", DType::f32},
      {"fp16", DType::f16},      {"half", DType::f16},      {"float16", DType::f16},
      {"bfloat16", DType::bf16}, {"fp8_e4m3", DType::e4m3}, {"float8_e4m3fn", DType::e4m3},
      {"e4m3fn", DType::e4m3},   {"fp8_e5m2", DType::e5m2}, {"float8_e5m2", DType::e5m2},
      {"fp6_e2m3", DType::e2m3}, {"fp6_e3m2", DType::e3m2}, {"fp4_e2m1", DType::e2m1},
      {"e8m0", DType::ue8m0},    {"int4", DType::s4},       {"int8", DType::s8},
      {"uint8", DType::u8},      {"int32", DType::s32},
  };
  for (const Alias& alias : aliases) {
    if (alias.text == text) return alias.type;
  }
  return std::nullopt;
}

}  // namespace numeric
}  // namespace warpwright
