// Bugs of CLC: a persistent kernel that takes its tiles from clusters not yet launched.
#include "warpwright/isa/clc.h"

#include <string>

#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

SharedAddress answer(int i = 0) {
  return data() + static_cast<SharedAddress>(i) * 16;
}

// Eight CTAs, two of them resident: each adds one to the element of every tile it does.
struct Grid {
  Buffer<std::uint32_t> done{"done", 8};
  Launch launch{.ctas = 8, .threads = 32, .shared_bytes = 4096, .sms = 2};

  Grid() {
    for (std::uint32_t& x : done) x = 0;
    launch.verify = [this] {
      for (const std::uint32_t x : done) {
        if (x != 1) return std::string("a tile was done ") + std::to_string(x) + " times";
      }
      return std::string();
    };
  }
};

struct Ways {
  bool fence = true;  // after the answer has been read
  bool look = true;   // at is_canceled before the first CTA is asked for
  bool wait = true;   // for the answer
  int requests = 1;   // into one place
};

// One thread a CTA asks, reads and works.
auto worker(Grid& grid, Ways ways) {
  return [&grid, ways] {
    if (isa::thread_index() != 0) return;
    make_barrier(barrier(), 1, {"answer"});
    const isa::GlobalView<std::uint32_t> done{grid.done.data()};
    int tile = isa::cta_index();
    for (int round = 0;; ++round) {
      isa::mbarrier_arrive_expect(barrier(), 16 * ways.requests);
      for (int i = 0; i < ways.requests; ++i) isa::try_cancel(answer(), barrier());
      done.store(tile, done.load(tile) + 1);
      if (ways.wait) isa::mbarrier_wait<Scope::cta>(barrier(), round & 1, {"answer"});
      const isa::LaunchAnswer got = isa::load_launch_answer(answer());
      if (!ways.wait) isa::mbarrier_wait<Scope::cta>(barrier(), round & 1, {"answer"});
      if (ways.fence) isa::fence_proxy_async_shared();
      if (ways.look && !isa::cluster_canceled(got)) return;
      tile = isa::canceled_first_cta(got);
    }
  };
}

TEST(Clc, TakesEveryTileOnce) {
  Grid grid;
  EXPECT_CLEAN(run(worker(grid, {}), grid.launch, grid.done));
}

// Another grid holds one of the SMs: the others take its share.
TEST(Clc, TakesEveryTileOnceBesideAnotherGrid) {
  Grid grid;
  grid.launch.occupied_sm = 1;
  EXPECT_CLEAN(run(worker(grid, {}), grid.launch, grid.done));
}

// Asks again after the queue was seen to be empty (undefined).
// PTX ISA 9.7.13.17
TEST(Clc, AsksAgainAfterARefusal) {
  const auto kernel = [&] {
    if (isa::thread_index() != 0) return;
    make_barrier(barrier(), 1, {"answer"});
    for (int round = 0; round < 2; ++round) {
      isa::mbarrier_arrive_expect(barrier(), 16);
      isa::try_cancel(answer(), barrier());
      isa::mbarrier_wait<Scope::cta>(barrier(), round, {"answer"});
      (void)isa::cluster_canceled(isa::load_launch_answer(answer()));
      isa::fence_proxy_async_shared();
    }
  };
  const Launch one{.ctas = 1, .threads = 32, .shared_bytes = 4096};
  const Launch two{.ctas = 3, .threads = 32, .shared_bytes = 4096, .sms = 1};
  expect_guilty(run(kernel, one), Only{Check::clc});
  EXPECT_CLEAN(run(kernel, two));
}

// Takes the first CTA of an answer that said no.
TEST(Clc, FirstCtaOfARefusal) {
  Grid grid;
  expect_guilty(run(worker(grid, {.look = false}), grid.launch, grid.done), Only{Check::clc});
}

// A second request overwrites an answer that nobody has read: its tile is lost.
// Triton ConSan (test_clc_double_try_cancel_result_overwrite)
TEST(Clc, TwoRequestsIntoOnePlace) {
  Grid grid;
  EXPECT_FINDING(run(worker(grid, {.requests = 2}), grid.launch, grid.done), Check::clc);
}

// The answer is read before the barrier says that it is there.
TEST(Clc, AnswerReadTooEarly) {
  Grid grid;
  EXPECT_FINDING(run(worker(grid, {.wait = false}), grid.launch, grid.done),
                 Check::in_flight_access);
}

// The next request writes over an answer that was read, without a proxy fence. For answers that is
// a mistake without --strict, too.
TEST(Clc, NoFenceBetweenReadAndRequest) {
  Grid grid;
  expect_guilty(run(worker(grid, {.fence = false}), grid.launch, grid.done),
                Only{Check::read_then_async_write});
  Grid mended;
  EXPECT_CLEAN(run(worker(mended, {}), mended.launch, mended.done));
}

