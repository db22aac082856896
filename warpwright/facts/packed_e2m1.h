// The packed form of e2m1 weights (mxf4, nvf4), as values: its words, and how their scales are
// stored; and the words of int4 weights for tokens of 16 bits. Tiles, lanes and the order of all
// are those of packed_weights.h.
//
// A word has the bits of eight codes: of four of a row in the even nibbles, of the eighth row below
// in the odd ones. For tokens of e4m3 these four are neighbours along K, and a table of bytes makes
// e5m2 of them; for tokens of 16 bits they are k, k + 1, k + 8, k + 9, and become the upper bits of
// such floats: two for each of four registers.
#pragma once

#include <utility>

#include "warpwright/facts/packed_weights.h"

namespace warpwright::packed {

/// Are codes floats, with a byte a scale? Else they are whole numbers.
constexpr bool has_float_codes(const PackedFormat& f) {
  return numeric::is_float(f.code);
}

/// Do codes get their scales before they are multiplied?
constexpr bool folds(const PackedFormat& f) {
  return f.exponents == Exponents::of_rows || f.scale == DType::ue4m3;
}

// --- words -------------------------------------------------------------------------------------
/// For e4m3: magnitudes of the row in the lower four nibbles, where a byte permutation takes its
/// selectors from, those of the eighth row below in the upper ones. Signs are in the nibbles' bits
/// 3: the odd ones are where the row's four bytes have theirs, the even ones 4 bits below where the
/// other row's have.
constexpr std::uint32_t table_word(std::uint32_t bits) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t row = bits >> 8 * i;
    const std::uint32_t below = bits >> (8 * i + 4);
    word |= (row & 7U) << 4 * i | (below & 7U) << (16 + 4 * i);
    word |= (row & 8U) << (8 * i + 4) | (below & 8U) << 8 * i;
  }
  return word;
}
constexpr std::uint32_t bits_of_table_word(std::uint32_t word) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t row = (word >> 4 * i & 7U) | (word >> (8 * i + 4) & 8U);
    const std::uint32_t below = (word >> (16 + 4 * i) & 7U) | (word >> 8 * i & 8U);
    bits |= row << 8 * i | below << (8 * i + 4);
  }
  return bits;
}

/// For tokens of 16 bits: what a word becomes, four registers of two codes each, as upper bits of
/// such floats. Sign, exponent and mantissa of a code are bits 15 and 8 to 6 of bf16, or 15 and 11
/// to 9 of f16. Four shifted copies of a word cannot have each of its bits in such a place once. So
/// a register is a copy, or two that are added modulo 2 and masked, which is one instruction. The
/// word follows from these (`half_word`).
struct HalfRegisters {
  std::uint32_t of[4];
};
constexpr HalfRegisters half_registers(DType tokens, std::uint32_t word) {
  if (tokens == DType::f16) {
    constexpr std::uint32_t places = 0x8e008e00U;
    return {{(word ^ word << 2) & places, (word ^ word << 6) & places, (word ^ word << 9) & places,
             (word ^ word >> 3) & places}};
  }
  constexpr std::uint32_t places = 0x81c081c0U;
  return {{word & places, (word ^ word << 6) & places, (word ^ (word << 12 | word >> 20)) & places,
           (word << 2 ^ word >> 6) & places}};
}
constexpr std::uint32_t bits_of_half_word(DType tokens, std::uint32_t word) {
  const HalfRegisters registers = half_registers(tokens, word);
  const int lowest = tokens == DType::f16 ? 9 : 6;
  std::uint32_t bits = 0;
  for (int r = 0; r < 4; ++r) {
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t code = registers.of[r] >> 16 * half;
      const int i = r / 2 * 2 + half;  // of the four of a row
      bits |= ((code >> lowest & 7U) | (code >> 12 & 8U)) << (8 * i + r % 2 * 4);
    }
  }
  return bits;
}

