// D as codes and scales of a kernel whose tile's rows are columns of D: tokens are its columns
// (codes.h has the other). What these warps write is what the next product of a mixture reads.
//
// A lane of tensor memory is a column of D, of all tokens, and 32 or 16 of a warp's lanes share the
// scale of a token. They meet in shuffles: each lane ends with the largest magnitude of one token,
// and so with its scale, which it gives to the others. Codes are packed along the tokens first, and
// then turned: a word of codes has neighbours of one token.
//
//   lane              of a column of D          after the turn
//   word i, element j token 4 i + j             token 4 i + lane % 4, column 4 (lane / 4) + j
//
// (So of e4m3; e2m1 has eight in place of four.) A gate, and what it is for, have an accumulator
// each: both are the same lane's. Scales lie in the tiles of the next product's tokens: those of a
// group begin with a tile of their own, and what a tile has behind its group's end is padding.
#pragma once

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/alpha.h"
#include "warpwright/kernel/blackwell/codes.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/kernel/blackwell/scales.h"
#include "warpwright/kernel/epilogue_values.h"

namespace warpwright::kernel::blackwell {

/// What lanes that have neighbours of a row do together.
template <DType element, int block>
struct CodeLanes {
  static constexpr int tokens = 8;  ///< that are taken at once: more are longer code
  static constexpr int bits = numeric::bits(element);
  static constexpr int each = 32 / bits;  ///< codes of a word
  static constexpr int words = tokens / each;
  static_assert(block == 16 || block == 32);

  /// The largest of all `block` lanes for one of the tokens, for token_of(lane); in pairs of both
  /// of two neighbouring blocks.
  WW_DEVICE static std::uint32_t largest(std::uint32_t (&size)[tokens], bool in_pairs) {
    constexpr int shift = block / tokens;  // lanes of a token
    int have = tokens;
    WW_UNROLL for (int far = block / 2; far >= shift; far /= 2) {
      have /= 2;
      const bool upper = (isa::lane_index() & far) != 0;
      WW_UNROLL for (int i = 0; i < tokens / 2; ++i) {
        if (i >= have) continue;
        const std::uint32_t mine = upper ? size[i + have] : size[i];
        const std::uint32_t other = upper ? size[i] : size[i + have];
        size[i] = micro::larger(mine, isa::shuffle(other, isa::lane_index() ^ far));
      }
    }
    WW_UNROLL for (int far = shift / 2; far > 0; far /= 2) {
      size[0] = micro::larger(size[0], isa::shuffle(size[0], isa::lane_index() ^ far));
    }
    if (in_pairs) {
      size[0] = micro::larger(size[0], isa::shuffle(size[0], isa::lane_index() ^ block));
    }
    return size[0];
  }
  /// The token that a lane has the largest of, and the first lane of its block that has that.
  WW_DEVICE static int token_of(int lane) { return lane % block / (block / tokens); }
  WW_DEVICE static int lane_of(int lane, int token) {
    return lane / block * block + token * (block / tokens);
  }

  /// Turns words along the tokens into words along the columns.
  WW_DEVICE static void turn(std::uint32_t (&word)[words]) {
    WW_UNROLL for (int far = 1; far < each; far *= 2) {
      const int wide = bits * far;
      const std::uint32_t low = wide == 4 ? 0x0f0f0f0fU : wide == 8 ? 0x00ff00ffU : 0x0000ffffU;
      const bool upper = (isa::lane_index() & far) != 0;
      WW_UNROLL for (int i = 0; i < words; ++i) {
        const std::uint32_t other = isa::shuffle(word[i], isa::lane_index() ^ far);
        word[i] = upper ? (other >> wide & low) | (word[i] & ~low)
                        : (word[i] & low) | (other & low) << wide;
      }
    }
  }
};

/// One thread's column of D in tile after tile.
template <class Tag>
class TokenCodes {
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr DType element = config.result;
  static constexpr int block = CodeRecipe<Tag>::least;
  using Lanes = CodeLanes<element, block>;
  static constexpr int parts = halves(config);
  static_assert(parts == (config.gated ? 2 : 1));

 public:
  static constexpr int columns = Lanes::tokens;  ///< of the tile, that are taken at once

  WW_DEVICE TokenCodes(const BlackwellParamsOf<Tag>& p, int warp)
      : p_(p.output),
        scales_(p.scales),
        recipe_(p),
        warp_(warp),
        alpha_(alpha_of(p.output, p.scales)) {}

  /// Before a tile: finds what all tokens share.
  WW_DEVICE void begin(const tile::Work& work) {
    first_ = work.row + 32 * warp_;
    batch_ = work.tile.batch;
    if constexpr (config.grouped) {
      end_ = work.end_token;
      if (scales_.tensor_a_stride + scales_.tensor_b_stride != 0) {
        alpha_ = alpha_of(p_, scales_, batch_);
      }
    } else {
      end_ = p_.d_rows;
    }
    WW_UNROLL for (int part = 0; part < parts; ++part) {
      bias_[part] = bias_at(p_.row_bias, batch_, p_.gate.row(column(), part), p_.d_columns * parts);
    }
  }

  /// All of the tile, whose sums `source(value, column)` fetches.
  template <class Source>
  WW_DEVICE void take(const tile::Work& work, const Source& source) {
    const int width = columns_of<Tag>(work);
    WW_NO_UNROLL for (int i = 0; i < width; i += columns) {
      if (work.column + i >= end_) break;
      float value[columns] = {};
      source(value, i);
      finish(0, work.column + i, value);
      if constexpr (parts == 2) {
        float up[columns] = {};
        source(up, half_columns(config) + i);
        finish(1, work.column + i, up);
        multiply_gate(p_.activation, value, up);
      } else {
        activate(p_.activation, value);
      }
      put(work, i, value);
    }
    pad(work);
  }

