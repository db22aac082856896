// The order in which a warp of an epilogue writes the subtiles of its rows.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/kernel/epilogue_geometry.h"

namespace warpwright::kernel {

/// By atoms of rows, all columns of each; or by columns, all atoms in each, from the first column
/// on or from the last.
template <EpilogueShape config>
struct SubtileOrder {
  static constexpr int beside = warp_columns(config) / subtile_columns(config);
  static constexpr int atoms = gated_rows(config) ? config.row_atoms / 2 : config.row_atoms;

  bool backwards = false;  ///< only by columns

  WW_DEVICE int atom(int subtile) const {
    return config.by_columns ? subtile % atoms : subtile / beside;
  }
  /// Counted in subtiles.
  WW_DEVICE int column(int subtile) const {
    if constexpr (!config.by_columns) return subtile % beside;
    const int column = subtile / atoms;
    return backwards ? beside - 1 - column : column;
  }

  /// The next subtile that is not `outside`; one that is, or the number of all, where there is
  /// none.
  template <class Outside>
  WW_DEVICE int following(int subtile, const Outside& outside) const {
    int next = subtile + 1;
    if constexpr (config.by_columns) {
      while (next < atoms * beside && outside(next)) ++next;
    } else if (next % beside != 0 && outside(next)) {
      next = (subtile / beside + 1) * beside;
    }
    return next;
  }
};

}  // namespace warpwright::kernel
