// Conversions in registers between float32 and the types tensors are stored in.
#pragma once

#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/config.h"
#include "warpwright/numeric/types.h"
#if WW_GPU
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include <bit>
#include <cmath>

#include "warpwright/numeric/float_format.h"
#endif

namespace warpwright::isa {

namespace detail {
template <DType T>
struct Storage {
  using type = std::uint16_t;  // f16 and bf16 are kept as their codes
};
template <>
struct Storage<DType::f32> {
  using type = float;
};
template <>
struct Storage<DType::e4m3> {
  using type = std::uint8_t;
};
template <>
struct Storage<DType::e5m2> {
  using type = std::uint8_t;
};
}  // namespace detail

/// How an element of type T lies in memory.
template <DType T>
using StorageOf = typename detail::Storage<T>::type;

/// The bits of a float32.
WW_DEVICE
std::uint32_t float_bits(float x) {
#if WW_GPU
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}

/// The float32 of these bits.
WW_DEVICE
float float_of(std::uint32_t bits) {
#if WW_GPU
  return __uint_as_float(bits);
#else
  if (model::reads_in_flight > 0) model::values_used();
  return std::bit_cast<float>(bits);
#endif
}

/// An element as float32, exactly.
template <DType T>
WW_DEVICE float to_float(StorageOf<T> x) {
  static_assert(T == DType::f32 || T == DType::f16 || T == DType::bf16);
  if constexpr (T == DType::f32) {
    return x;
  } else {
#if WW_GPU
    if constexpr (T == DType::bf16) return __bfloat162float(__ushort_as_bfloat16(x));
    if constexpr (T == DType::f16) return __half2float(__ushort_as_half(x));
#else
    return static_cast<float>(numeric::to_double(T, x));
#endif
  }
}

/// Two floats.
struct Pair {
  float low;
  float high;
};

/// Two neighbouring elements as they lie in memory (one word of f16 or bf16, two of f32) as floats.
template <DType T>
WW_DEVICE Pair unpack(const std::uint32_t* words) {
  static_assert(T == DType::f32 || T == DType::f16 || T == DType::bf16);
  if constexpr (T == DType::f32) {
#if WW_GPU
    return {__uint_as_float(words[0]), __uint_as_float(words[1])};
#else
    return {std::bit_cast<float>(words[0]), std::bit_cast<float>(words[1])};
#endif
  } else {
    return {to_float<T>(static_cast<std::uint16_t>(words[0] & 0xffff)),
            to_float<T>(static_cast<std::uint16_t>(words[0] >> 16))};
  }
}

/// Two floats rounded to nearest even and packed, `low` in the lower half (cvt.rn.T x2.f32; before
/// sm_80 two of f16, and none of bf16).
template <DType T>
WW_DEVICE std::uint32_t pack(float low, float high) {
  static_assert(T == DType::f16 || T == DType::bf16);
#if WW_GPU
  std::uint32_t packed = 0;
  if constexpr (T == DType::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
#if WW_CONVERTS_PAIRS
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
#else
    const __half2 halves = __floats2half2_rn(low, high);
    packed = *reinterpret_cast<const std::uint32_t*>(&halves);
#endif
  }
  return packed;
#else
  const auto code = [](float x) {
    return static_cast<std::uint32_t>(numeric::from_double(T, static_cast<double>(x)));
  };
  return code(low) | code(high) << 16;
#endif
}

/// Two floats rounded to nearest even, those beyond the largest number becoming it, and packed,
/// `low` in the lower byte (cvt.rn.satfinite.T x2.f32; before sm_89 in integers).
template <DType T>
WW_DEVICE std::uint16_t pack_bytes(float low, float high) {
  static_assert(T == DType::e4m3 || T == DType::e5m2);
#if !WW_CONVERTS_BYTES
  return static_cast<std::uint16_t>(micro::code(T, low) | micro::code(T, high) << 8);
#elif WW_GPU
  std::uint16_t packed = 0;
  if constexpr (T == DType::e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  }
  return packed;
#else
  const auto code = [](float x) {
    return static_cast<unsigned>(numeric::from_double(
        T, static_cast<double>(x), numeric::Rounding::nearest_even, numeric::Overflow::saturate));
  };
  return static_cast<std::uint16_t>(code(low) | code(high) << 8);
#endif
}

/// 32 bits of codes of T, the first in the lowest bits: floats rounded to nearest even, those
/// beyond the largest number becoming it. For e4m3 and e5m2 four; for e2m1 eight
/// (cvt.rn.satfinite.e2m1x2, sm_100a and later of that kind).
template <DType T, int N>
WW_DEVICE std::uint32_t pack_codes(const float (&x)[N]) {
  static_assert(N == 32 / numeric::bits(T));
  if constexpr (T == DType::e4m3 && WW_GPU && WW_CONVERTS_BYTES) {
    std::uint32_t packed = 0;
#if WW_GPU
    asm("{\n\t.reg .b16 low, high;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
        "mov.b32 %0, {low, high};\n\t}"
        : "=r"(packed)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
#endif
    return packed;
  } else if constexpr (T != DType::e2m1) {
    return pack_bytes<T>(x[0], x[1]) | static_cast<std::uint32_t>(pack_bytes<T>(x[2], x[3])) << 16;
  } else {
    std::uint32_t packed = 0;
#if WW_GPU
    asm("{\n\t.reg .b8 b0, b1, b2, b3;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b0, %2, %1;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b1, %4, %3;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b2, %6, %5;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 b3, %8, %7;\n\t"
        "mov.b32 %0, {b0, b1, b2, b3};\n\t}"
        : "=r"(packed)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "f"(x[4]), "f"(x[5]), "f"(x[6]), "f"(x[7]));
#else
    for (int i = 0; i < N; ++i) {
      packed |= static_cast<std::uint32_t>(numeric::from_double(T, static_cast<double>(x[i]),
                                                                numeric::Rounding::nearest_even,
                                                                numeric::Overflow::saturate))
                << 4 * i;
    }
#endif
    return packed;
  }
}

/// Two bytes of e4m3 as two halves of f16, exactly, the lower byte in the lower half
/// (cvt.rn.f16x2.e4m3x2).
WW_DEVICE std::uint32_t halves_of_bytes(std::uint16_t bytes) {
#if WW_GPU
  std::uint32_t halves = 0;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return halves;
#else
  const auto half = [](unsigned byte) {
    return static_cast<std::uint32_t>(
        numeric::from_double(DType::f16, numeric::to_double(DType::e4m3, byte)));
  };
  return half(bytes & 0xffU) | half(bytes >> 8U) << 16;
#endif
}

/// The products of two pairs of bf16 or f16, each rounded to nearest even; subnormal ones count
/// (mul.rn.bf16x2, sm_90 and later; mul.rn.f16x2).
template <DType Type>
WW_DEVICE std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y) {
  static_assert(Type == DType::bf16 || Type == DType::f16);
#if WW_GPU
  std::uint32_t product = 0;
  if constexpr (Type == DType::bf16) {
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(x), "r"(y));
  } else {
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(x), "r"(y));
  }
  return product;
