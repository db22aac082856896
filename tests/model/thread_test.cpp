// Threads, warps and barriers as the instructions define them; one seed, one run.
#include <gtest/gtest.h>

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

TEST(ThreadTest, WhoAmI) {
  std::vector<int> seen(6 * 70, 0);
  Options how;
  how.sms = 3;
  const Report report = run({.ctas = 6, .cluster_size = 2, .threads = 70}, how, {}, [&] {
    EXPECT_EQ(isa::cta_count(), 6);
    EXPECT_EQ(isa::cluster_rank(), isa::cta_index() % 2);
    EXPECT_EQ(isa::warp_index(), isa::thread_index() / 32);
    EXPECT_EQ(isa::lane_index(), isa::thread_index() % 32);
    ++seen[index(isa::cta_index() * 70 + isa::thread_index())];
  });
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 6 * 70);
}

TEST(ThreadTest, ResidentClustersAreThoseThatTheSmsHold) {
  // CTAs that never end until all of them run: possible with 4 SMs, not with 3.
  for (const int sms : {3, 4}) {
    int started = 0;
    Options how;
    how.sms = sms;
    const Report report = run({.ctas = 4, .threads = 1, .shared_bytes = 16}, how, {}, [&] {
      ++started;
      const SharedAddress bar = isa::shared_base();
      make_barrier(bar, 1);
      if (started == 4) return;
      isa::mbarrier_wait<Scope::cta>(bar, 0);
    });
    EXPECT_EQ(started, sms == 4 ? 4 : 3);
    EXPECT_TRUE(report.has(Check::deadlock));
  }
}

TEST(ThreadTest, AnInterruptibleEndsARunAndNoOther) {
  const LaunchShape shape{.ctas = 2, .threads = 64};
  int asked = 0;
  int inside = 0;  // threads whose stacks live
  struct Inside {
    int& count;
    ~Inside() { --count; }
  };
  const auto forever = [&] {
    const Inside here{++inside};
    while (true) isa::sync_threads(64);
  };
  {
    const Interruptible outer([] { return true; });
    const Interruptible inner([&] { return ++asked == 3; });
    for (const Mode mode : {Mode::latest, Mode::random, Mode::starve, Mode::timed}) {
      asked = 0;
      EXPECT_THROW((void)run(shape, in_mode(mode), {}, forever), Interrupted);
      EXPECT_EQ(asked, 3);
      EXPECT_EQ(inside, 0);
    }
  }
  int threads = 0;
  EXPECT_TRUE(run(shape, {}, {}, [&] { ++threads; }).clean());
  EXPECT_EQ(threads, 2 * 64);
  EXPECT_EQ(asked, 3);
}

TEST(ThreadTest, SharedMemoryStartsAtAMultipleOf1024WithTheRankOnTop) {
  const Report report = run({.ctas = 4, .cluster_size = 4, .threads = 1}, {}, {}, [] {
    const SharedAddress base = isa::shared_base();
    EXPECT_EQ(base % 1024, 0U);
    EXPECT_EQ(base >> 24, static_cast<unsigned>(isa::cluster_rank()));
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(isa::map_rank(base + 72, rank),
                (static_cast<unsigned>(rank) << 24 | ((base + 72) & 0xffffff)));
    }
    isa::cluster_arrive();
    isa::cluster_wait();
  });
  EXPECT_TRUE(report.clean()) << report.text();
}

TEST(WarpTest, OneLaneIsElected) {
  int others = 0;
  for (const Options& how : schedules()) {
    std::vector<int> elected;
    (void)run({.threads = 96}, how, {}, [&] {
      const bool one = isa::elect_one();
      EXPECT_EQ(isa::elect_one(), one);
      if (one) elected.push_back(isa::thread_index());
    });
    std::sort(elected.begin(), elected.end());
    // The ISA says one lane, the same each time, not which: schedules that try what is allowed
    // elect another than the lowest.
    ASSERT_EQ(elected.size(), 3U);
    EXPECT_EQ(elected[1], elected[0] + 32);
    EXPECT_EQ(elected[2], elected[0] + 64);
    if (how.mode == Mode::eager || how.mode == Mode::latest) {
      EXPECT_EQ(elected[0], 0);
    } else {
      others += elected[0] != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(others, 0);
}

TEST(WarpTest, Shuffle) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    (void)run({.threads = 64}, how, {}, [&] {
      const auto value = static_cast<std::uint32_t>(1000 + isa::thread_index());
      for (int d = 0; d < 32; d += 5) {
        const int source = (isa::lane_index() * 3 + d) % 32;
        EXPECT_EQ(isa::shuffle(value, source),
                  static_cast<std::uint32_t>(1000 + isa::warp_index() * 32 + source));
      }
      EXPECT_EQ(isa::shuffle(value, 35), static_cast<std::uint32_t>(1003 + isa::warp_index() * 32));
    });
  }
}

