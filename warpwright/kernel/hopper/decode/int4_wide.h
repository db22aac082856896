// Int4 weights for tokens of 16 bits in their packed form (facts/packed_e2m1.h has its words), as
// one thread of a warpgroup reads them. A code plus 8 is the lower bits of a bf16 of 128, or of an
// f16 of 1024 (or the upper ones of those 8); less that and the zero point (8, where there is none)
// it is the code, exactly. Sums
// of codes meet their scales in float32 (exact.h), or codes are multiplied by their scales in bf16
// (straight.h), which rounds a weight to 8 significant bits. (In f16 scales and products may leave
// its range.) Both count in 2^-9, for stored scales are times 512.
#pragma once

#include "warpwright/kernel/hopper/decode/int4.h"
#include "warpwright/kernel/hopper/decode/wide_codes.h"

namespace warpwright::kernel {

/// The codes of one k_block of 16 as floats of a type, less what is due for each of the thread's
/// two rows (WideCodes::int4_less).
template <DType type, class Registers>
WW_DEVICE void convert_to_wide(std::uint32_t word, const std::uint32_t (&less)[2], Registers& to) {
  using Wide = WideCodes<type>;
  WW_UNROLL for (int r = 0; r < 4; ++r) {
    if constexpr (Wide::is_bf16) {
      to[r] = isa::subtract_pairs<type>(isa::and_or(word >> 4 * r, 0x000f000fU, Wide::int4_base),
                                        less[r % 2]);
    } else {
      // An f16 of 1024 has room for codes of the next nibble too, which count 16 times there.
      const std::uint32_t shifted = r < 2 ? word : word >> 8;
      if (r % 2 == 0) {
        to[r] =
            isa::subtract_pairs<type>(isa::and_or(shifted, 0x000f000fU, Wide::int4_base), less[0]);
      } else {
        to[r] = isa::multiply_subtract_pairs<type>(
            isa::and_or(shifted, 0x00f000f0U, Wide::int4_base), Wide::sixteenth, less[1]);
      }
    }
  }
}

template <class Tag>
class WideInt4Weights : public Int4Weights<Tag> {
  using Base = Int4Weights<Tag>;

 public:
  using Base::atoms, Base::Base, Base::config;
  static constexpr bool has_units = true;
  static constexpr DType type = operand_a(config).type;

  /// A thread's codes of a k_tile, and the zero points of its two rows: a byte for each group.
  struct Codes {
    LaneCodes of;
    std::uint32_t zeros;
    isa::SharedAddress tile;
  };

  /// The k_blocks of 16 that share scales.
  template <class Body>
  WW_DEVICE void by_group(const Body& body) const {
    if (this->packed_.group == 128) return body(KBlocks<8>{});
    if (this->packed_.group == 64) return body(KBlocks<4>{});
    body(KBlocks<2>{});
  }

  template <int k_blocks>
  [[nodiscard]] WW_DEVICE isa::Pair scales_of(const Codes& /*codes*/, isa::SharedAddress tile,
                                              int i, int k_block) const {
    return this->scales(tile, i, k_block / k_blocks);
  }

  template <bool folds>
  [[nodiscard]] WW_DEVICE isa::Pair unit(const Codes& /*codes*/) const {
    return {0x1p-9F, 0x1p-9F};
  }

  template <int group_steps = 0>
  WW_DEVICE void read(isa::SharedAddress tile, Codes (&codes)[atoms]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      const isa::SharedAddress begin = tile + Base::tile_of(0, i);
      codes[i].of = load_codes(begin, this->thread_);
      codes[i].tile = tile;
      codes[i].zeros = 0x88888888U;
      if constexpr (has_zero_points(config)) {
        const auto zeros = begin + static_cast<isa::SharedAddress>(this->packed_.zero_points);
        codes[i].zeros = isa::SharedView<std::uint32_t>{zeros}.load(this->thread_ / 4);
      }
    }
  }

  /// A group's codes as floats, from k_block `first` of the k_tile on.
  template <int k_blocks>
  WW_DEVICE void convert(const Codes (&codes)[atoms], int first,
                         KBlockA (&to)[atoms * k_blocks]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      std::uint32_t less[2];
      find_less(codes[i], first / k_blocks, less);
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        const int step = first + s;
        convert_to_wide<type>(codes[i].of.word[step / 2][step % 2], less, to[i * k_blocks + s]);
      }
    }
  }

  /// The same times their scales, of which `group_steps` k_blocks share one.
  template <int group_steps, int k_blocks>
  WW_DEVICE void fold(const Codes (&codes)[atoms], int first,
                      KBlockA (&to)[atoms * k_blocks]) const {
    constexpr int each = group_steps < k_blocks ? group_steps : k_blocks;
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int begin = 0; begin < k_blocks; begin += each) {
        const int group = (first + begin) / group_steps;
        std::uint32_t less[2];
        find_less(codes[i], group, less);
        const isa::Pair scale = this->scales(codes[i].tile, i, group);
        const std::uint32_t factors[2] = {isa::pack<type>(scale.low, scale.low),
                                          isa::pack<type>(scale.high, scale.high)};
        WW_UNROLL for (int s = begin; s < begin + each; ++s) {
          const int step = first + s;
          KBlockA& block = to[i * k_blocks + s];
          convert_to_wide<type>(codes[i].of.word[step / 2][step % 2], less, block);
          WW_UNROLL for (int r = 0; r < 4; ++r) {
            block[r] = isa::multiply_pairs<type>(block[r], factors[r % 2]);
          }
        }
      }
    }
  }

 private:
  WW_DEVICE static void find_less(const Codes& codes, int group, std::uint32_t (&less)[2]) {
    WW_UNROLL for (int r = 0; r < 2; ++r) {
      const std::uint32_t zero = codes.zeros >> (8 * group + 4 * r) & 15U;
      less[r] = WideCodes<type>::int4_less(r, zero);
    }
  }
};

}  // namespace warpwright::kernel
