// Int4 weights with zero points: code + 8 - zero point, -15 to 15, of which e4m3 has all. So their
// products are as exact as those of plain codes; a conversion takes some 13 instructions for four.
#pragma once

#include "warpwright/kernel/hopper/decode/int4.h"

namespace warpwright::kernel {

/// Converts the codes of one k_block less the zero points of a group, of the thread's row in the
/// low four bits and of the eighth row below. No wgmma that reads `to` may be in flight.
WW_DEVICE void convert_differences(const std::uint32_t (&word)[2], std::uint32_t zeros,
                                   KBlockA& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = packed::first_differences(word[p], zeros & 15U);
    to[2 * p + 1] = packed::second_differences(word[p], zeros >> 4 & 15U);
  }
}

template <class Tag>
class ZeroPointWeights : public Int4Weights<Tag> {
  using Base = Int4Weights<Tag>;

 public:
  using Base::atoms, Base::Base;

  /// A thread's codes of a k_tile, and the zero points of its two rows: a byte for each group.
  struct Codes {
    LaneCodes of;
    std::uint32_t zeros;
  };

  WW_DEVICE void read(isa::SharedAddress tile, Codes (&codes)[atoms]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      const isa::SharedAddress begin = tile + Base::tile_of(0, i);
      const auto zeros = begin + static_cast<isa::SharedAddress>(this->packed_.zero_points);
      codes[i] = {load_codes(begin, this->thread_),
                  isa::SharedView<std::uint32_t>{zeros}.load(this->thread_ / 4)};
    }
  }

  /// Converts a group's codes, from k_block `first` of the k_tile on.
  template <int k_blocks>
  WW_DEVICE void convert(const Codes (&codes)[atoms], int first,
                         KBlockA (&to)[atoms * k_blocks]) const {
    const int shift = 8 * this->template group_of<k_blocks>(first);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        convert_differences(codes[i].of.word[first + s], codes[i].zeros >> shift,
                            to[i * k_blocks + s]);
      }
    }
  }
};

}  // namespace warpwright::kernel
