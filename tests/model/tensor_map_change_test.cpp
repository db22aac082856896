// Tensor maps that kernels change: what the instructions do, and check P4. Each rule has a kernel
// that breaks it and one that keeps it.
#include <gtest/gtest.h>

#include "tests/model/harness.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"

namespace warpwright::model {
namespace {

using isa::Scope;
using isa::SharedAddress;

constexpr int changed_box_bytes = 256;  // 8 rows of 16 16-bit elements

// Slots for maps at multiples of 128 bytes of global memory.
class Slots {
 public:
  explicit Slots(std::size_t count) : memory_(128 * count + 128) {}
  TensorMap* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    return reinterpret_cast<TensorMap*>((at + 127) / 128 * 128);
  }
  Allocation allocation(bool writable = true) {
    return {memory_.data(), static_cast<std::int64_t>(memory_.size()), "maps", writable};
  }

 private:
  Memory<unsigned char> memory_;
};

// A tensor of three boxes, one below the other. Kernels make maps of the box in the middle.
class MapChangeTest : public testing::Test {
 protected:
  MapChangeTest() {
    for (std::size_t i = 0; i < tensor_.size(); ++i) tensor_[i] = static_cast<std::uint16_t>(i);
  }

  Kernel kernel(int threads, const std::function<void()>& body) {
    return {{.threads = threads, .shared_bytes = 4096},
            body,
            {tensor_.allocation("tensor"), slots_.allocation()}};
  }

  static SharedAddress map_at() { return isa::shared_base(); }
  static SharedAddress box_at() { return isa::shared_base() + 1024; }
  static SharedAddress barrier() { return isa::shared_base() + 512; }

  // One warp writes the whole tensor's map to shared memory.
  void copy_template() const {
    if (isa::lane_index() < 16) {
      const auto lane = isa::lane_index();
      isa::SharedView<std::uint64_t>{map_at()}.store(lane, map_.opaque[lane]);
    }
  }
  // The lane changes it into one of `rows` rows from row 8 on.
  void narrow(std::uint32_t rows) {
    isa::tensormap_replace_global_address(map_at(), tensor_.data() + 8 * 16);
    isa::tensormap_replace_global_dim<1>(map_at(), rows);
  }
  // All of it: a map of rows 8 to 8 + rows in slot `slot`, by one warp.
  void publish(std::uint32_t rows, int slot = 0) {
    copy_template();
    isa::sync_warp();
    if (isa::lane_index() == 0) narrow(rows);
    isa::sync_warp();
    isa::tensormap_cp_fenceproxy(slots_.data() + slot, map_at());
    isa::sync_warp();
  }
  void acquire(int slot = 0) { isa::fence_proxy_tensormap_acquire(slots_.data()[slot]); }
  void start_load(int slot = 0) {
    expect_load(changed_box_bytes, box_at(), slots_.data()[slot], barrier(), isa::Coords{0, 0});
  }
  static void wait(int parity = 0) { isa::mbarrier_wait<Scope::cta>(barrier(), parity); }

