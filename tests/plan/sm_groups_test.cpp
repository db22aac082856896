// The map from SMs to their groups, from whatever was seen of it.
#include "warpwright/plan/cost/sm_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace warpwright {
namespace {

using GroupList = std::vector<int>;

TEST(SmGroups, NothingSeenIsNothingKnown) {
  EXPECT_EQ(sm_groups({}), SmGroups{});
  // CTAs without a cluster tell nothing of groups, and so not where they land either.
  const SmGroups alone = sm_groups(std::vector<SeenGrid>{{1, {2, 0, 1}}});
  EXPECT_EQ(alone.of_sm, (GroupList{-1, -1, -1}));
  EXPECT_EQ(alone.count, 0);
  EXPECT_TRUE(alone.of_clusters.empty());
}

TEST(SmGroups, ChainsOfClustersAreOneGroup) {
  const SmGroups found =
      sm_groups(std::vector<SeenGrid>{{2, {0, 1, 6, 7, 4, 5}}, {4, {6, 7, 0, 1}}, {2, {2, 3}}});
  EXPECT_EQ(found.of_sm, (GroupList{0, 0, 1, 1, 2, 2, 0, 0}));
  EXPECT_EQ(found.count, 3);
}

TEST(SmGroups, ASmThatNoClusterHeldIsUnknown) {
  const SmGroups found = sm_groups(std::vector<SeenGrid>{{2, {5, 3}}, {1, {3, 1}}, {1, {5, 3}}});
  EXPECT_EQ(found.of_sm, (GroupList{-1, -1, -1, 0, -1, 0}));
  EXPECT_EQ(found.count, 1);
  // One of its CTAs was on such a SM.
  EXPECT_FALSE(found.of_clusters.contains(1));
  EXPECT_EQ(found.of_clusters.at(2), (GroupList{0}));
}

TEST(SmGroups, WhereClustersLandIsKeptWhenItIsSteady) {
  const std::vector<SeenGrid> seen = {{2, {0, 1, 4, 5, 2, 3}},
                                      {4, {0, 1, 2, 3}},
                                      {2, {2, 3, 4, 5, 0, 1}},  // other SMs of the same groups
                                      {1, {0, 4, 1}},
                                      {1, {0, 1, 4}}};
  const SmGroups found = sm_groups(seen);
  EXPECT_EQ(found.of_clusters.at(2), (GroupList{0, 1, 0}));
  EXPECT_EQ(found.of_clusters.at(4), (GroupList{0}));
  EXPECT_FALSE(found.of_clusters.contains(1));
}

// A card as those that were seen: seven groups of 16 to 18 SMs and one of 10, whose pairs go round.
TEST(SmGroups, ACardIsFoundWhateverClustersAreSeen) {
  const int sizes[] = {18, 18, 18, 18, 18, 16, 16, 10};
  std::vector<int> truth;
  for (int round = 0; truth.size() < 132; ++round) {
    for (int g = 0; g < 8; ++g) {
      if (2 * round < sizes[g]) truth.insert(truth.end(), 2, g);
    }
  }
  std::mt19937 random(5);
  std::vector<SeenGrid> seen;
  for (int size = 2; size <= 16; ++size) {
    SeenGrid grid{size, {}};
    for (int g = 0; g < 8; ++g) {
      std::vector<int> members;
      for (int sm = 0; sm < 132; ++sm) {
        if (truth[static_cast<std::size_t>(sm)] == g) members.push_back(sm);
      }
      std::shuffle(members.begin(), members.end(), random);
      members.resize(members.size() / static_cast<std::size_t>(size) *
                     static_cast<std::size_t>(size));
      grid.sms.insert(grid.sms.end(), members.begin(), members.end());
    }
    seen.push_back(grid);
    const SmGroups found = sm_groups(seen);
    // Whatever was seen so far, no two groups are taken for one.
    for (std::size_t a = 0; a < found.of_sm.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (found.of_sm[a] < 0 || found.of_sm[a] != found.of_sm[b]) continue;
        ASSERT_EQ(truth[a], truth[b]) << a << " " << b << " with sizes up to " << size;
      }
    }
  }
  const SmGroups found = sm_groups(seen);
  EXPECT_EQ(found.count, 8);
  EXPECT_EQ(found.of_sm, truth);
}

}  // namespace
}  // namespace warpwright
