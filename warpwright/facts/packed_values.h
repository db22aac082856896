// The codes, scales and zero points of a packed tile, on the host.
#pragma once

#include <cstddef>
#include <cstring>

#include "warpwright/facts/packed_places.h"
#include "warpwright/facts/weight_forms.h"

namespace warpwright::packed {

/// The four bits of a tile's codes, by row and k.
using TileCodes = std::uint8_t[kTileRows][kTileK];

inline void put_codes(const TileCodes& codes, const PackedFormat& f, std::byte* tile) {
  for (int word = 0; word < kTileCodeBytes / 4; ++word) {
    const auto [row, k] = word_place(f, word);
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const int at = k + quad_step(f, i);
      bits |= static_cast<std::uint32_t>(codes[row][at] | codes[row + 8][at] << 4) << 8 * i;
    }
    bits = word_of(f, bits);
    std::memcpy(tile + 4 * word, &bits, 4);
  }
}
inline void take_codes(const std::byte* tile, const PackedFormat& f, TileCodes& codes) {
  for (int word = 0; word < kTileCodeBytes / 4; ++word) {
    const auto [row, k] = word_place(f, word);
    std::uint32_t bits = 0;
    std::memcpy(&bits, tile + 4 * word, 4);
    bits = bits_of(f, bits);
    for (int i = 0; i < 4; ++i, bits >>= 8) {
      const int at = k + quad_step(f, i);
      codes[row][at] = bits & 15U;
      codes[row + 8][at] = bits >> 4 & 15U;
    }
  }
}

inline double scale_in(const std::byte* tile, const PackedFormat& f, int row, int slice) {
  std::uint32_t word = 0;
  if (has_float_codes(f)) {
    const std::byte* const bytes = tile + scales_begin() + scale_byte(f, row, 0);
    std::memcpy(&word, bytes, 4);
    return scale_value(f, static_cast<std::uint32_t>(bytes[slice]),
                       f.exponents == Exponents::of_rows ? unit_in(word) : 0);
  }
  const int size = numeric::bits(f.scale) / 8;
  std::memcpy(&word, tile + scales_begin() + layout::offset_of<kScales>(row, slice) * size,
              static_cast<std::size_t>(size));
  return numeric::to_double(f.scale, word) / kScaleFactor;
}

/// 8 where there are none.
inline int zero_point_in(const std::byte* tile, const PackedFormat& f, int row, int slice) {
  if (f.zero_points == ZeroPoints::none) return 8;
  const auto place = layout::offset_of<kZeroPoints>(row, slice);
  return static_cast<int>(tile[zero_points_begin(f) + place / 2] >> place % 2 * 4) & 15;
}

}  // namespace warpwright::packed
