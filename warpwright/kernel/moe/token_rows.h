// Rows of tokens on their way to the products of experts: copied, or quantised to e4m3, in the
// order of the tokens or in that of the experts. A warp takes pieces of tokens; where a scale
// reaches over a row, warps of a CTA share it. A token is read and quantised once, however many
// rows of the result it becomes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/e4m3_divisor.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/moe/token_pieces.h"
#include "warpwright/kernel/quantise/codes.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// How rows are shared out.
struct TokenRowsShape {
  static constexpr int max_sharers = 8;
  static constexpr int max_teams = 15;  ///< of warps that share rows: a named barrier each

  /// What warps can share out: pieces of tokens; where a scale reaches over a row, the shares of
  /// rows, those of a row side by side.
  static constexpr std::int64_t items(const TokenRows& p) { return p.tokens * items_of_token(p); }
  static constexpr std::int64_t items_of_token(const TokenRows& p) {
    if (p.form == RowForm::none) return 0;
    return p.form == RowForm::rows ? p.sharers : TokenPieceShape::pieces(p);
  }
  /// How many warps share a row with one scale, a power of two: of CTAs with `cta_warps`, where
  /// `warps` in all move rows. More than one where there are warps enough, and pieces for them;
  /// and, given `most_pieces`, where one would have more of them than that.
  static int sharers_of(const TokenRows& p, int cta_warps, std::int64_t warps,
                        int most_pieces = 0) {
    if (p.form != RowForm::rows || p.tokens == 0) return 1;
    const std::int64_t pieces = TokenPieceShape::pieces(p);
    const std::int64_t idle = std::min(warps / p.tokens, pieces);
    int sharers = 1;
    while (sharers < max_sharers && cta_warps % (2 * sharers) == 0 &&
           (2 * sharers <= idle || (most_pieces > 0 && most_pieces * sharers < pieces))) {
      sharers *= 2;
    }
    return cta_warps / sharers > max_teams ? 1 : sharers;
  }
};

/// Pieces of tokens that a warp takes, one in each step: numbers are divided once.
class PieceWalk {
 public:
  WW_DEVICE PieceWalk(std::int64_t first, std::int64_t step, int pieces)
      : pieces_(pieces),
        token_(static_cast<int>(quotient(first, pieces))),
        piece_(static_cast<int>(first - std::int64_t{token_} * pieces)),
        tokens_(static_cast<int>(quotient(step, pieces))),
        further_(static_cast<int>(step - std::int64_t{tokens_} * pieces)) {}

  [[nodiscard]] WW_DEVICE int token() const { return token_; }
  [[nodiscard]] WW_DEVICE int piece() const { return piece_; }

  WW_DEVICE void advance() {
    token_ += tokens_;
    piece_ += further_;
    if (piece_ < pieces_) return;
    piece_ -= pieces_;
    ++token_;
  }

 private:
  int pieces_;
  int token_;
  int piece_;
  int tokens_;   ///< of a step
  int further_;  ///< pieces of a step beside them
};

/// A warp that moves them.
template <class Slots, class Read>
class TokenRowsMover : private TokenPieces<Slots, Read> {
  using Pieces = TokenPieces<Slots, Read>;
  using Pieces::at_once;
  using Pieces::each;
  using Pieces::for_each_row;
  using Pieces::lane_;
  using Pieces::load;
  using Pieces::load_codes;
  using Pieces::made;
  using Pieces::p_;
  using Pieces::piece;
  using Pieces::row_of_lane;
  using Pieces::widen;
  using Raw = typename Pieces::Raw;

 public:
  WW_DEVICE TokenRowsMover(const TokenRows& p, const Slots& slots, const Read& read,
                           const isa::Prerequisites& ready)
      : Pieces(p, slots, read, ready),
        whole_to_(p.form == RowForm::copy || p.form == RowForm::codes
                      ? begin_at_multiples<16>(p.to, p.to_pitch)
                      : begin_at_multiples<8>(p.to, p.to_pitch)) {}

  WW_DEVICE void take(const WarpShare& share) const {
    if (p_.form == RowForm::rows) return quantise_rows(share);
    if constexpr (Read::has_codes) {
      if (p_.form == RowForm::codes) {
        for_each_piece<2 * each>(
            share, [&](int token, int column) { return load_codes(token, column); },
            [&](int token, int row, int column, const Sixteen& codes) {
              move_codes(token, row, column, codes);
            });
        return;
      }
    }
    for_each_piece<each>(
        share, [&](int token, int column) { return load(token, column); },
        [&](int token, int row, int column, const Raw& raw) {
          const Eight chunk = made(token, raw);
          if (p_.form == RowForm::copy) {
            for_each_row(token, row, [&](std::int64_t to) { store(to, column, chunk); });
          } else {
            quantise_piece(token, row, column, chunk);
          }
        });
  }

