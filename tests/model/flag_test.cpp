// Flags in global memory, by which the clusters of a grid order what they hand each other.
#include <gtest/gtest.h>

#include "tests/model/harness.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"

namespace warpwright::model {
namespace {

// What is wrong with the kernel below.
enum class Bug { none, no_set, no_wait, other_value, set_early, no_meeting, no_second_meeting };

// A warp of CTA 0 writes 32 words and sets a flag; a warp of CTA 1 waits and reads them.
class FlagTest : public testing::Test {
 protected:
  Kernel kernel(Bug bug) {
    std::fill_n(flag_.data(), flag_.size(), 0U);
    return {{.ctas = 2, .threads = 32},
            [this, bug] {
              // Every run starts with a flag of 0; the CTA that waits has not looked at it yet.
              if (isa::cta_index() == 0) {
                give(bug);
              } else {
                take(bug);
              }
            },
            {words_.allocation("words"), flag_.allocation("flag")}};
  }

  void give(Bug bug) {
    isa::set_role("giver");
    const int lane = isa::lane_index();
    if (bug == Bug::set_early && lane == 0) isa::flag_set(flag_.data(), 1);
    isa::GlobalView<std::uint32_t>{words_.data()}.store(lane, 100U + static_cast<unsigned>(lane));
    if (bug != Bug::no_meeting) isa::sync_warp();
    if (bug != Bug::no_set && bug != Bug::set_early && lane == 0) isa::flag_set(flag_.data(), 1);
  }

  void take(Bug bug) {
    isa::set_role("taker");
    const int lane = isa::lane_index();
    if (bug != Bug::no_wait && lane == 0) {
      isa::flag_wait(flag_.data(), bug == Bug::other_value ? 2 : 1);
    }
    if (bug != Bug::no_second_meeting) isa::sync_warp();
    const std::uint32_t word = isa::GlobalView<std::uint32_t>{words_.data()}.load((lane + 1) % 32);
    if (bug == Bug::none) {
      EXPECT_EQ(word, 100U + static_cast<unsigned>((lane + 1) % 32));
    }
    // As it was, for the next run; nobody waits for the 0.
    isa::sync_warp();
    if (lane == 0 && bug == Bug::none) isa::GlobalView<std::uint32_t>{flag_.data()}.store(0, 0);
  }

  // In every schedule a check speaks, and no other one.
  void expect_only(Bug bug, Check check) {
    for (const Options& how : schedules()) {
      SCOPED_TRACE(text(how));
      const Report report = run(kernel(bug), how);
      EXPECT_TRUE(report.has(check)) << "not found: " << code(check) << "\n" << report.text();
      for (const Finding& f : report.findings) EXPECT_EQ(f.check, check) << report.text();
    }
  }

  Memory<std::uint32_t> words_{32};
  Memory<std::uint32_t> flag_{1};
};

TEST_F(FlagTest, OrdersAcrossClusters) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    const Report report = run(kernel(Bug::none), how);
    EXPECT_TRUE(report.clean()) << report.text();
  }
}

TEST_F(FlagTest, AFlagThatNobodySetsIsADeadlockWithItsName) {
  for (const Bug bug : {Bug::no_set, Bug::other_value}) {
    expect_only(bug, Check::deadlock);
    const Report report = run(kernel(bug), Options{});
    expect_contains(report.text(), "taker of CTA 1");
    expect_contains(report.text(), "a flag in global memory");
    expect_contains(report.text(), "flag_test.cpp");
  }
}

TEST_F(FlagTest, WithoutTheWaitItIsARace) {
  expect_only(Bug::no_wait, Check::data_race);
}

TEST_F(FlagTest, WhatFollowsTheSettingIsNotHandedOn) {
  expect_only(Bug::set_early, Check::data_race);
}

TEST_F(FlagTest, LanesThatHaveNotMetTheSetterAreNotOrdered) {
  expect_only(Bug::no_meeting, Check::data_race);
}

TEST_F(FlagTest, LanesThatHaveNotMetTheWaiterAreNotOrdered) {
  expect_only(Bug::no_second_meeting, Check::data_race);
}

TEST_F(FlagTest, AFlagOutsideEveryTensorIsFound) {
  static std::uint32_t stranger = 0;
  const Kernel bad{{.ctas = 1, .threads = 1}, [] { isa::flag_set(&stranger, 1); }, {}};
  EXPECT_TRUE(run(bad, Options{}).has(Check::global_bounds));
}

}  // namespace
}  // namespace warpwright::model
