// How long the groups of a product are, as its plan expects them. Internal to plan/.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "warpwright/plan/product/problem.h"
#include "warpwright/tile/even_tiles.h"

namespace warpwright {

/// Tiles that one group takes, over all groups that have rows.
struct GroupTileCount {
  double mean = 0;
  double variance = 0;
};

/// The spread of the lengths of those groups that have rows, by a handful of its quantiles.
struct GroupLengths {
  /// Where the quantiles lie that are kept.
  static constexpr std::array<double, 13> shares = {0.004, 0.03, 0.08, 0.15, 0.25, 0.37, 0.5,
                                                    0.63,  0.75, 0.85, 0.92, 0.97, 0.996};

  double busy = 0;       ///< groups that have rows
  bool is_equal = true;  ///< all have cuts[0] rows
  /// Quantiles of the lengths, in order. A length of n is spread evenly from n - 1/2 to n + 1/2, so
  /// that what is expected changes smoothly with the width of a tile.
  std::array<double, shares.size()> cuts = {};

  /// Tiles of a group that has rows, in tiles of so many rows.
  [[nodiscard]] GroupTileCount tiles(double rows) const;
  /// Tokens that one group's tiles multiply, over all groups that have rows, where it is cut evenly
  /// into tiles of these widths.
  [[nodiscard]] double even_tokens(const tile::TileWidths& widths) const;
  /// A length that hardly a group exceeds.
  [[nodiscard]] double high() const { return is_equal ? cuts[0] : cuts[shares.size() - 3]; }
};

/// The mean of ceil(x / step) for x spread evenly from `low` to `high`.
double mean_ceil(double low, double high, double step);

/// The lengths that `problem` says to expect: all equal; as uniform routing spreads them, where
/// each row falls into a group by itself; or as routing does that likes some experts more. What a
/// router's top-k is a plan cannot know: it counts only in the last case, and is guessed there.
GroupLengths group_lengths(const GemmProblem& problem);

/// One length for each of `problem`'s groups, spread as `group_lengths` says and M in all: what a
/// measurement takes for what a router will give. The same for the same problem.
std::vector<std::int64_t> typical_lengths(const GemmProblem& problem);

/// `moved_bytes` with so many of B's matrices.
double moved_bytes(const GemmProblem& problem, double matrices);

}  // namespace warpwright