 private:
  [[nodiscard]] WW_DEVICE int column() const { return first_ + isa::lane_index(); }

  WW_DEVICE void finish(int part, int row, float (&value)[columns]) const {
    WW_UNROLL for (int i = 0; i < columns; ++i) value[i] = alpha_ * value[i] + bias_[part];
    if (p_.column_bias.data == nullptr) return;
    WW_UNROLL for (int i = 0; i < columns; ++i) {
      value[i] += bias_at(p_.column_bias, batch_, row + i, p_.d_rows);
    }
  }

  /// Codes and scales of the tokens from the tile's `at` on.
  WW_DEVICE void put(const tile::Work& work, int at, const float (&value)[columns]) const {
    std::uint32_t size[columns];
    WW_UNROLL for (int i = 0; i < columns; ++i) {
      size[i] = column() < p_.d_columns ? micro::magnitude(value[i], element) : 0;
    }
    const std::uint32_t largest = Lanes::largest(size, recipe_.in_pairs());
    const auto mine = recipe_.scale_of(largest);
    const int token = Lanes::token_of(isa::lane_index());
    if (Lanes::lane_of(isa::lane_index(), token) == isa::lane_index() &&
        work.column + at + token < end_) {
      put_scale(work, at + token, mine.code);
    }
    // Factors are positive: the sign says that all codes are 0.
    const std::uint32_t factor = isa::float_bits(mine.factor) | (mine.clears ? 0x80000000U : 0U);
    std::uint32_t words[Lanes::words];
    WW_UNROLL for (int i = 0; i < columns; i += Lanes::each) {
      float scaled[Lanes::each];
      std::uint32_t kept = 0;
      WW_UNROLL for (int j = 0; j < Lanes::each; ++j) {
        const std::uint32_t its = isa::shuffle(factor, Lanes::lane_of(isa::lane_index(), i + j));
        scaled[j] = CodeRecipe<Tag>::scaled_by(isa::float_of(its & 0x7fffffffU), value[i + j]);
        constexpr std::uint32_t all = (1U << Lanes::bits) - 1;
        kept |= its >> 31 != 0 ? 0 : all << Lanes::bits * j;
      }
      words[i / Lanes::each] = isa::pack_codes<element>(scaled) & kept;
    }
    Lanes::turn(words);
    store(work.column + at, words);
  }

  /// Words of neighbours, each of a token of its own: at once where they are aligned and inside D,
  /// else byte by byte.
  WW_DEVICE void store(int row, const std::uint32_t (&words)[Lanes::words]) const {
    constexpr int each = Lanes::each;
    const int from = first_ + isa::lane_index() / each * each;
    WW_UNROLL for (int i = 0; i < Lanes::words; ++i) {
      const std::int64_t token = row + each * i + isa::lane_index() % each;
      if (token >= end_) continue;
      auto* const to = static_cast<std::uint8_t*>(p_.d_data) +
                       (d_batch() + token * p_.d_pitch + from) * Lanes::bits / 8;
      if (p_.d_aligned && from + each <= p_.d_columns) {
        isa::global_view<std::uint32_t>(to).store(0, words[i]);
        continue;
      }
      WW_UNROLL for (int j = 0; j < 4; ++j) {
        if (from + j * each / 4 < p_.d_columns) {
          isa::GlobalView<std::uint8_t>{to}.store(j, static_cast<std::uint8_t>(words[i] >> 8 * j));
        }
      }
    }
  }

  /// In groups D is one matrix.
  [[nodiscard]] WW_DEVICE std::int64_t d_batch() const {
    return config.grouped ? 0 : batch_ * p_.d_batch;
  }

  /// The scale of a token of the tile, for this lane's block, of two by the first; those behind D's
  /// columns are there as far as its tiles of scales reach.
  WW_DEVICE void put_scale(const tile::Work& work, int token, std::uint32_t scale) const {
    if (recipe_.in_pairs() && (isa::lane_index() & block) != 0) return;
    const int number = column() / recipe_.block();
    if (number >= p_.d_scales.row_stride) return;
    const std::int64_t row = std::int64_t{first_atom<Tag>(work)} * block_scales::kTileRows + token;
    auto* const to = static_cast<std::uint8_t*>(p_.d_scales.data) +
                     (config.grouped ? 0 : batch_ * p_.d_scales.batch_stride);
    isa::GlobalView<std::uint8_t>{to}.store(
        block_scales::place(row, number, p_.d_scales.row_stride), static_cast<std::uint8_t>(scale));
  }

  /// The scales of the rows of the tile's tile of them that no token of the group has.
  WW_DEVICE void pad(const tile::Work& work) const {
    constexpr int lanes = block;
    static_assert(config.tile_n == block_scales::kTileRows);
    WW_NO_UNROLL for (int token = isa::lane_index() % lanes; token < block_scales::kTileRows;
                      token += lanes) {
      if (work.column + token >= end_) put_scale(work, token, recipe_.padding());
    }
  }

  const OutputParams& p_;
  const ScaleParams& scales_;
  CodeRecipe<Tag> recipe_;
  int warp_;
  float alpha_;
  int first_ = 0;  // column of D of the warp's first lane
  int batch_ = 0;
  int end_ = 0;  // rows of D that the tile may write end before it
  float bias_[parts] = {};
};

}  // namespace warpwright::kernel::blackwell