template <int N, bool LoadTransposed, bool StoreTransposed>
void round_trip() {
  // Element (r, c) of matrix j is 100 j + 8 r + c. Rows lie in a scattered order, 16 bytes each.
  const auto row_address = [](SharedAddress base, int j, int r) {
    return base + static_cast<SharedAddress>((5 * (8 * j + r)) % 32) * 16;
  };
  for (const Options& how : {schedules()[0], schedules()[1], schedules()[2]}) {
    SCOPED_TRACE(text(how));
    const Report report = run({.threads = 32, .shared_bytes = 2048}, how, {}, [&] {
      const SharedAddress in = isa::shared_base();
      const SharedAddress out = in + 512;
      const int lane = isa::lane_index();
      for (int i = lane; i < 64 * N; i += 32) {
        const int j = i / 64;
        const int r = i / 8 % 8;
        const int c = i % 8;
        isa::SharedView<std::uint16_t>{row_address(in, j, r)}.store(
            c, static_cast<std::uint16_t>(100 * j + 8 * r + c));
      }
      isa::sync_warp();
      // Lanes past 8 N give addresses that nobody may read.
      const bool asked = lane < 8 * N;
      std::uint32_t to[N];
      isa::load_matrix<N, LoadTransposed>(asked ? row_address(in, lane / 8, lane % 8) : 0, to);
      for (int j = 0; j < N; ++j) {
        for (int e = 0; e < 2; ++e) {
          const int x = lane / 4;
          const int y = 2 * (lane % 4) + e;
          const int want = 100 * j + (LoadTransposed ? 8 * y + x : 8 * x + y);
          EXPECT_EQ(static_cast<int>(to[j] >> (16 * e) & 0xffff), want) << lane;
        }
      }
      isa::store_matrix<N, StoreTransposed>(asked ? row_address(out, lane / 8, lane % 8) : 0, to);
      isa::sync_warp();
      for (int i = lane; i < 64 * N; i += 32) {
        const int j = i / 64;
        const int r = i / 8 % 8;
        const int c = i % 8;
        const bool turned = LoadTransposed != StoreTransposed;
        EXPECT_EQ(isa::SharedView<std::uint16_t>{row_address(out, j, r)}.load(c),
                  100 * j + (turned ? 8 * c + r : 8 * r + c));
      }
    });
    EXPECT_TRUE(report.clean()) << report.text();
  }
}

TEST(WarpTest, MatricesOutAndIn) {
  round_trip<1, false, false>();
  round_trip<2, false, false>();
  round_trip<4, false, false>();
  round_trip<1, true, true>();
  round_trip<2, false, true>();
  round_trip<4, true, false>();
  round_trip<4, true, true>();
}

// Element (r, c) of matrix j is some code; rows lie in a scattered order, the rest of their 16
// bytes unwritten.
template <int N, int Bits>
void load_padded() {
  const auto code = [](int j, int r, int c) { return (7 * j + 5 * r + 3 * c) % (1 << Bits); };
  for (const Options& how : {schedules()[0], schedules()[1], schedules()[2]}) {
    SCOPED_TRACE(text(how));
    const Report report = run({.threads = 32, .shared_bytes = 1024}, how, {}, [&] {
      const int lane = isa::lane_index();
      const auto row = [](int of) {
        return isa::shared_base() + static_cast<SharedAddress>(5 * of % 32 * 16);
      };
      const int j = lane / 8;
      const int r = lane % 8;
      for (int byte = 0; j < N && byte < 2 * Bits; ++byte) {
        int value = 0;
        for (int bit = 0; bit < 8; ++bit) {
          const int at = 8 * byte + bit;
          value |= (code(j, r, at / Bits) >> at % Bits & 1) << bit;
        }
        isa::SharedView<std::uint8_t>{row(lane)}.store(byte, static_cast<std::uint8_t>(value));
      }
      isa::sync_warp();
      std::uint32_t to[N];
      isa::load_matrix_padded<N, Bits>(lane < 8 * N ? row(lane) : 0, to);
      for (int m = 0; m < N; ++m) {
        for (int e = 0; e < 4; ++e) {
          EXPECT_EQ(static_cast<int>(to[m] >> 8 * e & 0xff), code(m, lane / 4, lane % 4 * 4 + e));
        }
      }
    });
    EXPECT_TRUE(report.clean()) << report.text();
  }
}

