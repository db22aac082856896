// Chained: sums stay in the tensor core and count in the scales of the group before. They are
// divided by the next group's first, in which they count then:
//
//   sums = sums * scale[row, group - 1] / scale[row, group] + codes x tokens
//
// and, at the end, are multiplied by the last group's. No scale is 0 here: a group of zeros is
// packed with the scale of the one before.
#pragma once

#include "warpwright/kernel/hopper/decode/int4.h"

namespace warpwright::kernel {

/// Multiplies a thread's sums of two rows by a number each.
template <int N>
WW_DEVICE void scale_rows(isa::Fragment<float, N>& accumulator, isa::Pair by) {
  WW_UNROLL for (int v = 0; v < N; ++v) accumulator[v] *= v % 4 < 2 ? by.low : by.high;
}

/// For groups of so many k_blocks of 32.
template <class Weights, int group_steps>
class Chained {
 public:
  static constexpr int atoms = Weights::atoms;
  static constexpr int k_blocks = group_steps;
  static constexpr bool accumulates = true;
  static constexpr bool holds_stage = false;
  using Accumulator = isa::Fragment<float, Weights::config.tile_n / 2>;

  /// `unit` is what the sums of the thread's two rows count in.
  WW_DEVICE Chained(const Weights& weights, isa::Pair (&unit)[atoms])
      : weights_(weights), unit_(unit) {}

  /// What a thread has read of a k_tile.
  struct KTile {
    isa::SharedAddress tile = 0;
    typename Weights::Codes codes[atoms];
  };

  WW_DEVICE void begin(KTile& k, isa::SharedAddress tile, int /*stage*/, bool /*is_first*/,
                       Accumulator (&/*accumulator*/)[atoms]) const {
    k.tile = tile;
    weights_.read(tile, k.codes);
  }

  WW_DEVICE void produce(const KTile& k, int first, bool is_first,
                         Accumulator (&accumulator)[atoms], KBlockA (&a)[atoms * k_blocks]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      const isa::Pair next =
          weights_.scales(k.tile, i, weights_.template group_of<k_blocks>(first));
      if (!is_first) {
        scale_rows(accumulator[i], {unit_[i].low / next.low, unit_[i].high / next.high});
      }
      unit_[i] = next;
    }
    weights_.template convert<k_blocks>(k.codes, first, a);
  }

  WW_DEVICE void promote(const KTile& /*k*/, int /*pass*/,
                         Accumulator (&/*accumulator*/)[atoms]) const {}

 private:
  const Weights& weights_;
  isa::Pair (&unit_)[atoms];
};

}  // namespace warpwright::kernel
