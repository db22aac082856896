// The checks of mbarriers, named barriers, clusters and registers: for each a kernel that breaks
// the rule and one that keeps it.
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

constexpr LaunchShape one_warp{.threads = 32, .shared_bytes = 4096};
constexpr LaunchShape pair_of_ctas{
    .ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 4096};

// One barrier, published to the cluster.
SharedAddress published(int count) {
  const SharedAddress bar = isa::shared_base();
  if (isa::thread_index() == 0) {
    make_barrier(bar, count, {"gate", 3}, "whom the test says");
  }
  cluster_sync();
  return bar;
}

TEST(BarrierChecks, UninitialisedBarrier) {
  const auto body = [](bool initialise) {
    const SharedAddress bar = isa::shared_base() + 8;
    if (initialise) isa::mbarrier_init(bar, 1);
    isa::mbarrier_arrive<Scope::cta>(bar);
    isa::mbarrier_wait<Scope::cta>(bar, 0);
  };
  expect_found({one_thread, chosen(body, false)}, Check::dead_barrier);
  expect_clean({one_thread, chosen(body, true)});
  for (const auto& operation : std::vector<std::function<void(SharedAddress)>>{
           [](SharedAddress b) { isa::mbarrier_expect(b, 16); },
           [](SharedAddress b) { isa::mbarrier_arrive_expect(b, 16); },
           [](SharedAddress b) { isa::mbarrier_wait<Scope::cta>(b, 1); },
           [](SharedAddress b) { (void)isa::mbarrier_try_wait<Scope::cta>(b, 1); },
           [](SharedAddress b) { (void)isa::mbarrier_test_wait<Scope::cta>(b, 1); },
           [](SharedAddress b) { isa::mbarrier_invalidate(b); }}) {
    expect_found({one_thread, [&] { operation(isa::shared_base()); }}, Check::dead_barrier);
    // Inside a live barrier, but not where it starts.
    expect_found({one_thread,
                  [&] {
                    isa::mbarrier_init(isa::shared_base(), 1);
                    operation(isa::shared_base() + 4);
                  }},
                 Check::dead_barrier);
  }
}

TEST(BarrierChecks, InvalidatedBarrierIsDeadAndMayBeMadeAgain) {
  const auto body = [](bool again) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 2);
    isa::mbarrier_invalidate(bar);
    if (again) {
      make_barrier(bar, 1);
    }
    isa::mbarrier_arrive<Scope::cta>(bar);
  };
  expect_found({one_thread, chosen(body, false)}, Check::dead_barrier);
  expect_clean({one_thread, chosen(body, true)});
}

TEST(BarrierChecks, StorageOfALiveBarrier) {
  const auto body = [](bool store, bool invalidate) {
    const SharedAddress bar = isa::shared_base();
    const isa::SharedView<std::uint32_t> view{bar};
    view.store(0, 7);
    view.store(1, 7);
    make_barrier(bar, 1);
    if (invalidate) isa::mbarrier_invalidate(bar);
    if (store) {
      view.store(1, 7);
    } else {
      (void)view.load(0);
    }
  };
  for (const bool store : {false, true}) {
    expect_found({one_thread, chosen(body, store, false)}, Check::barrier_storage);
    expect_clean({one_thread, chosen(body, store, true)});
  }
  // A wide access that reaches into the barrier from before it.
  expect_found({one_thread,
                [] {
                  make_barrier(isa::shared_base() + 8, 1);
                  isa::SharedView<isa::Words<4>>{isa::shared_base()}.store(0, {});
                }},
               Check::barrier_storage);
}

TEST(BarrierChecks, TooManyArrivals) {
  // The second arrival meets a phase that waits only for bytes.
  const auto body = [](int count) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, count, {"gate", 3});
    isa::mbarrier_expect(bar, 16);
    isa::mbarrier_arrive<Scope::cta>(bar);
    isa::mbarrier_arrive<Scope::cta>(bar);
  };
  // The bytes never come: that is left over at the end of the clean twin, and only that.
  expect_found({one_thread, chosen(body, 1)}, Check::arrival_count);
  expect_found({one_thread, chosen(body, 2)}, Check::transaction_bytes);
  const std::string said = sentence({one_thread, chosen(body, 1)}, Check::arrival_count);
  expect_contains(said, "gate[3]");
  expect_contains(said, "0 of 1");
}

