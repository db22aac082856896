// Int4 weights in their packed form (facts/packed_weights.h), as A of a kernel: one bulk copy
// brings 64 rows of a K block with their scales; a consumer's lanes read their codes from there and
// convert them to e4m3 in the registers that wgmma takes A from.
#pragma once

#include "warpwright/facts/packed_weights.h"
#include "warpwright/isa/fragment.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

/// The k32 steps of a K block.
inline constexpr int packed_steps = packed::kTileK / 32;

/// The codes of a thread in a tile, of the four steps of its K block: two words each.
struct LaneCodes {
  std::uint32_t word[packed_steps][2];
};

/// Reads them. `tile` is where the tile lies; `thread` counts in the warpgroup.
WW_DEVICE LaneCodes load_codes(isa::SharedAddress tile, int thread) {
  LaneCodes codes;
  WW_UNROLL for (int half = 0; half < 2; ++half) {
    const auto words = isa::SharedView<isa::Words<4>>{tile + static_cast<isa::SharedAddress>(
                                                                 packed::lane_begin(half, thread))}
                           .load();
    WW_UNROLL for (int j = 0; j < 4; ++j) codes.word[2 * half + j / 2][j % 2] = words.word[j];
  }
  return codes;
}

/// Converts the codes of one step. No wgmma that reads `to` may be in flight.
WW_DEVICE void convert_codes(const std::uint32_t (&word)[2], std::uint32_t carries,
                             isa::Fragment<std::uint32_t, 4>& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = packed::first_values(word[p], carries);
    to[2 * p + 1] = packed::second_values(word[p], carries);
  }
}

/// The same of weights with zero points: those of a group, of the thread's row in the low four bits
/// and of the eighth row below.
WW_DEVICE void convert_differences(const std::uint32_t (&word)[2], std::uint32_t zeros,
                                   isa::Fragment<std::uint32_t, 4>& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = packed::first_differences(word[p], zeros & 15U);
    to[2 * p + 1] = packed::second_differences(word[p], zeros >> 4 & 15U);
  }
}

/// Four values of e4m3, each multiplied by a factor (f16, in both halves of a word) and rounded.
WW_DEVICE std::uint32_t fold(std::uint32_t values, std::uint32_t factor) {
  const auto half = [&](std::uint32_t bytes) {
    return static_cast<std::uint32_t>(isa::bytes_of_halves(
        isa::multiply_halves(isa::halves_of_bytes(static_cast<std::uint16_t>(bytes)), factor)));
  };
  return half(values & 0xffffU) | half(values >> 16) << 16;
}

/// The bytes of e4m3 of the magnitudes 0 to 7 times a scale.
struct CodeTable {
  std::uint32_t word[2];
};

/// With a scale that has been stored times 512.
WW_DEVICE CodeTable table_of(float scale) {
  CodeTable table;
  WW_UNROLL for (int i = 0; i < 2; ++i) {
    float value[4];
    WW_UNROLL for (int j = 0; j < 4; ++j) {
      value[j] = scale * (static_cast<float>(4 * i + j) / packed::kScaleFactor);
    }
    table.word[i] = isa::pack_bytes<DType::e4m3>(value[0], value[1]) |
                    static_cast<std::uint32_t>(isa::pack_bytes<DType::e4m3>(value[2], value[3]))
                        << 16;
  }
  return table;
}

/// A word's first four codes (of sm) from the table of their row; `second`: the other four. Each
/// lookup takes four neighbours of both rows, of which every other one counts.
template <bool second>
WW_DEVICE std::uint32_t look_up(std::uint32_t word, const CodeTable& of) {
  const std::uint32_t magnitudes = word & 0x77777777U;
  const std::uint32_t found = isa::permute_bytes(
      isa::permute_bytes(of.word[0], of.word[1], magnitudes),
      isa::permute_bytes(of.word[0], of.word[1], magnitudes >> 16), second ? 0x7531 : 0x6420);
  return found | ((second ? packed::second_half(word) : word) & packed::signs);
}

/// The codes of one step from the tables of the thread's two rows. No wgmma that reads `to` may be
/// in flight.
WW_DEVICE void look_up_codes(const std::uint32_t (&word)[2], const CodeTable (&tables)[2],
                             isa::Fragment<std::uint32_t, 4>& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = look_up<false>(word[p], tables[0]);
    to[2 * p + 1] = look_up<true>(word[p], tables[1]);
  }
}

