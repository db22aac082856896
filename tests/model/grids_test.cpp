// What a grid may touch before it waits for the grid before (G1): that depends on where the grids
// before it let the next one start.
#include <gtest/gtest.h>

#include "tests/model/harness.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright::model {
namespace {

// Where a grid lets the next one start.
enum class Lets {
  behind_its_wait,
  before_its_wait,
  one_cta_before,   // the other behind it
  at_its_end,       // no CTA says so
  without_waiting,  // nor does one of them ever wait
};

void let_next_start(Lets lets) {
  const bool before =
      lets == Lets::before_its_wait || (lets == Lets::one_cta_before && isa::cta_index() == 1);
  const bool waits = lets != Lets::without_waiting || isa::cta_index() == 0;
  if (before) isa::launch_dependents();
  if (waits) isa::wait_for_prerequisites();
  if (!before && lets != Lets::at_its_end && lets != Lets::without_waiting) {
    isa::launch_dependents();
  }
}

// As the step of a mixture: a sort writes `sorted`; a product reads that and `weights`, and writes
// `inner`; the next one would like to read weights and what the sort wrote before it waits.
class GridsTest : public testing::Test {
 protected:
  using Body = std::function<void()>;
  using View = isa::GlobalView<std::uint32_t>;

  static int me() { return isa::cta_index() * 32 + isa::lane_index(); }

  GridLaunch grid(Body body, bool writes_sorted, bool writes_inner) {
    const auto memory = [](Words& words, const char* name, bool writable) {
      return Allocation{words.data(), 64 * 4, name, writable};
    };
    return {.shape = {.ctas = 2, .threads = 32},
            .allocations = {memory(sorted_, "sorted", writes_sorted),
                            memory(inner_, "inner", writes_inner),
                            memory(weights_, "weights", false), memory(out_, "out", true)},
            .body = std::move(body),
            .dependent = true,
            .ended = {}};
  }
  GridLaunch sort(Lets lets) {
    return grid(
        [this, lets] {
          let_next_start(lets);
          View{sorted_.data()}.store(me(), 1);
        },
        true, false);
  }
  GridLaunch first(Lets lets) {
    return grid(
        [this, lets] {
          let_next_start(lets);
          if (lets == Lets::without_waiting && isa::cta_index() == 1) return;
          View{inner_.data()}.store(me(), View{sorted_.data()}.load(me()) + 1);
        },
        false, true);
  }
  // Reads `early` before it waits.
  GridLaunch second(std::vector<std::uint32_t*> early, Lets lets = Lets::behind_its_wait) {
    return grid(
        [this, early = std::move(early), lets] {
          std::uint32_t sum = 0;
          for (std::uint32_t* const from : early) sum += View{from}.load(me());
          let_next_start(lets);
          sum += View{inner_.data()}.load(me());
          View{out_.data()}.store(me(), sum);
        },
        false, false);
  }

  void expect_clean(const std::vector<GridLaunch>& grids) {
    for (const Options& how : schedules()) {
      const Report report = run(grids, how);
      EXPECT_TRUE(report.clean()) << text(how) << "\n" << report.text();
    }
  }
  void expect_early(const std::vector<GridLaunch>& grids, const std::string& words) {
    for (const Options& how : schedules()) {
      const Report report = run(grids, how);
      EXPECT_TRUE(report.has(Check::before_prerequisites)) << text(how) << "\n" << report.text();
      expect_contains(report.text(), words);
    }
  }

  using Words = std::array<std::uint32_t, 64>;
  Words sorted_{}, inner_{}, weights_{}, out_{};
};

TEST_F(GridsTest, WhatTwoGridsBeforeWroteIsThereWhereTheOneBeforeLetsThisStartBehindItsWait) {
  for (const Lets of_first : {Lets::behind_its_wait, Lets::at_its_end}) {
    for (const Lets of_sort : {Lets::behind_its_wait, Lets::before_its_wait}) {
      expect_clean({sort(of_sort), first(of_first), second({weights_.data(), sorted_.data()})});
    }
  }
}

TEST_F(GridsTest, ButNotWhereAnyCtaLetsItStartBefore) {
  for (const Lets of_first : {Lets::before_its_wait, Lets::one_cta_before}) {
    expect_early({sort(Lets::behind_its_wait), first(of_first), second({sorted_.data()})},
                 "touches sorted before the grids that this one depends on have ended. The grid "
                 "before lets this one start before it knows itself");
  }
  expect_early(
      {sort(Lets::behind_its_wait), first(Lets::without_waiting), second({sorted_.data()})},
      "touches sorted before");
}

TEST_F(GridsTest, WeightsMayStillBeWrittenByAPredecessorThatIsNotShown) {
  expect_early({sort(Lets::before_its_wait), second({weights_.data()})}, "touches weights before");
  expect_clean({sort(Lets::behind_its_wait), second({weights_.data()})});
  expect_early({second({weights_.data()})}, "touches weights before");
}

TEST_F(GridsTest, WhatTheGridBeforeWritesIsNotThere) {
  expect_early({sort(Lets::behind_its_wait), first(Lets::behind_its_wait), second({inner_.data()})},
               "touches inner before the grids that this one depends on have ended. Missing:");
}

TEST_F(GridsTest, NorMayWhatItReadsBeWritten) {
  const auto writes = [this](Words& to) {
    return grid(
        [this, &to] {
          View{to.data()}.store(me(), 7);
          let_next_start(Lets::behind_its_wait);
        },
        true, true);
  };
  const Lets behind = Lets::behind_its_wait;
  expect_early({sort(behind), first(behind), writes(sorted_)}, "a store touches sorted");
  // The one before does not touch it.
  GridLaunch elsewhere = first(behind);
  elsewhere.allocations.erase(elsewhere.allocations.begin());
  elsewhere.body = [this] {
    let_next_start(Lets::behind_its_wait);
    View{inner_.data()}.store(me(), 2);
  };
  expect_clean({sort(behind), elsewhere, writes(sorted_)});
}

TEST_F(GridsTest, WhatAGridKnewWhenItBeganHoldsForThoseThatItLetsStartEarly) {
  const Lets behind = Lets::behind_its_wait;
  const auto four = [&](Words& early) {
    return std::vector<GridLaunch>{sort(behind), first(behind), second({}, Lets::before_its_wait),
                                   second({early.data()})};
  };
  expect_clean(four(sorted_));
  expect_early(four(inner_), "touches inner before");
}

TEST_F(GridsTest, LettingTheNextStartIsASiteWhereThatReliesOnIt) {
  const auto launch_sites = [&](bool relies) {
    std::vector<std::uint32_t*> early;
    if (relies) early = {sorted_.data()};
    const std::vector<GridLaunch> grids{sort(Lets::behind_its_wait), first(Lets::behind_its_wait),
                                        second(early)};
    Options how;
    how.count_sites = true;
    std::vector<SyncSite> sites = run(grids, how).sites;
    std::erase_if(sites, [](const SyncSite& s) { return s.kind != SyncKind::grid_launch; });
    for (const Mutation& mutation : mutations(sites)) {
      EXPECT_EQ(mutation.how(), "before the wait");
      for (Options broken : schedules()) {
        broken.mutation = mutation;
        EXPECT_TRUE(run(grids, broken).has(Check::before_prerequisites)) << text(broken);
      }
    }
    return sites.size();
  };
  EXPECT_EQ(launch_sites(false), 0U);
  EXPECT_EQ(launch_sites(true), 1U);
}

}  // namespace
}  // namespace warpwright::model