TEST(BarrierChecks, CountOutOfRange) {
  for (const int count : {-1, 0, 1 << 20}) {
    SCOPED_TRACE(count);
    expect_found({one_thread, [=] { isa::mbarrier_init(isa::shared_base(), count); }},
                 Check::arrival_count);
  }
  for (const int count : {1, (1 << 20) - 1}) {
    expect_clean({one_thread, [=] { isa::mbarrier_init(isa::shared_base(), count); }});
  }
}

TEST(BarrierChecks, WrongTransactionBytes) {
  Memory<std::uint16_t> source(64 * 8);
  const TensorMap map = map_of({source.data(), 8, 64, 2, 8, 64});
  const auto kernel = [&](int bytes) {
    const SharedAddress bar = isa::shared_base();
    isa::set_role("loader");
    make_barrier(bar, 1, {"full", 2});
    load_and_wait(bytes, isa::shared_base() + 1024, map, bar, isa::Coords{0, 0});
  };
  const LaunchShape shape{.threads = 1, .shared_bytes = 4096};
  for (const int bytes : {1008, 1040}) {
    SCOPED_TRACE(bytes);
    expect_found(Kernel{shape, chosen(kernel, bytes), {source.allocation("source", false)}},
                 Check::transaction_bytes, Shows::always, {Check::deadlock});
    expect_found(Kernel{shape, chosen(kernel, bytes), {source.allocation("source", false)}},
                 Check::deadlock, Shows::always, {Check::transaction_bytes});
    const std::string said =
        sentence(Kernel{shape, chosen(kernel, bytes), {source.allocation("source", false)}},
                 Check::transaction_bytes);
    expect_contains(said, "full[2]");
    expect_contains(said, bytes == 1008 ? "-16 transaction bytes" : " 16 transaction bytes");
  }
  expect_clean(Kernel{shape, chosen(kernel, 1024), {source.allocation("source", false)}});
}

TEST(BarrierChecks, TransactionCountOutOfRange) {
  const auto body = [](int bytes) {
    make_barrier(isa::shared_base(), 1);
    isa::mbarrier_expect(isa::shared_base(), (1 << 20) - 16);
    isa::mbarrier_expect(isa::shared_base(), bytes);
  };
  expect_found({one_thread, chosen(body, 16)}, Check::transaction_bytes);
  expect_contains(sentence({one_thread, chosen(body, 16)}, Check::transaction_bytes),
                  "more than 2^20 - 1");
}

TEST(BarrierChecks, OperationsNotAllowedOnAPeersBarrier) {
  const auto kernel = [](const std::function<void(SharedAddress)>& operation, bool remote) {
    const SharedAddress bar = published(1);
    if (isa::cluster_rank() == 0) operation(isa::map_rank(bar, remote ? 1 : 0));
    cluster_sync();
  };
  for (const auto& operation : std::vector<std::function<void(SharedAddress)>>{
           [](SharedAddress b) { isa::mbarrier_wait<Scope::cluster>(b, 1); },
           [](SharedAddress b) { (void)isa::mbarrier_try_wait<Scope::cluster>(b, 1); },
           [](SharedAddress b) { (void)isa::mbarrier_test_wait<Scope::cluster>(b, 1); },
           [](SharedAddress b) { isa::mbarrier_invalidate(b); },
           [](SharedAddress b) { isa::mbarrier_expect(b, 0); },
           [](SharedAddress b) { isa::mbarrier_init(b + 8, 1); }}) {
    expect_found(Kernel{pair_of_ctas, chosen(kernel, operation, true)}, Check::remote_operation);
    expect_clean(Kernel{pair_of_ctas, chosen(kernel, operation, false)});
  }
  // An arrival may be remote.
  expect_clean(
      Kernel{pair_of_ctas,
             chosen(
                 kernel, [](SharedAddress b) { isa::mbarrier_arrive<Scope::cluster>(b); }, true)});
}