/// A thread's two scales, times 512, from a slice of a tile's scales that begins at `slice`: of the
/// row of the even pairs of its sums, and of the eighth row below.
WW_DEVICE isa::Pair load_scales(isa::SharedAddress slice, int thread, DType type) {
  const int pair = thread / 4;
  if (type == DType::f32) {
    const auto words = isa::SharedView<isa::Words<2>>{slice}.load(pair);
    return isa::unpack<DType::f32>(words.word);
  }
  const std::uint32_t word = isa::SharedView<std::uint32_t>{slice}.load(pair);
  return type == DType::bf16 ? isa::unpack<DType::bf16>(&word) : isa::unpack<DType::f16>(&word);
}

/// The producer's part: the bulk copies of a tile's weights, one for every 64 rows.
template <class Tag>
class WeightLoader {
 public:
  static constexpr int row_tiles = Tag::config.tile_m / packed::kTileRows;
  static constexpr int spans = Tag::config.k_spans;
  /// Read once, where one tile holds all tokens of its group as a rule.
  static constexpr bool once = Tag::config.tile_n <= 64;

  /// `stages` is where they lie in shared memory.
  WW_DEVICE WeightLoader(const OperandParams& p, isa::SharedAddress stages)
      : p_(p.packed), half_(p.half), experts_apart_(p.a_batch), stages_(stages) {
    if constexpr (once) policy_ = isa::evict_first();
  }

  /// Bytes of a stage.
  [[nodiscard]] WW_DEVICE int bytes() const { return row_tiles * spans * p_.tile_bytes; }

  /// Looks where the weights of a tile lie.
  WW_DEVICE void place(const tile::Work& work) {
    constexpr int parts = gated_rows(Tag::config) ? 2 : 1;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      const int part = i / (row_tiles / parts);
      const int at = (work.row + part * half_) / packed::kTileRows + i % (row_tiles / parts);
      // Past the last row: any tile will do, its products are not stored.
      const int row_tile = at < p_.row_tiles ? at : p_.row_tiles - 1;
      from_[i] = ((work.tile.batch * experts_apart_) * p_.row_tiles + row_tile) * p_.k_tiles;
    }
  }

  /// Asks L2 for the first of its stages.
  WW_DEVICE void prefetch(int first_block) const {
    const int left = p_.k_tiles - first_block * spans;
    const int tiles = p_.ahead * spans < left ? p_.ahead * spans : left;
    if (tiles <= 0) return;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      isa::bulk_prefetch(tile(i, first_block * spans), tiles * p_.tile_bytes);
    }
  }

  /// Starts the copies of a stage, whose k_tiles are neighbours. Past the last k_tile it loads that
  /// one again: TMA fills the tokens there with zeros, so the products vanish.
  WW_DEVICE void load(int stage, int block, isa::SharedAddress full) const {
    const isa::SharedAddress to = stages_ + stage * stage_a_bytes(Tag::config);
    const int first = block * spans;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      const isa::SharedAddress at = to + i * spans * most_packed_tile(Tag::config);
      if constexpr (spans > 1) {
        if (first + spans > p_.k_tiles) {
          for (int s = 0; s < spans; ++s) {
            const int k = first + s < p_.k_tiles ? first + s : p_.k_tiles - 1;
            copy(at + static_cast<isa::SharedAddress>(s * p_.tile_bytes), tile(i, k), 1, full);
          }
          continue;
        }
      }
      copy(at, tile(i, first), spans, full);
    }
  }

 private:
  /// The packed tile of a row tile and a K block.
  [[nodiscard]] WW_DEVICE const std::byte* tile(int i, int k) const {
    return p_.data + static_cast<std::int64_t>(from_[i] + k) * p_.tile_bytes;
  }
  WW_DEVICE void copy(isa::SharedAddress to, const std::byte* from, int tiles,
                      isa::SharedAddress full) const {
    if constexpr (once) {
      isa::bulk_load(to, from, tiles * p_.tile_bytes, full, policy_);
    } else {
      isa::bulk_load(to, from, tiles * p_.tile_bytes, full);
    }
  }

  const PackedParams& p_;
  int half_;           // rows of the first half, when gated
  int experts_apart_;  // 0 where one matrix serves the whole batch
  isa::SharedAddress stages_;
  isa::CachePolicy policy_;
  int from_[row_tiles];  // the number of the first packed tile
};

}  // namespace warpwright::kernel
