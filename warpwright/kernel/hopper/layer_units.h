// What a warp of a layer in one launch multiplies at a time: 16 rows of weights, a *block*, by a
// few elements of K, a *unit*. Each lane copies to shared memory what it will multiply itself, by
// cp.async, and makes of it the registers of mma.sync.m16n8k16. Tokens lie in shared memory, too,
// as elements of 16 bits (staged_rows.h): a lane's words of a unit in pieces of 16 bytes, those
// of four lanes side by side.
//
//   weights        K of a unit   which elements a lane multiplies
//   16 bits        32            neighbours, so K is multiplied in another order than it lies, the
//                                same of both operands
//   e4m3, in       64            likewise. Both operands become f16, which is exact; the sums of a
//   blocks                       unit meet the scales of weights and token
//   packed, of     128           words of two elements as the instruction takes them: the packed
//   4 bits                       form has that order
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
  return {.m = block_rows, .n = 2 * block_tokens, .k = 16, .a = type, .b = type};
}

/// A lane's sums of a block: of its row, and of the eighth below, for two tokens each.
using BlockSums = float[4];

/// What the rows of a block are multiplied by at the end, besides alpha: of a lane's two rows.
using BlockFactors = isa::Pair;

/// Where a lane finds its tokens: the row whose words it multiplies, and where rows have scales
/// those of the two tokens whose sums it has.
struct TokenPlace {
  isa::SharedAddress row;
  isa::SharedAddress scales[2];
};

/// Words of a lane's tokens that lie side by side: of 32 elements of K.
WW_DEVICE isa::Words<4> token_words(const TokenPlace& at, int first_k) {
  return isa::SharedView<isa::Words<4>>{
      at.row + static_cast<isa::SharedAddress>(2 * first_k + isa::lane_index() % 4 * 16)}
      .load();
}

/// The sums of both units of a stage.
using StageSums = BlockSums[2];

/// Weights as they lie, of 64 bytes of a row: of 16 bits, or e4m3 in blocks of 128 x 128 for tokens
/// that are quantised. Rows have whole units.
template <class Tag>
class RowUnits {
 public:
  static constexpr bool quantises = is_blockwise(Tag::config);
  static constexpr DType type = quantises ? DType::f16 : operand_a(Tag::config).type;
  static constexpr atom::Mma mma = block_mma(type);
  static constexpr int row_bytes = 64;
  static constexpr int step = row_bytes * 8 / operand_bits(Tag::config);
  static constexpr int code_bytes = block_rows * row_bytes;
  static constexpr int bytes = code_bytes + (quantises ? 16 : 0);
  static constexpr bool shares_scales = quantises;  ///< else a lane reads only what it has copied

  /// What a launch says of the weights of a product.
  struct Form {
    std::int64_t eight_rows;  ///< bytes, from a row of a block to the eighth below
    std::int64_t scale_step;  ///< floats, from a scale to the next along K
    OtherPart ups;
  };
  WW_DEVICE static Form form(const WarpProduct& p) {
    return {p.eight_rows, quantises ? p.block_scales.block_stride : 0, p.ups};
  }

  /// From where this lane copies: all rows of a block are there, for there are whole units of them.
  struct Source {
    const std::byte* row;
    const float* scales;
  };
  WW_DEVICE static Source source(const WarpProduct& p, int expert, int first) {
    const int row = p.gate.row(first + isa::lane_index() / 4, 0);
    Source s{p.weights.data + expert * p.weights.expert + row * p.weights.pitch +
                 isa::lane_index() % 4 * 16,
             nullptr};
    if constexpr (quantises) {
      s.scales = p.block_scales.at(expert, p.gate.row(first, 0) / scale_k, 0);
    }
    return s;
  }

