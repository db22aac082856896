// Folded: codes are multiplied by their scales in f16 and rounded to e4m3, so that the tensor core
// sums all of K. A row counts in a unit, the power of two of the largest scale so far times 2^-13:
// then codes times scales lie below 256. Where it grows, the sums follow:
//
//   sums = sums * (unit before / unit) + e4m3(codes * scale[row, group] / unit) x tokens
//
// and, at the end, they are multiplied by the unit.
#pragma once

#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/decode/chained.h"

namespace warpwright::kernel {

/// What codes of e4m3 are multiplied by: a scale in f16, in both halves of a word.
struct F16Factor {
  std::uint32_t word;

  WW_DEVICE static F16Factor of(float scale) { return {isa::pack<DType::f16>(scale, scale)}; }
};

/// Four values of e4m3, each multiplied by a factor and rounded.
WW_DEVICE std::uint32_t fold(std::uint32_t values, std::uint32_t factor) {
  const auto half = [&](std::uint32_t bytes) {
    return static_cast<std::uint32_t>(isa::bytes_of_halves(isa::multiply_pairs<DType::f16>(
        isa::halves_of_bytes(static_cast<std::uint16_t>(bytes)), factor)));
  };
  return half(values & 0xffffU) | half(values >> 16) << 16;
}

/// The codes of one k_block times the factors of the thread's two rows. No wgmma that reads `to`
/// may be in flight.
WW_DEVICE void convert_scaled(const std::uint32_t (&word)[2], std::uint32_t carries,
                              const F16Factor (&factors)[2], KBlockA& to) {
  convert_codes(word, carries, to);
  WW_UNROLL for (int r = 0; r < 4; ++r) to[r] = fold(to[r], factors[r % 2].word);
}

/// For scales that so many k_blocks of 32 share. All k_blocks of a k_tile are one group of wgmmas.
template <class Weights, int group_steps, class Factor = F16Factor>
class Folded {
 public:
  static constexpr int atoms = Weights::atoms;
  static constexpr int k_blocks = packed_k_blocks;
  static constexpr bool accumulates = true;
  static constexpr bool holds_stage = false;
  using Accumulator = isa::Fragment<float, Weights::config.tile_n / 2>;

  WW_DEVICE Folded(const Weights& weights, isa::Pair (&unit)[atoms])
      : weights_(weights), unit_(unit) {}

  /// What a thread has read of a k_tile: codes, and factors of its two rows for each group.
  struct KTile {
    typename Weights::Codes codes[atoms];
    Factor factors[atoms][packed_k_blocks / group_steps][2];
  };

  WW_DEVICE void begin(KTile& k, isa::SharedAddress tile, int /*stage*/, bool is_first,
                       Accumulator (&accumulator)[atoms]) const {
    weights_.read(tile, k.codes);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      find_factors(k.factors[i], tile, i, is_first, accumulator[i]);
    }
  }

  WW_DEVICE void produce(const KTile& k, int first, bool /*is_first*/,
                         Accumulator (&/*accumulator*/)[atoms],
                         KBlockA (&a)[atoms * k_blocks]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        convert_scaled(k.codes[i].word[first + s], weights_.carries(),
                       k.factors[i][(first + s) / group_steps], a[i * k_blocks + s]);
      }
    }
  }

  WW_DEVICE void promote(const KTile& /*k*/, int /*pass*/,
                         Accumulator (&/*accumulator*/)[atoms]) const {}

 private:
  static constexpr int groups = packed_k_blocks / group_steps;
  static constexpr float least_unit = 0x1p-120F;

  /// Those of an atom in a k_tile.
  WW_DEVICE void find_factors(Factor (&factors)[groups][2], isa::SharedAddress tile, int i,
                              bool is_first, Accumulator& accumulator) const {
    isa::Pair scales[groups];
    const isa::Pair before = unit_[i];
    if (is_first) unit_[i] = {least_unit, least_unit};
    isa::Pair& unit = unit_[i];
    WW_UNROLL for (int g = 0; g < groups; ++g) {
      scales[g] =
          weights_.scales(tile, i, weights_.template group_of<group_steps>(g * group_steps));
      unit.low = larger_unit(unit.low, scales[g].low);
      unit.high = larger_unit(unit.high, scales[g].high);
    }
    const isa::Pair inverse = {inverse_of(unit.low), inverse_of(unit.high)};
    WW_UNROLL for (int g = 0; g < groups; ++g) {
      factors[g][0] = Factor::of(scales[g].low * inverse.low);
      factors[g][1] = Factor::of(scales[g].high * inverse.high);
    }
    const bool grew = !is_first && (unit.low != before.low || unit.high != before.high);
    if (isa::ballot(grew) != 0) {
      scale_rows(accumulator, {before.low * inverse.low, before.high * inverse.high});
    }
  }

  /// 2^-13 of a scale's power of two, or `unit` where that is larger; and 1 / unit.
  WW_DEVICE static float larger_unit(float unit, float scale) {
    const float of_scale = isa::float_of(isa::float_bits(scale) & 0x7f800000U) * 0x1p-13F;
    return of_scale > unit ? of_scale : unit;
  }
  WW_DEVICE static float inverse_of(float unit) {
    return isa::float_of(0x7f000000U - isa::float_bits(unit));
  }

  const Weights& weights_;
  isa::Pair (&unit_)[atoms];
};

}  // namespace warpwright::kernel
