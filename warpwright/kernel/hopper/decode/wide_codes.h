// What 4-bit codes become for tokens of 16 bits: bf16 or f16, in whose bits they are placed, and
// where these count (facts/packed_e2m1.h has the words).
//
//   e2m1   sign, exponent and mantissa are upper bits of the float, which is subnormal or nearly: a
//          power of two times the code. A factor, 2^x or the scale of nvf4 in another power of two,
//          makes the weight of it
//   int4   a code plus 8 is the lower bits of a float of 128 or 1024
#pragma once

#include <cstdint>

#include "warpwright/isa/config.h"
#include "warpwright/numeric/types.h"

namespace warpwright::kernel {

template <DType type>
struct WideCodes;

template <>
struct WideCodes<DType::bf16> {
  static constexpr std::uint32_t int4_base = 0x43004300U;  // 128

  /// The bits of four registers: 2^-126 of what the codes stand for.
  WW_DEVICE static void place(std::uint32_t word, std::uint32_t (&to)[4]) {
    constexpr std::uint32_t places = 0x81c081c0U;
    to[0] = word & places;
    to[1] = word << 3 & places;
    to[2] = word << 6 & places;
    to[3] = (word >> 6 & 0x01800180U) | (word >> 5 & 0x00400040U) | (word << 5 & 0x80008000U);
  }
  /// In both halves 2^(x + 64) of an exponent, and 2^119 times a ue4m3 as it is stored: so weights
  /// are 2^(x - 62) and 2^-7 of themselves.
  WW_DEVICE static std::uint32_t of_exponent(std::uint32_t x) {
    return 0x5f805f80U + x * 0x00800080U;
  }
  WW_DEVICE static std::uint32_t of_ue4m3(std::uint32_t stored) {
    return 0x76807680U + stored * 0x00100010U;
  }
};

template <>
struct WideCodes<DType::f16> {
  static constexpr std::uint32_t int4_base = 0x64006400U;  // 1024

  /// 2^-14 of what the codes stand for.
  WW_DEVICE static void place(std::uint32_t word, std::uint32_t (&to)[4]) {
    constexpr std::uint32_t places = 0x8e008e00U;
    constexpr std::uint32_t magnitudes = 0x0e000e00U;
    constexpr std::uint32_t sign = 0x80008000U;
    to[0] = word & places;
    to[1] = word << 3 & places;
    to[2] = (word << 6 & magnitudes) | (word << 1 & sign);
    to[3] = (word << 9 & magnitudes) | (word << 2 & sign);
  }
  /// 2^(x - 9), and 2^7 times a ue4m3: weights are 2^(x - 23) and 2^-7 of themselves.
  WW_DEVICE static std::uint32_t of_exponent(std::uint32_t x) {
    return 0x18001800U + x * 0x04000400U;
  }
  WW_DEVICE static std::uint32_t of_ue4m3(std::uint32_t stored) {
    return 0x34003400U + stored * 0x00800080U;
  }
};

}  // namespace warpwright::kernel
