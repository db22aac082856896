// Pieces of rows of 16-bit elements, or of codes of a byte, from and to anywhere: 16 bytes at once
// where lines begin at multiples of 16 bytes, element by element elsewhere and at the end of a row.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"

namespace warpwright::kernel {

/// Eight elements of 16 bits.
using Eight = isa::Words<4>;

/// Do all lines begin at multiples of N bytes?
template <int N>
WW_DEVICE bool begin_at_multiples(const void* address, std::int64_t pitch) {
  return isa::bytes_past<N>(address) == 0 && pitch % N == 0;
}

/// Elements of a row of `k` from `column` on, a multiple of their number, two a word; those behind
/// the row come as 0. `whole`: begin_at_multiples of as many bytes.
template <int words>
WW_DEVICE isa::Words<words> load_elements(const unsigned char* row, int column, int k, bool whole) {
  const unsigned char* const at = row + std::int64_t{column} * 2;
  if (whole && column + 2 * words <= k) return isa::global_view<const isa::Words<words>>(at).load();
  const auto element = isa::global_view<const std::uint16_t>(at);
  isa::Words<words> all;
  WW_UNROLL
  for (int i = 0; i < words; ++i) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    if (column + 2 * i < k) low = element.load(2 * i);
    if (column + 2 * i + 1 < k) high = element.load(2 * i + 1);
    all.word[i] = low | high << 16;
  }
  return all;
}
WW_DEVICE
Eight load_eight(const unsigned char* row, int column, int k, bool whole) {
  return load_elements<4>(row, column, k, whole);
}

/// Stores them; what would lie behind the row is left out.
template <int words>
WW_DEVICE void store_elements(unsigned char* row, int column, int k, bool whole,
                              const isa::Words<words>& all) {
  unsigned char* const at = row + std::int64_t{column} * 2;
  if (whole && column + 2 * words <= k) {
    isa::global_view<isa::Words<words>>(at).store(0, all);
    return;
  }
  const auto element = isa::global_view<std::uint16_t>(at);
  WW_UNROLL
  for (int i = 0; i < 2 * words; ++i) {
    if (column + i < k) {
      element.store(i, static_cast<std::uint16_t>(all.word[i / 2] >> 16 * (i % 2)));
    }
  }
}
WW_DEVICE
void store_eight(unsigned char* row, int column, int k, bool whole, const Eight& eight) {
  store_elements(row, column, k, whole, eight);
}

/// Sixteen codes of a byte.
using Sixteen = isa::Words<4>;

/// What is above the lowest byte, below `top`.
WW_DEVICE
Sixteen shifted_by_a_code(const Sixteen& codes, std::uint32_t top) {
  const auto both = [](std::uint32_t low, std::uint32_t high) { return low >> 8 | high << 24; };
  return {{both(codes.word[0], codes.word[1]), both(codes.word[1], codes.word[2]),
           both(codes.word[2], codes.word[3]), both(codes.word[3], top)}};
}

/// As load_eight and store_eight, for codes of a row of `k` from `column` on, a multiple of 16. One
/// by one they go by a loop, which is short.
WW_DEVICE
Sixteen load_sixteen(const unsigned char* row, int column, int k, bool whole) {
  const unsigned char* const at = row + column;
  if (whole && column + 16 <= k) return isa::global_view<const Sixteen>(at).load();
  Sixteen codes{};
  WW_NO_UNROLL
  for (int i = 0; i < 16; ++i) {
    std::uint32_t code = 0;
    if (column + i < k) code = isa::GlobalView<const unsigned char>{at}.load(i);
    codes = shifted_by_a_code(codes, code);
  }
  return codes;
}
WW_DEVICE
void store_sixteen(unsigned char* row, int column, int k, bool whole, const Sixteen& codes) {
  unsigned char* const at = row + column;
  if (whole && column + 16 <= k) {
    isa::global_view<Sixteen>(at).store(0, codes);
    return;
  }
  Sixteen left = codes;
  WW_NO_UNROLL
  for (int i = 0; i < 16; ++i) {
    if (column + i < k) {
      isa::GlobalView<unsigned char>{at}.store(i, static_cast<unsigned char>(left.word[0]));
    }
    left = shifted_by_a_code(left, 0);
  }
}

}  // namespace warpwright::kernel