  /// A stage: a unit of a block, and beside it `other`, or the ups of the same unit.
  WW_DEVICE static void copy(const Form& form, const Source& source, bool is_ups, int unit,
                             int other, isa::SharedAddress to) {
    const std::byte* const from = source.row + unit * row_bytes;
    const std::byte* const beside = from + (is_ups ? form.ups.bytes : (other - unit) * row_bytes);
    isa::copy_async_or_zeros<true>(place(to, 0), from, false);
    isa::copy_async_or_zeros<true>(place(to, 1), from + form.eight_rows, false);
    isa::copy_async_or_zeros<true>(place(to + bytes, 0), beside, false);
    isa::copy_async_or_zeros<true>(place(to + bytes, 1), beside + form.eight_rows, false);
    if constexpr (quantises) {
      const int lane = isa::lane_index();
      if (lane > 1) return;
      const int at = lane == 0 || is_ups ? unit : other;
      const std::int64_t part = lane == 1 && is_ups ? form.ups.scales : 0;
      isa::copy_async<4>(to + static_cast<isa::SharedAddress>(lane * bytes + code_bytes),
                         source.scales + part + at / (scale_k / step) * form.scale_step);
    }
  }

  /// This lane's tokens of both units of a stage: those of 16 bits, or where they are.
  struct Tokens {
    TokenPlace from;
    int units[2];
    isa::Words<4> words[quantises ? 1 : 2];
  };
  WW_DEVICE static Tokens load(const TokenPlace& from, int unit, int other) {
    Tokens t{from, {unit, other}, {}};
    if constexpr (!quantises) {
      WW_UNROLL for (int u = 0; u < 2; ++u) t.words[u] = token_words(from, t.units[u] * step);
    }
    return t;
  }

  /// Both units of a stage.
  WW_DEVICE static void multiply(const Form& /*form*/, isa::SharedAddress from,
                                 const Tokens& tokens, StageSums& sums) {
    isa::Words<4> rows[2][2];
    WW_UNROLL for (int u = 0; u < 2; ++u) {
      WW_UNROLL for (int i = 0; i < 2; ++i) {
        rows[u][i] = isa::SharedView<isa::Words<4>>{place(from + u * bytes, i)}.load();
      }
    }
    if constexpr (!quantises) {
      WW_UNROLL for (int i = 0; i < 4; i += 2) {
        WW_UNROLL for (int u = 0; u < 2; ++u) {
          const std::uint32_t a[4] = {rows[u][0].word[i], rows[u][1].word[i],
                                      rows[u][0].word[i + 1], rows[u][1].word[i + 1]};
          const std::uint32_t b[2] = {tokens.words[u].word[i], tokens.words[u].word[i + 1]};
          isa::mma_sync<mma>(sums[u], a, b);
        }
      }
    } else {
      BlockSums part[2] = {};
      isa::Words<4> words[2];
      WW_UNROLL for (int i = 0; i < 4; ++i) {
        WW_UNROLL for (int u = 0; u < 2; ++u) {
          if (i % 2 == 0) words[u] = token_words(tokens.from, tokens.units[u] * step + 16 * i);
          const std::uint32_t low = rows[u][0].word[i];
          const std::uint32_t high = rows[u][1].word[i];
          const std::uint32_t a[4] = {halves(low), halves(high), halves(low >> 16),
                                      halves(high >> 16)};
          const std::uint32_t b[2] = {words[u].word[i % 2 * 2], words[u].word[i % 2 * 2 + 1]};
          isa::mma_sync<mma>(part[u], a, b);
        }
      }
      WW_UNROLL for (int u = 0; u < 2; ++u) {
        const float scale = isa::SharedView<float>{from + u * bytes + code_bytes}.load();
        WW_UNROLL for (int j = 0; j < 2; ++j) {
          const isa::SharedView<float> of_token{tokens.from.scales[j]};
          const float factor = scale * of_token.load(tokens.units[u] / (scale_k / step));
          WW_UNROLL for (int i = j; i < 4; i += 2) {
            sums[u][i] = isa::multiply_add(part[u][i], factor, sums[u][i]);
          }
        }
      }
    }
  }
  WW_DEVICE static BlockFactors factors(const Form& /*form*/, isa::SharedAddress /*from*/) {
    return {1, 1};
  }

  /// Stores piece `i` of a row of tokens, of eight elements: where multiply finds them.
  WW_DEVICE static void put(isa::SharedAddress row, int i, const isa::Words<4>& piece) {
    const int at = !quantises ? i : i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
    isa::SharedView<isa::Words<4>>{row}.store(at, piece);
  }

 private:
  static constexpr int scale_k = 128;  ///< elements of K, and rows, of a block

  WW_DEVICE static std::uint32_t halves(std::uint32_t codes) {
    return isa::halves_of_bytes(static_cast<std::uint16_t>(codes));
  }
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
  static constexpr int bytes = code_bytes + 128;  ///< with scales of up to 16 bits
  static constexpr bool quantises = false;
  static constexpr bool shares_scales = true;