#else
  // A product of two of 11 significant bits is exact in float64.
  const auto half = [](std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(numeric::from_double(
        Type, numeric::to_double(Type, a & 0xffffU) * numeric::to_double(Type, b & 0xffffU)));
  };
  return half(x, y) | half(x >> 16, y >> 16) << 16;
#endif
}

/// The products of a pair of bf16 or f16 and one half of another word (0: the lower one), rounded
/// the same way. With a constant `half` the multiplication takes it for both: no instruction of its
/// own.
template <DType Type>
WW_DEVICE std::uint32_t multiply_pairs_by_half(std::uint32_t x, std::uint32_t y, int half) {
#if WW_GPU
  std::uint32_t both = 0;
  if (half == 0) {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {low, low};\n\t}"
        : "=r"(both)
        : "r"(y));
  } else {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {high, high};\n\t}"
        : "=r"(both)
        : "r"(y));
  }
  return multiply_pairs<Type>(x, both);
#else
  return multiply_pairs<Type>(x, (half == 0 ? y & 0xffffU : y >> 16) * 0x00010001U);
#endif
}

/// The differences of two pairs of bf16 or f16, each rounded to nearest even; subnormal ones count
/// (sub.rn.bf16x2, sm_90 and later; sub.rn.f16x2).
template <DType Type>
WW_DEVICE std::uint32_t subtract_pairs(std::uint32_t x, std::uint32_t y) {
  static_assert(Type == DType::bf16 || Type == DType::f16);
#if WW_GPU
  std::uint32_t difference = 0;
  if constexpr (Type == DType::bf16) {
    asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
  } else {
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
  }
  return difference;
#else
  const auto half = [](std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(numeric::from_double(
        Type, numeric::to_double(Type, a & 0xffffU) - numeric::to_double(Type, b & 0xffffU)));
  };
  return half(x, y) | half(x >> 16, y >> 16) << 16;
#endif
}

/// x y - z of pairs of bf16 or f16, each rounded once to nearest even; subnormal ones count
/// (fma.rn.bf16x2, fma.rn.f16x2).
template <DType Type>
WW_DEVICE std::uint32_t multiply_subtract_pairs(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  static_assert(Type == DType::bf16 || Type == DType::f16);
#if WW_GPU
  std::uint32_t difference = 0;
  if constexpr (Type == DType::bf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(difference) : "r"(x), "r"(y), "r"(z ^ 0x80008000U));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(difference) : "r"(x), "r"(y), "r"(z ^ 0x80008000U));
  }
  return difference;
