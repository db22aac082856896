// Bugs between the generic and the asynchronous proxy.
#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

// Shared memory is written by threads and stored by TMA with a CTA barrier between, but
// no proxy fence.
// MoonshotAI/FlashKDA #24 (the FP32 state store): https://github.com/MoonshotAI/FlashKDA/issues/24;
// the same question in NVIDIA/cutlass #2960.
TEST(Proxy, NoFenceBeforeATensorStore) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](bool mended) {
    fill(data(), isa::thread_index(), 64);
    if (mended) isa::fence_proxy_async_shared();
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      store(out, data());
      isa::bulk_wait_read<0>();
    }
  };
  expect_mended(kernel, Only{Check::missing_proxy_fence}, two_warps, out.memory);
}

// The only fence stands in a loop that an empty sequence never enters.
// MoonshotAI/FlashKDA #24 (the zero-initialised state):
// https://github.com/MoonshotAI/FlashKDA/pull/25
TEST(Proxy, TheFenceStandsInALoopThatDoesNotRun) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](int tiles, bool mended) {
    fill(data(), isa::thread_index(), 64);
    if (mended) isa::fence_proxy_async_shared();
    for (int i = 0; i < tiles; ++i) {
      fill(data(), isa::thread_index(), 64);
      isa::fence_proxy_async_shared();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      store(out, data());
      isa::bulk_wait_read<0>();
    }
  };
  expect_guilty(run(chosen(kernel, 0, false), two_warps, out.memory),
                Only{Check::missing_proxy_fence});
  EXPECT_CLEAN(run(chosen(kernel, 2, false), two_warps, out.memory));  // why no test had found it
  EXPECT_CLEAN(run(chosen(kernel, 0, true), two_warps, out.memory));
}

// The thread that issues the store fences, before the barrier that tells it of the others' writes.
// Triton's ConSan, test_fence_async_shared_across_warp_specialize:
// https://github.com/triton-lang/triton/pull/10668
TEST(Proxy, TheFenceIsTheIssuersAndComesTooEarly) {
  Tensor out("out", 1, Access::output);
  enum class Fence { issuer_before, issuer_after, writers };
  const auto kernel = [&](Fence fence) {
    const bool issuer = isa::warp_index() == 1;
    if (!issuer) fill(data(), isa::lane_index(), 32);
    if (issuer == (fence != Fence::writers) && fence != Fence::issuer_after) {
      isa::fence_proxy_async_shared();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 32) {
      if (fence == Fence::issuer_after) isa::fence_proxy_async_shared();
      store(out, data());
      isa::bulk_wait_read<0>();
    }
  };
  expect_guilty(run(chosen(kernel, Fence::issuer_before), two_warps, out.memory),
                Only{Check::misplaced_proxy_fence});
  EXPECT_CLEAN(run(chosen(kernel, Fence::issuer_after), two_warps, out.memory));
  EXPECT_CLEAN(run(chosen(kernel, Fence::writers), two_warps, out.memory));
}

// One lane fences for all 32 that wrote: a fence is the executing thread's own.
// The general form of MoonshotAI/FlashKDA #24 ("every writing thread must execute" it).
TEST(Proxy, OneLaneFencesForItsWarp) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](bool mended) {
    fill(data(), isa::lane_index(), 32);
    if (mended || isa::lane_index() == 0) isa::fence_proxy_async_shared();
    isa::sync_warp();
    if (isa::lane_index() == 0) {
      store(out, data());
      isa::bulk_wait_read<0>();
    }
  };
  const Launch one_warp{.threads = 32, .shared_bytes = 8192};
  expect_mended(kernel, Only{Check::misplaced_proxy_fence}, one_warp, out.memory);
}

// Operands that threads wrote are multiplied with a barrier between, but no fence.
// triton-lang/triton #7850 (a unit test that lacked fence_async_shared):
// https://github.com/triton-lang/triton/pull/7850
TEST(Proxy, NoFenceBeforeAWgmma) {
  const auto kernel = [](bool mended) {
    for (int box = 0; box < 4; ++box) fill(data(box), isa::thread_index(), 128);
    if (mended) isa::fence_proxy_async_shared();
    isa::sync_threads(128);
    Accumulator sum;
    isa::wgmma_fence(sum);
    multiply(sum, data(0), data(2));
    isa::wgmma_commit();
    isa::wgmma_wait<0>(sum);
  };
  const Launch warpgroup{.threads = 128, .shared_bytes = 8192};
  expect_mended(kernel, Only{Check::missing_proxy_fence}, warpgroup);
}

// A stage is read by threads, handed back through a barrier, and overwritten by the next load.
// NVIDIA/TransformerEngine #2695 and deepseek-ai/DeepEP #642 fixed it with a fence, Triton inserts
// one (triton-lang/triton #7262); tilelang #1850 leaves it out on purpose. Hence a policy:
// https://github.com/NVIDIA/TransformerEngine/pull/2695,
// https://github.com/tile-ai/tilelang/pull/1850
TEST(Proxy, ReadsThenTheNextLoad) {
  Tensor in("in", 4, Access::input);
  const auto kernel = [&](bool mended) {
    const bool loader = isa::thread_index() == 32;
    if (loader) {
      isa::mbarrier_init(barrier(0), 1, {"full", 0});
      isa::mbarrier_init(barrier(1), 32, {"empty", 0});
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    const int warp = isa::warp_index();
    for (int i = 0; i < 4; ++i) {
      if (loader) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        load_expected(data(), in, barrier(0), i);
      } else if (warp == 0) {
        isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
        read(data(), isa::lane_index(), 32);
        if (mended) isa::fence_proxy_async_shared();
        isa::mbarrier_arrive<Scope::cta>(barrier(1));
      }
    }
  };
  Launch strict = two_warps;
  strict.fence_after_reads = true;
  expect_mended(kernel, Only{Check::read_then_async_write}, strict, in.memory);
  EXPECT_CLEAN(run(chosen(kernel, false), two_warps, in.memory));  // tilelang's rule
}

}  // namespace
}  // namespace warpwright::corpus
