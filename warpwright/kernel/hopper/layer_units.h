// What a warp of a layer in one launch multiplies at a time: 16 rows of weights, a *block*, by a
// few elements of K, a *unit*. Each lane copies to shared memory what it will multiply itself, by
// cp.async, and makes of it the registers of mma.sync.m16n8k16.
//
//   weights        K of a unit   a lane's tokens
//   16 bits        32            16 bytes: lanes of four have neighbours, so K is multiplied in
//                                another order than it lies, the same of both operands
//   packed, of     128           words of two elements as the instruction takes them: the packed
//   4 bits                       form has that order. Rows between the products are written so that
//                                the two words of a step are neighbours
#pragma once

#include <type_traits>

#include "warpwright/atom/mma.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/decode/e2m1.h"
#include "warpwright/kernel/hopper/decode/int4_wide.h"
#include "warpwright/kernel/hopper/layer_config.h"

namespace warpwright::kernel {

/// The instruction for operands of a type.
constexpr atom::Mma block_mma(DType type) {
  return {.m = block_rows, .n = block_tokens, .k = 16, .a = type, .b = type};
}

/// A lane's sums of a block: of its row, and of the eighth below, for two tokens each.
using BlockSums = float[4];

/// What the rows of a block are multiplied by at the end, besides alpha: of a lane's two rows.
using BlockFactors = isa::Pair;

/// Elements of K of a row of tokens, as lanes hold them.
enum class TokenWords : std::uint8_t {
  pieces,  ///< 16 bytes that are neighbours
  words,   ///< the words of each step of 16 where they lie
  pairs,   ///< both words of a step are neighbours
};

/// A lane's row of tokens, of so many bytes: of whole units, or `may_end` within one.
template <TokenWords layout, int step, bool may_end>
class TokenRow {
 public:
  static constexpr int count = step / 8;  ///< words of a unit

  WW_DEVICE TokenRow(const std::byte* row, int bytes) : row_(row), bytes_(bytes) {}

  /// Asks for those of a unit. Behind the row they are others, which nothing waits for here.
  WW_DEVICE void load(int unit, std::uint32_t (&to)[count]) const {
    const std::byte* const own = row_ + place(0);
    const int first = unit * (2 * step);
    if constexpr (may_end) {
      if (first + 2 * step > bytes_) {
        WW_UNROLL for (int i = 0; i < count / each; ++i) {
          const int at = first + i * (16 * each);
          load_piece(own + (at + place(0) < bytes_ ? at : 0), i, to);
        }
        return;
      }
    }
    WW_UNROLL for (int i = 0; i < count / each; ++i) {
      load_piece(own + first + i * (16 * each), i, to);
    }
  }
  /// Makes those behind the row 0.
  WW_DEVICE void cut(int unit, std::uint32_t (&words)[count]) const {
    if constexpr (may_end) {
      if ((unit + 1) * (2 * step) <= bytes_) return;
      WW_UNROLL for (int i = 0; i < count; ++i) {
        if (unit * (2 * step) + place(i / each) >= bytes_) words[i] = 0;
      }
    }
  }

 private:
  /// Words that are neighbours: a piece is of 32 elements, a pair of words of 16, a word of 8.
  static constexpr int each = layout == TokenWords::pieces  ? 4
                              : layout == TokenWords::pairs ? 2
                                                            : 1;
  WW_DEVICE static void load_piece(const std::byte* from, int i, std::uint32_t (&to)[count]) {
    const isa::Words<each> words = isa::global_view<const isa::Words<each>>(from).load();
    WW_UNROLL for (int j = 0; j < each; ++j) to[i * each + j] = words.word[j];
  }
  WW_DEVICE static int place(int i) { return i * (16 * each) + isa::lane_index() % 4 * (4 * each); }