// The copy signals the barrier in the asynchronous proxy, in one CTA too.
TEST(BarrierChecks, ACopySignalsABarrierShownToItsProxy) {
  Memory<std::uint16_t> source(64);
  const TensorMap map = map_of({source.data(), 1, 64, 2, 1, 64});
  const std::vector<Allocation> memory = {source.allocation("source", false)};
  enum class Fence : std::uint8_t { none, init, proxy, late };
  const auto kernel = [&](Fence fence, int loader) {
    const SharedAddress bar = isa::shared_base() + 512;
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(bar, 1);
      if (fence == Fence::init) isa::fence_mbarrier_init();
      if (fence == Fence::proxy) isa::fence_proxy_async_shared();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == loader) {
      if (fence == Fence::late) isa::fence_mbarrier_init();
      expect_load(128, isa::shared_base(), map, bar, isa::Coords{0, 0});
    }
    isa::mbarrier_wait<Scope::cta>(bar, 0);
  };
  const LaunchShape shape{.threads = 64, .shared_bytes = 1024};
  for (const int loader : {0, 32}) {
    expect_found(Kernel{shape, chosen(kernel, Fence::none, loader), memory},
                 Check::barrier_unpublished);
    expect_clean(Kernel{shape, chosen(kernel, Fence::init, loader), memory});
    expect_clean(Kernel{shape, chosen(kernel, Fence::proxy, loader), memory});
  }
  expect_found(Kernel{shape, chosen(kernel, Fence::late, 32), memory}, Check::barrier_unpublished);
}

// A warp that comes again before the barrier has opened would be counted for two meetings at once.
TEST(BarrierChecks, AWarpComesToANamedBarrierOnceAPhase) {
  const auto kernel = [](bool again) {
    if (isa::thread_index() < 32) {
      isa::named_barrier_arrive(1, 64);
      if (again) isa::named_barrier_arrive(1, 64);
      isa::named_barrier_arrive(2, 64);
    } else {
      isa::named_barrier_sync(2, 64);
      isa::named_barrier_sync(1, 64);
    }
  };
  const LaunchShape shape{.threads = 64, .shared_bytes = 1024};
  expect_found(Kernel{shape, chosen(kernel, true)}, Check::named_barrier);
  expect_clean(Kernel{shape, chosen(kernel, false)});
}

TEST(BarrierChecks, TheFenceComesBeforeTheClusterBarrier) {
  // The mbarrier of rank 0 makes the late fence certain to run before the arrival of rank 1.
  const auto kernel = [](bool late) {
    const SharedAddress bar = isa::shared_base();
    isa::mbarrier_init(bar, 1);
    isa::mbarrier_init(bar + 8, 1);
    isa::fence_mbarrier_init();
    if (isa::cluster_rank() == 0) isa::mbarrier_init(bar + 16, 1);
    if (!late) isa::fence_mbarrier_init();
    cluster_sync();
    if (late) isa::fence_mbarrier_init();
    if (isa::cluster_rank() == 0) {
      isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(bar, 1));
      isa::mbarrier_wait<Scope::cluster>(bar + 16, 0);
    } else {
      isa::mbarrier_wait<Scope::cluster>(bar, 0);
      isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(bar + 16, 0));
    }
    cluster_sync();
  };
  expect_found(Kernel{pair_of_ctas, chosen(kernel, true)}, Check::barrier_unpublished);
  expect_clean(Kernel{pair_of_ctas, chosen(kernel, false)});
}

TEST(BarrierChecks, APeerThatThereIsNot) {
  expect_found(
      {pair_of_ctas, [] { isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(published(1), 2)); }},
      Check::shared_bounds);
}

TEST(BarrierChecks, ClusterBarrierOutOfStep) {
  expect_found({pair_of_ctas, [] { isa::cluster_wait(); }}, Check::cluster_lifetime);
  expect_found({pair_of_ctas,
                [] {
                  isa::cluster_arrive();
                  isa::cluster_arrive();
                }},
               Check::cluster_lifetime);
  expect_clean({pair_of_ctas, [] {
                  for (int i = 0; i < 5; ++i) cluster_sync();
                }});
  // Who has exited is not waited for.
  expect_clean({{.ctas = 2, .cluster_size = 2, .threads = 64, .shared_bytes = 0}, [] {
                  if (isa::cluster_rank() == 1 && isa::warp_index() == 1) return;
                  cluster_sync();
                }});
}