// One request for the cluster: every CTA expects its own 16 bytes, and none may have left.
TEST(Clc, AnswersForTheWholeCluster) {
  const auto kernel = [](bool all_expect, bool one_leaves) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 1, {"answer"});
    }
    cluster_sync();
    if (isa::thread_index() != 0) return;
    const bool first = isa::cluster_rank() == 0;
    if (one_leaves && !first) return;
    if (first || all_expect) isa::mbarrier_arrive_expect(barrier(), 16);
    if (first) isa::try_cancel_multicast(answer(), barrier());
    if (first || all_expect) isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"answer"});
    if (first || all_expect) (void)isa::cluster_canceled(isa::load_launch_answer(answer()));
  };
  const Launch two{.ctas = 2, .cluster_size = 2, .threads = 32, .shared_bytes = 4096};
  expect_guilty(run(chosen(kernel, false, false), two),
                Only{Check::transaction_bytes, Check::barrier_outlived, Check::cluster_lifetime});
  expect_guilty(run(chosen(kernel, true, true), two),
                Only{Check::cluster_lifetime, Check::barrier_outlived, Check::transaction_bytes});
  EXPECT_CLEAN(run(chosen(kernel, true, false), two));
}

// A scheduler warp writes the tile it took into a word of shared memory, and all other warps read
// it there. The word is written again before each has read it: nobody says so, or says so ahead of
// the read, or one reader is not counted. Warps then work on different tiles, or one of them
// leaves. tile-ai/tilelang #2410, #2420, #2423 (released before it was read; one store warp of four
// counted) and NVlabs/cuda-oxide #1066 (no answer from the readers at all), both SM100:
// https://github.com/tile-ai/tilelang/pull/2423, https://github.com/NVlabs/cuda-oxide/pull/1066
enum class Taken { nobody_says, before_the_read, one_not_counted, after_the_read };
auto mailbox(Grid& grid, Taken taken) {
  return [&grid, taken] {
    const int lane = isa::lane_index(), warp = isa::warp_index();
    const SharedAddress got = barrier(0), written = barrier(1), read = barrier(2);
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(got, 1, {"answer"});
      isa::mbarrier_init(written, 1, {"written"}, "the scheduler");
      isa::mbarrier_init(read, taken == Taken::one_not_counted ? 1 : 2, {"read"}, "the workers");
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(96);
    const isa::SharedView<int> word{data(1)};
    if (warp == 0) {
      int tile = isa::cta_index();
      for (int round = 0; lane == 0; ++round) {
        isa::set_role("scheduler");
        if (taken != Taken::nobody_says) isa::mbarrier_wait<Scope::cta>(read, (round & 1) ^ 1);
        word.store(0, tile);
        isa::mbarrier_arrive<Scope::cta>(written);
        if (tile < 0) return;
        isa::mbarrier_arrive_expect(got, 16);
        isa::try_cancel(answer(), got);
        isa::mbarrier_wait<Scope::cta>(got, round & 1, {"answer"});
        const isa::LaunchAnswer next = isa::load_launch_answer(answer());
        isa::fence_proxy_async_shared();
        tile = isa::cluster_canceled(next) ? isa::canceled_first_cta(next) : -1;
      }
      return;
    }
    isa::set_role(warp == 1 ? "multiplier" : "storer");
    const isa::GlobalView<std::uint32_t> done{grid.done.data()};
    for (int round = 0;; ++round) {
      isa::mbarrier_wait<Scope::cta>(written, round & 1, {"written"});
      const bool tells = lane == 0 && !(taken == Taken::one_not_counted && warp == 2);
      if (tells && taken == Taken::before_the_read) isa::mbarrier_arrive<Scope::cta>(read);
      const int tile = word.load();
      isa::sync_warp();
      if (tells && taken != Taken::before_the_read) isa::mbarrier_arrive<Scope::cta>(read);
      if (tile < 0) return;
      if (warp == 2 && lane == 0) done.store(tile, done.load(tile) + 1);
    }
  };
}

TEST(Clc, ATileIsWrittenOverBeforeAllHaveReadIt) {
  const auto outcome = [](Taken taken) {
    Grid grid;
    grid.launch.threads = 96;
    return run(mailbox(grid, taken), grid.launch, grid.done);
  };
  for (const Taken taken : {Taken::nobody_says, Taken::before_the_read, Taken::one_not_counted}) {
    EXPECT_FINDING(outcome(taken), Check::data_race);
  }
  EXPECT_CLEAN(outcome(Taken::after_the_read));
}

}  // namespace
}  // namespace warpwright::corpus
