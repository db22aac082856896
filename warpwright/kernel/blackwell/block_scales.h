// Scales of blocks, 1 x 128 of A by 128 x 128 of B, for the epilogue warps that add up k_tiles.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/cta.h"

namespace warpwright::kernel::blackwell {

/// What a thread's sums of a k_tile are multiplied by: those of rows lane / 4 and 8 below it, in
/// each of the warp's groups of 16.
struct RowFactors {
  float of[2][2];
};

/// The scales of a warp's 32 rows. A lane loads those of one row, and of the tile's columns those
/// of one k_tile in `ahead`, while the `ahead` k_tiles before are added up: a load takes longer
/// than a k_tile.
template <class Tag>
class BlockScales {
 public:
  static constexpr int ahead = 4;  // k_tiles

  WW_DEVICE explicit BlockScales(const ScaleParams& p) : p_(p) {}

  /// Of the warp's rows from `row` on in `work`: starts the loads of its first k_tiles.
  WW_DEVICE void begin(const tile::Work& work, int row) {
    end_ = work.end;
    block_ = work.first;
    if (!is_scaled()) return;
    const int batch = work.tile.batch;
    token_ = p_.tokens.at(batch, p_.tokens.within(row + isa::lane_index()), block_);
    weight_ = p_.weights.at(batch, p_.weights.within(work.column / 128), block_);
    fetch(next_);
  }

  /// Those of k_tile `k_tile`, which is asked for in order.
  WW_DEVICE RowFactors at(int k_tile) {
    RowFactors factors{{{1, 1}, {1, 1}}};
    if (!is_scaled()) return factors;
    if (k_tile == block_) {
      now_ = next_;
      block_ += ahead;
      if (block_ < end_) fetch(next_);
    }
    const int j = k_tile + ahead - block_;
    float token = now_.token[0];
    WW_UNROLL for (int i = 1; i < ahead; ++i) token = i == j ? now_.token[i] : token;
    const float weight = from_lane(now_.weight, j);
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      WW_UNROLL for (int h = 0; h < 2; ++h) {
        factors.of[i][h] = from_lane(token, isa::lane_index() / 4 + 16 * i + 8 * h) * weight;
      }
    }
    return factors;
  }

 private:
  struct Batch {
    float token[ahead];  // this lane's row, of each k_tile
    float weight;        // the tile's columns, of k_tile lane % ahead
  };

  /// A promoted product adds k_tiles up as they are.
  WW_DEVICE bool is_scaled() const { return p_.tokens.data != nullptr; }

  WW_DEVICE static float from_lane(float value, int lane) {
    return isa::float_of(isa::shuffle(isa::float_bits(value), lane));
  }

  /// Starts the loads of the k_tiles from `block_` on and moves the pointers behind them.
  WW_DEVICE void fetch(Batch& to) {
    const int mine = isa::lane_index() % ahead;
    to.weight = isa::GlobalView<const float>{weight_}.load((block_ + mine < end_ ? mine : 0) *
                                                           p_.weights.block_stride);
    weight_ += ahead * p_.weights.block_stride;
    WW_UNROLL for (int i = 0; i < ahead; ++i) {
      to.token[i] = 0;
      if (block_ + i < end_) to.token[i] = isa::GlobalView<const float>{token_}.load();
      token_ += p_.tokens.block_stride;
    }
  }

  const ScaleParams& p_;
  const float* token_ = nullptr;
  const float* weight_ = nullptr;
  int block_ = 0;  // the first k_tile of `next_`
  int end_ = 0;
  Batch now_{};
  Batch next_{};
};

}  // namespace warpwright::kernel::blackwell
