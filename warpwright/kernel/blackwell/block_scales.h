// Scales of blocks, 1 x 128 of tokens by 128 x 128 of weights, for the epilogue warps that add up
// k_tiles. Tokens are the rows of A, or where operands are swapped those of B.
#pragma once

#include <type_traits>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/cta.h"

namespace warpwright::kernel::blackwell {

/// The scales that a warp multiplies by, in its registers. A lane loads those of every 32nd of the
/// warp's tokens (32 rows, or all columns of a swapped tile), and of the weights those of one
/// k_tile in `ahead`, while the `ahead` k_tiles before are added up: a load takes longer than a
/// k_tile. Without scales, of a promoted product, all of them are 1.
template <class Tag>
class FetchedScales {
 public:
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr int tokens = config.swap_ab ? (config.tile_n + 31) / 32 : 1;  // a lane's
  static constexpr int weights = config.gated ? 2 : 1;  // of a warp: gates, and what they are for
  static constexpr int ahead = tokens > 2 ? 2 : 4;      // k_tiles

  WW_DEVICE FetchedScales(const ScaleParams& p, const GateParams& gate) : p_(p), gate_(gate) {}

  /// For the warp's rows from `row` on in `work`: starts the loads of its first k_tiles.
  WW_DEVICE void begin(const tile::Work& work, int row) {
    end_ = work.end;
    block_ = work.first;
    if (!is_scaled()) return fill_with_ones();
    const int batch = work.tile.batch;
    WW_UNROLL for (int i = 0; i < tokens; ++i) {
      const int first = config.swap_ab ? work.column + 32 * i : row;
      token_[i] = p_.tokens.at(batch, p_.tokens.within(first + isa::lane_index()), block_);
    }
    WW_UNROLL for (int i = 0; i < weights; ++i) {
      const int at = config.swap_ab ? gate_.row(row, i) : work.column;
      weight_[i] = p_.weights.at(batch, p_.weights.within(at / 128), block_);
    }
    fetch();
  }

  /// Goes on to k_tile `k_tile`, which is asked for in order: `token` and `weight` are its.
  WW_DEVICE void next(int k_tile) {
    if (is_scaled() && k_tile == block_) {
      now_ = next_;
      block_ += ahead;
      if (block_ < end_) fetch();
    }
    const int j = is_scaled() ? k_tile + ahead - block_ : 0;
    WW_UNROLL for (int i = 0; i < tokens; ++i) {
      token[i] = now_.token[0][i];
      WW_UNROLL for (int k = 1; k < ahead; ++k) token[i] = k == j ? now_.token[k][i] : token[i];
    }
    WW_UNROLL for (int i = 0; i < weights; ++i) weight[i] = from_lane(now_.weight[i], j);
  }

  float token[tokens];    ///< this lane's
  float weight[weights];  ///< the warp's

  WW_DEVICE static float from_lane(float value, int lane) {
    return isa::float_of(isa::shuffle(isa::float_bits(value), lane));
  }

 private:
  struct Batch {
    float token[ahead][tokens];
    float weight[weights];  // of k_tile lane % ahead
  };

  WW_DEVICE bool is_scaled() const { return p_.tokens.data != nullptr; }

  WW_DEVICE void fill_with_ones() {
    WW_UNROLL for (int i = 0; i < tokens; ++i) {
      WW_UNROLL for (int k = 0; k < ahead; ++k) now_.token[k][i] = 1;
    }
    WW_UNROLL for (int i = 0; i < weights; ++i) now_.weight[i] = 1;
  }

  /// Starts the loads of the k_tiles from `block_` on and moves the pointers behind them.
  WW_DEVICE void fetch() {
    const int mine = isa::lane_index() % ahead;
    WW_UNROLL for (int i = 0; i < weights; ++i) {
      next_.weight[i] = isa::GlobalView<const float>{weight_[i]}.load(
          (block_ + mine < end_ ? mine : 0) * p_.weights.block_stride);
      weight_[i] += ahead * p_.weights.block_stride;
    }
    WW_UNROLL for (int i = 0; i < tokens; ++i) {
      WW_UNROLL for (int k = 0; k < ahead; ++k) {
        next_.token[k][i] = 0;
        if (block_ + k < end_) {
          next_.token[k][i] = isa::GlobalView<const float>{token_[i]}.load();
        }
        token_[i] += p_.tokens.block_stride;
      }
    }
  }

  const ScaleParams& p_;
  const GateParams& gate_;
  const float* token_[tokens] = {};
  const float* weight_[weights] = {};
  int block_ = 0;  // the first k_tile of `next_`
  int end_ = 0;
  Batch now_{};
  Batch next_{};
};

/// What a thread's sums of a k_tile are multiplied by, whose rows are tokens: those of rows lane /
/// 4 and 8 below it, in each of the warp's groups of 16.
template <class Tag>
class RowFactors {
 public:
  WW_DEVICE explicit RowFactors(const FetchedScales<Tag>& scales) {
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      WW_UNROLL for (int h = 0; h < 2; ++h) {
        of_[i][h] = scales.from_lane(scales.token[0], isa::lane_index() / 4 + 16 * i + 8 * h) *
                    scales.weight[0];
      }
    }
  }
  /// Before the sums of `values` values from `first` on.
  template <int values>
  WW_DEVICE void at(int /*first*/) {}
  /// For value `v` of a group of rows.
  WW_DEVICE float of(int atom, int v) const { return of_[atom][v % 4 / 2]; }

 private:
  float of_[2][2];
};

/// The same where the columns are tokens, and the rows of a group weights of one block.
template <class Tag>
class ColumnFactors {
 public:
  WW_DEVICE explicit ColumnFactors(const FetchedScales<Tag>& scales) : scales_(scales) {}

  template <int values>
  WW_DEVICE void at(int first) {
    static_assert(values == most);
    WW_UNROLL for (int j = 0; j < values / 4; ++j) {
      const int column = 2 * first + 8 * j;
      WW_UNROLL for (int h = 0; h < 2; ++h) {
        token_[j][h] = scales_.from_lane(scales_.token[column / 32],
                                         column % 32 + 2 * (isa::lane_index() % 4) + h);
      }
    }
  }
  WW_DEVICE float of(int atom, int v) const {
    return token_[v % most / 4][v % 2] *
           scales_.weight[FetchedScales<Tag>::weights == 2 ? atom : 0];
  }
  static constexpr int most = 8;

 private:
  const FetchedScales<Tag>& scales_;
  float token_[most / 4][2];
};

template <class Tag>
using FactorsOf = std::conditional_t<Tag::config.swap_ab, ColumnFactors<Tag>, RowFactors<Tag>>;

}  // namespace warpwright::kernel::blackwell
