// The study's kernel on the machine model: right and clean as mended; what is found where an edge
// is missing, and in the kernel as it was published.
#include <gtest/gtest.h>

#include "pair_cases.h"

namespace study::pairs {
namespace {

using warpwright::model::Check;

// One pair, five tiles: the ring and both accumulators come round.
const Case usual{.name = "usual", .m = 256, .n = 320, .k = 128, .cluster_m = 2};
const testing::Schedules some{.timed = false, .random = 2, .starve = 2};

template <Edges E>
testing::Outcome without(const Case& c = usual) {
  return run_case<pair, Without<E>>(c, some);
}

// Shapes until every synchronising statement of the kernel has run.
TEST(Tcgen05Pairs, RightAndClean) {
  EXPECT_CLEAN_FAMILY(all_cases(some));
}

// One shape is not enough: what it leaves out is named.
TEST(Tcgen05Pairs, OneCtaLeavesThePairsBarriersOut) {
  testing::Family family({"Mended"});
  family.add("one CTA", run_case<alone>({.m = 256, .n = 96, .k = 256}, some));
  if (warpwright::model::lists_sites) {
    EXPECT_NE(family.text().find("(PairGemm::run)"), std::string::npos) << family.text();
    EXPECT_NE(family.text().find("(PairGemm::epilogue)"), std::string::npos) << family.text();
  }
  EXPECT_TRUE(family.clean());
}

TEST(Tcgen05Pairs, RefusesWhatTheOriginalDoesNotKnow) {
  EXPECT_NE(fault<pair>({.m = 128, .n = 64, .k = 64, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 96, .k = 64, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 64, .k = 32, .cluster_m = 2}), "");
  EXPECT_NE(fault<pair>({.m = 256, .n = 64, .k = 64, .cluster_m = 1}), "");
  EXPECT_EQ(fault<pair>(usual), "");
}

// By the rules three edges are missing in the kernel as it is published; the next test shows each
// by itself. That it takes tensor memory to begin at column 0 breaks no order.
TEST(Tcgen05Pairs, AsPublished) {
  EXPECT_ONLY_FINDINGS(without<published>(), Check::tmem_fence, Check::pair_lifetime,
                       Check::cluster_lifetime);
}

TEST(Tcgen05Pairs, EdgesThatThePublishedKernelLacks) {
  EXPECT_ONLY_FINDINGS(without<Edges{.before_fence = false}>(), Check::tmem_fence);
  EXPECT_ONLY_FINDINGS(without<Edges{.drain_empty = false}>(), Check::pair_lifetime);
  EXPECT_ONLY_FINDINGS(without<Edges{.exit_releases = false}>(), Check::cluster_lifetime);
  EXPECT_CLEAN(without<Edges{.publish = false}>());
}

// The odd CTA's warps load from lanes 128 on, of 128 lanes. The result on a B200 is right: the
// address's bit for lane 128 must be ignored there, which the ISA does not say.
TEST(Tcgen05Pairs, LanesOfThePair) {
  EXPECT_ONLY_FINDINGS(without<Edges{.own_lanes = false}>(), Check::tmem_lanes);
}

// Two tiles fill two accumulators: none is used again, and the fence is not missed.
TEST(Tcgen05Pairs, TwoTilesHideTheFence) {
  const Case two{.m = 256, .n = 128, .k = 256, .cluster_m = 2};
  EXPECT_CLEAN((without<Edges{.before_fence = false}>(two)));
}

TEST(Tcgen05Pairs, EdgesThatItHasAndNeeds) {
  EXPECT_ONLY_FINDINGS(without<Edges{.exit_barrier = false}>(), Check::cluster_lifetime);
  EXPECT_ONLY_FINDINGS(without<Edges{.issuer_fence = false}>(), Check::tmem_fence);
  EXPECT_ONLY_FINDINGS(without<Edges{.epilogue_fence = false}>(), Check::tmem_fence);
  EXPECT_FINDING(without<Edges{.epilogue_meets = false}>(), Check::tmem_unordered);
  EXPECT_ONLY_FINDINGS(without<Edges{.wait_load = false}>(), Check::tmem_unordered);
  EXPECT_FINDING(without<Edges{.both_expected = false}>(), Check::transaction_bytes);
  EXPECT_ONLY_FINDINGS(without<Edges{.both_told = false}>(), Check::deadlock);
}

// The fence behind the wait for a stage, of which the original asks why it is there, does not guard
// the loads' bytes. It takes the accumulator over from the epilogue, and once a tile is enough.
TEST(Tcgen05Pairs, WhatTheIssuersFenceIsFor) {
  EXPECT_CLEAN((without<Edges{.issuer_fence = false, .fence_a_tile = true}>()));
  const Case two{.m = 256, .n = 128, .k = 256, .cluster_m = 2};
  EXPECT_CLEAN((without<Edges{.issuer_fence = false}>(two)));
}

// The cluster barrier at the end keeps the even CTA there for the odd one's last arrivals. The
// issuer may wait for these instead.
TEST(Tcgen05Pairs, WhatTheLastClusterBarrierIsFor) {
  EXPECT_CLEAN((without<Edges{.exit_barrier = false, .issuer_drains = true}>()));
}

// One arrival a warp would do, behind a syncwarp: 8 a phase for 256.
TEST(Tcgen05Pairs, OneArrivalAWarpIsEnough) {
  EXPECT_CLEAN(without<Edges{.each_thread = false}>());
}

}  // namespace
}  // namespace study::pairs
