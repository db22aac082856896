// Int4 weights of the plain layout packed where they lie (docs/packing.md): a CTA makes a tile. A
// second grid adds up the sum by which damage is told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/facts/packed_places.h"
#include "warpwright/facts/stored_scale.h"
#include "warpwright/isa/atomic.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// What is told of packed weights: the sum of their tiles, and the first fault.
struct PackingNotes {
  std::uint64_t sum = 0;
  /// For the weight with the least number: 8 * number + what it is, a packed::ScaleKind or
  /// fault_of_code.
  std::uint64_t fault = no_fault;

  static constexpr std::uint64_t no_fault = ~std::uint64_t{0};
  static constexpr unsigned fault_of_code = 7;
};

struct PackInt4Params {
  packed::Extents extents;
  PackedFormat format;
  DType scale = DType::bf16;  ///< of `scales`
  const unsigned char* codes = nullptr;
  const unsigned char* scales = nullptr;
  const unsigned char* zeros = nullptr;
  unsigned char* tiles = nullptr;
  PackingNotes* notes = nullptr;
};

struct PackInt4 {
  using Params = PackInt4Params;
  static constexpr int threads = 256;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 1;

  static constexpr int ctas(const Params& p) { return static_cast<int>(packed::tiles(p.extents)); }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("packs");
    const Tile tile(p, isa::cta_index());
    for (int word = isa::thread_index(); word < packed::kTileCodeBytes / 4; word += threads) {
      const auto [row, k] = packed::word_place(p.format, word);
      const std::uint32_t upper = tile.has(row, k) ? quad(p, tile.row(row), tile.k0 + k) : 0;
      const std::uint32_t lower =
          tile.has(row + 8, k) ? quad(p, tile.row(row + 8), tile.k0 + k) : 0;
      isa::global_view<std::uint32_t>(tile.bytes)
          .store(word, packed::word_of(p.format, upper | lower << 4));
    }
    for (int i = isa::thread_index(); i < packed::kTileRows * packed::slices(p.format);
         i += threads) {
      put_scale(p, tile, i % packed::kTileRows, i / packed::kTileRows);
    }
    if (p.format.zero_points == ZeroPoints::none) return;
    for (int byte = isa::thread_index(); byte < packed::kZeroPointBytes; byte += threads) {
      put_zero_points(p, tile, byte);
    }
  }

 private:
  /// A CTA's tile.
  struct Tile {
    std::int64_t first;  ///< row of its expert, among those of all
    std::int64_t n0;
    std::int64_t k0;
    const packed::Extents& extents;
    unsigned char* bytes;

    WW_DEVICE Tile(const Params& p, int index) : extents(p.extents) {
      const std::int64_t of_k = packed::k_tiles(p.extents);
      const std::int64_t of_rows = packed::row_tiles(p.extents);
      const std::int64_t above = quotient(index, of_k);
      const std::int64_t expert = quotient(above, of_rows);
      first = expert * p.extents.n;
      n0 = (above - expert * of_rows) * packed::kTileRows;
      k0 = (index - above * of_k) * packed::kTileK;
      bytes = p.tiles + std::int64_t{index} * packed::tile_bytes(p.format);
    }
    [[nodiscard]] WW_DEVICE bool has(int row, int k) const {
      return n0 + row < extents.n && k0 + k < extents.k;
    }
    /// For the weights of all experts.
    [[nodiscard]] WW_DEVICE std::int64_t row(int row) const { return first + n0 + row; }
  };

  WW_DEVICE static std::int64_t groups(const Params& p) {
    return quotient(p.extents.k, p.format.group);
  }

  WW_DEVICE_CALLED static packed::StoredScale scale_at(const Params& p, std::int64_t row,
                                                       std::int64_t group) {
    const std::int64_t at = row * groups(p) + group;
    const std::uint64_t code =
        numeric::bits(p.scale) == 16
            ? std::uint64_t{isa::global_view<const std::uint16_t>(p.scales).load(at)}
            : std::uint64_t{isa::global_view<const std::uint32_t>(p.scales).load(at)};
    return packed::stored_scale(p.scale, code, p.format);
  }

  WW_DEVICE static void note(const Params& p, std::int64_t row, std::int64_t k, unsigned what) {
    const auto number = static_cast<std::uint64_t>(row * p.extents.k + k);
    isa::global_min(&p.notes->fault, 8 * number + what);
  }

  /// Four codes of a word along K, the bits of each in a byte of its own. They have one group.
  WW_DEVICE_CALLED static std::uint32_t quad(const Params& p, std::int64_t row, std::int64_t k) {
    if (scale_at(p, row, quotient(k, p.format.group)).kind != packed::ScaleKind::good) return 0;
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t along = k + packed::quad_step(p.format, i);
      const std::int64_t at = row * p.extents.k + along;
      const unsigned two = isa::GlobalView<const unsigned char>{p.codes}.load(at / 2);
      const int code = (static_cast<int>(two >> at % 2 * 4 & 15) ^ 8) - 8;
      if (code < packed::least_code(p.format.encoding)) {
        note(p, row, along, PackingNotes::fault_of_code);
      }
      bits |= packed::code_bits(code, p.format.encoding) << 8 * i;
    }
    return bits;
  }

  WW_DEVICE static void put_scale(const Params& p, const Tile& tile, int row, int slice) {
    using packed::ScaleKind;
    const int k = slice * p.format.group;
    const DType type = p.format.scale;
    packed::StoredScale stored{ScaleKind::zero, numeric::from_double(type, packed::kScaleFactor)};
    if (tile.n0 + row < p.extents.n) {
      const auto scale_of = [&](std::int64_t group) { return scale_at(p, tile.row(row), group); };
      stored = packed::packed_scale(scale_of, quotient(tile.k0 + k, p.format.group), groups(p));
    }
    if (stored.kind > ScaleKind::zero) {
      note(p, tile.row(row), tile.k0 + k, static_cast<unsigned>(stored.kind));
    }
    unsigned char* const to = tile.bytes + packed::scales_begin();
    const std::int64_t at = layout::offset_of<packed::kScales>(row, slice);
    if (numeric::bits(type) == 16) {
      isa::global_view<std::uint16_t>(to).store(at, static_cast<std::uint16_t>(stored.code));
    } else {
      isa::global_view<std::uint32_t>(to).store(at, static_cast<std::uint32_t>(stored.code));
    }
  }

  /// A byte holds a row's zero point and that of the eighth row below.
  WW_DEVICE static void put_zero_points(const Params& p, const Tile& tile, int byte) {
    const int slice = byte % 4;
    const int upper = byte / 4 % 8 + byte / 32 * 16;
    std::uint32_t bits = 0;
    for (int row = upper; row <= upper + 8 && slice < packed::slices(p.format); row += 8) {
      const int k = slice * p.format.group;
      std::uint32_t zero = 8;
      if (tile.has(row, k)) {
        const std::int64_t group = quotient(tile.k0 + k, p.format.group);
        if (scale_at(p, tile.row(row), group).kind == packed::ScaleKind::good) {
          zero =
              isa::GlobalView<const unsigned char>{p.zeros}.load(tile.row(row) * groups(p) + group);
        }
      }
      bits |= zero << (row - upper) / 2;
    }
    isa::GlobalView<unsigned char>{tile.bytes + packed::zero_points_begin(p.format)}.store(
        byte, static_cast<unsigned char>(bits));
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
