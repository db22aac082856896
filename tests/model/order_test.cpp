// The order checker: a missing edge is found in every schedule, however benign its timing was,
// and the mended twin of the kernel is clean in every schedule. As are the pairs of tests/corpus,
// so that an edge which is missing there is not missing here again.
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
using Word = isa::SharedView<std::uint32_t>;

// A box of 8 rows of 32 bytes: 256 bytes of shared memory, one 8-byte word of each of 32 lanes.
constexpr int box_bytes = 256;

class OrderTest : public testing::Test {
 protected:
  OrderTest() {
    for (std::size_t i = 0; i < tensor_.size(); ++i) tensor_[i] = static_cast<std::uint16_t>(i);
  }

  Kernel kernel(int threads, const std::function<void()>& body, int ctas = 1, int cluster = 1) {
    return {{.ctas = ctas, .cluster_size = cluster, .threads = threads, .shared_bytes = 4096},
            body,
            {tensor_.allocation("tensor")}};
  }

  // Fills the lane's part of the box at `at`.
  static void fill(SharedAddress at, int lane) {
    isa::SharedView<isa::Words<2>>{at}.store(lane, {1, 2});
  }

  Memory<std::uint16_t> tensor_{128};
  TensorMap map_ =
      map_of({.data = tensor_.data(), .rows = 8, .columns = 16, .box_rows = 8, .box_columns = 16});
};

// --- proxies -------------------------------------------------------------------------------------
TEST_F(OrderTest, MatrixStoresNeedAProxyFenceOfEveryLane) {
  const auto body = [&](int fencing_lanes) {
    const std::uint32_t values[2] = {1, 2};
    isa::store_matrix<2>(
        isa::shared_base() + static_cast<SharedAddress>(isa::lane_index() % 16 * 16), values);
    if (isa::lane_index() < fencing_lanes) isa::fence_proxy_async_shared();
    isa::sync_warp();
    if (isa::thread_index() == 0) {
      store_until_read(map_, isa::shared_base(), isa::Coords{0, 0});
    }
  };
  expect_found(kernel(32, chosen(body, 0)), Check::missing_proxy_fence);
  expect_found(kernel(32, chosen(body, 1)), Check::misplaced_proxy_fence);
  expect_clean(kernel(32, chosen(body, 32)));
}

TEST_F(OrderTest, AFenceByABystanderDoesNotCount) {
  const auto body = [&](int fencing_warp) {
    if (isa::warp_index() == 1) fill(isa::shared_base(), isa::lane_index());
    if (isa::warp_index() == 2) isa::sync_warp();
    if (isa::warp_index() == fencing_warp) isa::fence_proxy_async_shared();
    isa::sync_threads(96);
    if (isa::thread_index() != 0) return;
    store_until_read(map_, isa::shared_base(), isa::Coords{0, 0});
  };
  expect_found(kernel(96, chosen(body, 2)), Check::misplaced_proxy_fence, Shows::unless_eager,
               {Check::missing_proxy_fence});
  expect_clean(kernel(96, chosen(body, 1)));
}

TEST_F(OrderTest, WriteThenLoadIntoItNeedsAProxyFence) {
  const auto body = [&](bool fence) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1, {"full", 0});
    fill(bar + 1024, 0);
    if (fence) isa::fence_proxy_async_shared();
    load_and_wait(box_bytes, bar + 1024, map_, bar, isa::Coords{0, 0});
  };
  expect_found(kernel(1, chosen(body, false)), Check::missing_proxy_fence);
  expect_clean(kernel(1, chosen(body, true)));
}

TEST_F(OrderTest, GlobalMemoryHasItsOwnProxyFence) {
  enum class Fence { none, shared, global };
  const auto body = [&](Fence fence) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1, {"full", 0});
    isa::GlobalView<std::uint16_t>{tensor_.data()}.store(5, 7);
    if (fence == Fence::shared) isa::fence_proxy_async_shared();
    if (fence == Fence::global) isa::fence_proxy_async_global();
    load_and_wait(box_bytes, bar + 1024, map_, bar, isa::Coords{0, 0});
  };
  expect_found(kernel(1, chosen(body, Fence::none)), Check::missing_proxy_fence);
  expect_found(kernel(1, chosen(body, Fence::shared)), Check::missing_proxy_fence);
  expect_clean(kernel(1, chosen(body, Fence::global)));
}

