// A subtile's values among the sums of a warp's tile.
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/kernel/epilogue_geometry.h"

namespace warpwright::kernel {

/// Used by the epilogue for `Tag::config`. Registers have no index at run time: each subtile has
/// its copy, and the way there is by halves.
template <class Tag>
struct SubtileSums {
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int values = subtile_columns(config) / 2;  // a lane's of one subtile
  static constexpr int row_subtiles = warp_columns(config) / subtile_columns(config);
  static constexpr int atoms = gated_rows(config) ? config.row_atoms / 2 : config.row_atoms;

  /// Sums of a subtile in one half of the product.
  template <class Sums>
  WW_DEVICE static void read(Sums& sums, int subtile, int half, float (&value)[values]) {
    visit<0, atoms * row_subtiles>(sums, subtile, half, [&](auto& sum, int i) { value[i] = sum; });
  }

  /// Puts values in the place of the sums of a subtile, in the first half of the product.
  template <class Sums>
  WW_DEVICE static void keep(Sums& sums, int subtile, const float (&value)[values]) {
    visit<0, atoms * row_subtiles>(sums, subtile, 0, [&](auto& sum, int i) { sum = value[i]; });
  }

 private:
  /// Calls use(sum, i) for the i-th value of a subtile, one of the `count` from `first` on.
  template <int first, int count, class Sums, class Use>
  WW_DEVICE static void visit(Sums& sums, int subtile, int half, const Use& use) {
    if constexpr (count > 1) {
      constexpr int middle = first + count / 2;
      if (subtile < middle) {
        visit<first, count / 2>(sums, subtile, half, use);
      } else {
        visit<middle, count - count / 2>(sums, subtile, half, use);
      }
    } else {
      const int atom = first / row_subtiles + (gated_rows(config) ? half * atoms : 0);
      const int begin =
          first % row_subtiles * values + (gated_columns(config) ? half * config.tile_n / 4 : 0);
      WW_UNROLL for (int i = 0; i < values; ++i) use(sums[atom][begin + i], i);
      isa::keep_order();  // jumps, not a selection among all of them
    }
  }
};

}  // namespace warpwright::kernel
