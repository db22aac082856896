// Weights of 4 bits packed where they lie (docs/packing.md): how the codes of a layout lie is a
// policy of the kernel that packs. A further grid adds up the sum by which damage is told.
#pragma once

#include "warpwright/facts/packed_places.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/kernel/look_at_weights.h"

namespace warpwright::kernel {

/// The codes of a tile in shared memory, a byte each. Rows begin in banks of their own.
struct TileCodesShape {
  static constexpr int threads = 256;
  static constexpr int pitch = packed::kTileK + 4;
  static constexpr int words = packed::kTileCodeBytes / 4;
};

/// Where the words of eight codes of a tile lie, and what they are: neighbours along K, of rows
/// that lie one behind the other or, as GPTQ has them, side by side.
struct WordsAlongK : TileCodesShape {
  WW_DEVICE static std::int64_t first_word(const PackWeightsParams& p, std::int64_t n,
                                           std::int64_t k) {
    return n * p.n_step + k / 8 * p.k_step;
  }
  template <class Tile>
  WW_DEVICE static void stage(const PackWeightsParams& p, const Tile& tile,
                              isa::SharedAddress codes) {
    const bool rows_first = p.n_step < p.k_step;
    for (int i = isa::thread_index(); i < words; i += threads) {
      const int row = rows_first ? i % 64 : i / 16;
      const int k = 8 * (rows_first ? i / 64 : i % 16);
      if (!tile.has(row, k)) continue;
      const std::uint32_t bits = tile.bits(row * p.n_step + k / 8 * p.k_step);
      const isa::SharedView<std::uint32_t> to{codes +
                                              static_cast<isa::SharedAddress>(row * pitch + k)};
      to.store(0, packed::bytes_of_four(bits));
      to.store(1, packed::bytes_of_four(bits >> 16));
    }
  }
};

/// AWQ's: neighbours along N, the even ones in the lower half.
struct WordsAlongN : TileCodesShape {
  WW_DEVICE static std::int64_t first_word(const PackWeightsParams& p, std::int64_t n,
                                           std::int64_t k) {
    return n / 8 * p.n_step + k * p.k_step;
  }
  template <class Tile>
  WW_DEVICE static void stage(const PackWeightsParams& p, const Tile& tile,
                              isa::SharedAddress codes) {
    for (int i = isa::thread_index(); i < words; i += threads) {
      const int row = i % 8 * 8;
      const int k = i / 8;
      if (!tile.has(row, k)) continue;
      const std::uint32_t bits = tile.bits(row / 8 * p.n_step + k * p.k_step);
      const isa::SharedView<unsigned char> to{codes};
      for (int j = 0; j < 8; ++j) {
        to.store((row + j % 4 * 2 + j / 4) * pitch + k,
                 static_cast<unsigned char>(bits >> 4 * j & 15U));
      }
    }
  }
};

/// Packs: a CTA makes some tiles, or where scales count in a unit of their row all tiles of 64
/// rows.
template <class Codes>
struct PackWeights : TileCodesShape {
  using Params = PackWeightsParams;
  static constexpr int slices = 8;  ///< at most
  static constexpr int codes_bytes = packed::kTileRows * pitch;
  static constexpr int units_begin = codes_bytes + packed::kTileRows * slices;
  static constexpr int parts_begin = units_begin + packed::kTileRows;
  static constexpr int shared_bytes = parts_begin + 8 * 16 * 4;
  static constexpr int ctas_an_sm = 3;

  static constexpr int ctas(const Params& p) {
    const std::int64_t each = tiles_each(p);
    return static_cast<int>((packed::tiles(p.extents) + each - 1) / each);
  }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("packs");
    const std::int64_t tiles = packed::tiles(p.extents);
    const std::int64_t first = isa::cta_index() * tiles_each(p);
    const std::int64_t end = first + tiles_each(p) < tiles ? first + tiles_each(p) : tiles;
    make_parts(p);
    if (has_units(p)) {
      find_units(p, Tile(p, first));
      isa::sync_threads(threads);
    }
    for (std::int64_t i = first; i < end; ++i) {
      if (i > first) isa::sync_threads(threads);  // nobody reads the codes of the tile before
      const Tile tile(p, i);
      Codes::stage(p, tile, isa::shared_base());
      for (int at = isa::thread_index(); at < packed::kTileRows * packed::slices(p.format);
           at += threads) {
        const int row = at % packed::kTileRows;
        const int slice = at / packed::kTileRows;
        const bool counts = packed::has_float_codes(p.format) ? put_byte(p, tile, row, slice)
                                                              : put_scale(p, tile, row, slice);
        counted().store(row * slices + slice, counts ? 1 : 0);
      }
      isa::sync_threads(threads);
      put_words(p, tile);
      if (p.format.zero_points == ZeroPoints::groups) put_zero_points(p, tile);
    }
  }

