// Eight neighbours along K on their way to codes, as a lane has them: for kernels that quantise
// rows as they lie (pieces.h), and for those that move rows to experts (moe/token_pieces.h).
#pragma once

#include <cstdint>

#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/e4m3_divisor.h"

namespace warpwright::kernel {

/// Eight values as codes of `element`, the first in the lowest bits.
template <DType element>
WW_DEVICE std::uint64_t codes_of(const float (&value)[8]) {
  std::uint64_t codes = 0;
  WW_UNROLL
  for (int i = 0; i < 8; i += 2) {
    constexpr int bits = numeric::bits(element);
    std::uint32_t two = 0;
    if constexpr (bits == 8) {
      two = isa::pack_bytes<element>(value[i], value[i + 1]);
    } else {  // the instruction is not in all targets
      two = micro::code(element, value[i]) | micro::code(element, value[i + 1]) << bits;
    }
    codes |= std::uint64_t{two} << i * bits;
  }
  return codes;
}

/// Eight values of rows or blocks whose largest has become the scale, as codes of e4m3.
WW_DEVICE std::uint64_t codes_of(const E4m3Divisor& by, const float (&value)[8]) {
  float quotient[2][4];
  if (by.is_usual()) [[likely]] {
    WW_UNROLL
    for (int i = 0; i < 8; ++i) quotient[i / 4][i % 4] = by.usual_quotient(value[i]);
  } else {
    WW_UNROLL
    for (int i = 0; i < 8; ++i) quotient[i / 4][i % 4] = by.quotient(value[i]);
  }
  return isa::pack_codes<DType::e4m3>(quotient[0]) |
         std::uint64_t{isa::pack_codes<DType::e4m3>(quotient[1])} << 32;
}

/// Stores `count` codes of `bits` each, all eight where they are there. `whole`: rows of codes
/// begin at multiples of what is stored at once.
template <int bits>
WW_DEVICE void store_codes(unsigned char* at, std::uint64_t codes, int count, bool whole) {
  if (whole && count >= 8) {
    if constexpr (bits == 8) {
      isa::global_view<std::uint64_t>(at).store(0, codes);
    } else if constexpr (bits == 4) {
      isa::global_view<std::uint32_t>(at).store(0, static_cast<std::uint32_t>(codes));
    } else {
      WW_UNROLL
      for (int i = 0; i < 3; ++i) {
        isa::global_view<std::uint16_t>(at).store(i, static_cast<std::uint16_t>(codes >> 16 * i));
      }
    }
    return;
  }
  WW_UNROLL
  for (int i = 0; i < bits; ++i) {
    if (i < count * bits / 8) {
      isa::GlobalView<unsigned char>{at}.store(i, static_cast<unsigned char>(codes >> 8 * i));
    }
  }
}

/// A block of a micro format: as many neighbours as share a scale, in lanes side by side.
template <DType element, DType scale>
struct MicroBlock {
  static constexpr int size = micro_block(scale);
  static constexpr int lanes = size / 8;

  /// All its lanes: the largest magnitude, as its scale is made of it.
  WW_DEVICE static std::uint32_t largest(const float (&value)[8]) {
    std::uint32_t all = 0;
    WW_UNROLL
    for (int i = 0; i < 8; ++i) all = micro::larger(all, micro::magnitude(value[i], element));
    WW_UNROLL
    for (int far = 1; far < lanes; far *= 2) {
      all = micro::larger(all, isa::shuffle(all, isa::lane_index() ^ far));
    }
    return all;
  }

  /// All lanes of a warp: the scales of four blocks next to each other, a word of a tile. This
  /// one's is number `number` of its row.
  WW_DEVICE static std::uint32_t word_of_scales(std::uint32_t code, int number) {
    std::uint32_t word = code << 8 * (number % 4);
    WW_UNROLL
    for (int far = lanes; far < 4 * lanes; far *= 2) {
      word |= isa::shuffle(word, isa::lane_index() ^ far);
    }
    return word;
  }
};

}  // namespace warpwright::kernel
