// Sites, mutants, and when two programs are the same.
#include "warpwright/model/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/model/harness.h"
#include "tests/model/mutants.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/model/report/shrink.h"

namespace warpwright::model {
namespace {

constexpr int threads = 64;

// Warp 0 hands 32 words to warp 1 through an mbarrier, twice.
void hand_over() {
  const isa::SharedAddress base = isa::shared_base();
  const isa::SharedAddress full = base + 256;
  const isa::SharedAddress empty = base + 264;
  const int lane = isa::lane_index();
  const isa::SharedView<std::uint32_t> words{base};
  isa::set_role(isa::warp_index() == 0 ? "writer" : "reader");
  if (isa::thread_index() == 0) {
    isa::mbarrier_init(full, 32, {"full", 0}, "the writers");
    isa::mbarrier_init(empty, 32, {"empty", 0}, "the readers");
  }
  isa::sync_threads(threads);
  for (int round = 0; round < 2; ++round) {
    if (isa::warp_index() == 0) {
      isa::mbarrier_wait<isa::Scope::cta>(empty, round ^ 1, {"empty", 0});
      words.store(lane, static_cast<std::uint32_t>(lane + round));
      isa::mbarrier_arrive<isa::Scope::cta>(full);
    } else {
      isa::mbarrier_wait<isa::Scope::cta>(full, round, {"full", 0});
      static_cast<void>(words.load(31 - lane));
      isa::mbarrier_arrive<isa::Scope::cta>(empty);
    }
  }
}

Kernel kernel_of(const std::function<void()>& body) {
  return {{.threads = threads, .shared_bytes = 512}, body};
}

const SyncSite& find(const std::vector<SyncSite>& sites, SyncKind kind, const std::string& name) {
  const auto at = std::find_if(sites.begin(), sites.end(), [&](const SyncSite& s) {
    return s.kind == kind && s.barrier == name;
  });
  EXPECT_NE(at, sites.end()) << model::name(kind) << " " << name;
  return at == sites.end() ? sites.front() : *at;
}

Mutation dropped(const SyncSite& site) {
  return {Mutation::Kind::drop, site.kind, site.file, site.line, site.barrier};
}

TEST(Sites, AreCountedByTheModel) {
  const Kernel kernel = kernel_of(hand_over);
  const std::vector<SyncSite> sites = sites_of(kernel);
  ASSERT_EQ(sites.size(), 7U);
  const SyncSite& init = find(sites, SyncKind::mbarrier_init, "full");
  EXPECT_EQ(init.executions, 1);
  EXPECT_EQ(init.value, 32);
  const SyncSite& arrive = find(sites, SyncKind::mbarrier_arrive, "full");
  EXPECT_EQ(arrive.executions, 64);
  EXPECT_EQ(arrive.threads, 32);
  EXPECT_EQ(arrive.warps, 1);
  EXPECT_EQ(arrive.roles, std::vector<std::string>{"writer"});
  const SyncSite& wait = find(sites, SyncKind::mbarrier_wait, "full");
  EXPECT_EQ(wait.roles, std::vector<std::string>{"reader"});
  EXPECT_EQ(wait.text(),
            "mbarrier wait full at tests/model/mutation_test.cpp:" + std::to_string(wait.line));
  EXPECT_EQ(find(sites, SyncKind::named_barrier, "").executions, threads);
}

TEST(Sites, AreNotCountedUnasked) {
  EXPECT_TRUE(run(kernel_of(hand_over), Options{}).sites.empty());
}

TEST(Mutants, OfAHandOverAreKilledOrTheSame) {
  const Kernel kernel = kernel_of(hand_over);
  expect_clean(kernel);
  const std::vector<Mutation> all = mutations(sites_of(kernel));
  EXPECT_GT(all.size(), 25U);
  const int killed_ones = killed_or_same(kernel);
  // The first wait for an empty slot passes on the fresh barrier: without it, the same program.
  EXPECT_GE(killed_ones, static_cast<int>(all.size()) - 2);
}

TEST(Mutants, BreakOneSiteAndNoOther) {
  const Kernel kernel = kernel_of(hand_over);
  Options how;
  how.count_sites = true;
  how.mutation = dropped(find(sites_of(kernel), SyncKind::mbarrier_arrive, "empty"));
  const Report report = run(kernel, how);
  ASSERT_TRUE(report.has(Check::deadlock)) << report.text();
  // It is still counted: a site is what the kernel says, not what the mutant does.
  EXPECT_EQ(find(report.sites, SyncKind::mbarrier_arrive, "empty").executions, 32);
}

TEST(Mutants, OfTheFirstTimeBreakEveryThreadOnce) {
  const Kernel kernel = kernel_of(hand_over);
  Mutation m = dropped(find(sites_of(kernel), SyncKind::mbarrier_arrive, "full"));
  m.kind = Mutation::Kind::drop_first;
  Options how;
  how.mutation = m;
  // The writers' second round waits for readers that wait for the first.
  EXPECT_TRUE(run(kernel, how).has(Check::deadlock));
}

TEST(Relation, IsTheSameWhereNothingDependsOnAFence) {
  // Nobody uses the asynchronous proxy here, so the fence orders nothing.
  const Kernel kernel = kernel_of([] {
    const isa::SharedView<std::uint32_t> words{isa::shared_base()};
    words.store(isa::thread_index(), 1);
    isa::fence_proxy_async_shared();
    isa::sync_threads(threads);
    EXPECT_EQ(words.load(63 - isa::thread_index()), 1U);
  });
  const std::vector<SyncSite> sites = sites_of(kernel);
  const Mutation fence = dropped(find(sites, SyncKind::fence_proxy_async, ""));
  EXPECT_FALSE(killed(kernel, fence));
  EXPECT_TRUE(same(kernel, fence));
}

TEST(Relation, ChangesWithAnOrderThatNoCheckNeeds) {
  // Nothing is handed over, so no check speaks; but it is another program.
  const Kernel kernel = kernel_of([] {
    const isa::SharedView<std::uint32_t> words{isa::shared_base()};
    words.store(isa::thread_index(), 1);
    isa::sync_threads(threads);
    words.store(isa::thread_index(), 2);
  });
  const Mutation barrier = dropped(find(sites_of(kernel), SyncKind::named_barrier, ""));
  EXPECT_FALSE(killed(kernel, barrier));
  EXPECT_FALSE(same(kernel, barrier));
}

TEST(Relation, DoesNotDependOnTheSchedule) {
  const Kernel kernel = kernel_of(hand_over);
  std::vector<std::uint64_t> hashes;
  for (Options how : schedules()) {
    how.hash_order = true;
    hashes.push_back(run(kernel, how).order_hash);
  }
  EXPECT_NE(hashes.front(), 0U);
  EXPECT_EQ(std::count(hashes.begin(), hashes.end(), hashes.front()),
            static_cast<std::ptrdiff_t>(hashes.size()));
}

TEST(Replay, IsExact) {
  const Kernel kernel = kernel_of(hand_over);
  const Statistics first = run(kernel, random_schedule(7)).statistics;
  const Statistics again = run(kernel, random_schedule(7)).statistics;
  const Statistics other = run(kernel, random_schedule(8)).statistics;
  EXPECT_EQ(first.fiber_switches, again.fiber_switches);
  EXPECT_EQ(first.decisions, again.decisions);
  EXPECT_NE(first.decisions, other.decisions);
}

TEST(Replay, KeepsTheDecisionsItIsTold) {
  const Kernel kernel = kernel_of(hand_over);
  Options none = random_schedule(7);
  none.only = std::vector<std::int64_t>{};
  const Report report = must_be_clean(run(kernel, none));
  EXPECT_TRUE(report.decided.empty());
  // Without random decisions no seed is different from another.
  Options other = random_schedule(8);
  other.only = std::vector<std::int64_t>{};
  EXPECT_EQ(report.statistics.fiber_switches, run(kernel, other).statistics.fiber_switches);
  // All of them: the schedule itself.
  Options recording = random_schedule(7);
  recording.record_decisions = true;
  const Report whole = run(kernel, recording);
  EXPECT_EQ(static_cast<std::int64_t>(whole.decisions.size()), whole.statistics.decisions);
  Options all = random_schedule(7);
  all.only = whole.decisions;
  std::sort(all.only->begin(), all.only->end());
  EXPECT_EQ(run(kernel, all).statistics.fiber_switches, whole.statistics.fiber_switches);
}

TEST(Shrink, KeepsWhatMatters) {
  const std::vector<std::int64_t> needed = {3, 77, 500};
  int runs = 0;
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  const auto kept = shrink(all, [&](const std::vector<std::int64_t>& only) {
    ++runs;
    return std::includes(only.begin(), only.end(), needed.begin(), needed.end());
  });
  EXPECT_EQ(kept, needed);
  EXPECT_LT(runs, 200);
}

TEST(Shrink, FindsTheOneDecisionOfABug) {
  // Takes "not yet" of a try_wait for "never": only a spurious answer shows that.
  const Kernel kernel = kernel_of([] {
    const isa::SharedAddress barrier = isa::shared_base();
    const isa::SharedView<std::uint32_t> word{barrier + 16};
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(barrier, 1, {"full", 0});
      word.store(0, 1);
      isa::mbarrier_arrive<isa::Scope::cta>(barrier);
    }
    isa::sync_threads(threads);
    if (isa::thread_index() == 40 && !isa::mbarrier_try_wait<isa::Scope::cta>(barrier, 0)) {
      static_cast<void>(word.load(8));  // nobody has written it
    }
  });
  Options how;
  for (std::uint64_t seed = 1; seed < 100; ++seed) {
    how = random_schedule(seed);
    if (!run(kernel, how).clean()) break;
  }
  how.record_decisions = true;
  const Report whole = run(kernel, how);
  ASSERT_TRUE(whole.has(Check::uninitialised_read)) << "no seed shows it";
  how.only = shrink(whole.decisions, [&](const std::vector<std::int64_t>& only) {
    Options some = how;
    some.only = only;
    return run(kernel, some).has(Check::uninitialised_read);
  });
  EXPECT_EQ(how.only->size(), 1U);
  const Report report = run(kernel, how);
  ASSERT_EQ(report.decided.size(), 1U);
  expect_contains(report.decided[0], "warp 1, lane 8) is told \"not yet\" by a try_wait");
}

}  // namespace
}  // namespace warpwright::model
