// First tiles by where clusters land: a permutation whatever is known of that, in compact blocks.
#include "warpwright/plan/search/first_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "warpwright/tile/numbers.h"
#include "warpwright/tile/raster.h"

namespace warpwright {
namespace {

// What all groups read of the tiles that the grid holds in its `round`, in rows and columns.
int reads(const tile::Raster& raster, const std::vector<int>& groups,
          const std::vector<std::uint8_t>& first, int round) {
  std::set<std::pair<int, int>> rows;
  std::set<std::pair<int, int>> columns;
  const int clusters = static_cast<int>(groups.size());
  for (int c = 0; c < clusters; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const int number = (first.empty() ? c : first[i]) + round * clusters;
    if (number >= tile::tile_count(raster)) continue;
    const tile::TilePosition at = tile::position(raster, number);
    rows.emplace(groups[i], at.m);
    columns.emplace(groups[i], at.n);
  }
  return static_cast<int>(rows.size() + columns.size());
}

// 66 clusters of two that go round eight groups of which some are smaller.
std::vector<int> an_h200() {
  int left[] = {9, 9, 9, 9, 9, 8, 8, 5};
  std::vector<int> groups;
  while (groups.size() < 66) {
    for (int g = 0; g < 8; ++g) {
      if (left[g]-- > 0) groups.push_back(g);
    }
  }
  return groups;
}

TEST(FirstTiles, AreAPermutationWhateverIsKnown) {
  constexpr unsigned seed = 11;
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  for (int i = 0; i < 300; ++i) {
    tile::Raster raster{draw(1, 20), draw(1, 20), 1, draw(0, 1) == 0, draw(1, 2)};
    raster.band = draw(1, 20);
    std::vector<int> groups(static_cast<std::size_t>(draw(2, tile::FirstNumbers::most)));
    for (int& g : groups) g = draw(-1, 9);
    std::vector<std::uint8_t> first = first_tiles(raster, groups, draw(1, 9), draw(1, 9));
    if (first.empty()) {
      EXPECT_EQ(std::set<int>(groups.begin(), groups.end()).size(), 1U);
      continue;
    }
    std::sort(first.begin(), first.end());
    std::vector<std::uint8_t> all(groups.size());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(first, all) << "seed " << seed << ", case " << i;
  }
}

TEST(FirstTiles, AreLeftAloneWhereNothingIsToGain) {
  EXPECT_TRUE(first_tiles({8, 8, 4}, {}, 1, 1).empty());
  EXPECT_TRUE(first_tiles({8, 8, 4}, std::vector<int>(66, 3), 1, 1).empty());
  std::vector<int> many(tile::FirstNumbers::most + 1, 0);
  many.back() = 1;
  EXPECT_TRUE(first_tiles({20, 20, 4}, many, 1, 1).empty());
  many.pop_back();
  many.back() = 1;
  EXPECT_FALSE(first_tiles({20, 20, 4}, many, 1, 1).empty());
}

// Clusters that go round the groups have rows or columns in common with few of their neighbours.
TEST(FirstTiles, OfAGroupLieTogetherInEveryRound) {
  const std::vector<int> groups = an_h200();
  for (const tile::Raster& raster :
       {tile::Raster{16, 140, 11}, tile::Raster{32, 70, 6}, tile::Raster{140, 16, 11, false}}) {
    const std::vector<std::uint8_t> first = first_tiles(raster, groups, 1, 1);
    ASSERT_EQ(first.size(), groups.size());
    for (int round = 0; round < 6; ++round) {
      EXPECT_LT(reads(raster, groups, first, round), 0.75 * reads(raster, groups, {}, round))
          << raster.tiles_m << "x" << raster.tiles_n << ", round " << round;
    }
    EXPECT_LE(reads(raster, groups, first, 0), 8 * 7);  // blocks of 3 x 3 read 6
  }
}

TEST(FirstTiles, BlocksFollowWhatIsReadMore) {
  // Eight clusters in two groups: columns that are dear make blocks of one column, rows of one row.
  const std::vector<int> groups = {0, 1, 0, 1, 0, 1, 0, 1};
  const tile::Raster raster{4, 40, 4};
  const auto of_group = [&](double own, double other) {
    const std::vector<std::uint8_t> first = first_tiles(raster, groups, own, other);
    return std::set<int>{first[0], first[2], first[4], first[6]};
  };
  EXPECT_EQ(of_group(1, 9), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(of_group(2, 2), (std::set<int>{0, 1, 4, 5}));
}

}  // namespace
}  // namespace warpwright