  const std::byte* row_;
  int bytes_;
};

/// Where element `i` of a row between the products goes, for TokenWords::pairs.
constexpr int place_in_pairs(int i) {
  const int word = i % 16 / 2;
  return i / 16 * 16 + (word % 4 * 2 + word / 4) * 2 + i % 2;
}

/// Weights of 16 bits as they lie. Rows have whole units.
template <class Tag>
class PlainUnits {
 public:
  static constexpr DType type = operand_a(Tag::config).type;
  static constexpr atom::Mma mma = block_mma(type);
  static constexpr int step = plain_unit_k;
  static constexpr int bytes = block_rows * step * 2;
  static constexpr bool packed = false;
  static constexpr TokenWords first_tokens = TokenWords::pieces;
  static constexpr TokenWords second_tokens = TokenWords::pieces;
  static constexpr int words = step / 8;

  /// What a launch says of the weights of a product; are registers left to keep it?
  static constexpr bool keeps_form = true;
  struct Form {};
  WW_DEVICE static Form form(const WarpProduct& /*p*/) { return {}; }

  /// Where this lane's pieces of a block begin.
  struct Block {
    const std::byte* rows[2];
  };
  WW_DEVICE static Block block(const WarpProduct& p, int expert, int first, int part) {
    Block b;
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      const int row = p.gate.row(first + isa::lane_index() / 4 + 8 * i, part);
      // Past the last row any will do: what comes of it is not stored.
      const int within = row < p.weights.rows ? row : p.weights.rows - 1;
      b.rows[i] = p.weights.data + expert * p.weights.expert + within * p.weights.pitch +
                  isa::lane_index() % 4 * 16;
    }
    return b;
  }

  /// Where its scales lie from there: they have none.
  WW_DEVICE static int scales_at(const Form& /*form*/, int /*number*/) { return 0; }

  WW_DEVICE static void copy(const Form& /*form*/, const Block& block, int /*scales_at*/, int unit,
                             isa::SharedAddress to) {
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      isa::copy_async_or_zeros<true>(place(to, i), block.rows[i] + unit * (2 * step), false);
    }
  }

  WW_DEVICE static void multiply(const Form& /*form*/, isa::SharedAddress from,
                                 const std::uint32_t (&tokens)[words], BlockSums& sums) {
    isa::Words<4> rows[2];
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      rows[i] = isa::SharedView<isa::Words<4>>{place(from, i)}.load();
    }
    WW_UNROLL for (int i = 0; i < 4; i += 2) {
      const std::uint32_t a[4] = {rows[0].word[i], rows[1].word[i], rows[0].word[i + 1],
                                  rows[1].word[i + 1]};
      const std::uint32_t b[2] = {tokens[i], tokens[i + 1]};
      isa::mma_sync<mma>(sums, a, b);
    }
  }
  WW_DEVICE static BlockFactors factors(const Form& /*form*/, isa::SharedAddress /*from*/) {
    return {1, 1};
  }

 private:
  WW_DEVICE static isa::SharedAddress place(isa::SharedAddress unit, int i) {
    return unit + static_cast<isa::SharedAddress>(512 * i + 16 * isa::lane_index());
  }
};

/// Weights of 4 bits in their packed form, for tokens of 16 bits.
template <class Tag>
class PackedUnits {
 public:
  static constexpr DType type = operand_b(Tag::config).type;
  static constexpr atom::Mma mma = block_mma(type);
  static constexpr bool is_float = has_float_codes(Tag::config);
  static constexpr int step = packed::kTileK;
  static constexpr int code_bytes = block_rows * step / 2;
  static constexpr int pair_bytes = 16;  ///< of the scales of a row and of the eighth below
  static constexpr int bytes = code_bytes + 8 * pair_bytes;
  static constexpr bool packed = true;
  static constexpr TokenWords first_tokens = TokenWords::words;
  static constexpr TokenWords second_tokens = TokenWords::pairs;
  static constexpr int words = step / 8;

