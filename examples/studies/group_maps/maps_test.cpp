// Maps made on the device, on the machine model: right and clean; what is found where an edge is
// missing, and of every statement broken.
#include <gtest/gtest.h>

#include <warpwright/model/testing.h>

#include "maps_cases.h"

namespace study::maps {
namespace {

using warpwright::model::Check;
using warpwright::model::Mutation;

const Case usual{.tokens = {5, 0, 40, 16}};
// One maker and one CTA for all groups, twice: whatever is left of a group or a launch is met.
const Case twice{.tokens = {9, 17}, .makers = 1, .ctas = 1, .launches = 2};
const testing::Schedules some{.timed = false, .random = 2, .starve = 2};

template <Edges E>
testing::Outcome without(const Case& c = usual) {
  return run_case<Without<E>>(c, some);
}

TEST(GroupMaps, RightAndClean) {
  EXPECT_CLEAN_FAMILY(all_cases(some));
}

// The corpus has each of these in a few lines (tests/corpus/grid_test.cpp).
TEST(GroupMaps, WhoWritesAMapReleasesIt) {
  EXPECT_ONLY_FINDINGS(without<Edges{.release = false}>(), Check::tensor_map_changed);
}

TEST(GroupMaps, WhoCopiesThroughAMapAcquiresIt) {
  EXPECT_ONLY_FINDINGS(without<Edges{.acquire_x = false}>(), Check::tensor_map_changed);
  EXPECT_ONLY_FINDINGS(without<Edges{.acquire_y = false}>(), Check::tensor_map_changed);
}

TEST(GroupMaps, BehindTheWaitForTheGridThatMadeIt) {
  EXPECT_FINDING(without<Edges{.acquire_late = false}>(), Check::tensor_map_changed);
  EXPECT_FINDING(without<Edges{.wait_for_maps = false}>(), Check::before_prerequisites);
}

TEST(GroupMaps, TheMakersWarpMeets) {
  EXPECT_FINDING(without<Edges{.meet_rewritten = false}>(), Check::data_race);
  EXPECT_FINDING(without<Edges{.meet_copied = false}>(twice), Check::data_race);
}

// What the maps are for: a box of Y that reaches past the group stores over the next one's rows.
TEST(GroupMaps, AMapOfAllTokensStoresOverTheNextGroup) {
  const testing::Outcome outcome = without<Edges{.own_rows = false}>();
  EXPECT_TRUE(outcome.has(Check::wrong_result) || outcome.has(Check::data_race)) << outcome.text();
}

// Every statement that synchronises, dropped, doubled, too early, is told. Waiting twice is
// waiting, and a stage's first wait, for a barrier that is fresh, returns at once.
TEST(GroupMaps, MutantsAreKilled) {
  Case deep = twice;
  deep.k = 200;  // more k_tiles than stages
  const testing::Schedules few{.timed = false, .random = 1, .starve = 0};
  int killed = 0;
  for (const Mutation& m :
       warpwright::model::mutations(run_case(deep, few).runs.front().report.sites)) {
    SCOPED_TRACE(warpwright::model::text(m) + ", " + std::string(m.how()));
    const bool told = !run_case(deep, few, m).clean();
    killed += told ? 1 : 0;
    const bool is_same = m.how().find("twice") != std::string_view::npos ||
                         (m.barrier == "empty" && m.how() == "dropped the first time");
    EXPECT_TRUE(told || is_same);
  }
  EXPECT_GT(killed, 20);
}

}  // namespace
}  // namespace study::maps