// --- operations that nobody waited for -----------------------------------------------------------
TEST_F(OrderTest, AStageIsReadAfterItsBarrierOnly) {
  // Warp 1 learns from nothing but its luck that the load is over.
  const auto body = [&](bool wait) {
    const SharedAddress bar = isa::shared_base();
    if (isa::thread_index() == 0) {
      make_barrier(bar, 1, {"full", 0});
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      expect_load(box_bytes, bar + 1024, map_, bar, isa::Coords{0, 0});
    }
    isa::named_barrier_sync(1, 64);
    if (wait || isa::warp_index() == 0) isa::mbarrier_wait<Scope::cta>(bar, 0);
    Word{bar + 1024}.load(isa::lane_index());
  };
  expect_found(kernel(64, chosen(body, false)), Check::in_flight_access);
  expect_clean(kernel(64, chosen(body, true)));
  expect_contains(sentence(kernel(64, chosen(body, false)), Check::in_flight_access), "full[0]");
}

TEST_F(OrderTest, ALoadIsWaitedForBeforeTheExit) {
  const auto body = [&](bool wait) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1, {"full", 0});
    expect_load(box_bytes, bar + 1024, map_, bar, isa::Coords{0, 0});
    if (wait) isa::mbarrier_wait<Scope::cta>(bar, 0);
  };
  expect_found(kernel(1, chosen(body, false)), Check::barrier_outlived, Shows::always,
               {Check::dead_barrier, Check::transaction_bytes});
  expect_clean(kernel(1, chosen(body, true)));
}

// --- threads among themselves --------------------------------------------------------------------
TEST_F(OrderTest, WritersMeetTheStoringThread) {
  const auto body = [&](bool meet) {
    if (isa::warp_index() == 1) {
      fill(isa::shared_base(), isa::lane_index());
      isa::fence_proxy_async_shared();
    }
    if (meet) isa::named_barrier_sync(1, 64);
    if (isa::thread_index() != 0) return;
    store_until_read(map_, isa::shared_base(), isa::Coords{0, 0});
  };
  // Where the writers come first it is a race; where they come later, the store reads what nobody
  // has written, and they write what it reads.
  for (const Options& how : schedules()) {
    const Report report = run(kernel(64, chosen(body, false)), how);
    EXPECT_TRUE(report.has(Check::data_race) || report.has(Check::in_flight_access))
        << text(how) << report.text();
  }
  expect_clean(kernel(64, chosen(body, true)));
}

TEST_F(OrderTest, LanesOfAWarpAreThreadsToo) {
  const auto body = [&](bool sync) {
    const Word words{isa::shared_base()};
    words.store(isa::lane_index(), 1);
    isa::sync_warp();
    words.load(31 - isa::lane_index());
    if (sync) isa::sync_warp();
    words.store(isa::lane_index(), 2);
  };
  expect_found(kernel(32, chosen(body, false)), Check::data_race);
  expect_clean(kernel(32, chosen(body, true)));
}

TEST_F(OrderTest, NeighboursInSixteenBytesDoNotRace) {
  expect_clean(kernel(64, [] {
    const isa::SharedView<std::uint16_t> halves{isa::shared_base()};
    for (int i = 0; i < 3; ++i) {
      halves.store(isa::thread_index(), 1);
      halves.load(isa::thread_index());
    }
  }));
  expect_found(kernel(64,
                      [] {
                        const isa::SharedView<std::uint16_t> halves{isa::shared_base()};
                        halves.store(isa::thread_index() / 2, 1);
                      }),
               Check::data_race);
}

TEST_F(OrderTest, ClustersShareNoByteOfTheResult) {
  const auto body = [&](int step) {
    const isa::GlobalView<std::uint16_t> to{tensor_.data()};
    to.store(isa::cta_index() * step + isa::thread_index(), 1);
  };
  expect_found(kernel(32, chosen(body, 31), 4), Check::data_race);
  expect_clean(kernel(32, chosen(body, 32), 4));
}

