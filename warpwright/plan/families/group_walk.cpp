#include "warpwright/plan/families/group_walk.h"

#include <algorithm>
#include <cmath>

#include "warpwright/plan/families/family.h"

namespace warpwright {

std::optional<std::int64_t> walk_groups(Plan& plan, ResultTile tile, int clusters,
                                        const GroupLengths& lengths) {
  const GemmProblem& p = plan.problem;
  const std::int64_t weights = pieces(result_columns(p), tile.columns);
  const std::int64_t most =
      tile::GroupedTiles::most_token_tiles(p.m(), p.group_count(), tile.rows) * weights;
  if (most > max_extent) return std::nullopt;
  const auto width = static_cast<double>(tile.rows);
  plan.raster = {};
  if (most > 0) {
    plan.raster = tile::make_raster(
        static_cast<int>(std::clamp(std::ceil(lengths.high() / width), 1.0, 1024.0)),
        static_cast<int>(weights), {1, 1}, clusters,
        {.row = width, .column = static_cast<double>(tile.columns)});
    const double expected = std::ceil(lengths.busy * lengths.tiles(width).mean - 1e-6);
    plan.raster.tiles_m = static_cast<int>(std::min(
        expected, std::floor(static_cast<double>(max_extent) / static_cast<double>(weights))));
  }
  return most;
}

tile::GroupedTiles group_tiles(const Plan& plan, const Groups& groups) {
  const KernelFacts& f = plan.facts();
  const GemmProblem& p = plan.problem;
  const int along_tokens = f.result_rows * (f.swap_ab ? plan.cluster.n : plan.cluster.m);
  const std::int64_t along_weights =
      std::int64_t{f.result_columns} * (f.swap_ab ? plan.cluster.m : plan.cluster.n);
  const std::int64_t weights = pieces(result_columns(p), along_weights);
  return {group_offsets(p, groups), along_tokens, static_cast<int>(weights), plan.raster.band,
          f.swap_ab};
}

}  // namespace warpwright
