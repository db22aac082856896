// Numbers that CTAs draw from a word in global memory, and the stores by which one CTA tells the
// others of its cluster.
#include "warpwright/isa/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/model/harness.h"
#include "tests/model/mutants.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright::model {
namespace {

// What is wrong with the kernels below.
enum class Flaw { none, no_reset, no_grid_wait, plain_reset, no_wait, no_hand_back };

constexpr int given = 7;
constexpr int drawers = 3;

// Three CTAs: each does the number of its own index, and then those that it draws.
class DrawTest : public testing::Test {
 protected:
  Kernel kernel(Flaw bug) {
    return {.shape = {.ctas = drawers, .threads = 1},
            .body = [this, bug] { work(bug); },
            .memory = {done_.allocation("done"), counter_.allocation("counter")},
            .dependent = true,
            .ended = stays_zero(*counter_.data()),
            .begin =
                [this] {
                  counter_[0] = 0;
                  std::fill_n(done_.data(), done_.size(), 0U);
                }};
  }

  void work(Flaw bug) {
    isa::set_role("worker");
    // Taken from another thread of the program: this one has not waited.
    if (bug != Flaw::no_grid_wait || !proof_) proof_ = isa::wait_for_prerequisites();
    const unsigned last = bug == Flaw::no_reset ? given : given - 1;
    for (int at = isa::cta_index(); at < given;) {
      isa::GlobalView<std::uint32_t>{done_.data()}.store(at, 1);
      const std::uint32_t drawn = isa::draw(counter_.data(), last, *proof_);
      at = drawers + static_cast<int>(drawn);
      if (bug == Flaw::plain_reset && drawn + 1 == given) {
        isa::GlobalView<std::uint32_t>{counter_.data()}.store(0, 0);
      }
    }
  }

  [[nodiscard]] bool all_done() {
    return std::all_of(done_.data(), done_.data() + given, [](std::uint32_t d) { return d == 1; });
  }

  std::optional<isa::Prerequisites> proof_;
  Memory<std::uint32_t> counter_{1};
  Memory<std::uint32_t> done_{given};
};

TEST_F(DrawTest, EveryNumberIsDrawnOnceAndTheWordIsAsItWas) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    const Report report = run(kernel(Flaw::none), how);
    EXPECT_TRUE(report.clean()) << report.text();  // two that do one number would race
    EXPECT_TRUE(all_done());
    EXPECT_EQ(*counter_.data(), 0U);
  }
}

TEST_F(DrawTest, DrawsBeforeTheGridBeforeHasEnded) {
  const Report report = run(kernel(Flaw::no_grid_wait), Options{});
  EXPECT_TRUE(report.has(Check::before_prerequisites)) << report.text();
  expect_contains(report.text(), "griddepcontrol.wait");
}

TEST_F(DrawTest, AWordThatIsNotAsItWasAndAPlainStoreThatRacesWithDraws) {
  expect_found(kernel(Flaw::no_reset), Check::left_behind);
  expect_found(kernel(Flaw::plain_reset), Check::data_race);
}

TEST_F(DrawTest, MutantsAreKilled) {
  EXPECT_EQ(killed_of(SyncKind::draw, kernel(Flaw::none), [&] { return all_done(); }), 4);
}

// Nothing but initialisations is handed on.
void meet() {
  isa::cluster_arrive_relaxed();
  isa::cluster_wait();
}

// CTA 0 of a cluster of two tells CTA 1 a word, twice, at one place.
Kernel teller(Flaw bug, bool& heard) {
  return {{.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 64}, [bug, &heard] {
            const isa::SharedAddress base = isa::shared_base();
            const isa::SharedAddress empty = base + 8;
            const isa::SharedAddress place = base + 16;
            isa::mbarrier_init(base, 1, {"full"});
            isa::mbarrier_init(empty, 1, {"empty"});
            isa::fence_mbarrier_init();
            meet();
            for (int round = 0; round < 2; ++round) {
              if (isa::cluster_rank() == 0) {
                isa::set_role("teller");
                if (round > 0 && bug != Flaw::no_hand_back) {
                  isa::mbarrier_wait<isa::Scope::cta>(empty, 0, {"empty"});
                }
                const auto word = static_cast<std::uint32_t>(5 + round);
                isa::store_async(isa::map_rank(place, 1), {{word}}, isa::map_rank(base, 1));
              } else {
                isa::set_role("listener");
                isa::mbarrier_arrive_expect(base, 16);
                if (bug != Flaw::no_wait) {
                  isa::mbarrier_wait<isa::Scope::cta>(base, round, {"full"});
                }
                const std::uint32_t word = isa::SharedView<std::uint32_t>{place}.load();
                if (word != static_cast<std::uint32_t>(5 + round)) heard = false;
                if (round == 0) isa::mbarrier_arrive<isa::Scope::cta>(isa::map_rank(empty, 0));
              }
            }
            meet();
          }};
}

TEST(StoreAsync, TellsAPeer) {
  bool heard = true;
  expect_clean(teller(Flaw::none, heard));
  // The write is of the generic proxy: no fence is missing after the read.
  for (Options how : schedules()) {
    how.fence_after_reads = true;
    must_be_clean(run(teller(Flaw::none, heard), how));
  }
  EXPECT_TRUE(heard);
}

TEST(StoreAsync, AWordThatIsReadTooEarly) {
  bool heard = true;
  const Report report = run(teller(Flaw::no_wait, heard), Options{});
  EXPECT_TRUE(report.has(Check::in_flight_access) || report.has(Check::data_race) ||
              report.has(Check::uninitialised_read))
      << report.text();
  EXPECT_FALSE(report.clean());
}

TEST(StoreAsync, APlaceThatIsUsedAgainTooEarly) {
  bool heard = true;
  int found = 0;
  for (const Options& how : schedules()) {
    found += run(teller(Flaw::no_hand_back, heard), how).clean() ? 0 : 1;
  }
  EXPECT_EQ(found, static_cast<int>(schedules().size()));
}

TEST(StoreAsync, BytesAndBarrierAreOfOneCta) {
  const Kernel bad{{.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 64}, [] {
                     make_barrier(isa::shared_base(), 1, {"full"});
                     cluster_sync();
                     if (isa::cluster_rank() == 0) {
                       isa::store_async(isa::map_rank(isa::shared_base() + 16, 1), {{1}},
                                        isa::shared_base());
                     }
                     cluster_sync();
                   }};
  EXPECT_TRUE(run(bad, Options{}).has(Check::shared_bounds));
}

// Seen on an H200: an illegal instruction without a cluster dimension, legal with one of 1.
TEST(StoreAsync, NeedsALaunchOfClusters) {
  for (const bool in_clusters : {false, true}) {
    const Kernel alone{{.in_clusters = in_clusters, .threads = 1, .shared_bytes = 64}, [] {
                         const isa::SharedAddress full = isa::shared_base();
                         make_barrier(full, 1, {"full"});
                         isa::mbarrier_arrive_expect(full, 16);
                         isa::store_async(isa::map_rank(full + 16, 0), {{1}},
                                          isa::map_rank(full, 0));
                         isa::mbarrier_wait<isa::Scope::cta>(full, 0, {"full"});
                       }};
    const Report report = run(alone, Options{});
    EXPECT_EQ(report.clean(), in_clusters) << report.text();
    EXPECT_EQ(report.has(Check::shared_bounds), !in_clusters);
  }
}

TEST(StoreAsync, MutantsAreKilledOrTheSame) {
  bool heard = true;
  EXPECT_GT(killed_or_same(teller(Flaw::none, heard)), 10);
}

}  // namespace
}  // namespace warpwright::model
