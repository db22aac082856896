// What findings say of their causes: kernels of a few lines, each with one mistake, and the line
// and the words by which its first finding leads to it.
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/model/harness.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"

namespace warpwright::model {
namespace {

using isa::Scope;
using isa::SharedAddress;

constexpr LaunchShape two_warps{.threads = 64, .shared_bytes = 4096};
constexpr LaunchShape two_ctas{.ctas = 2, .cluster_size = 2, .threads = 32, .shared_bytes = 4096};

int cause_line = 0;  // of the statement that the kernel's finding must name
bool here(int line = __builtin_LINE()) {
  cause_line = line;
  return true;
}

// The first finding of an eager run is of this check, at `cause_line`, and says all of these words.
void expect_first(const Kernel& kernel, Check check, std::initializer_list<const char*> words) {
  cause_line = 0;
  const Report report = run(kernel, in_mode(Mode::eager));
  ASSERT_FALSE(report.findings.empty());
  const Finding& first = report.findings.front();
  EXPECT_EQ(code(first.check), code(check)) << report.text();
  EXPECT_EQ(first.site.line, cause_line) << report.text();
  for (const char* word : words) expect_contains(first.sentence, word);
}

// Two barriers of one arrival each, which thread 0 makes and all threads may use.
SharedAddress two_barriers(int threads, const char* first, const char* second,
                           const char* first_arrivers = "", const char* second_arrivers = "") {
  const SharedAddress bar = isa::shared_base();
  if (isa::thread_index() == 0) {
    isa::mbarrier_init(bar, 1, {first, 0}, first_arrivers);
    isa::mbarrier_init(bar + 8, 1, {second, 1}, second_arrivers);
    isa::fence_mbarrier_init();
  }
  if (threads > 1) isa::sync_threads(threads);
  return bar;
}

// --- B4 ------------------------------------------------------------------------------------------
class Bytes : public testing::Test {
 protected:
  Memory<std::uint16_t> source_{256};
  TensorMap short_ = map_of({source_.data(), 1, 64, 2, 1, 64});   // 128 bytes
  TensorMap long_ = map_of({source_.data(), 1, 256, 2, 1, 128});  // 256 bytes
  std::vector<Allocation> memory_ = {source_.allocation("source", false)};
};

TEST_F(Bytes, OfACopyThatIsNotCounted) {
  expect_first({one_thread,
                [&] {
                  const SharedAddress bar = two_barriers(1, "full", "other");
                  const SharedAddress to = isa::shared_base() + 1024;
                  if (here()) isa::mbarrier_arrive_expect(bar, 256);
                  isa::tensor_load(to, short_, bar, isa::Coords{0, 0});
                  isa::tensor_load(to + 1024, long_, bar, isa::Coords{0, 0});
                  isa::mbarrier_wait<Scope::cta>(bar, 0);
                },
                memory_},
               Check::transaction_bytes,
               {"256 bytes expected by thread", "384 came: 128 by a tensor load at",
                "an expectation of 128 bytes, those of a tensor load at", "Mend: count them in"});
}

TEST_F(Bytes, ThatNobodyBrings) {
  expect_first(
      {one_thread,
       [&] {
         const SharedAddress bar = two_barriers(1, "full", "other");
         if (here()) isa::mbarrier_arrive_expect(bar, 144);
         isa::tensor_load(isa::shared_base() + 1024, short_, bar, isa::Coords{0, 0});
         isa::mbarrier_wait<Scope::cta>(bar, 0);
       },
       memory_},
      Check::transaction_bytes,
      {"144 bytes expected", "128 came", "copies of 16 bytes more", "expect 128 bytes at"});
}

TEST_F(Bytes, ThatSignalAnotherBarrier) {
  expect_first({one_thread,
                [&] {
                  const SharedAddress bar = two_barriers(1, "full", "full");
                  isa::mbarrier_arrive_expect(bar, 128);
                  isa::mbarrier_arrive_expect(bar + 8, 256);
                  const SharedAddress to = isa::shared_base() + 1024;
                  isa::tensor_load(to + 1024, long_, bar + 8, isa::Coords{0, 0});
                  isa::mbarrier_wait<Scope::cta>(bar + 8, 0);
                  isa::mbarrier_arrive_expect(bar + 8, 0);
                  if (here()) isa::tensor_load(to, short_, bar + 8, isa::Coords{0, 0});
                  isa::mbarrier_wait<Scope::cta>(bar, 0);
                },
                memory_},
               Check::transaction_bytes,
               {"the signal of a tensor load at", "at mbarrier full[0]",
                "it goes to mbarrier full[1]", "Mend: look which barrier that copy names"});
}

TEST_F(Bytes, AreTheCauseWhereTheirPhaseIsOverWithoutThem) {
  // The long load lands when the phase is over; its reader has waited, as it should.
  const Kernel kernel{one_thread,
                      [&] {
                        const SharedAddress bar = two_barriers(1, "full", "other");
                        const SharedAddress to = isa::shared_base() + 1024;
                        if (here()) isa::mbarrier_arrive_expect(bar, 128);
                        isa::tensor_load(to, short_, bar, isa::Coords{0, 0});
                        isa::tensor_load(to + 1024, long_, bar, isa::Coords{0, 0});
                        isa::mbarrier_wait<Scope::cta>(bar, 0);
                        (void)isa::SharedView<std::uint32_t>{to + 1024}.load();
                      },
                      memory_};
  const Report report = run(kernel, Options{});  // latest
  const auto race = std::find_if(report.findings.begin(), report.findings.end(), [](const auto& f) {
    return f.check == Check::in_flight_access && !f.missing.empty();
  });
  ASSERT_NE(race, report.findings.end()) << report.text();
  expect_contains(race->sentence, "its phase 0 was complete while 256 bytes of copies");
  expect_contains(race->mend, "expect the bytes of every copy that signals full[0], at");
  expect_contains(race->mend, ":" + std::to_string(cause_line));
}

// --- B5 ------------------------------------------------------------------------------------------
TEST_F(Bytes, OfOneStageReadAndAnotherReleased) {
  expect_first(
      {two_warps,
       [&] {
         const SharedAddress bar = two_barriers(64, "full", "empty");
         const SharedAddress to = isa::shared_base() + 1024;
         if (isa::thread_index() == 0) {
           isa::set_role("producer");
           isa::mbarrier_arrive_expect(bar, 128);
           isa::tensor_load(to, short_, bar, isa::Coords{0, 0});
           isa::mbarrier_wait<Scope::cta>(bar + 8, 1);
         }
         if (isa::thread_index() == 32) {
           isa::set_role("consumer");
           isa::mbarrier_wait<Scope::cta>(bar, 0);
           (void)isa::SharedView<std::uint32_t>{to}.load();
           if (here()) isa::mbarrier_arrive<Scope::cta>(bar + 8);
         }
       },
       memory_},
      Check::stale_parity,
      {"the wait of producer", "on mbarrier empty[1]", "which a fresh barrier lets pass",
       "What may complete phase 0: the arrival of consumer", "behind that thread's read at",
       "mbarrier full[0] has announced", "Mend: arrive on empty[0] at"});
}

TEST(Cause, OfAWaitThatMaySlipIsALaneOfItsWarp) {
  expect_first(
      {{.threads = 32, .shared_bytes = 4096},
       [] {
         const SharedAddress bar = two_barriers(32, "turn", "other");
         if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(bar);
         isa::sync_warp();
         if (here()) isa::mbarrier_wait<Scope::cta>(bar, 0);
         if (isa::lane_index() == 31) isa::mbarrier_arrive<Scope::cta>(bar);
       }},
      Check::stale_parity,
      {"for phase 0 of mbarrier turn[0]", "What may complete phase 1: the arrival of thread",
       "lane 31", "Mend: a syncwarp between the wait and the arrival at"});
}

TEST(Cause, OfAnArrivalTooManyIsTheCount) {
  expect_first({{.threads = 32, .shared_bytes = 4096},
                [] {
                  const SharedAddress bar = two_barriers(32, "turn", "other");
                  isa::sync_warp();
                  if (isa::lane_index() < 2 && here()) isa::mbarrier_arrive<Scope::cta>(bar);
                  isa::sync_warp();
                }},
               Check::stale_parity,
               {"arrives on phase 1 of mbarrier turn[0]", "Phase 0 was completed by the arrival of",
                "it counts 1 a phase since", "if more arrive in a phase, count them at"});
}

// --- B7 ------------------------------------------------------------------------------------------
TEST(Cause, OfAWriteThatAPeerDoesNotSeeIsTheArrivalOnTheClusterBarrier) {
  int relaxed = 0;
  const Kernel kernel{two_ctas, [&relaxed] {
                        const isa::SharedView<isa::Words<4>> own{isa::shared_base()};
                        if (isa::lane_index() == 0) own.store(0, {});
                        relaxed = __LINE__ + 1;
                        isa::cluster_arrive_relaxed();
                        isa::cluster_wait();
                        if (isa::lane_index() == 0) {
                          (void)isa::ClusterView<isa::Words<4>>{
                              isa::map_rank(isa::shared_base(), 1 - isa::cluster_rank())}
                              .load();
                        }
                        cluster_sync();
                      }};
  const Report report = run(kernel, Options{});
  ASSERT_TRUE(report.has(Check::weak_scope)) << report.text();
  const std::string said = sentence(kernel, Check::weak_scope);
  expect_contains(said, "goes through the cluster barrier, where the arrival at");
  expect_contains(said, ":" + std::to_string(relaxed) + " is relaxed");
  expect_contains(said, "Mend: cluster_arrive() there");
  EXPECT_EQ(said.find("mbarrier"), std::string::npos) << said;
}

TEST(Cause, OfAWriteThatAPeerDoesNotSeeIsAnArrivalAtCtaScope) {
  const Kernel kernel{two_ctas, [] {
                        const SharedAddress bar = isa::shared_base();
                        if (isa::lane_index() == 0) {
                          make_barrier(bar, 1, {"handed", 2});
                        }
                        cluster_sync();
                        const SharedAddress word = bar + 16;
                        if (isa::lane_index() == 0 && isa::cluster_rank() == 0) {
                          isa::SharedView<isa::Words<4>>{word}.store(0, {});
                          isa::mbarrier_arrive<Scope::cta>(isa::map_rank(bar, 1));
                        }
                        if (isa::lane_index() == 0 && isa::cluster_rank() == 1) {
                          isa::mbarrier_wait<Scope::cluster>(bar, 0);
                          (void)isa::ClusterView<isa::Words<4>>{isa::map_rank(word, 0)}.load();
                        }
                        cluster_sync();
                      }};
  const std::string said = sentence(kernel, Check::weak_scope);
  expect_contains(said, "goes through mbarrier handed[2], where the arrival at");
  expect_contains(said, "is at CTA scope");
  expect_contains(said, "Mend: arrive there with Scope::cluster");
}

// --- D1 ------------------------------------------------------------------------------------------
TEST(Cause, OfAHangIsWhoKeepsTheRegisters) {
  const LaunchShape shape{.threads = 256, .shared_bytes = 0, .registers_per_thread = 128};
  expect_first({shape,
                [] {
                  isa::set_role(isa::warp_index() < 4 ? "loader" : "worker");
                  if (isa::warp_index() >= 4 && here()) isa::increase_registers<216>();
                  isa::sync_threads(256);
                }},
               Check::deadlock,
               {"Cause: worker", "registers that nobody gives: warps 0 to 3", "128 a thread",
                "Mend: decrease_registers()"});
}

TEST(Cause, OfAHangIsAWarpThatGoesPastAMeeting) {
  const LaunchShape shape{.threads = 128, .shared_bytes = 0, .registers_per_thread = 128};
  expect_first({shape,
                [] {
                  if (isa::warp_index() != 2 && here()) isa::decrease_registers<40>();
                  isa::sync_threads(128);
                }},
               Check::deadlock,
               {"others wait at setmaxnreg", "warp 2 went past it to a named barrier",
                "Missing: setmaxnreg by warp 2"});
}

TEST(Cause, OfAHangIsAnArrivalInTheOtherCta) {
  expect_first({two_ctas,
                [] {
                  const SharedAddress bar = isa::shared_base();
                  if (isa::lane_index() == 0) {
                    make_barrier(bar, 1, {"done", 0});
                  }
                  cluster_sync();
                  if (isa::lane_index() == 0 && isa::cluster_rank() == 1) {
                    here(__builtin_LINE() + 1);
                    isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(bar, 1));
                  }
                  if (isa::lane_index() == 0 && isa::cluster_rank() == 0) {
                    isa::mbarrier_wait<Scope::cluster>(bar, 0);
                  }
                  cluster_sync();
                }},
               Check::deadlock,
               {"done[0] of CTA rank 0 lacks 1 of 1 arrivals",
                "went to done[0] of CTA rank 1, where nobody waits", "map_rank"});
}

TEST(Cause, OfAHangIsAnExit) {
  expect_first({two_warps,
                [] {
                  const SharedAddress bar = two_barriers(64, "ready", "other");
                  if (isa::thread_index() == 32) isa::mbarrier_arrive<Scope::cta>(bar);
                  if (isa::thread_index() != 0) return;
                  isa::mbarrier_wait<Scope::cta>(bar, 0);
                  if (here()) isa::mbarrier_wait<Scope::cta>(bar, 1);
                }},
               Check::deadlock,
               {"ready[0] lacks 1 of 1 arrivals of phase 1", "which arrived in the phase before at",
                "has exited"});
}

TEST(Cause, OfAHangIsACountThatNobodyFills) {
  expect_first({two_warps,
                [] {
                  const SharedAddress bar = isa::shared_base();
                  if (isa::thread_index() == 0) {
                    if (here()) isa::mbarrier_init(bar, 2, {"ready", 0});
                    isa::fence_mbarrier_init();
                  }
                  isa::sync_threads(64);
                  isa::set_role(isa::warp_index() == 0 ? "giver" : "taker");
                  if (isa::thread_index() == 0) isa::mbarrier_arrive<Scope::cta>(bar);
                  if (isa::thread_index() == 32) isa::mbarrier_wait<Scope::cta>(bar, 0);
                  isa::sync_threads(64);
                }},
               Check::deadlock,
               {"ready[0] counts 2 arrivals a phase", "has had 1: the arrival of giver",
                "Mend: initialise it at"});
}

TEST(Cause, OfAHangIsANamedBarrierThatCountsTooMany) {
  expect_first({two_warps,
                [] {
                  if (isa::warp_index() == 0 && here()) isa::named_barrier_sync(3, 64);
                }},
               Check::deadlock,
               {"named barrier 3 counts 64 threads, and 32 have come, warp 0",
                "Missing: 32 threads more, or a count of 32"});
}

TEST(Cause, OfAHangIsAFirstWaitForTheWrongParity) {
  expect_first({two_warps,
                [] {
                  const SharedAddress bar =
                      two_barriers(64, "full", "empty", "the producer", "the consumer");
                  isa::set_role(isa::warp_index() == 0 ? "producer" : "consumer");
                  if (isa::thread_index() == 0) {
                    if (here()) isa::mbarrier_wait<Scope::cta>(bar + 8, 0);
                    isa::mbarrier_arrive<Scope::cta>(bar);
                  }
                  if (isa::thread_index() == 32) {
                    isa::mbarrier_wait<Scope::cta>(bar, 0);
                    isa::mbarrier_arrive<Scope::cta>(bar + 8);
                  }
                }},
               Check::deadlock,
               {"each for the other's first arrival", "a wait for parity 1 does",
                "let the wait on empty at", "begin with the other parity"});
}

TEST(Cause, OfAHangIsToldOfTheGridThatComesFirst) {
  const auto first = [] { isa::named_barrier_sync(1, 64); };
  const LaunchShape shape{.threads = 64, .shared_bytes = 0};
  const auto second = [] { (void)isa::wait_for_prerequisites(); };
  const Report report =
      run({GridLaunch{.shape = shape,
                      .allocations = {},
                      .body =
                          [&] {
                            isa::launch_dependents();
                            if (isa::warp_index() == 0) first();
                          },
                      .ended = {}},
           GridLaunch{
               .shape = shape, .allocations = {}, .body = second, .dependent = true, .ended = {}}},
          in_mode(Mode::eager));
  ASSERT_TRUE(report.has(Check::deadlock)) << report.text();
  const std::string said = report.findings.front().sentence;
  expect_contains(said, "Cause: named barrier 1");
  expect_contains(said, "64 threads of the grids behind wait for this one");
  EXPECT_EQ(said.find("waits for the grids before"), std::string::npos) << said;
}

// --- consequences --------------------------------------------------------------------------------
TEST(Cause, OfAnAddressOutOfRangeIsAWordThatNobodyWrote) {
  Memory<std::uint32_t> table(16);
  const Kernel kernel{one_thread,
                      [&] {
                        const isa::SharedView<std::uint32_t> word{isa::shared_base()};
                        const std::uint32_t i = here() ? word.load() : 0;
                        const isa::GlobalView<const std::uint32_t> view{table.data()};
                        (void)view.load(static_cast<std::int64_t>(i));
                      },
                      {table.allocation("table")}};
  expect_first(kernel, Check::uninitialised_read, {"which nothing has written"});
  const Report report = run(kernel, Options{});
  ASSERT_EQ(report.findings.size(), 2U) << report.text();
  EXPECT_EQ(report.findings[1].check, Check::global_bounds);
  EXPECT_TRUE(report.findings[1].follows);
  expect_contains(report.findings[1].sentence, "It may follow from bytes that this run has read");
}

TEST(Cause, OfBytesThatNobodyWroteIsAWaitThatAFreshBarrierLetPass) {
  expect_first({one_thread,
                [] {
                  const SharedAddress bar = two_barriers(1, "full", "other");
                  isa::mbarrier_wait<Scope::cta>(bar, 1);
                  if (here()) (void)isa::SharedView<std::uint32_t>{bar + 64}.load();
                }},
               Check::uninitialised_read,
               {"on mbarrier full[0], was let pass as the barrier was fresh",
                "Mend: look at the parity of that wait"});
}

TEST(Cause, OfARaceMayBeTwoTablesThatOverlap) {
  // 32 words from 0 on, written by each lane, and 8 from 28 on, read by the first eight.
  const Kernel kernel{{.threads = 32, .shared_bytes = 4096}, [] {
                        const isa::SharedView<std::uint32_t> first{isa::shared_base()};
                        const isa::SharedView<std::uint32_t> second{isa::shared_base() + 28 * 4};
                        if (isa::lane_index() < 8) second.store(isa::lane_index(), 1);
                        isa::sync_warp();
                        first.store(isa::lane_index(), 2);
                        if (isa::lane_index() < 8) (void)second.load(isa::lane_index());
                      }};
  const std::string said = sentence(kernel, Check::data_race);
  expect_contains(said, "places of their own: in all");
  expect_contains(said, "overlap in offsets 1136 to 1151");
  expect_contains(said, "look where each begins and ends");
}

// The words of 32 lanes, and a table of four of warp 1 in the midst of them.
TEST(Cause, OfARaceMayBeATableWithinAnother) {
  const Kernel kernel{two_warps, [] {
                        const isa::SharedView<std::uint32_t> all{isa::shared_base()};
                        const isa::SharedView<std::uint32_t> four{isa::shared_base() + 8 * 4};
                        if (isa::warp_index() == 0) all.store(isa::lane_index(), 1);
                        isa::sync_threads(64);
                        if (isa::warp_index() == 0) (void)all.load(isa::lane_index());
                        if (isa::warp_index() == 1 && isa::lane_index() < 4) {
                          four.store(isa::lane_index(), 2);
                        }
                      }};
  const std::string said = sentence(kernel, Check::data_race);
  expect_contains(said, "touches offsets 1024 to 1151");
  expect_contains(said, "overlap in offsets 1056 to 1071");
  expect_contains(said, "look where each begins and ends");
}

TEST(Cause, OfARaceMayBeTwoTablesAtOnePlace) {
  const Kernel kernel{two_warps, [] {
                        const isa::SharedView<std::uint32_t> table{isa::shared_base()};
                        const int lane = isa::lane_index();
                        if (isa::warp_index() == 0 && lane < 8) table.store(lane, 1);
                        if (isa::warp_index() == 1 && lane < 4) table.store(lane, 2);
                      }};
  expect_contains(sentence(kernel, Check::data_race), "look where each begins and ends");
}

TEST(Cause, OfARaceOfOneLineIsTheIndex) {
  const Kernel kernel{{.threads = 32, .shared_bytes = 4096}, [] {
                        const isa::SharedView<std::uint32_t> table{isa::shared_base()};
                        table.store(isa::lane_index() / 2, 1);
                      }};
  const std::string said = sentence(kernel, Check::data_race);
  expect_contains(said, "two threads store to the same bytes from one line");
  expect_contains(said, "Mend: look at the index that each of them computes");
}

TEST(Cause, OfARaceOfOneLineIsTheRaceThatGarblesItsIndex) {
  const Kernel kernel{two_warps, [] {
                        const isa::SharedView<std::uint32_t> index{isa::shared_base()};
                        const isa::SharedView<std::uint32_t> table{isa::shared_base() + 1024};
                        const int thread = isa::thread_index();
                        index.store(thread, 0);
                        isa::sync_threads(64);
                        index.store(thread, static_cast<std::uint32_t>(thread));
                        table.store(static_cast<int>(index.load(63 - thread)), 1);
                      }};
  const Report report = run(kernel, Options{});
  ASSERT_GE(report.findings.size(), 2U);
  EXPECT_FALSE(report.findings.front().follows) << report.text();
  EXPECT_TRUE(report.findings.back().follows) << report.text();
  expect_contains(report.findings.back().sentence, "from one line");
}

// For a table that one line writes a barrier is the mend: before it is read, and before it is
// written again.
TEST(Cause, OfARaceInOneTableIsABarrier) {
  for (const bool before : {true, false}) {
    const Kernel kernel{two_warps, [before] {
                          const isa::SharedView<std::uint32_t> table{isa::shared_base()};
                          for (int round = 0; round < 2; ++round) {
                            if (isa::warp_index() == round) table.store(isa::lane_index(), 1);
                            if (!before) isa::sync_threads(64);
                            if (isa::lane_index() < 4) (void)table.load(isa::lane_index());
                            if (before) isa::sync_threads(64);
                          }
                        }};
    expect_contains(sentence(kernel, Check::data_race),
                    "Mend: let both threads meet at a barrier, or hand");
  }
}

TEST(Cause, OfAStoreInFlightIsACommitByAnotherLane) {
  Memory<std::uint32_t> target(64);
  const TensorMap map = map_of({target.data(), 2, 32, 4, 1, 32});
  expect_first({{.threads = 32, .shared_bytes = 4096},
                [&] {
                  const isa::SharedView<std::uint32_t> buffer{isa::shared_base()};
                  buffer.store(isa::lane_index(), 1);
                  isa::fence_proxy_async_shared();
                  isa::sync_warp();
                  if (isa::lane_index() == 0) {
                    here(__builtin_LINE() + 1);
                    isa::tensor_store(map, buffer.address, isa::Coords{0, 0});
                  }
                  if (isa::lane_index() == 1) isa::bulk_commit();
                  if (isa::lane_index() == 0) isa::bulk_wait_read<0>();
                  isa::sync_warp();
                  buffer.store(isa::lane_index(), 2);
                },
                {target.allocation("target")}},
               Check::undrained_exit,
               {"never committed", "lane 1 committed at", "are lane 0's",
                "Mend: bulk_commit() in the thread that stores"});
}

TEST(Cause, OfARaceIsAFlagThatTheGridBeforeHasLeft) {
  // The flag is left set, and the second grid reads before the word is written again.
  Memory<std::uint32_t> words(4);
  Memory<std::uint32_t> flag(1);
  flag[0] = 0;
  const LaunchShape shape{.ctas = 2, .threads = 1, .shared_bytes = 0};
  const auto body = [&] {
    const isa::GlobalView<std::uint32_t> word{words.data()};
    if (isa::cta_index() == 1) {
      word.store(0, 1);
      isa::flag_set(flag.data(), 1);
    } else {
      isa::flag_wait(flag.data(), 1);
      (void)word.load();
    }
  };
  const GridLaunch grid{.shape = shape,
                        .allocations = {words.allocation("words"), flag.allocation("flag")},
                        .body = body,
                        .ended = stays_zero(flag[0])};
  const Report report = run({grid, grid}, in_mode(Mode::eager));
  ASSERT_TRUE(report.has(Check::data_race)) << report.text();
  EXPECT_EQ(report.findings.front().check, Check::left_behind) << report.text();
}

}  // namespace
}  // namespace warpwright::model