 private:
  /// For this warp: pieces of 32 lanes x `elements`, whose loads are on their way together. They
  /// are used by a loop, which is short: pieces take turns in the first place.
  template <int elements, class Load, class Use>
  WW_DEVICE void for_each_piece(const WarpShare& share, const Load& load, const Use& use) const {
    if (share.first >= share.end) return;
    PieceWalk walk(share.first, share.step, Pieces::pieces(p_));
    int left = static_cast<int>(quotient(share.end - share.first + share.step - 1, share.step));
    WW_NO_UNROLL
    for (; left > 0; left -= at_once) {
      std::decay_t<decltype(load(0, 0))> chunk[at_once];
      int token[at_once];
      int column[at_once];
      int row[at_once];
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (i >= left) continue;
        token[i] = walk.token();
        column[i] = walk.piece() * 32 * elements + lane_ * elements;
        chunk[i] = load(token[i], column[i]);
        row[i] = row_of_lane(token[i], 0);
        walk.advance();
      }
      const int now = left < at_once ? left : at_once;
      WW_NO_UNROLL
      for (int i = 0; i < now; ++i) {
        use(token[0], row[0], column[0], chunk[0]);
        drop_front<1>(token);
        drop_front<1>(row);
        drop_front<1>(column);
        drop_front<1>(chunk);
      }
    }
  }

  // --- elements ---------------------------------------------------------------------------------

  WW_DEVICE void store(std::int64_t row, int column, const Eight& eight) const {
    store_eight(p_.to + row * p_.to_pitch, column, p_.k, whole_to_, eight);
  }

  WW_DEVICE void store_codes(std::int64_t row, int column, std::uint64_t codes) const {
    kernel::store_codes<8>(p_.to + row * p_.to_pitch + column, codes, p_.k - column, whole_to_);
  }

  // --- codes as they come -----------------------------------------------------------------------

  /// A lane whose first code begins what has a scale moves that too.
  WW_DEVICE void move_codes(int token, int row, int column, const Sixteen& codes) const {
    const bool has_scale =
        column < p_.k && (p_.scales_blocks ? column & (p_.block - 1) : column) == 0;
    const int number = block_number(column, p_.block);
    float scale = 0;
    if (has_scale) {
      scale = isa::GlobalView<const float>{p_.x_scales}.load(token * p_.x_scale_pitch +
                                                             number * p_.x_scale_step);
    }
    for_each_row(token, row, [&](std::int64_t to) {
      store_sixteen(p_.to + to * p_.to_pitch, column, p_.k, whole_to_, codes);
      if (!has_scale) return;
      isa::GlobalView<float>{p_.scales}.store(to * p_.scale_pitch + number * p_.scale_step, scale);
    });
  }

  // --- quantising -------------------------------------------------------------------------------

  WW_DEVICE void quantise_piece(int token, int row, int column, const Eight& chunk) const {
    float value[each];
    widen(chunk, value);
    const E4m3Divisor by(e4m3_scale(largest_of_block<each>(larger_finite(0, value), p_.block)));
    const std::uint64_t codes = codes_of(by, value);
    const int inside = p_.k - column;
    const bool has_scale = inside > 0 && (column & (p_.block - 1)) == 0;
    unsigned char* const codes_at = p_.to + column;
    float* const scales_at = p_.scales + block_number(column, p_.block) * p_.scale_step;
    for_each_row(token, row, [&](std::int64_t to) {
      kernel::store_codes<8>(codes_at + to * p_.to_pitch, codes, inside, whole_to_);
      if (has_scale) isa::GlobalView<float>{scales_at}.store(to * p_.scale_pitch, by.scale);
    });
  }

  static constexpr int kept = Read::kept;

  /// The warps that share a row take the same item of theirs at once.
  WW_DEVICE void quantise_rows(const WarpShare& share) const {
    bool odd = false;
    for (std::int64_t item = share.first; item < share.end; item += share.step) {
      const auto token = static_cast<int>(quotient(item, p_.sharers));
      const auto number = static_cast<int>(item - std::int64_t{token} * p_.sharers);
      quantise_row(token, number, share.meeting + (odd ? 4 : 0));
      odd = !odd;
    }
  }

  /// Sharer `number`'s pieces of a row, from the last to the first: these are in registers still
  /// when the scale is known, and only those behind them are read again.
  WW_DEVICE void quantise_row(int token, int number, isa::SharedAddress meeting) const {
    const int row = row_of_lane(token, 0);
    const int step = p_.sharers * piece;
    const int begin = number * piece;
    int first = begin;
    while (first + kept * step < p_.k) first += kept * step;
    Eight chunk[kept];
    float largest = 0;
    E4m3Divisor by(1, 1);
    WW_NO_UNROLL
    for (bool known = false; first == begin || first < p_.k;) {
      load_kept(token, first, step, chunk, largest);
      if (!known) {
        known = first == begin;
        if (!known) {
          first -= kept * step;
          continue;
        }
        by = E4m3Divisor(e4m3_scale(largest_of_row(largest, meeting)));
        for_each_row(token, row, [&](std::int64_t to) {
          if (number > 0 || lane_ > 0) return;
          isa::GlobalView<float>{p_.scales}.store(to * p_.scale_pitch, by.scale);
        });
      }
      store_quantised(token, row, first, step, by, chunk);
      first += kept * step;
    }
  }

  /// Pieces from `first` on, and their largest. All are on their way together where they are made
  /// of as many words, else each while the one before is made.
  WW_DEVICE void load_kept(int token, int first, int step, Eight (&chunk)[kept],
                           float& largest) const {
    constexpr bool together = std::is_same_v<Raw, Eight>;
    int column = first + lane_ * each;
    Raw next{};
    if constexpr (together) {
      WW_UNROLL
      for (int i = 0; i < kept; ++i) {
        chunk[i] = column + i * step < p_.k ? load(token, column + i * step) : Eight{};
      }
    } else if (column < p_.k) {
      next = load(token, column);
    }
    WW_NO_UNROLL
    for (int i = 0; i < kept; ++i) {
      Raw raw = next;
      const bool inside = column < p_.k;
      column += step;
      if constexpr (together) {
        raw = chunk[0];
      } else if (i + 1 < kept && column < p_.k) {
        next = load(token, column);
      }
      drop_front<1>(chunk);
      chunk[kept - 1] = {};
      if (!inside) continue;
      chunk[kept - 1] = made(token, raw);
      float value[each];
      widen(chunk[kept - 1], value);
      largest = larger_finite(largest, value);
    }
  }

  /// By a loop, which is short: pieces take turns in the first place.
  WW_DEVICE void store_quantised(int token, int row, int first, int step, const E4m3Divisor& by,
                                 Eight (&chunk)[kept]) const {
    WW_NO_UNROLL
    for (int i = 0; i < kept; ++i) {
      float value[each];
      widen(chunk[0], value);
      const std::uint64_t codes = codes_of(by, value);
      const int column = first + i * step + lane_ * each;
      for_each_row(token, row, [&](std::int64_t to) {
        if (column < p_.k) store_codes(to, column, codes);
      });
      drop_front<1>(chunk);
    }
  }

  /// All lanes of all warps that share the row: the largest of theirs. They meet at `meeting` and
  /// each other row beside it, so nobody writes there before all have read.
  WW_DEVICE float largest_of_row(float largest, isa::SharedAddress meeting) const {
    const float mine = largest_of_lanes<1, 32>(largest);
    if (p_.sharers == 1) return mine;
    const isa::SharedView<float> words{meeting};
    const int warp = isa::warp_index();
    const int first = warp & ~(p_.sharers - 1);
    if (lane_ == 0) words.store(WarpShare::words_a_warp * warp, mine);
    isa::named_barrier_sync(1 + first / 2, 32 * p_.sharers);  // at most 15: max_teams
    const int other = first + (lane_ & (p_.sharers - 1));
    return largest_of_lanes<1, TokenRowsShape::max_sharers>(
        words.load(WarpShare::words_a_warp * other));
  }

  bool whole_to_;
};

/// Moves them, by warps of any number.
struct TokenRowsWork : TokenRowsShape {
  /// A warp's share. Takes the proof that x and the rows are there.
  template <class Slots, class Read>
  WW_DEVICE static void run(const TokenRows& p, const Slots& slots, const Read& read,
                            const isa::Prerequisites& ready, const WarpShare& share) {
    if (p.form == RowForm::none) return;
    TokenRowsMover<Slots, Read>(p, slots, read, ready).take(share);
  }
};

}  // namespace warpwright::kernel
