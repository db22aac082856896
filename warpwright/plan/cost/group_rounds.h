// In how many rounds a grid takes the tiles of a product in groups. Internal to plan/.
#pragma once

#include <algorithm>
#include <cmath>

#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// What a walk over groups is expected to take.
struct GroupWalk {
  double tiles = 0;   // of clusters, over all groups
  double rounds = 0;  // in which the grid takes them
  double again = 0;   // token tiles of a group that has rows, beside its first
};

/// C CTAs of a cluster along the tokens go together to a group's end, where on average (C - 1) / 2
/// of them find no tokens. How much of the last CTA's tile is empty is the same for all clusters,
/// and left out. A CTA's tile has so many rows along the tokens, which `swapped` are along N.
inline GroupWalk group_walk(const Plan& plan, int rows, bool swapped, const GroupLengths& lengths) {
  const double clusters = static_cast<double>(plan.ctas) / atom::cluster_size(plan.cluster);
  const double along = swapped ? plan.cluster.n : plan.cluster.m;
  const GroupTileCount each = lengths.tiles(rows * along);
  const double weights = plan.raster.tiles_n;
  GroupWalk walk;
  walk.tiles = lengths.busy * each.mean * weights;
  walk.again = each.mean - 1;
  // As many tiles as there are by chance.
  const double off = 1.732 * weights * std::sqrt(lengths.busy * each.variance);
  walk.rounds = lengths.is_equal
                    ? std::ceil(walk.tiles / clusters - 1e-6)
                    : std::max(1.0, mean_ceil(walk.tiles - off, walk.tiles + off, clusters));
  walk.rounds += lengths.busy * weights * (along - 1) / (2 * along) / clusters;
  return walk;
}

/// For a kernel whose groups are cut evenly: tokens of a tile, on average.
inline double mean_width(const tile::TileWidths& widths, int widest, const GroupLengths& lengths) {
  return lengths.even_tokens(widths) / lengths.tiles(widest).mean;
}

}  // namespace warpwright
