// Straight: what codes become has their scales, so the tensor core sums all of K, and the sums are
// multiplied by their row's unit at the end. Nothing touches the accumulators before, so the next
// codes are converted while a group is multiplied (RsMainloop::run_straight).
#pragma once

#include "warpwright/kernel/hopper/decode/e2m1.h"

namespace warpwright::kernel {

/// For scales that so many k_blocks share. Two groups of wgmmas are one k_tile.
template <class Weights, int group_steps>
class Straight {
 public:
  static constexpr int atoms = Weights::atoms;
  static constexpr int k_blocks = packed::kTileK * operand_bits(Weights::config) / 256 / 2;

  WW_DEVICE Straight(const Weights& weights, isa::Pair (&unit)[atoms])
      : weights_(weights), unit_(unit) {}

  /// What a thread has read of a k_tile.
  struct KTile {
    typename Weights::Codes codes[atoms];
  };

  WW_DEVICE void begin(KTile& k, isa::SharedAddress tile, bool is_first) const {
    weights_.template read<group_steps>(tile, k.codes);
    if (!is_first) return;
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      unit_[i] = weights_.template unit<true>(k.codes[i]);
    }
  }

  WW_DEVICE void produce(const KTile& k, int first, KBlockA (&a)[atoms * k_blocks]) const {
    weights_.template fold<group_steps, k_blocks>(k.codes, first, a);
  }

 private:
  const Weights& weights_;
  isa::Pair (&unit_)[atoms];
};

}  // namespace warpwright::kernel