TEST(WarpTest, PaddedElementsBecomeBytes) {
  load_padded<1, 4>();
  load_padded<2, 6>();
  load_padded<4, 4>();
  load_padded<4, 6>();
  expect_found({{.threads = 32, .shared_bytes = 512},
                [] {
                  std::uint32_t to[4];
                  isa::load_matrix_padded<4, 6>(isa::shared_base() + 16 * isa::lane_index(), to);
                }},
               Check::uninitialised_read);
}

TEST(WarpTest, MatrixRowsAre16ByteAligned) {
  expect_found({{.threads = 32, .shared_bytes = 1024},
                [] {
                  std::uint32_t from[1] = {};
                  isa::store_matrix<1>(isa::shared_base() + 8, from);
                }},
               Check::misaligned);
}

TEST(BarrierTest, AFreshBarrierHasCompletedParityOne) {
  expect_clean({{.threads = 1, .shared_bytes = 64}, [] {
                  const SharedAddress bar = isa::shared_base();
                  make_barrier(bar, 1);
                  isa::mbarrier_wait<Scope::cta>(bar, 1);
                  EXPECT_TRUE(isa::mbarrier_test_wait<Scope::cta>(bar, 1));
                  EXPECT_FALSE(isa::mbarrier_test_wait<Scope::cta>(bar, 0));
                  for (int phase = 0; phase < 5; ++phase) {
                    isa::mbarrier_arrive<Scope::cta>(bar);
                    EXPECT_TRUE(isa::mbarrier_test_wait<Scope::cta>(bar, phase & 1));
                    EXPECT_FALSE(isa::mbarrier_test_wait<Scope::cta>(bar, ~phase & 1));
                  }
                }});
}

TEST(BarrierTest, TryWaitMayAnswerFalse) {
  // The phase is complete. Only mode random takes the liberty, and only of try_wait.
  for (Options how : schedules()) {
    for (const bool allowed : {false, true}) {
      SCOPED_TRACE(text(how));
      how.spurious_try_wait = allowed;
      int refusals = 0;
      const Report report = run({.threads = 1, .shared_bytes = 64}, how, {}, [&] {
        const SharedAddress bar = isa::shared_base();
        make_barrier(bar, 1);
        isa::mbarrier_arrive<Scope::cta>(bar);
        for (int i = 0; i < 100; ++i) {
          EXPECT_TRUE(isa::mbarrier_test_wait<Scope::cta>(bar, 0));
          if (!isa::mbarrier_try_wait<Scope::cta>(bar, 0)) ++refusals;
        }
      });
      EXPECT_TRUE(report.clean()) << report.text();
      EXPECT_EQ(refusals > 0, allowed && how.mode == Mode::random);
      EXPECT_LT(refusals, 60);
    }
  }
}

TEST(BarrierTest, NamedBarriersHandOver) {
  // Warp 0 writes and arrives, warps 1 and 2 wait; again and again, ids in turn.
  expect_clean({{.threads = 96, .shared_bytes = 64}, [] {
                  const isa::SharedView<std::uint32_t> word{isa::shared_base()};
                  for (int i = 0; i < 20; ++i) {
                    const int id = 2 + i % 3;
                    if (isa::warp_index() == 0) {
                      if (isa::lane_index() == 0) word.store(i % 4, static_cast<std::uint32_t>(i));
                      isa::named_barrier_arrive(id, 96);
                      isa::named_barrier_sync(7, 96);
                    } else {
                      isa::named_barrier_sync(id, 96);
                      EXPECT_EQ(word.load(i % 4), static_cast<std::uint32_t>(i));
                      isa::named_barrier_sync(7, 96);
                    }
                  }
                }});
}

TEST(BarrierTest, TheClusterBarrierSeparatesRounds) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    int inside = 0;
    const Report report = run({.ctas = 4, .cluster_size = 4, .threads = 33}, how, {}, [&] {
      for (int round = 1; round <= 6; ++round) {
        ++inside;
        isa::cluster_arrive();
        isa::cluster_wait();
        EXPECT_EQ(inside, round * 4 * 33);
        isa::cluster_arrive();
        isa::cluster_wait();
      }
    });
    EXPECT_TRUE(report.clean()) << report.text();
  }
}

