// Random weights in their packed form, beside the values that they stand for: put together
// from the places that facts/packed_places.h derives, by no packer.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/reference.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/kernel/hopper/limits.h"

namespace warpwright::tests {

/// The weights as both sides see them.
struct Packed {
  Packed() = default;
  /// With `powers` scales are powers of two: folded ones are exact then.
  Packed(PackedFormat of, packed::Extents has, std::mt19937& random, bool powers = false)
      : format(of), extents(has), powers_(powers) {
    tiles = Tensor(DType::u8, 1, packed::data_bytes(format, extents), 0);
    values = Tensor(DType::f32, extents.n, extents.k, extents.k, 1, extents.experts,
                    extents.n * extents.k);
    for (std::int64_t expert = 0; expert < extents.experts; ++expert) {
      for (std::int64_t row = 0; row < packed::row_tiles(extents); ++row) {
        for (std::int64_t k = 0; k < packed::k_tiles(extents); ++k) fill(expert, row, k, random);
      }
    }
  }

  /// As B of a product; with the tiles in a copy at `base`.
  [[nodiscard]] MatrixView view(void* base = nullptr) const {
    return {tiles.view(base).data, format.code,          extents.n, extents.k, extents.k, 1,
            extents.experts,       extents.n * extents.k};
  }

  PackedFormat format;
  packed::Extents extents;
  Tensor tiles;
  Tensor values;

 private:
  bool powers_ = false;

  void fill(std::int64_t expert, std::int64_t row_tile, std::int64_t k_tile, std::mt19937& random) {
    if (format.code == DType::e2m1) return fill_e2m1(expert, row_tile, k_tile, random);
    std::vector<std::uint32_t> words(packed::kTileCodeBytes / 4);
    std::byte* const tile =
        tiles.address(0, 0, 0) +
        packed::tile_index(extents, expert, row_tile, k_tile) * packed::tile_bytes(format);
    if (format.zero_points != ZeroPoints::none) {
      std::memset(tile + packed::zero_points_begin(format), 0, packed::kZeroPointBytes);
    }
    const int least = packed::least_code(format.encoding);
    for (int row = 0; row < packed::kTileRows; ++row) {
      const std::int64_t n = row_tile * packed::kTileRows + row;
      double scale = 1;
      for (int slice = 0; slice < packed::slices(format); ++slice) {
        const bool is_there = n < extents.n;
        const double drawn = !is_there ? 1
                             : powers_ ? std::ldexp(1, static_cast<int>(random() % 9) - 6)
                                       : static_cast<int>(16 + random() % 16) / 128.0;
        // Behind K the last scale, as the packer has it.
        if (k_tile * packed::kTileK + slice * format.group < extents.k) scale = drawn;
        int zero = 8;
        if (format.zero_points != ZeroPoints::none) {
          if (is_there) zero = static_cast<int>(random() % 16);
          const auto at = layout::offset_of<packed::kZeroPoints>(row + packed::kTileRows * slice);
          tile[packed::zero_points_begin(format) + at / 2] |=
              static_cast<std::byte>(zero << 4 * (at % 2));
        }
        const std::uint64_t stored =
            numeric::from_double(format.scale, scale * packed::kScaleFactor);
        const int width = numeric::bits(format.scale) / 8;
        const auto place =
            layout::offset_of<packed::kScales>(row + packed::kTileRows * slice) * width;
        std::memcpy(tile + packed::scales_begin() + place, &stored, index(width));
        for (int i = 0; i < format.group; ++i) {
          const int in_tile = slice * format.group + i;
          const std::int64_t k = k_tile * packed::kTileK + in_tile;
          if (n >= extents.n || k >= extents.k) continue;
          const int code = least + static_cast<int>(random() % static_cast<unsigned>(8 - least));
          values.set(expert, n, k, scale * (code + 8 - zero));
          const std::int64_t at = row + packed::kTileRows * in_tile;
          const auto nibble = packed::is_wide(format) ? layout::offset_of<packed::kNibbles16>(at)
                                                      : layout::offset_of<packed::kNibbles>(at);
          words[index(nibble / 8)] |= packed::code_bits(code, format.encoding) << 4 * (nibble % 8);
        }
      }
    }
    for (std::uint32_t& word : words) word = packed::word_of(format, word);
    std::memcpy(tile, words.data(), packed::kTileCodeBytes);
  }

