// Int4 weights in their packed form (facts/packed_weights.h), as one thread of a warpgroup reads
// them: its codes of a k_tile, which become e4m3 in wgmma's registers of A, and its scales.
//
// Weights of another form need the same members: by_group, scales_of, has_units, Codes, read,
// convert; with sums by `Folded` group_of and scales too.
#pragma once

#include "warpwright/facts/packed_weights.h"
#include "warpwright/isa/fragment.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// The k_blocks of 32 of a k_tile.
inline constexpr int packed_k_blocks = packed::kTileK / 32;

/// A wgmma's A of one k_block, in registers.
using KBlockA = isa::Fragment<std::uint32_t, 4>;

/// The codes of a thread in a tile, of the four k_blocks of its k_tile: two words each.
struct LaneCodes {
  std::uint32_t word[packed_k_blocks][2];
};

/// Reads them. `tile` is where the tile lies; `thread` counts in the warpgroup.
WW_DEVICE LaneCodes load_codes(isa::SharedAddress tile, int thread) {
  LaneCodes codes;
  WW_UNROLL for (int half = 0; half < 2; ++half) {
    const auto words = isa::SharedView<isa::Words<4>>{tile + static_cast<isa::SharedAddress>(
                                                                 packed::lane_begin(half, thread))}
                           .load();
    WW_UNROLL for (int j = 0; j < 4; ++j) codes.word[2 * half + j / 2][j % 2] = words.word[j];
  }
  return codes;
}

/// Converts the codes of one k_block. No wgmma that reads `to` may be in flight.
WW_DEVICE void convert_codes(const std::uint32_t (&word)[2], std::uint32_t carries, KBlockA& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = packed::first_values(word[p], carries);
    to[2 * p + 1] = packed::second_values(word[p], carries);
  }
}

/// A thread's two scales, times 512, from a slice of a tile's scales that begins at `slice`: of the
/// row of the even pairs of its sums, and of the eighth row below.
WW_DEVICE isa::Pair load_scales(isa::SharedAddress slice, int thread, DType type) {
  const int pair = thread / 4;
  if (type == DType::f32) {
    const auto words = isa::SharedView<isa::Words<2>>{slice}.load(pair);
    return isa::unpack<DType::f32>(words.word);
  }
  const std::uint32_t word = isa::SharedView<std::uint32_t>{slice}.load(pair);
  return type == DType::bf16 ? isa::unpack<DType::bf16>(&word) : isa::unpack<DType::f16>(&word);
}

/// A number of k_blocks of 32, as a type.
template <int N>
struct KBlocks {
  static constexpr int value = N;
};

/// The weights of a warpgroup's atoms. Where they are asked for, `tile` is the place of the first
/// atom's packed tile.
template <class Tag>
class Int4Weights {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int atoms = row_atoms(config);
  using Codes = LaneCodes;
  static constexpr bool has_units = false;  // what sums are multiplied by at the end

  WW_DEVICE Int4Weights(const PackedParams& packed, int thread)
      : packed_(packed), thread_(thread) {}

  /// Where the packed tile of an atom's rows begins in a stage.
  WW_DEVICE static int tile_of(int warpgroup, int i) {
    constexpr GemmConfig cfg = Tag::config;
    return atom_row(cfg, warpgroup, i) / packed::kTileRows * in_flight(cfg) * most_packed_tile(cfg);
  }

  /// Calls `body` with the k_blocks of 32 that share scales, which only the launch knows. With one
  /// k_block for any group where the work does not depend on it; for all but the largest groups
  /// where sums are many, whose code would be long.
  template <class Body>
  WW_DEVICE void by_group(const Body& body) const {
    if constexpr (group_sums(config) == GroupSums::folded) {
      body(KBlocks<1>{});
    } else {
      if (packed_.group == 128) return body(KBlocks<4>{});
      if constexpr (!each_k_block) {
        if (packed_.group == 64) return body(KBlocks<2>{});
      }
      body(KBlocks<1>{});
    }
  }

  /// The group of a k_block in its k_tile, where `body` has got `k_blocks`.
  template <int k_blocks>
  [[nodiscard]] WW_DEVICE int group_of(int k_block) const {
    if constexpr (group_sums(config) == GroupSums::folded) return k_block * 32 / packed_.group;
    const bool by_two = each_k_block && k_blocks == 1 && packed_.group == 64;
    return by_two ? k_block / 2 : k_block / k_blocks;
  }

  /// The scales, times 512, of the thread's two rows of an atom in a group.
  [[nodiscard]] WW_DEVICE isa::Pair scales(isa::SharedAddress tile, int i, int group) const {
    return load_scales(tile + tile_of(0, i) + packed::scales_begin() +
                           static_cast<isa::SharedAddress>(group * packed_.slice_bytes),
                       thread_, packed_.scale);
  }

  /// Those of the group that begins with a k_block, of which `body` has got `k_blocks`.
  template <int k_blocks, class AnyCodes>
  [[nodiscard]] WW_DEVICE isa::Pair scales_of(const AnyCodes& /*codes*/, isa::SharedAddress tile,
                                              int i, int k_block) const {
    return scales(tile, i, group_of<k_blocks>(k_block));
  }

  /// The thread's codes of a k_tile.
  WW_DEVICE void read(isa::SharedAddress tile, Codes (&codes)[atoms]) const {
    WW_UNROLL for (int i = 0; i < atoms; ++i) codes[i] = load_codes(tile + tile_of(0, i), thread_);
  }

  /// Converts a group's codes, from k_block `first` of the k_tile on. Without carries, those of sm,
  /// it takes less than half of the instructions, and instructions are what most tiles wait for.
  template <int k_blocks>
  WW_DEVICE void convert(const Codes (&codes)[atoms], int first,
                         KBlockA (&to)[atoms * k_blocks]) const {
    if (packed_.carries == 0) {
      convert_with<k_blocks>(0, codes, first, to);
    } else {
      convert_with<k_blocks>(packed::signs, codes, first, to);
    }
  }

  [[nodiscard]] WW_DEVICE std::uint32_t carries() const { return packed_.carries; }
  [[nodiscard]] WW_DEVICE int thread() const { return thread_; }
  /// From one k_tile of a stage to the next.
  [[nodiscard]] WW_DEVICE int tile_bytes() const { return packed_.tile_bytes; }

 protected:
  static constexpr bool each_k_block = atoms * config.tile_n / 2 > 64;

  const PackedParams& packed_;
  int thread_;  // of the warpgroup

 private:
  template <int k_blocks>
  WW_DEVICE static void convert_with(std::uint32_t carries, const Codes (&codes)[atoms], int first,
                                     KBlockA (&to)[atoms * k_blocks]) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        convert_codes(codes[i].word[first + s], carries, to[i * k_blocks + s]);
      }
    }
  }
};

}  // namespace warpwright::kernel