 private:
  using Bytes = isa::SharedView<unsigned char>;

  struct Tile {
    const Params& p;
    std::int64_t expert;
    std::int64_t n0;
    std::int64_t k0;
    int rows;
    int columns;
    isa::GlobalView<const std::uint32_t> codes;
    unsigned char* bytes;

    WW_DEVICE Tile(const Params& params, std::int64_t index) : p(params) {
      const std::int64_t of_k = packed::k_tiles(p.extents);
      const std::int64_t of_rows = packed::row_tiles(p.extents);
      const std::int64_t above = quotient(index, of_k);
      expert = quotient(above, of_rows);
      n0 = (above - expert * of_rows) * packed::kTileRows;
      k0 = (index - above * of_k) * packed::kTileK;
      bytes = p.tiles + index * packed::tile_bytes(p.format);
      rows = static_cast<int>(p.extents.n - n0 < packed::kTileRows ? p.extents.n - n0
                                                                   : packed::kTileRows);
      columns =
          static_cast<int>(p.extents.k - k0 < packed::kTileK ? p.extents.k - k0 : packed::kTileK);
      codes = isa::global_view<const std::uint32_t>(p.codes);
      codes.data += expert * (p.extents.n * p.extents.k / 8) + Codes::first_word(p, n0, k0);
    }
    [[nodiscard]] WW_DEVICE bool has(int row, int k) const { return row < rows && k < columns; }
    /// The number of a row among those of all experts.
    [[nodiscard]] WW_DEVICE std::int64_t row(int row) const {
      return expert * p.extents.n + n0 + row;
    }
    /// The bits that are packed of a word of eight codes, which lies so far behind the first.
    [[nodiscard]] WW_DEVICE std::uint32_t bits(std::int64_t word) const {
      const std::uint32_t eight = codes.load(word);
      return packed::has_float_codes(p.format)
                 ? eight
                 : packed::bits_of_codes(eight, p.is_unsigned, p.format.encoding);
    }
  };

  static constexpr bool has_units(const Params& p) {
    return p.format.exponents == Exponents::of_rows;
  }
  static constexpr std::int64_t tiles_each(const Params& p) {
    return has_units(p) ? packed::k_tiles(p.extents) : 4;
  }
  /// For each row and slice: are there codes that count? Padding and those of a scale of 0 do not.
  WW_DEVICE static Bytes counted() {
    return {isa::shared_base() + static_cast<isa::SharedAddress>(codes_bytes)};
  }
  WW_DEVICE static Bytes units() {
    return {isa::shared_base() + static_cast<isa::SharedAddress>(units_begin)};
  }
  /// What each of a word's eight codes, by its bits, is of the packed word: these are added
  /// modulo 2.
  WW_DEVICE static isa::SharedView<std::uint32_t> parts() {
    return {isa::shared_base() + static_cast<isa::SharedAddress>(parts_begin)};
  }
  WW_DEVICE static void make_parts(const Params& p) {
    const int i = isa::thread_index();
    if (i >= 8 * 16) return;
    const auto bits = static_cast<std::uint32_t>(i % 16) << 4 * (i / 16);
    const std::uint32_t none = i < 16 ? 0 : packed::word_of(p.format, 0);
    parts().store(i, packed::word_of(p.format, bits) ^ none);
  }

  WW_DEVICE static void find_units(const Params& p, const Tile& tile) {
    const PlainWeightsThere from{p};
    for (int row = isa::warp_index(); row < packed::kTileRows; row += threads / 32) {
      const bool is_there = tile.has(row, 0);
      const int largest = is_there ? from.span_of_row(tile.row(row)).largest : 127;
      const int unit = is_there ? packed::unit_of_largest(p.format.tokens, largest) : 127;
      if (isa::lane_index() == 0) units().store(row, static_cast<unsigned char>(unit));
    }
  }

  /// For float codes.
  WW_DEVICE static bool put_byte(const Params& p, const Tile& tile, int row, int slice) {
    const PlainWeightsThere from{p};
    const int k = slice * p.format.group;
    int code = 0;
    int scale = -1;
    if (tile.has(row, k)) {
      const std::int64_t at = tile.row(row) * p.groups + (tile.k0 >> p.slice_bits) + slice;
      code = static_cast<int>(from.scale_code(at));
      if (!from.is_zero(at)) scale = code;
    }
    const int unit = has_units(p) ? units().load(row) : 127;
    isa::GlobalView<unsigned char>{tile.bytes + packed::scales_begin()}.store(
        packed::scale_byte(p.format, row, slice),
        static_cast<unsigned char>(packed::stored_byte(p.format, unit, slice, scale)));
    return tile.has(row, k) && (p.scale != DType::ue4m3 || code != 0);
  }

