// D as its tiles.
#include "warpwright/pictures/tile_map.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "warpwright/tile/raster.h"

namespace warpwright::pictures {
namespace {

TEST(TileMap, EveryTileOnceInTheOrderOfTheWalk) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 bits(seed);
    const auto draw = [&](int most) { return 1 + static_cast<int>(bits() % most); };
    TilePlan plan;
    plan.cluster = {draw(2), draw(2)};
    plan.rows = draw(12);
    plan.columns = draw(12);
    plan.swapped = draw(2) == 1;
    plan.resident_clusters = draw(9);
    const int m = plan.swapped ? plan.columns : plan.rows;
    const int n = plan.swapped ? plan.rows : plan.columns;
    plan.raster = {(m + plan.cluster.m - 1) / plan.cluster.m,
                   (n + plan.cluster.n - 1) / plan.cluster.n, draw(4), draw(2) == 1, draw(3)};
    const TileMap map = planned_tiles(plan);
    std::set<std::pair<int, std::pair<int, int>>> places;
    for (const TilePlace& t : map.tiles) {
      EXPECT_TRUE(places.insert({t.output, {t.row, t.column}}).second) << "seed " << seed;
      const tile::TilePosition at = tile::position(plan.raster, t.number);
      EXPECT_EQ((plan.swapped ? t.column : t.row) / plan.cluster.m, at.m) << "seed " << seed;
      EXPECT_EQ((plan.swapped ? t.row : t.column) / plan.cluster.n, at.n) << "seed " << seed;
      EXPECT_EQ(t.wave, t.number / plan.resident_clusters) << "seed " << seed;
    }
    EXPECT_EQ(static_cast<int>(map.tiles.size()), plan.rows * plan.columns * plan.raster.batch)
        << "seed " << seed;
    const View view = raster_view("", map);
    EXPECT_EQ(view.table.rows.size(), map.tiles.size());
    // A beside the rows of every output, B above its columns.
    const auto count = [&](const std::string& words) {
      int found = 0;
      for (std::size_t at = 0; (at = view.svg.find(words, at)) != std::string::npos; ++at) ++found;
      return found;
    };
    EXPECT_EQ(count("A: the rows of row"), plan.rows * plan.raster.batch) << "seed " << seed;
    EXPECT_EQ(count("B: the rows of column"), plan.columns * plan.raster.batch) << "seed " << seed;
  }
}

}  // namespace
}  // namespace warpwright::pictures