  /// What a launch says of the weights of a product; are registers left to keep it?
  static constexpr bool keeps_form = is_float;
  struct Form {
    DType scale;
    int group;
    int tile_bytes;
    int slice_bytes;
  };
  WW_DEVICE static Form form(const WarpProduct& p) {
    return {p.packed.scale, p.packed.group, p.packed.tile_bytes, p.packed.slice_bytes};
  }

  /// Where this lane's codes of a block begin, in the packed tile of the first k_tile.
  struct Block {
    const std::byte* codes;
  };
  WW_DEVICE static Block block(const WarpProduct& p, int expert, int first, int part) {
    const PackedParams& w = p.packed;
    const int row = p.gate.row(first, part);
    const int at = row / packed::kTileRows;
    const int within = at < w.row_tiles ? at : w.row_tiles - 1;
    const std::int64_t tile = (std::int64_t{expert} * w.row_tiles + within) * w.k_tiles;
    return {w.data + tile * w.tile_bytes + packed::lane_begin(0, own_thread(first / block_rows))};
  }
  /// Where its scales lie from there. Gates and ups begin with tiles, so this is the same of both.
  WW_DEVICE static int scales_at(const Form& form, int number) {
    const int thread = own_thread(number);
    const int pair = thread / 4;
    const int in_tile = !is_float ? isa::lane_index() % 4 * form.slice_bytes + 4 * pair
                                  : (form.scale == DType::ue8m0 ? 8 : 16) * pair;
    return packed::scales_begin() + in_tile - packed::lane_begin(0, thread);
  }

  WW_DEVICE static void copy(const Form& form, const Block& block, int scales_at, int unit,
                             isa::SharedAddress to) {
    const std::byte* const from = block.codes + std::int64_t{unit} * form.tile_bytes;
    WW_UNROLL for (int half = 0; half < 2; ++half) {
      isa::copy_async_or_zeros<true>(codes(to, half), from + half * packed::kHalfBytes, false);
    }
    // Four lanes share a pair of rows: one copies its scales, or each those of a slice.
    const int lane = isa::lane_index();
    const isa::SharedAddress at = scales_of(to, lane / 4);
    if constexpr (!is_float) {
      const int slice = lane % 4;
      if (slice * form.group >= step) return;
      isa::copy_async<4>(at + static_cast<isa::SharedAddress>(4 * slice), from + scales_at);
    } else {
      if (lane % 4 != 0) return;
      if (form.scale == DType::ue8m0) {
        isa::copy_async<8>(at, from + scales_at);
      } else {
        isa::copy_async<16>(at, from + scales_at);
      }
    }
  }

  /// All lanes of the warp have waited for their copies, and have met.
  WW_DEVICE static void multiply(const Form& form, isa::SharedAddress from,
                                 const std::uint32_t (&tokens)[words], BlockSums& sums) {
    if constexpr (!is_float) {
      by_groups(form, from, tokens, sums);
    } else {
      if (form.scale == DType::ue8m0) return folded<2>(from, tokens, sums);
      folded<1>(from, tokens, sums);
    }
  }

  /// What the sums of a block are multiplied by, as its last unit says.
  WW_DEVICE static BlockFactors factors(const Form& form, isa::SharedAddress from) {
    if constexpr (!is_float) return {0x1p-9F, 0x1p-9F};
    if (form.scale != DType::ue8m0) return {128, 128};
    const isa::SharedAddress at = scales_of(from, isa::lane_index() / 4);
    const auto scales = isa::SharedView<isa::Words<2>>{at}.load();
    return {isa::float_of(packed::unit_in(scales.word[0]) << 23),
            isa::float_of(packed::unit_in(scales.word[1]) << 23)};
  }

 private:
  static constexpr int steps = step / 16;

  /// The thread of a warpgroup that has this lane's rows of a block.
  WW_DEVICE static int own_thread(int number) {
    return number % (packed::kTileRows / block_rows) * 32 + isa::lane_index();
  }