  Memory<std::uint16_t> tensor_{3 * 128};
  Slots slots_{2};
  TensorMap map_ =
      map_of({.data = tensor_.data(), .rows = 24, .columns = 16, .box_rows = 8, .box_columns = 16});
};

// --- what they do --------------------------------------------------------------------------------
TEST_F(MapChangeTest, ALoadEndsWhereTheNewMapEnds) {
  std::vector<std::uint16_t> seen(128);
  const Kernel k = kernel(32, [&] {
    if (isa::lane_index() == 0) {
      make_barrier(barrier(), 1);
    }
    publish(5);
    if (isa::lane_index() == 0) {
      acquire();
      start_load();
      wait();
      for (int i = 0; i < 128; ++i) {
        seen[index(i)] = isa::SharedView<std::uint16_t>{box_at()}.load(i);
      }
    }
  });
  expect_clean(k);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(seen[index(i)], i < 5 * 16 ? 128 + i : 0) << i;
}

TEST_F(MapChangeTest, AStoreEndsWhereTheNewMapEnds) {
  const Kernel k = kernel(32, [&] {
    publish(3);
    const isa::SharedView<isa::Words<2>> box{box_at()};
    box.store(isa::lane_index(), {0xabcdabcd, 0xabcdabcd});
    isa::fence_proxy_async_shared();
    isa::sync_warp();
    if (isa::lane_index() == 0) {
      acquire();
      store_until_written(slots_.data()[0], box_at(), isa::Coords{0, 0});
    }
  });
  expect_clean(k);
  for (std::size_t i = 0; i < tensor_.size(); ++i) {
    EXPECT_EQ(tensor_[i], i >= 128 && i < 128 + 3 * 16 ? 0xabcd : i) << i;
  }
}

TEST_F(MapChangeTest, OnlyMapsAreChangedAndOnlyIntoMaps) {
  const auto change = [&](bool is_map, const std::function<void()>& how) {
    if (is_map) {
      copy_template();
    } else {
      isa::SharedView<std::uint32_t>{map_at()}.store(isa::lane_index(), 7);
    }
    isa::sync_warp();
    if (isa::lane_index() == 0) how();
  };
  const auto right = [this] { narrow(8); };
  expect_clean(kernel(32, chosen(change, true, right)));
  expect_found(kernel(32, chosen(change, false, right)), Check::tensor_map);
  expect_found(kernel(32, chosen(change, true, [this] { narrow(0); })), Check::tensor_map);
  expect_found(kernel(32, chosen(change, true,
                                 [this] {
                                   isa::tensormap_replace_global_address(map_at(),
                                                                         tensor_.data() + 1);
                                 })),
               Check::tensor_map);
  expect_found(
      kernel(32, chosen(change, true, [] { isa::tensormap_replace_global_dim<2>(map_at(), 8); })),
      Check::tensor_map);
  expect_found(kernel(32, chosen(change, true,
                                 [] { isa::tensormap_replace_global_dim<1>(map_at() + 64, 8); })),
               Check::misaligned);
}

TEST_F(MapChangeTest, AWarpCopiesOneMapToAPlaceForMaps) {
  const auto copy = [&](const std::function<TensorMap*()>& to) {
    copy_template();
    isa::sync_warp();
    isa::tensormap_cp_fenceproxy(to(), map_at());
  };
  TensorMap* const slot = slots_.data();
  expect_clean(kernel(32, chosen(copy, [=] { return slot; })));
  expect_found(kernel(32, chosen(copy, [=] { return slot + isa::lane_index() % 2; })),
               Check::divergence);
  expect_found(kernel(32, chosen(copy, [=] { return slot + 100; })), Check::global_bounds);
  const auto half = reinterpret_cast<std::uintptr_t>(slot) + 64;
  expect_found(kernel(32, chosen(copy, [=] { return reinterpret_cast<TensorMap*>(half); })),
               Check::misaligned);
  // Half a warp cannot.
  expect_found(kernel(16, [=] { isa::tensormap_cp_fenceproxy(slot, map_at()); }),
               Check::divergence);
}

// --- P4 ------------------------------------------------------------------------------------------
TEST_F(MapChangeTest, AUseNeedsAnAcquireByItsOwnThread) {
  enum class Acquire { nobody, another, before, self };
  const auto body = [&](Acquire by) {
    if (isa::lane_index() == 0) {
      make_barrier(barrier(), 1);
    }
    if (isa::lane_index() == 0 && by == Acquire::before) acquire();
    isa::sync_warp();
    publish(8);
    if (isa::lane_index() == 1 && by == Acquire::another) acquire();
    isa::sync_warp();
    if (isa::lane_index() == 0) {
      if (by == Acquire::self) acquire();
      start_load();
      wait();
    }
  };
  expect_clean(kernel(32, chosen(body, Acquire::self)));
  expect_found(kernel(32, chosen(body, Acquire::nobody)), Check::tensor_map_changed);
  expect_found(kernel(32, chosen(body, Acquire::another)), Check::tensor_map_changed);
  expect_found(kernel(32, chosen(body, Acquire::before)), Check::tensor_map_changed);
  expect_contains(sentence(kernel(32, chosen(body, Acquire::before)), Check::tensor_map_changed),
                  "of maps");
  expect_contains(sentence(kernel(32, chosen(body, Acquire::nobody)), Check::tensor_map_changed),
                  "fence_proxy_tensormap_acquire");
}

// The grid before wrote it: this one must acquire all the same.
TEST_F(MapChangeTest, MapsOfAnEarlierGridAreAcquiredToo) {
  *slots_.data() = map_;
  const auto body = [&](bool acquires, const TensorMap* map) {
    Kernel k = kernel(1, [=] {
      make_barrier(barrier(), 1);
      if (acquires) isa::fence_proxy_tensormap_acquire(*map);
      expect_load(changed_box_bytes, box_at(), *map, barrier(), isa::Coords{0, 0});
      wait();
    });
    k.memory.back().writable = false;
    return k;
  };
  expect_clean(body(true, slots_.data()));
  expect_found(body(false, slots_.data()), Check::tensor_map_changed);
  expect_clean(body(false, &map_));  // a parameter
}

// A copy without its release, as a mutant makes it: nothing of this grid uses the map.
TEST_F(MapChangeTest, AMapThatIsLeftToLaterGridsIsReleased) {
  const Kernel k = kernel(32, [&] { publish(8); });
  Options how;
  how.count_sites = true;
  const Report unbroken = must_be_clean(run(k, how));
  int weakened = 0;
  for (const Mutation& m : mutations(unbroken.sites)) {
    if (m.at != SyncKind::map_release || m.kind != Mutation::Kind::weaken) continue;
    how.mutation = m;
    const Report report = run(k, how);
    EXPECT_TRUE(report.has(Check::tensor_map_changed)) << report.text();
    ++weakened;
  }
  EXPECT_EQ(weakened, 1);
}

TEST_F(MapChangeTest, TheCopyKnowsOfTheChange) {
  // Lanes meet between the template and the change, between it and the copy, and before the next.
  const auto body = [&](int missing) {
    const auto meet = [&](int i) {
      if (i != missing) isa::sync_warp();
    };
    copy_template();
    meet(0);
    if (isa::lane_index() == 0) narrow(8);
    meet(1);
    isa::tensormap_cp_fenceproxy(slots_.data(), map_at());
    meet(2);
    if (isa::lane_index() == 0) narrow(4);
    meet(3);
    isa::tensormap_cp_fenceproxy(slots_.data() + 1, map_at());
  };
  expect_clean(kernel(32, chosen(body, -1)));
  for (const int missing : {1, 2, 3}) {
    SCOPED_TRACE(missing);
    const Report report = run(kernel(32, chosen(body, missing)), Options{});
    EXPECT_TRUE(report.has(Check::data_race)) << report.text();
  }
  // The lane that runs first changes what is half written.
  EXPECT_TRUE(run(kernel(32, chosen(body, 0)), Options{}).has(Check::uninitialised_read));
}

TEST_F(MapChangeTest, AMapStaysWhileAStoreGoesThroughIt) {
  const auto body = [&](bool complete) {
    publish(8);
    isa::SharedView<isa::Words<2>>{box_at()}.store(isa::lane_index(), {1, 2});
    isa::fence_proxy_async_shared();
    isa::sync_warp();
    if (isa::lane_index() == 0) {
      acquire();
      isa::tensor_store(slots_.data()[0], box_at(), isa::Coords{0, 0});
      isa::bulk_commit();
      if (complete) {
        isa::bulk_wait<0>();
      } else {
        isa::bulk_wait_read<0>();
      }
    }
    isa::sync_warp();
    publish(4);
    if (isa::lane_index() == 0) isa::bulk_wait<0>();
  };
  expect_clean(kernel(32, chosen(body, true)));
  expect_found(kernel(32, chosen(body, false)), Check::tensor_map_changed);
  expect_contains(sentence(kernel(32, chosen(body, false)), Check::tensor_map_changed),
                  "not bulk_wait_read");
}

// Between warps: the barrier, then the acquire.
TEST_F(MapChangeTest, TheAcquireFollowsTheBarrier) {
  const auto body = [&](bool after) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 1);
    }
    isa::sync_threads(64);
    if (isa::warp_index() == 0) publish(8);
    if (isa::thread_index() == 32 && !after) acquire();
    isa::sync_threads(64);
    if (isa::thread_index() == 32) {
      if (after) acquire();
      start_load();
      wait();
    }
  };
  expect_clean(kernel(64, chosen(body, true)));
  const Report report = run(kernel(64, chosen(body, false)), Options{});
  EXPECT_TRUE(report.has(Check::tensor_map_changed) || report.has(Check::tensor_map))
      << report.text();
}

}  // namespace
}  // namespace warpwright::model