TEST(BarrierChecks, RegisterPool) {
  const LaunchShape shape{.threads = 256, .shared_bytes = 0, .registers_per_thread = 128};
  expect_found({shape, [] { isa::decrease_registers<136>(); }}, Check::register_pool);
  expect_found({shape, [] { isa::increase_registers<120>(); }}, Check::register_pool);
  expect_clean({shape, [] { isa::increase_registers<128>(); }});
  const auto split = [](bool give) {
    if (isa::warp_index() < 4) {
      if (give) isa::decrease_registers<40>();
    } else {
      isa::increase_registers<216>();
    }
  };
  expect_clean({shape, chosen(split, true)});
  expect_found({shape, chosen(split, false)}, Check::deadlock);
  expect_contains(sentence({shape, chosen(split, false)}, Check::deadlock),
                  "setmaxnreg.inc to 216 registers: the CTA has 0 free");
  // One register a thread more than the other warpgroup gives.
  expect_found({shape,
                [] {
                  if (isa::warp_index() < 4) {
                    isa::decrease_registers<40>();
                  } else {
                    isa::increase_registers<224>();
                  }
                }},
               Check::deadlock);
  // A part of a warpgroup.
  expect_found({shape,
                [] {
                  if (isa::warp_index() != 3) isa::increase_registers<128>();
                }},
               Check::divergence, Shows::always, {Check::deadlock});
}

TEST(BarrierChecks, NamedBarrierArguments) {
  const LaunchShape shape{.threads = 64, .shared_bytes = 0};
  for (const auto& [id, threads] : {std::pair{16, 32}, {-1, 32}, {1, 33}, {1, 0}, {1, 96}}) {
    SCOPED_TRACE(std::to_string(id) + ", " + std::to_string(threads));
    expect_found({shape, [id = id, threads = threads] { isa::named_barrier_sync(id, threads); }},
                 Check::named_barrier);
  }
  for (const int id : {0, 15}) {
    expect_clean({shape, [=] { isa::named_barrier_sync(id, 64); }});
  }
}

TEST(BarrierChecks, NamedBarrierCountMismatch) {
  const LaunchShape shape{.threads = 96, .shared_bytes = 0};
  const auto body = [](int other) {
    return [=] { isa::named_barrier_sync(2, isa::warp_index() == 2 ? other : 96); };
  };
  expect_found({shape, body(64)}, Check::named_barrier, Shows::always, {Check::deadlock});
  expect_clean({shape, body(96)});
  // Too few come.
  expect_found({shape,
                [] {
                  if (isa::warp_index() < 2) isa::named_barrier_sync(2, 96);
                }},
               Check::deadlock);
}

TEST(BarrierChecks, DeadlockReport) {
  const Kernel kernel{{.ctas = 2, .cluster_size = 2, .threads = 64, .shared_bytes = 4096}, [] {
                        const SharedAddress bar = isa::shared_base();
                        if (isa::thread_index() == 0) {
                          make_barrier(bar, 3, {"gate", 3}, "three of the warps");
                        }
                        cluster_sync();
                        const bool keeper = isa::cluster_rank() == 0 && isa::warp_index() == 0;
                        isa::set_role(keeper ? "keeper" : "caller");
                        if (keeper) {
                          isa::mbarrier_wait<Scope::cluster>(bar, 0, {"gate", 3});
                        } else if (isa::cluster_rank() == 1 && isa::lane_index() == 0) {
                          isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(bar, 0));
                        }
                        isa::sync_warp();
                        isa::named_barrier_sync(5, 64);
                        cluster_sync();
                      }};
  expect_found(kernel, Check::deadlock);
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    const Report report = run(kernel, how);
    ASSERT_EQ(report.findings.size(), 1U) << report.text();
    const std::string said = report.text();
    expect_contains(said, "D1 deadlock at ");
    expect_contains(said, "barrier_check_test.cpp:");
    expect_contains(said, "32 threads: keeper of CTA 0");
    expect_contains(said, "gate[3] of CTA rank 0");
    expect_contains(said, "phase 0: pending 1 of 3 arrivals, 0 transaction bytes");
    expect_contains(said, "to arrive: three of the warps");
    expect_contains(said, "caller warp 0 of CTA rank 1");
    expect_contains(said, "caller warp 1 of CTA rank 1");
    expect_contains(said, "named barrier 5: 32 of 64 threads arrived");
    expect_contains(said, "the cluster barrier: 64 of 128 threads arrived");
  }
}

