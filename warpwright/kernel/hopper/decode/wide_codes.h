// What 4-bit codes become for tokens of 16 bits: bf16 or f16, in whose bits they are placed, and
// where these count (facts/packed_e2m1.h has the words).
//
//   e2m1   sign, exponent and mantissa are upper bits of the float, which is subnormal or nearly: a
//          power of two times the code. A factor, 2^x or the scale of nvf4 in another power of two,
//          makes the weight of it
//   int4   a code plus 8 is the lower bits of a float of 128 or 1024
#pragma once

#include <cstdint>

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/isa/config.h"
#include "warpwright/numeric/types.h"

namespace warpwright::kernel {

template <DType type>
struct WideCodes {
  static_assert(type == DType::bf16 || type == DType::f16);
  static constexpr bool is_bf16 = type == DType::bf16;
  static constexpr std::uint32_t int4_base = is_bf16 ? 0x43004300U : 0x64006400U;  // 128, 1024

  static constexpr std::uint32_t sixteenth = 0x2c002c00U;  // of f16

  /// In both halves what codes of a row (0, or 1 for the eighth row below) with this zero point are
  /// less their base. Those of f16's row 1 have been divided by 16 with it.
  WW_DEVICE static std::uint32_t int4_less(int row, std::uint32_t zero) {
    if (is_bf16 || row == 0) return int4_base + zero * 0x00010001U;
    return 0x54005400U + zero * 0x00100010U;  // 64
  }

  /// Factors of two slices of a row, one in each half, of four bytes of its scales: those of the
  /// even bytes (`odd` 0), or of the odd ones. For exponents x they are 2^(x + 64) for bf16 and
  /// 2^(x - 9) for f16; for a ue4m3 as it is stored 2^119 and 2^7 times it. The codes' bits are
  /// 2^-126 and 2^-14 of what they stand for. So weights are 2^(x - 62) and 2^(x - 23), or 2^-7, of
  /// themselves.
  template <bool of_exponents>
  WW_DEVICE static std::uint32_t factors(std::uint32_t bytes, int odd) {
    const std::uint32_t shifted = odd == 0 ? bytes : bytes >> 8;
    if constexpr (of_exponents) {
      const std::uint32_t x = shifted & packed::kExponentMask * 0x00010001U;
      return is_bf16 ? 0x5f805f80U + x * 0x80U : 0x18001800U + x * 0x400U;
    } else {
      const std::uint32_t stored = shifted & 0x00ff00ffU;
      return is_bf16 ? 0x76807680U + stored * 0x10U : 0x34003400U + stored * 0x80U;
    }
  }
};

}  // namespace warpwright::kernel
