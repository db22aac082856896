// How kernels of all families walk over groups of rows. Internal to the families.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/groups.h"

namespace warpwright {

/// How many pieces an extent has, the last of which may be a part of one.
constexpr std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

/// Lays out the walk of `plan` over groups of the expected lengths: as many token tiles are taken
/// at a time as make what the grid holds near square in bytes. `tile` is of D in a cluster's tile,
/// `clusters` are resident. Returns the cluster tiles that groups of any length may have; nothing
/// where they are too many.
std::optional<std::int64_t> walk_groups(Plan& plan, ResultTile tile, int clusters,
                                        const GroupLengths& lengths);

/// The same walk as its kernel takes it.
tile::GroupedTiles group_tiles(const Plan& plan, const Groups& groups);

}  // namespace warpwright