TEST(BarrierChecks, EveryCheckHasACodeAndAName) {
  std::vector<std::string> codes;
  for (int i = 0; i <= static_cast<int>(Check::spin_budget); ++i) {
    const auto check = static_cast<Check>(i);
    codes.emplace_back(code(check));
    EXPECT_FALSE(name(check).empty());
  }
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(std::adjacent_find(codes.begin(), codes.end()), codes.end());
}

TEST(BarrierChecks, FindingsOfOnePlaceAreCounted) {
  const Kernel kernel{one_warp, [] {
                        const isa::SharedView<std::uint32_t> view{isa::shared_base()};
                        for (int i = 0; i < 3; ++i) (void)view.load(i);
                      }};
  const Report report = run(kernel, Options{});
  ASSERT_EQ(report.findings.size(), 1U) << report.text();
  EXPECT_EQ(report.findings[0].count, 96);
  expect_contains(report.text(), "(seen 96 times)");
}

TEST(BarrierChecks, ImpossibleLaunches) {
  const auto launch = [](const LaunchShape& shape) { (void)run(shape, {}, {}, [] {}); };
  EXPECT_THROW(launch({.threads = 0}), std::invalid_argument);
  EXPECT_THROW(launch({.threads = 1025}), std::invalid_argument);
  EXPECT_THROW(launch({.ctas = 3, .cluster_size = 2}), std::invalid_argument);
  EXPECT_THROW(launch({.ctas = 17, .cluster_size = 17}), std::invalid_argument);
  EXPECT_THROW(launch({.shared_bytes = max_shared_bytes + 1}), std::invalid_argument);
  EXPECT_THROW(launch({.shared_bytes = -1}), std::invalid_argument);
  EXPECT_NO_THROW(launch({.threads = 1024, .shared_bytes = max_shared_bytes}));
}

// Thread 0 knows from elsewhere that phase 0 is complete, and arrives on phase 1 before the waiter
// has looked. That completes nothing: the waiter's own arrival is still to come. A study's kernel
// (examples/studies/wgmma_ladder) was found guilty by the first arrival of a phase.
TEST(BarrierChecks, TheFirstArrivalOfAPhaseMayComeBeforeTheLastIsSeen) {
  const auto body = [](bool looks) {
    const SharedAddress bar = published(2), complete = bar + 8, ahead = bar + 16;
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(complete, 1);
      isa::mbarrier_init(ahead, 1);
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      isa::mbarrier_arrive<Scope::cta>(bar);
      isa::mbarrier_wait<Scope::cta>(complete, 0);
      isa::mbarrier_arrive<Scope::cta>(bar);
      isa::mbarrier_arrive<Scope::cta>(ahead);
    } else if (isa::thread_index() == 32) {
      isa::mbarrier_arrive<Scope::cta>(bar);
      isa::mbarrier_arrive<Scope::cta>(complete);
      isa::mbarrier_wait<Scope::cta>(ahead, 0);
      if (looks) isa::mbarrier_wait<Scope::cta>(bar, 0);
      isa::mbarrier_arrive<Scope::cta>(bar);
      isa::mbarrier_wait<Scope::cta>(bar, 1);
    }
  };
  const LaunchShape two_warps{.threads = 64, .shared_bytes = 4096};
  expect_found({two_warps, chosen(body, false)}, Check::stale_parity, Shows::always);
  expect_clean({two_warps, chosen(body, true)});
}

}  // namespace
}  // namespace warpwright::model
