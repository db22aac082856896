// Exact: a group's products are sums of their own in the tensor core; times the group's scales they
// are added to float32 registers. With tokens that have block scales, times those too.
//
// Weights whose scales are folded into the codes, but for a unit of the row, have groups of a whole
// k_tile.
//
//   total[row, token] += scale[row, group] (* token_scale[token, k_tile]) * (codes x tokens)
#pragma once

#include "warpwright/atom/wgmma.h"
#include "warpwright/kernel/hopper/decode/int4.h"

namespace warpwright::kernel {

/// For groups of so many k_blocks of 32, of which in_flight(config) are under way at once.
template <class Weights, int group_steps>
class Exact {
 public:
  static constexpr GemmConfig config = Weights::config;
  static constexpr int atoms = Weights::atoms;
  static constexpr int values = config.tile_n / 2;  // a thread's sums of one atom
  static constexpr int k_blocks = group_steps;
  static constexpr bool accumulates = false;
  static constexpr bool token_blocks = is_blockwise(config);
  // The block scales of few tokens are read with the codes. Those of many would take registers all
  // the while, and are read as they are needed, from a stage that is held for them.
  static constexpr bool holds_stage = token_blocks && config.tile_n > 32;
  using Accumulator = isa::Fragment<float, values / passes(config)>;

  /// `token_scales` is where those of stage 0 lie; `unit` gets what the totals count in, of weights
  /// that have units.
  WW_DEVICE Exact(const Weights& weights, isa::SharedAddress token_scales,
                  float (&total)[atoms][values], isa::Pair (&unit)[atoms])
      : weights_(weights), token_scales_(token_scales), total_(total), unit_(unit) {}

  /// What a thread has read of a k_tile: of its two rows in each atom the codes, and the scales of
  /// a group or two; and those of the columns of its sums, a pair of each.
  struct KTile {
    isa::SharedAddress tile = 0;
    typename Weights::Codes codes[atoms];
    isa::Pair row[in_flight(Weights::config)][atoms];
    float token[token_blocks && !holds_stage ? values / 4 : 1][2];
    isa::SharedAddress token_scales;  // where those of the stage are, which is held for them
  };

  WW_DEVICE void begin(KTile& k, isa::SharedAddress tile, int stage, bool is_first,
                       Accumulator (&/*accumulator*/)[atoms]) const {
    k.tile = tile;
    weights_.read(tile, k.codes);
    if constexpr (Weights::has_units) {
      if (is_first) {
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          unit_[i] = weights_.template unit<(group_steps > 1)>(k.codes[i]);
        }
      }
    }
    if constexpr (token_blocks) read_token_scales(k, stage);
  }

  WW_DEVICE void produce(KTile& k, int first, bool /*is_first*/,
                         Accumulator (&/*accumulator*/)[atoms],
                         KBlockA (&a)[atoms * k_blocks]) const {
    read_scales(k, first);
    convert(k, first, a);
  }

  /// Its parts: the group's scales are needed when its products are there, later than its codes.
  WW_DEVICE void convert(const KTile& k, int first, KBlockA (&a)[atoms * k_blocks]) const {
    weights_.template convert<k_blocks>(k.codes, first, a);
  }
  WW_DEVICE void read_scales(KTile& k, int first, int slot = 0) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      k.row[slot][i] = weights_.template scales_of<k_blocks>(k.codes[i], k.tile, i, first);
    }
  }

  WW_DEVICE void promote(const KTile& k, int pass, Accumulator (&accumulator)[atoms],
                         int slot = 0) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      add(k, k.row[slot][i], pass, accumulator[i], total_[i]);
    }
  }

 private:
  WW_DEVICE void read_token_scales(KTile& k, int stage) const {
    k.token_scales = token_scales_ + stage * scale_bytes(config);
    if constexpr (!holds_stage) {
      WW_UNROLL for (int j = 0; j < values / 4; ++j) {
        const isa::Pair pair = token_pair(k, j);
        k.token[j][0] = pair.low;
        k.token[j][1] = pair.high;
      }
    }
  }
  /// The block scales of the tokens of the sums 4 j to 4 j + 3, in twos.
  [[nodiscard]] WW_DEVICE isa::Pair token_pair(const KTile& k, int j) const {
    const isa::SharedView<isa::Words<2>> at{k.token_scales};
    const isa::Words<2> pair = at.load(atom::c_col(weights_.thread(), 4 * j) / 2);
    return {isa::float_of(pair.word[0]), isa::float_of(pair.word[1])};
  }

  /// The sums of an atom, of the tokens of a pass, times scales of its rows.
  WW_DEVICE void add(const KTile& k, isa::Pair rows, int pass, Accumulator& accumulator,
                     float (&total)[values]) const {
    isa::Pair token{1, 1};
    WW_UNROLL for (int from = 0; from < values / passes(config); ++from) {
      const int v = pass * (values / passes(config)) + from;
      const float row = v % 4 < 2 ? rows.low : rows.high;
      if constexpr (holds_stage) {
        if (v % 4 == 0) token = token_pair(k, v / 4);
      } else if constexpr (token_blocks) {
        token = {k.token[v / 4][0], k.token[v / 4][1]};
      }
      total[v] +=
          accumulator[from] * (token_blocks ? row * (v % 2 == 0 ? token.low : token.high) : row);
    }
  }

  const Weights& weights_;
  isa::SharedAddress token_scales_;
  float (&total_)[atoms][values];
  isa::Pair (&unit_)[atoms];
};

}  // namespace warpwright::kernel