  WW_DEVICE static isa::SharedAddress codes(isa::SharedAddress unit, int half) {
    return unit + static_cast<isa::SharedAddress>(512 * half + 16 * isa::lane_index());
  }
  WW_DEVICE static isa::SharedAddress scales_of(isa::SharedAddress unit, int pair) {
    return unit + static_cast<isa::SharedAddress>(code_bytes + pair_bytes * pair);
  }

  /// Codes times their scales, which round none; so many steps share one.
  template <int group_steps>
  WW_DEVICE static void folded(isa::SharedAddress from, const std::uint32_t (&tokens)[words],
                               BlockSums& sums) {
    const isa::SharedAddress at = scales_of(from, isa::lane_index() / 4);
    std::uint32_t scales[2][2] = {};
    if constexpr (group_steps == 2) {
      const auto loaded = isa::SharedView<isa::Words<2>>{at}.load();
      WW_UNROLL for (int r = 0; r < 2; ++r) scales[r][0] = loaded.word[r];
    } else {
      const auto loaded = isa::SharedView<isa::Words<4>>{at}.load();
      WW_UNROLL for (int j = 0; j < 4; ++j) scales[j / 2][j % 2] = loaded.word[j];
    }
    isa::Words<4> codes_now;
    WW_UNROLL for (int s = 0; s < steps; ++s) {
      if (s % 4 == 0) codes_now = isa::SharedView<isa::Words<4>>{codes(from, s / 4)}.load();
      const int slice = s / group_steps;
      std::uint32_t factors[2];
      WW_UNROLL for (int r = 0; r < 2; ++r) {
        factors[r] =
            WideCodes<type>::template factors<group_steps == 2>(scales[r][slice / 4], slice % 2);
      }
      std::uint32_t a[4];
      convert_by_factors<type>(codes_now.word[s % 4], factors, slice % 4 / 2, a);
      const std::uint32_t b[2] = {tokens[2 * s], tokens[2 * s + 1]};
      isa::mma_sync<mma>(sums, a, b);
    }
  }

  /// Sums of each group, times its scales. A slice of 32 is two steps.
  WW_DEVICE static void by_groups(const Form& form, isa::SharedAddress from,
                                  const std::uint32_t (&tokens)[words], BlockSums& sums) {
    const isa::SharedAddress at = scales_of(from, isa::lane_index() / 4);
    const std::uint32_t less[2] = {WideCodes<type>::int4_less(0, 8),
                                   WideCodes<type>::int4_less(1, 8)};
    BlockSums part = {};
    int group = 0;
    isa::Words<4> codes_now;
    WW_UNROLL for (int s = 0; s < steps; ++s) {
      if (s % 4 == 0) codes_now = isa::SharedView<isa::Words<4>>{codes(from, s / 4)}.load();
      std::uint32_t a[4];
      convert_to_wide<type>(codes_now.word[s % 4], less, a);
      const std::uint32_t b[2] = {tokens[2 * s], tokens[2 * s + 1]};
      isa::mma_sync<mma>(part, a, b);
      if (s % 2 == 0 || (16 * (s + 1) & (form.group - 1)) != 0) continue;
      const auto bits = isa::SharedView<std::uint32_t>{at}.load(group);
      const isa::Pair scale = form.scale == DType::bf16 ? isa::unpack<DType::bf16>(&bits)
                                                        : isa::unpack<DType::f16>(&bits);
      ++group;
      WW_UNROLL for (int i = 0; i < 4; ++i) {
        sums[i] = isa::multiply_add(part[i], i < 2 ? scale.low : scale.high, sums[i]);
        part[i] = 0;
      }
    }
  }
};

/// The units of a product's weights.
template <class Tag>
using UnitsOf = std::conditional_t<packed_a(Tag::config), PackedUnits<Tag>, PlainUnits<Tag>>;

}  // namespace warpwright::kernel