  /// What a launch says of the weights of a product.
  struct Form {
    DType scale;
    int group;
    int tile_bytes;
    OtherPart ups;
  };
  WW_DEVICE static Form form(const WarpProduct& p) {
    return {p.packed.scale, p.packed.group, p.packed.tile_bytes, p.ups};
  }

  /// From where this lane copies, in the packed tile of the first unit.
  struct Source {
    const std::byte* codes;
    int scales_at;  ///< from there on; negative: others bring them
  };
  WW_DEVICE static Source source(const WarpProduct& p, int expert, int first) {
    const PackedParams& w = p.packed;
    const std::int64_t tile =
        (std::int64_t{expert} * w.row_tiles + first / packed::kTileRows) * w.k_tiles;
    // The thread of a warpgroup that has this lane's rows of a block.
    const int number = first / block_rows % (packed::kTileRows / block_rows);
    const int begin = packed::lane_begin(0, number * 32 + isa::lane_index());
    Source s{w.data + tile * w.tile_bytes + begin, -1};
    // Scales of a block's eight pairs of rows lie side by side, of int4 those of a slice of K.
    const int lane = isa::lane_index();
    const int pair_bytes = !is_float ? 4 : w.scale == DType::ue8m0 ? 8 : 16;
    const int slice = is_float ? 0 : lane / 2;
    const int piece = is_float ? lane : lane % 2;
    if (is_float ? lane < pair_bytes / 2 : slice * w.group < step) {
      s.scales_at = packed::scales_begin() + slice * w.slice_bytes + number * 8 * pair_bytes +
                    piece * 16 - begin;
    }
    return s;
  }

  /// A stage: a unit of a block, and beside it `other`, or the ups of the same unit.
  WW_DEVICE static void copy(const Form& form, const Source& source, bool is_ups, int unit,
                             int other, isa::SharedAddress to) {
    const std::byte* const from = source.codes + std::int64_t{unit} * form.tile_bytes;
    const std::byte* const beside =
        from + (is_ups ? form.ups.bytes : (other - unit) * form.tile_bytes);
    WW_UNROLL for (int half = 0; half < 2; ++half) {
      isa::copy_async_or_zeros<true>(codes(to, half), from + half * packed::kHalfBytes, false);
    }
    WW_UNROLL for (int half = 0; half < 2; ++half) {
      isa::copy_async_or_zeros<true>(codes(to + bytes, half), beside + half * packed::kHalfBytes,
                                     false);
    }
    if (source.scales_at < 0) return;
    const isa::SharedAddress scales =
        to + static_cast<isa::SharedAddress>(code_bytes + 16 * isa::lane_index());
    isa::copy_async<16>(scales, from + source.scales_at);
    isa::copy_async<16>(scales + bytes, beside + source.scales_at);
  }

  /// This lane's tokens of both units of a stage: more than there are registers for at once.
  struct Tokens {
    TokenPlace from;
    int units[2];
  };
  WW_DEVICE static Tokens load(const TokenPlace& from, int unit, int other) {
    return {from, {unit, other}};
  }

  /// Both units of a stage. All lanes of the warp have waited for their copies, and have met.
  WW_DEVICE static void multiply(const Form& form, isa::SharedAddress from, const Tokens& tokens,
                                 StageSums& sums) {
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
    const auto scales = isa::SharedView<isa::Words<2>>{from + code_bytes}.load(pair());
    return {isa::float_of(packed::unit_in(scales.word[0]) << 23),
            isa::float_of(packed::unit_in(scales.word[1]) << 23)};
  }

  /// Stores piece `i` of a row of tokens, of eight elements: where multiply finds them.
  WW_DEVICE static void put(isa::SharedAddress row, int i, const isa::Words<4>& piece) {
    const isa::SharedView<std::uint32_t> words{row};
    const int first = i / 4 * 16 + i % 4;  // two steps of 16 are four words of each of four lanes
    WW_UNROLL for (int lane = 0; lane < 4; ++lane) words.store(first + 4 * lane, piece.word[lane]);
  }

 private:
  static constexpr int steps = step / 16;