  // Rows have units of their own, the same in all k_tiles; scales of many powers of two.
  void fill_e2m1(std::int64_t expert, std::int64_t row_tile, std::int64_t k_tile,
                 std::mt19937& random) {
    std::vector<std::uint32_t> words(packed::kTileCodeBytes / 4);
    std::byte* const tile =
        tiles.address(0, 0, 0) +
        packed::tile_index(extents, expert, row_tile, k_tile) * packed::tile_bytes(format);
    const bool wide = packed::is_wide(format);
    for (int row = 0; row < packed::kTileRows; ++row) {
      const std::int64_t n = row_tile * packed::kTileRows + row;
      const int unit = (wide ? 128 : 120) + static_cast<int>((expert + n) % 5);
      std::byte* const bytes = tile + packed::scales_begin() + packed::scale_byte(format, row, 0);
      for (int slice = 0; slice < packed::slices(format); ++slice) {
        // Around 1: sums of a row are comparable, as a check of them must be.
        const int drawn = static_cast<int>(random() % 8);
        std::uint32_t byte = static_cast<std::uint32_t>(122 + drawn);
        if (format.scale == DType::ue4m3) byte = packed::stored_ue4m3(0x28 + random() % 32);
        if (format.exponents == Exponents::of_rows) {
          const int x = packed::exponent_under(format.tokens, unit, 122 + drawn);
          byte = packed::exponent_byte(x, unit, slice);
        }
        bytes[slice] = static_cast<std::byte>(byte);
        const double scale = packed::scale_value(format, byte, static_cast<std::uint32_t>(unit));
        for (int i = 0; i < format.group; ++i) {
          const int in_tile = slice * format.group + i;
          const std::int64_t k = k_tile * packed::kTileK + in_tile;
          if (n >= extents.n || k >= extents.k) continue;
          const std::uint32_t code = random() % 16;
          values.set(expert, n, k, scale * numeric::to_double(DType::e2m1, code));
          const std::int64_t at = row + packed::kTileRows * in_tile;
          const auto nibble = wide ? layout::offset_of<packed::kNibbles16>(at)
                                   : layout::offset_of<packed::kNibbles>(at);
          words[index(nibble / 8)] |= code << 4 * (nibble % 8);
        }
      }
    }
    for (std::uint32_t& word : words) word = packed::word_of(format, word);
    std::memcpy(tile, words.data(), packed::kTileCodeBytes);
  }
};

/// For e2m1: a format that a kernel takes.
inline PackedFormat e2m1_format_of(const kernel::GemmConfig& c, unsigned number) {
  PackedFormat f{.group = 32,
                 .scale = DType::ue8m0,
                 .code = DType::e2m1,
                 .tokens = operand_b(c).type,
                 .exponents = Exponents::of_rows};
  if (packed::is_wide(f) && number % 2 == 1) {
    f.group = 16;
    f.scale = DType::ue4m3;
    f.exponents = Exponents::own;
  }
  const bool both = sums_in_registers(c) && !kernel::folds_alone(c);
  if (both && number % 2 == 1) f.exponents = Exponents::own;
  return f;
}

/// Any of the formats without zero points.
inline PackedFormat format_of(unsigned number) {
  constexpr DType scales[] = {DType::bf16, DType::f16, DType::f32};
  return {.encoding = number % 2 == 0 ? Int4Encoding::ex : Int4Encoding::sm,
          .group = 32 << number / 2 % 3,
          .scale = scales[number / 6 % 3]};
}

/// What N is a multiple of in products by a gated kernel: halves begin where they can be copied,
/// with half a block of scales, or with a packed tile.
inline int gated_unit(const kernel::GemmConfig& c) {
  if (kernel::packed_a(c)) return 2 * packed::kTileRows;
  return is_blockwise(c) ? 128 : 16;
}

/// Does it multiply packed weights by tokens of 16 bits, which have no scales?
inline bool has_wide_tokens(const kernel::GemmConfig& c) {
  return kernel::packed_a(c) && kernel::operand_bits(c) == 16;
}

/// What a kernel of packed weights multiplies: its sums, and a format that it takes.
inline PackedWeights packed_for(const kernel::GemmConfig& c, unsigned number) {
  if (has_float_codes(c)) return {.format = e2m1_format_of(c, number), .sums = group_sums(c)};
  PackedWeights w{.format = format_of(number)};
  w.format.tokens = operand_b(c).type;
  if (packed::is_wide(w.format)) w.format.encoding = Int4Encoding::ex;
  if (has_zero_points(c)) w.format.zero_points = ZeroPoints::groups;
  if (has_zero_points(c)) w.format.encoding = Int4Encoding::ex;
  w.sums = group_sums(c);
  if (w.sums == GroupSums::table) w.format.encoding = Int4Encoding::sm;
  return w;
}

}  // namespace warpwright::tests