  WW_DEVICE_CALLED static packed::StoredScale scale_at(const Params& p, std::int64_t expert,
                                                       std::int64_t n, std::int64_t group) {
    const PlainWeightsThere from{p};
    const std::int64_t at = expert * (p.extents.n * p.groups) + p.scale_places(n, group);
    return packed::stored_scale(p.scale, from.scale_code(at), p.format);
  }

  /// For int4.
  WW_DEVICE static bool put_scale(const Params& p, const Tile& tile, int row, int slice) {
    using packed::ScaleKind;
    const DType type = p.format.scale;
    packed::StoredScale stored{ScaleKind::zero, numeric::from_double(type, packed::kScaleFactor)};
    if (tile.n0 + row < p.extents.n) {
      const auto scale_of = [&](std::int64_t group) {
        return scale_at(p, tile.expert, tile.n0 + row, group);
      };
      stored = packed::packed_scale(scale_of, quotient(tile.k0 + slice * p.format.group, p.group),
                                    p.groups);
    }
    unsigned char* const to = tile.bytes + packed::scales_begin();
    const std::int64_t at = layout::offset_of<packed::kScales>(row, slice);
    if (numeric::bits(type) == 16) {
      isa::global_view<std::uint16_t>(to).store(at, static_cast<std::uint16_t>(stored.code));
    } else {
      isa::global_view<std::uint32_t>(to).store(at, static_cast<std::uint32_t>(stored.code));
    }
    return stored.kind == ScaleKind::good;
  }

  WW_DEVICE static void put_words(const Params& p, const Tile& tile) {
    for (int word = isa::thread_index(); word < words; word += threads) {
      const auto [row, k] = packed::word_place(p.format, word);
      const std::uint32_t quads[] = {quad(p, row, k), quad(p, row + 8, k)};
      std::uint32_t made = 0;
      WW_UNROLL
      for (int i = 0; i < 8; ++i) {
        made ^= parts().load(16 * i + static_cast<int>(quads[i % 2] >> i / 2 * 8 & 15U));
      }
      isa::global_view<std::uint32_t>(tile.bytes).store(word, made);
    }
  }
  /// Four codes of a word along K, the bits of each in a byte of its own. They have one scale.
  WW_DEVICE static std::uint32_t quad(const Params& p, int row, int k) {
    if (counted().load(row * slices + (k >> p.slice_bits)) == 0) return 0;
    const isa::SharedAddress at = isa::shared_base() + static_cast<isa::SharedAddress>(row * pitch);
    if (!packed::is_wide(p.format)) return isa::SharedView<std::uint32_t>{at}.load(k / 4);
    const isa::SharedView<std::uint16_t> pairs{at};
    return pairs.load(k / 2) | static_cast<std::uint32_t>(pairs.load(k / 2 + 4)) << 16;
  }

  /// A byte holds a row's zero point and that of the eighth row below.
  WW_DEVICE static void put_zero_points(const Params& p, const Tile& tile) {
    for (int byte = isa::thread_index(); byte < packed::kZeroPointBytes; byte += threads) {
      const int slice = byte % 4;
      const int upper = byte / 4 % 8 + byte / 32 * 16;
      std::uint32_t bits = 0;
      for (int row = upper; row <= upper + 8 && slice < packed::slices(p.format); row += 8) {
        int zero = 8;
        if (counted().load(row * slices + slice) != 0) {
          const std::int64_t group = quotient(tile.k0 + slice * p.format.group, p.group);
          zero = PlainWeightsThere{p}.zero_point(tile.expert, tile.n0 + row, group);
        }
        bits |= static_cast<std::uint32_t>(zero) << (row - upper) / 2;
      }
      isa::GlobalView<unsigned char>{tile.bytes + packed::zero_points_begin(p.format)}.store(
          byte, static_cast<unsigned char>(bits));
    }
  }
};

/// Adds up the tiles' words, mixed with their numbers, in notes->sum.
struct SumWordsParams {
  const std::uint64_t* words = nullptr;
  std::int64_t count = 0;
  PackingNotes* notes = nullptr;
};
struct SumWords {
  using Params = SumWordsParams;
  static constexpr int threads = 256;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 8;

  static constexpr int ctas(const Params& p) {
    return static_cast<int>(std::min<std::int64_t>((p.count + threads - 1) / threads, 1024));
  }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("adds up words");
    const isa::GlobalView<const std::uint64_t> words{p.words};
    std::uint64_t sum = 0;
    for (std::int64_t i = std::int64_t{isa::cta_index()} * threads + isa::thread_index();
         i < p.count; i += std::int64_t{isa::cta_count()} * threads) {
      sum += packed::mixed(words.load(i), static_cast<std::uint64_t>(i));
    }
    isa::global_add(&p.notes->sum, sum);
  }
};

}  // namespace warpwright::kernel
