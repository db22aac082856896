// E2m1 weights (mxf4, nvf4) in their packed form (facts/packed_e2m1.h), as one thread of a
// warpgroup reads them. Their scales are folded into what they become, which rounds none:
//
//   tokens of e4m3   e5m2, from a table of the magnitudes times 2^x, for each k_block of 32 and
//   row:
//                    two constants and the exponent x. Where exponents are scales' own the table is
//                    that of 2^0, and the scales meet the sums of each k_block (exact.h)
//   bf16, f16        the code's bits as upper bits of such a float, times a factor: 2^x, or the
//                    scale of nvf4, in a power of two (wide_codes.h); a register has the factors
//                    of two groups, and multiplications take one half of it for both codes
//
// Sums count in a unit of their row, by which they are multiplied at the end.
#pragma once

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/kernel/hopper/decode/int4.h"
#include "warpwright/kernel/hopper/decode/wide_codes.h"

namespace warpwright::kernel {

/// The bytes of e5m2 of the magnitudes 0 to 3, and 4 to 7, times 2^(x - 13).
struct E5m2Table {
  std::uint32_t low;
  std::uint32_t high;

  /// For x from 0 to 26: no byte carries into the next.
  WW_DEVICE static E5m2Table of(std::uint32_t x) {
    return {0x0a080400U + x * 0x04040400U, 0x12100e0cU + x * 0x04040404U};
  }
};

/// The codes of one k_block as e5m2, by the tables of the thread's two rows. No wgmma that reads
/// `to` may be in flight.
template <class Registers>
WW_DEVICE void convert_by_tables(const std::uint32_t (&word)[2], const E5m2Table (&tables)[2],
                                 Registers& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    const std::uint32_t selectors = word[p] & 0x77777777U;
    to[2 * p] =
        isa::permute_bytes(tables[0].low, tables[0].high, selectors) | (word[p] & packed::signs);
    to[2 * p + 1] = isa::permute_bytes(tables[1].low, tables[1].high, selectors >> 16) |
                    (word[p] << 4 & packed::signs);
  }
}

/// The codes of one k_block of 16 as floats of a type, times the factors of the thread's two rows,
/// which are in this half of theirs.
template <DType type, class Registers>
WW_DEVICE void convert_by_factors(std::uint32_t word, const std::uint32_t (&factors)[2], int half,
                                  Registers& to) {
  const packed::HalfRegisters codes = packed::half_registers(type, word);
  WW_UNROLL for (int r = 0; r < 4; ++r) {
    to[r] = isa::multiply_pairs_by_half<type>(codes.of[r], factors[r % 2], half);
  }
}

template <class Tag>
class E2m1Weights : public Int4Weights<Tag> {
  using Base = Int4Weights<Tag>;

 public:
  using Base::atoms, Base::Base, Base::config;
  static constexpr bool wide = operand_bits(config) == 16;
  static constexpr DType type = operand_a(config).type;
  static constexpr bool has_units = true;

  /// A thread's codes of a k_tile, and the scale bytes of its two rows.
  struct Codes {
    LaneCodes of;
    std::uint32_t scales[2][wide ? 2 : 1];
  };

  /// With exact sums: the k_blocks that one group of wgmmas has, four where exponents are of rows.
  /// With folded ones: those that share a scale.
  template <class Body>
  WW_DEVICE void by_group(const Body& body) const {
    if constexpr (!wide && group_sums(config) == GroupSums::folded) {
      body(KBlocks<1>{});
    } else if constexpr (wide) {
      if (this->packed_.scale == DType::ue8m0) return body(KBlocks<2>{});
      body(KBlocks<1>{});
    } else if constexpr (folds_alone(config)) {
      body(KBlocks<4>{});
    } else {
      if (this->packed_.group == packed::kTileK) return body(KBlocks<4>{});
      body(KBlocks<1>{});
    }
  }