/// For each bit of eight codes the word that stands only for it: the inverse of
/// bits_of_half_word, which is linear modulo 2.
struct HalfWords {
  std::uint32_t of[32];
};
constexpr HalfWords half_words(DType tokens) {
  HalfWords words{};
  std::uint32_t bits[32] = {};
  for (int i = 0; i < 32; ++i) {
    words.of[i] = 1U << i;
    bits[i] = bits_of_half_word(tokens, words.of[i]);
  }
  for (int i = 0; i < 32; ++i) {  // Gauss and Jordan: bits[i] becomes 1 << i
    int from = i;
    while (from < 31 && (bits[from] >> i & 1U) == 0) ++from;
    const std::uint32_t row = bits[from];
    const std::uint32_t word = words.of[from];
    bits[from] = bits[i];
    words.of[from] = words.of[i];
    bits[i] = row;
    words.of[i] = word;
    for (int other = 0; other < 32; ++other) {
      if (other == i || (bits[other] >> i & 1U) == 0) continue;
      bits[other] ^= row;
      words.of[other] ^= word;
    }
  }
  return words;
}
inline constexpr HalfWords kBf16Words = half_words(DType::bf16);
inline constexpr HalfWords kF16Words = half_words(DType::f16);
/// (Constants one by one: device code has no tables of the host's.)
template <DType tokens, int... i>
constexpr std::uint32_t half_word_of(std::uint32_t bits, std::integer_sequence<int, i...> /*all*/) {
  using Word = std::uint32_t;
  return (
      ... ^
      (std::integral_constant<Word, (tokens == DType::f16 ? kF16Words : kBf16Words).of[i]>::value &
       (0U - (bits >> i & 1U))));
}
constexpr std::uint32_t half_word(DType tokens, std::uint32_t bits) {
  constexpr auto all = std::make_integer_sequence<int, 32>{};
  return tokens == DType::f16 ? half_word_of<DType::f16>(bits, all)
                              : half_word_of<DType::bf16>(bits, all);
}

/// For int4 and tokens of 16 bits: a half of the word has the codes that go into registers 0 to 3
/// in its four nibbles, each plus 8, from 0 to 15: as lower bits of a bf16 of 128 they are 128
/// more, of an f16 of 1024 as many. Canonical bits are those of ex.
constexpr std::uint32_t nibble_word(std::uint32_t bits) {
  std::uint32_t word = 0;
  for (int r = 0; r < 4; ++r) {
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t code = bits >> (8 * (r / 2 * 2 + half) + r % 2 * 4) & 15U;
      word |= (code ^ (code < 8 ? 8U : 15U)) << (16 * half + 4 * r);
    }
  }
  return word;
}
constexpr std::uint32_t bits_of_nibble_word(std::uint32_t word) {
  std::uint32_t bits = 0;
  for (int r = 0; r < 4; ++r) {
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t stored = word >> (16 * half + 4 * r) & 15U;
      bits |= (stored ^ (stored < 8 ? 15U : 8U)) << (8 * (r / 2 * 2 + half) + r % 2 * 4);
    }
  }
  return bits;
}

/// The word of any format, and its bits.
constexpr std::uint32_t word_of(const PackedFormat& f, std::uint32_t bits) {
  if (!has_float_codes(f)) return is_wide(f) ? nibble_word(bits) : word_of(bits);
  return is_wide(f) ? half_word(f.tokens, bits) : table_word(bits);
}
constexpr std::uint32_t bits_of(const PackedFormat& f, std::uint32_t word) {
  if (!has_float_codes(f)) return is_wide(f) ? bits_of_nibble_word(word) : bits_of(word);
  return is_wide(f) ? bits_of_half_word(f.tokens, word) : bits_of_table_word(word);
}
/// From one of a row's four codes of a word to the next, along K.
constexpr int quad_step(const PackedFormat& f, int i) {
  return is_wide(f) && i > 1 ? i + 6 : i;
}

// --- exponents of rows ---------------------------------------------------------------------------
// A row's four bytes of a tile have exponents x, in their low six bits, and in the upper two those
// of its unit v, the lowest first: the scale is 2^(x - bias) * 2^(v - 127). Kernels fold the first
// factor into the codes and multiply sums by the other.