// A ring of copies through three CTAs of a cluster, with everything that takes chances.
struct Outcome {
  std::string report;
  std::vector<std::uint32_t> target;
  Statistics statistics;
};

Outcome relay(const Options& how) {
  Memory<std::uint32_t> source(64 * 8);
  Memory<std::uint32_t> target(64 * 8);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint32_t>(i);
  const TensorMap in = map_of({source.data(), 64, 8, 4, 1, 8});
  const TensorMap out = map_of({target.data(), 64, 8, 4, 1, 8});
  const LaunchShape shape{.ctas = 8, .cluster_size = 2, .threads = 64, .shared_bytes = 2048};
  const std::vector<Allocation> memory = {source.allocation("source", false),
                                          target.allocation("target")};
  const Report report = run(shape, how, memory, [&] {
    const SharedAddress bar = isa::shared_base();
    const SharedAddress buffer = bar + 1024;
    if (isa::thread_index() == 0) {
      make_barrier(bar, 1);
    }
    isa::sync_threads(64);
    for (int i = 0; i < 8; ++i) {
      const int row = isa::cta_index() * 8 + i;
      if (isa::thread_index() == 0) {
        expect_load(32, buffer, in, bar, isa::Coords{0, row});
      }
      while (!isa::mbarrier_try_wait<Scope::cta>(bar, i & 1))
        isa::mbarrier_wait<Scope::cta>(bar, i & 1);
      const isa::SharedView<std::uint32_t> view{buffer};
      if (isa::thread_index() < 8) {
        view.store(isa::thread_index(), view.load(isa::thread_index()) * 3);
      }
      isa::fence_proxy_async_shared();
      isa::sync_threads(64);
      if (isa::thread_index() == 0) {
        store_until_read(out, buffer, isa::Coords{0, row});
      }
      isa::sync_threads(64);
    }
    isa::count_tile();
  });
  return {report.text(), {target.data(), target.data() + target.size()}, report.statistics};
}

TEST(DeterminismTest, OneSeedOneRun) {
  const Outcome plain = relay(Options{});
  EXPECT_EQ(plain.report, "");
  EXPECT_EQ(plain.statistics.tiles, 8 * 64);
  EXPECT_EQ(plain.statistics.copies, 128);
  for (std::size_t i = 0; i < plain.target.size(); ++i) EXPECT_EQ(plain.target[i], 3 * i);
  std::vector<std::int64_t> switches;
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    const Outcome first = relay(how);
    const Outcome second = relay(how);
    EXPECT_EQ(first.report, "");
    EXPECT_EQ(second.report, "");
    EXPECT_EQ(first.target, plain.target);
    EXPECT_EQ(first.statistics.fiber_switches, second.statistics.fiber_switches);
    EXPECT_EQ(first.statistics.barrier_waits, second.statistics.barrier_waits);
    EXPECT_EQ(first.statistics.copied_bytes, second.statistics.copied_bytes);
    switches.push_back(first.statistics.fiber_switches);
  }
  // Different seeds are different runs.
  std::sort(switches.begin(), switches.end());
  EXPECT_GT(std::unique(switches.begin(), switches.end()) - switches.begin(), 5);
}

TEST(DeterminismTest, OneSeedOneReport) {
  const Kernel guilty{{.threads = 64, .shared_bytes = 256}, [] {
                        const isa::SharedView<std::uint32_t> view{isa::shared_base()};
                        isa::sync_warp();
                        if (isa::thread_index() % 3 == 0) (void)view.load(isa::thread_index() % 7);
                        isa::sync_warp();
                        if (isa::thread_index() == 40) isa::named_barrier_sync(3, 64);
                      }};
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    EXPECT_EQ(run(guilty, how).text(), run(guilty, how).text());
  }
}

TEST(DeterminismTest, MachinesMayBeNested) {
  int inner = 0;
  const Report report = run({.threads = 2}, {}, {}, [&] {
    const Report nested = run({.threads = 3}, {}, {}, [&] { inner += isa::thread_index(); });
    EXPECT_TRUE(nested.clean());
    EXPECT_LT(isa::thread_index(), 2);
  });
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(inner, 2 * 3);
}

TEST(DeterminismTest, InstructionsOutsideAKernelThrow) {
  EXPECT_THROW((void)isa::thread_index(), std::logic_error);
}

}  // namespace
}  // namespace warpwright::model