#else
  // The product is exact in float64; so is the difference but where exponents lie 30 or more apart.
  const auto half = [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const auto value = [](std::uint32_t bits) { return numeric::to_double(Type, bits & 0xffffU); };
    return static_cast<std::uint32_t>(numeric::from_double(Type, value(a) * value(b) - value(c)));
  };
  return half(x, y, z) | half(x >> 16, y >> 16, z >> 16) << 16;
#endif
}

/// x & mask | bits (lop3.b32): one instruction, where the compiler may make two of two constants.
WW_DEVICE std::uint32_t and_or(std::uint32_t x, std::uint32_t mask, std::uint32_t bits) {
#if WW_GPU
  std::uint32_t result = 0;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(x), "r"(mask), "r"(bits));
  return result;
#else
  return (x & mask) | bits;
#endif
}

/// Two halves of f16 rounded to nearest even to e4m3, those beyond the largest number becoming it,
/// and packed, the lower half in the lower byte (cvt.rn.satfinite.e4m3x2.f16x2).
WW_DEVICE std::uint16_t bytes_of_halves(std::uint32_t halves) {
#if WW_GPU
  std::uint16_t bytes = 0;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(bytes) : "r"(halves));
  return bytes;
#else
  const auto byte = [](std::uint32_t half) {
    return static_cast<unsigned>(
        numeric::from_double(DType::e4m3, numeric::to_double(DType::f16, half & 0xffffU),
                             numeric::Rounding::nearest_even, numeric::Overflow::saturate));
  };
  return static_cast<std::uint16_t>(byte(halves) | byte(halves >> 16) << 8);
#endif
}

/// Four of the eight bytes of `low` and `high`: which, is in the bits 2..0 of the lower four
/// nibbles of `selectors`, whose bits 3 are 0 (prmt.b32).
WW_DEVICE std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high,
                                      std::uint32_t selectors) {
#if WW_GPU
  std::uint32_t chosen = 0;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(selectors));
  return chosen;
#else
  const std::uint64_t bytes = low | std::uint64_t{high} << 32;
  std::uint32_t chosen = 0;
  for (int i = 0; i < 4; ++i) {
    chosen |= static_cast<std::uint32_t>(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return chosen;
#endif
}

/// x * y + z, rounded once (fma.rn.f32).
WW_DEVICE float multiply_add(float x, float y, float z) {
#if WW_GPU
  return __fmaf_rn(x, y, z);
#else
  return std::fma(x, y, z);
#endif
}

/// x with the sign of `sign`; NaN stays NaN (copysign).
WW_DEVICE float with_sign(float x, float sign) {
#if WW_GPU
  return copysignf(x, sign);
#else
  return std::copysign(x, sign);
#endif
}

/// The larger of `largest`, a number, and of |x|; a NaN x does not count (max.f32).
WW_DEVICE float larger_magnitude(float largest, float x) {
#if WW_GPU
  return fmaxf(largest, fabsf(x));
#else
  return std::fmax(largest, std::fabs(x));
#endif
}

/// The larger of `least`, a number, and of x; `least` where x is NaN (max.f32).
WW_DEVICE float at_least(float least, float x) {
#if WW_GPU
  return fmaxf(least, x);
#else
  return std::fmax(least, x);
#endif
}

/// 1 / (1 + exp(-x)), with a relative error below 2^-20 for x > -16, and 2^-17 below (ex2.approx
/// and rcp.approx on the GPU).
WW_DEVICE float sigmoid(float x) {
#if WW_GPU
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-1.44269504F * x));
  return __fdividef(1.0F, 1.0F + power);
#else
  return 1.0F / (1.0F + std::exp(-x));
#endif
}

/// The share of a normal distribution below x, erfc(-x / sqrt(2)) / 2, with a relative error below
/// 2^-20 and, for x < 0, x^2 2^-22 more (erfcf of CUDA on the GPU, which keeps what 1 + erf loses).
WW_DEVICE float share_below(float x) {
  const float z = -0.707106781F * x;
#if WW_GPU
  return 0.5F * erfcf(z);
#else
  return 0.5F * std::erfc(z);
#endif
}

/// The value itself. The compiler computes nothing from it before: what has been asked of memory is
/// waited for here, not where it was asked for.
WW_DEVICE float used_here(float value) {
#if WW_GPU
  asm volatile("" : "+f"(value)::"memory");
#endif
  return value;
}

}  // namespace warpwright::isa