inline constexpr int kExponentBits = 6;
inline constexpr std::uint32_t kExponentMask = (1U << kExponentBits) - 1;
struct ExponentRange {
  int bias;
  int most;  ///< x is 0 to this
};
/// In e5m2 a half times 2^-13 is the least normal number, and 6 times 2^13 below the largest one.
/// In f16 a half times 2^-23 is the least number, and above 6 times 2 no code times 2^-14, which
/// its bits are, is made by one factor.
constexpr ExponentRange exponent_range(DType tokens) {
  return tokens == DType::bf16  ? ExponentRange{62, 63}
         : tokens == DType::f16 ? ExponentRange{23, 24}
                                : ExponentRange{13, 26};
}
/// The unit with which the largest of a row's ue8m0 scales has the largest exponent, or nearly.
constexpr int unit_of_largest(DType tokens, int largest) {
  const ExponentRange range = exponent_range(tokens);
  const int unit = largest + range.bias - range.most;
  return unit < 1 ? 1 : unit > 254 ? 254 : unit;
}
/// The exponent of a scale under a unit; one that is out of 0 to `most` has no place.
constexpr int exponent_under(DType tokens, int unit, int scale) {
  return scale - unit + exponent_range(tokens).bias;
}
constexpr std::uint32_t exponent_byte(int exponent, int unit, int slice) {
  return static_cast<std::uint32_t>(exponent) | (static_cast<std::uint32_t>(unit) >> 2 * slice & 3U)
                                                    << kExponentBits;
}
/// Have all scales of a row from `least` to `largest` such exponents?
constexpr bool spans(DType tokens, int least, int largest) {
  const int unit = unit_of_largest(tokens, largest);
  return exponent_under(tokens, unit, least) >= 0 &&
         exponent_under(tokens, unit, largest) <= exponent_range(tokens).most;
}
/// The unit in a row's four bytes.
constexpr std::uint32_t unit_in(std::uint32_t word) {
  return (word >> 6 & 3U) | (word >> 12 & 0xcU) | (word >> 18 & 0x30U) | (word >> 24 & 0xc0U);
}

// --- ue4m3 scales --------------------------------------------------------------------------------
// They are stored without subnormals: 2^(e - 9) (1 + m / 8) as 8 e + m, so that an addition makes
// bf16 of it. A scale of 0 has codes 0.

constexpr std::uint32_t stored_ue4m3(std::uint32_t code) {
  int exponent = static_cast<int>(code >> 3);
  std::uint32_t mantissa = code & 7U;
  if (exponent > 0) return static_cast<std::uint32_t>(exponent + 2) << 3 | mantissa;
  if (mantissa == 0) return 0;
  for (exponent = 3; mantissa < 8; mantissa <<= 1) --exponent;
  return static_cast<std::uint32_t>(exponent) << 3 | (mantissa & 7U);
}

/// The byte that is stored for a scale, or for -1: of codes that are all 0, or of none. `unit`: of
/// its row, where that has one.
constexpr std::uint32_t stored_byte(const PackedFormat& f, int unit, int slice, int scale) {
  if (f.scale == DType::ue4m3) {
    return scale < 0 ? 0 : stored_ue4m3(static_cast<std::uint32_t>(scale));
  }
  if (f.exponents == Exponents::own) return scale < 0 ? 127 : static_cast<std::uint32_t>(scale);
  return exponent_byte(
      scale < 0 ? exponent_range(f.tokens).bias : exponent_under(f.tokens, unit, scale), unit,
      slice);
}

/// Where the scale byte of (row, slice) is among a tile's: a row's are side by side, behind them
/// those of the eighth row below, which the same threads have.
constexpr int scale_byte(const PackedFormat& f, int row, int slice) {
  const int pair = row / 16 * 8 + row % 8;
  return (2 * pair + row / 8 % 2) * slices(f) + slice;
}

// --- values ------------------------------------------------------------------------------------
/// The scale whose byte is `byte`, in a row with the unit `unit`.
constexpr double scale_value(const PackedFormat& f, std::uint32_t byte, std::uint32_t unit) {
  const auto power = [](int exponent) {
    double x = 1;
    for (; exponent > 0; --exponent) x *= 2;
    for (; exponent < 0; ++exponent) x /= 2;
    return x;
  };
  if (f.scale == DType::ue4m3) {
    return power(static_cast<int>(byte >> 3) - 9) * (1 + static_cast<double>(byte & 7U) / 8);
  }
  if (f.exponents == Exponents::own) return power(static_cast<int>(byte) - 127);
  return power(static_cast<int>(byte & kExponentMask) - exponent_range(f.tokens).bias +
               static_cast<int>(unit) - 127);
}

}  // namespace warpwright::packed