  /// What sums of so many k_blocks are multiplied by, besides the unit: scales that are not folded.
  template <int k_blocks>
  [[nodiscard]] WW_DEVICE isa::Pair scales_of(const Codes& codes, isa::SharedAddress /*tile*/,
                                              int /*i*/, int k_block) const {
    if constexpr (k_blocks > 1) {
      return {1, 1};
    } else {
      return {power(codes.scales[0][0] >> 8 * k_block), power(codes.scales[1][0] >> 8 * k_block)};
    }
  }

  /// What a thread's rows count in, as their codes of any k_tile say.
  template <bool folds>
  [[nodiscard]] WW_DEVICE isa::Pair unit(const Codes& codes) const {
    if constexpr (!folds) {
      return {1, 1};
    } else {
      if constexpr (wide) {
        if (this->packed_.scale != DType::ue8m0) return {128, 128};
      }
      return {isa::float_of(packed::unit_in(codes.scales[0][0]) << 23),
              isa::float_of(packed::unit_in(codes.scales[1][0]) << 23)};
    }
  }

  /// Where codes become 16 bits, of scales that so many k_blocks share.
  template <int group_steps = 0>
  WW_DEVICE void read(isa::SharedAddress tile, Codes (&codes)[atoms]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      const isa::SharedAddress begin = tile + Base::tile_of(0, i);
      codes[i].of = load_codes(begin, this->thread_);
      read_scales<group_steps>(begin + packed::scales_begin(), codes[i]);
    }
  }

  /// A group's codes as e5m2, from k_block `first` of the k_tile on.
  template <int k_blocks>
  WW_DEVICE void convert(const Codes (&codes)[atoms], int first,
                         KBlockA (&to)[atoms * k_blocks]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        E5m2Table tables[2];
        WW_UNROLL for (int r = 0; r < 2; ++r) {
          const std::uint32_t x = codes[i].scales[r][0] >> 8 * (first + s) & packed::kExponentMask;
          tables[r] = E5m2Table::of(k_blocks == 1 ? 13U : x);
        }
        convert_by_tables(codes[i].of.word[first + s], tables, to[i * k_blocks + s]);
      }
    }
  }

  /// The same with their scales, of which `group_steps` k_blocks share one: as the tensor core sums
  /// all of K.
  template <int group_steps, int k_blocks>
  WW_DEVICE void fold(const Codes (&codes)[atoms], int first,
                      KBlockA (&to)[atoms * k_blocks]) const {
    if constexpr (!wide) {
      static_assert(k_blocks > 1 && group_steps == 1);
      convert<k_blocks>(codes, first, to);
    } else {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
          const int step = first + s;
          const int slice = step / group_steps;
          std::uint32_t factors[2];
          WW_UNROLL for (int r = 0; r < 2; ++r) {
            factors[r] = WideCodes<type>::template factors<group_steps == 2>(
                codes[i].scales[r][slice / 4], slice % 2);
          }
          convert_by_factors<type>(codes[i].of.word[step / 2][step % 2], factors, slice % 4 / 2,
                                   to[i * k_blocks + s]);
        }
      }
    }
  }

 private:
  /// 2^(byte - 127); for 0 the subnormal number.
  WW_DEVICE static float power(std::uint32_t bytes) {
    const std::uint32_t byte = bytes & 0xffU;
    return isa::float_of(byte == 0 ? 0x00400000U : byte << 23);
  }

  template <int group_steps>
  WW_DEVICE void read_scales(isa::SharedAddress at, Codes& codes) const {
    const int pair = this->thread_ / 4;
    if constexpr (wide && group_steps == 1) {  // ue4m3
      const auto words = isa::SharedView<isa::Words<4>>{at}.load(pair);
      WW_UNROLL for (int j = 0; j < 4; ++j) codes.scales[j / 2][j % 2] = words.word[j];
      return;
    }
    const auto words = isa::SharedView<isa::Words<2>>{at}.load(pair);
    WW_UNROLL for (int r = 0; r < 2; ++r) codes.scales[r][0] = words.word[r];
  }
};

}  // namespace warpwright::kernel
