// The study's kernel on the machine model: right and clean as mended; what is found where an edge
// is missing, and in the kernel as it was published.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "ladder_cases.h"

namespace study::ladder {
namespace {

using warpwright::model::Check;

// Pairs that share B, two tiles each, rings that come round.
const Case usual{.name = "usual", .m = 256, .n = 128, .k = 128, .cluster_m = 2};
const testing::Schedules some{.timed = false, .random = 2, .starve = 2};

template <Edges E>
testing::Outcome without(const Case& c = usual) {
  return run_case<pair, Without<E>>(c, some);
}

// Shapes until every synchronising statement of the kernel has run.
TEST(WgmmaLadder, RightAndClean) {
  EXPECT_CLEAN_FAMILY(all_cases(some));
}

// The list of tiles: every tile once, and neighbours on the curve are neighbours in D.
TEST(WgmmaLadder, TheCurveVisitsEveryTileOnce) {
  for (const int side : {1, 2, 4, 8, 16}) {
    std::set<std::pair<int, int>> seen;
    Cell last = hilbert(side, 0);
    for (int i = 0; i < side * side; ++i) {
      const Cell cell = hilbert(side, i);
      EXPECT_TRUE(seen.insert({cell.m, cell.n}).second);
      const int step = std::abs(cell.m - last.m) + std::abs(cell.n - last.n);
      EXPECT_EQ(step, i == 0 ? 0 : 1) << "side " << side << ", step " << i;
      last = cell;
    }
  }
  std::set<int> tiles;
  for (const int tile : tile_lists(5, 3, 4)) {
    EXPECT_TRUE(tile < 0 || tiles.insert(tile).second);
  }
  EXPECT_EQ(tiles.size(), 15U);
}

TEST(WgmmaLadder, RefusesWhatTheOriginalDoesNotKnow) {
  EXPECT_NE(fault<pair>({.m = 128, .n = 64, .k = 64, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 96, .k = 64, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 64, .k = 96, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 64 * 129, .k = 64, .cluster_m = 2}), "");
  EXPECT_EQ(fault<pair>(usual), "");
}

// By the rules five edges are missing in the kernel as it is published; the next test shows each
// by itself.
TEST(WgmmaLadder, AsPublished) {
  EXPECT_ONLY_FINDINGS(without<published>(), Check::barrier_unpublished, Check::missing_proxy_fence,
                       Check::in_flight_access, Check::undrained_exit, Check::cluster_lifetime);
}

TEST(WgmmaLadder, EdgesThatThePublishedKernelLacks) {
  EXPECT_ONLY_FINDINGS(without<Edges{.init_fence = false}>(), Check::barrier_unpublished);
  EXPECT_ONLY_FINDINGS(without<Edges{.proxy_fence = false}>(), Check::missing_proxy_fence);
  EXPECT_ONLY_FINDINGS(without<Edges{.staging_barrier = false}>(), Check::in_flight_access);
  EXPECT_ONLY_FINDINGS(without<Edges{.last_drain = false}>(), Check::undrained_exit);
  EXPECT_ONLY_FINDINGS(without<Edges{.exit_barrier = false}>(), Check::cluster_lifetime);
  EXPECT_ONLY_FINDINGS(without<Edges{.exit_releases = false}>(), Check::cluster_lifetime);
}

// One tile a cluster has no second staging: the shape hides the missing edge.
TEST(WgmmaLadder, OneTileHidesTheStagingBarrier) {
  const Case one{.m = 256, .n = 64, .k = 256, .cluster_m = 2};
  EXPECT_CLEAN((without<Edges{.staging_barrier = false}>(one)));
}

TEST(WgmmaLadder, EdgesThatItHasAndNeeds) {
  EXPECT_FINDING(without<Edges{.begin_barrier = false}>(), Check::barrier_unpublished);
  EXPECT_ONLY_FINDINGS(without<Edges{.wait_for_wgmma = false}>(), Check::in_flight_access);
  EXPECT_FINDING(without<Edges{.release_peers = false}>(), Check::in_flight_access);
  EXPECT_FINDING(without<Edges{.all_expect = false}>(), Check::transaction_bytes);
  EXPECT_FINDING(without<Edges{.stored_barrier = false}>(), Check::data_race);
}

// The consumers' arrivals before the first k_tile could be left out: on a fresh barrier the
// producer's wait for parity 1 returns.
TEST(WgmmaLadder, FirstArrivalsAreNotNeeded) {
  EXPECT_CLEAN(without<Edges{.first_arrivals = false}>());
  const Case c{.m = 512, .n = 128, .k = 128, .cluster_m = 2, .cluster_n = 2};
  EXPECT_CLEAN((run_case<four, Without<Edges{.first_arrivals = false}>>(c, some)));
}

// In a cluster of 2 x 2 CTAs 0 and 3 share neither A nor B, and yet 3 must tell 0. CTA 0 would not
// wait for it, would come round, and arrive at CTA 1 a second time in one phase: a barrier counts
// arrivals, not who arrives. CTA 1 then takes the stage of CTA 3 for free.
TEST(WgmmaLadder, TheDiagonalIsNeeded) {
  const Case c{.m = 256, .n = 128, .k = 320, .cluster_m = 2, .cluster_n = 2};
  const testing::Schedules starving{
      .eager = false, .latest = false, .timed = false, .random = 0, .starve = 4};
  EXPECT_FINDING((run_case<four, Without<Edges{.diagonal = false}>>(c, starving)),
                 Check::in_flight_access);
  EXPECT_CLEAN(run_case<four>(c, starving));
}

}  // namespace
}  // namespace study::ladder