// --- clusters ------------------------------------------------------------------------------------
TEST_F(OrderTest, ReadsThatAreOverAreHandedBackAtAnyScope) {
  // CTA 1 stores a box that CTA 0's multicast brought, waits until its source is read and hands the
  // memory back for the next load: an arrival at CTA scope is enough. For its own writes it is not.
  const auto body = [&](bool write) {
    const SharedAddress full = isa::shared_base();
    const SharedAddress empty = full + 8;
    const SharedAddress stage = full + 1024;
    const bool first = isa::cluster_rank() == 0;
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(full, 1, {"full", 0});
      isa::mbarrier_init(empty, 1, {"empty", 0});
      isa::fence_mbarrier_init();
    }
    cluster_sync();
    if (isa::thread_index() == 0) {
      for (int i = 0; i < 2; ++i) {
        isa::mbarrier_arrive_expect(full, box_bytes);
        if (first) {
          if (i > 0) isa::mbarrier_wait<Scope::cta>(empty, 0);
          isa::tensor_load_multicast(stage, map_, full, 3, isa::Coords{0, 0});
        }
        isa::mbarrier_wait<Scope::cta>(full, i);
        if (first || i > 0) continue;
        if (write) fill(stage, 0);
        if (write) isa::fence_proxy_async_shared();
        store_until_read(map_, stage, isa::Coords{16, 0});
        isa::mbarrier_arrive<Scope::cta>(isa::map_rank(empty, 0));
      }
    }
    cluster_sync();
  };
  expect_clean(kernel(32, chosen(body, false), 2, 2));
  expect_found(kernel(32, chosen(body, true), 2, 2), Check::weak_scope);
}

TEST_F(OrderTest, AnInitialisationReachesThoseWhoMetTheInitialiser) {
  const auto body = [&](int threads) {
    const SharedAddress bar = isa::shared_base();
    if (isa::thread_index() == 0) isa::mbarrier_init(bar, 1, {"bar", 0});
    if (isa::thread_index() < threads) isa::named_barrier_sync(1, threads);
    if (isa::thread_index() == 64) isa::mbarrier_arrive<Scope::cta>(bar);
  };
  // In these modes threads start in order: the initialisation has happened, but not for warp 2.
  for (const Mode mode : {Mode::eager, Mode::latest}) {
    EXPECT_TRUE(run(kernel(96, chosen(body, 64)), in_mode(mode)).has(Check::barrier_unpublished));
  }
  expect_clean(kernel(96, chosen(body, 96)));
}

// --- the report ----------------------------------------------------------------------------------
TEST_F(OrderTest, AFindingNamesBothAccesses) {
  int store_line = 0;
  const Kernel k = kernel(64, [&] {
    isa::set_role(isa::warp_index() == 0 ? "reader" : "writer");
    const Word word{isa::shared_base() + 32};
    if (isa::thread_index() == 35) {
      store_line = __LINE__ + 1;
      word.store(1, 7);
    }
    if (isa::thread_index() == 35) {
      make_barrier(isa::shared_base(), 1);
    }
    if (isa::thread_index() == 2) word.store(1, 8);
  });
  const Report report = run(k, Options{});
  ASSERT_EQ(report.findings.size(), 1U) << report.text();
  const Finding& f = report.findings[0];
  EXPECT_EQ(f.check, Check::data_race);
  ASSERT_EQ(f.accesses.size(), 2U);
  const Access& first = f.accesses[0];
  const Access& second = f.accesses[1];
  EXPECT_EQ(first.role, "reader");
  EXPECT_EQ(second.role, "writer");
  EXPECT_EQ(second.site.line, store_line);
  EXPECT_EQ(second.warp, 1);
  EXPECT_EQ(second.lane, 3);
  EXPECT_EQ(second.proxy, "generic");
  EXPECT_TRUE(second.write);
  EXPECT_EQ(second.memory, "shared memory of CTA rank 0");
  EXPECT_EQ(second.begin, shared_base_offset + 36);
  EXPECT_EQ(second.bytes, 4);
  EXPECT_FALSE(f.mend.empty());
  expect_contains(f.sentence, "writer (warp 1, lane 3)");
  expect_contains(f.sentence, f.missing);
}

TEST_F(OrderTest, CanBeSwitchedOff) {
  Options off;
  off.check_order = false;
  off.mode = Mode::eager;
  const Kernel racy = kernel(64, [] { Word{isa::shared_base()}.store(0, 1); });
  EXPECT_TRUE(run(racy, off).clean());
  EXPECT_FALSE(run(racy, Options{}).clean());
}

}  // namespace
}  // namespace warpwright::model