  /// This lane's pair of rows in a block.
  WW_DEVICE static int pair() { return isa::lane_index() / 4; }
  WW_DEVICE static isa::SharedAddress codes(isa::SharedAddress unit, int half) {
    return unit + static_cast<isa::SharedAddress>(512 * half + 16 * isa::lane_index());
  }

  /// Calls `body(u, s, code word, its token words)` for each step of both units.
  template <class Body>
  WW_DEVICE static void by_steps(isa::SharedAddress from, const Tokens& tokens, const Body& body) {
    isa::Words<4> codes_now[2];
    isa::Words<4> words[2];
    WW_UNROLL for (int s = 0; s < steps; ++s) {
      WW_UNROLL for (int u = 0; u < 2; ++u) {
        if (s % 4 == 0) {
          codes_now[u] = isa::SharedView<isa::Words<4>>{codes(from + u * bytes, s / 4)}.load();
        }
        if (s % 2 == 0) words[u] = token_words(tokens.from, tokens.units[u] * step + 16 * s);
      }
      WW_UNROLL for (int u = 0; u < 2; ++u) {
        const std::uint32_t b[2] = {words[u].word[s % 2 * 2], words[u].word[s % 2 * 2 + 1]};
        body(u, s, codes_now[u].word[s % 4], b);
      }
    }
  }

  /// Codes times their scales, which round none; so many steps share one.
  template <int group_steps>
  WW_DEVICE static void folded(isa::SharedAddress from, const Tokens& tokens, StageSums& sums) {
    std::uint32_t scales[2][2][2] = {};
    WW_UNROLL for (int u = 0; u < 2; ++u) {
      const isa::SharedAddress at = from + u * bytes + code_bytes;
      if constexpr (group_steps == 2) {
        const auto loaded = isa::SharedView<isa::Words<2>>{at}.load(pair());
        WW_UNROLL for (int r = 0; r < 2; ++r) scales[u][r][0] = loaded.word[r];
      } else {
        const auto loaded = isa::SharedView<isa::Words<4>>{at}.load(pair());
        WW_UNROLL for (int j = 0; j < 4; ++j) scales[u][j / 2][j % 2] = loaded.word[j];
      }
    }
    by_steps(from, tokens, [&](int u, int s, std::uint32_t word, const std::uint32_t(&b)[2]) {
      const int slice = s / group_steps;
      std::uint32_t factors[2];
      WW_UNROLL for (int r = 0; r < 2; ++r) {
        factors[r] =
            WideCodes<type>::template factors<group_steps == 2>(scales[u][r][slice / 4], slice % 2);
      }
      std::uint32_t a[4];
      convert_by_factors<type>(word, factors, slice % 4 / 2, a);
      isa::mma_sync<mma>(sums[u], a, b);
    });
  }

  /// Sums of each group, times its scales. A slice of 32 is two steps.
  WW_DEVICE static void by_groups(const Form& form, isa::SharedAddress from, const Tokens& tokens,
                                  StageSums& sums) {
    const std::uint32_t less[2] = {WideCodes<type>::int4_less(0, 8),
                                   WideCodes<type>::int4_less(1, 8)};
    BlockSums part[2] = {};
    int group = 0;
    by_steps(from, tokens, [&](int u, int s, std::uint32_t word, const std::uint32_t(&b)[2]) {
      std::uint32_t a[4];
      convert_to_wide<type>(word, less, a);
      isa::mma_sync<mma>(part[u], a, b);
      if (s % 2 == 0 || (16 * (s + 1) & (form.group - 1)) != 0) return;
      const isa::SharedAddress at = from + u * bytes + code_bytes;
      const auto bits = isa::SharedView<std::uint32_t>{at}.load(8 * group + pair());
      group += u;
      const isa::Pair scale = form.scale == DType::bf16 ? isa::unpack<DType::bf16>(&bits)
                                                        : isa::unpack<DType::f16>(&bits);
      WW_UNROLL for (int i = 0; i < 4; ++i) {
        sums[u][i] = isa::multiply_add(part[u][i], i < 2 ? scale.low : scale.high, sums[u][i]);
        part[u][i] = 0;
      }
    });
  }
};

/// The units of a product's weights.
template <class Tag>
using UnitsOf = std::conditional_t<packed_a(Tag::config), PackedUnits<Tag>, RowUnits<Tag>>;

}  // namespace warpwright::kernel
