// Bugs of cp.async: groups are each thread's own, and a barrier waits for none of them.
#include "warpwright/isa/copy_async.h"
#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

constexpr int ring_stages = 3;
constexpr int ring_steps = 7;

// Every thread of `two_warps` copies its 16 bytes of a step, and reads its neighbour's.
struct CopyRing {
  Buffer<isa::Words<4>> in{"in", ring_steps * 64, Access::input};
  CopyRing() {
    for (isa::Words<4>& words : in) words = {{1, 2, 3, 4}};
  }
  void copy(int step) {
    const int t = isa::thread_index();
    isa::copy_async<16>(data(step % ring_stages) + static_cast<SharedAddress>(16 * t),
                        in.data() + step * 64 + t);
  }
  static void read(int step, isa::Site site = isa::Site::here()) {
    const int t = (isa::thread_index() + 33) % 64;
    (void)isa::SharedView<isa::Words<4>>{data(step % ring_stages)}.load(t, site);
  }
};

// The wait counts groups, so the step's group must be closed before it. With the commit behind the
// wait, the wait finds one group fewer than it counts on, and returns at once.
// csarofeen/pytorch #2463: https://github.com/csarofeen/pytorch/issues/2463
TEST(CopyAsync, CommitsBehindTheWait) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    for (int s = 0; s < ring_stages - 1; ++s) {
      ring.copy(s);
      isa::copy_async_commit();
    }
    isa::copy_async_wait<ring_stages - 2>();
    isa::sync_threads(64);
    for (int i = 0; i < ring_steps; ++i) {
      if (i + ring_stages - 1 < ring_steps) ring.copy(i + ring_stages - 1);
      if (mended) isa::copy_async_commit();
      CopyRing::read(i);
      isa::copy_async_wait<ring_stages - 2>();
      if (!mended) isa::copy_async_commit();
      isa::sync_threads(64);
    }
    isa::copy_async_wait<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, two_warps, ring.in);
}

// A barrier says that the threads have come, not that their copies have.
// NVIDIA/Fuser #3428: https://github.com/NVIDIA/Fuser/issues/3428
TEST(CopyAsync, ABarrierWaitsForNoCopy) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    ring.copy(0);
    isa::copy_async_commit();
    if (mended) isa::copy_async_wait<0>();
    isa::sync_threads(64);
    CopyRing::read(0);
    isa::copy_async_wait<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, two_warps, ring.in);
}

// And a wait covers the copies of its own thread: others' need the barrier as well.
// The question of NVIDIA/cutlass #1442: https://github.com/NVIDIA/cutlass/issues/1442
TEST(CopyAsync, AWaitIsForOnesOwnCopies) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    ring.copy(0);
    isa::copy_async_commit();
    isa::copy_async_wait<0>();
    if (mended) isa::sync_threads(64);
    CopyRing::read(0);
  };
  expect_mended(kernel, Only{Check::in_flight_access, Check::data_race, Check::uninitialised_read},
                two_warps, ring.in);
}

// At the end of the loop there is nothing to copy; the groups must be closed all the same, or the
// wait's count means fewer steps. Empty groups keep it.
// PTX ISA 9.7.9.25.3.2, and the rule of CUTLASS's mma_multistage.h.
TEST(CopyAsync, TheTailClosesNoGroups) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    for (int s = 0; s < ring_stages - 1; ++s) {
      ring.copy(s);
      isa::copy_async_commit();
    }
    for (int i = 0; i < ring_steps; ++i) {
      isa::copy_async_wait<ring_stages - 2>();
      isa::sync_threads(64);
      const bool more = i + ring_stages - 1 < ring_steps;
      if (more) ring.copy(i + ring_stages - 1);
      if (more || mended) isa::copy_async_commit();
      CopyRing::read(i);
    }
    isa::copy_async_wait<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, two_warps, ring.in);
}

// The stage that is filled next is the one that was read last: its readers must have met first.
// With the copies ahead of the barrier a slow warp reads the next step's bytes.
// The rule of CUTLASS's mma_multistage.h, whose one barrier a step serves both sides.
TEST(CopyAsync, CopiesAheadOfTheBarrier) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    for (int s = 0; s < ring_stages - 1; ++s) {
      ring.copy(s);
      isa::copy_async_commit();
    }
    for (int i = 0; i < ring_steps; ++i) {
      const bool more = i + ring_stages - 1 < ring_steps;
      isa::copy_async_wait<ring_stages - 2>();
      if (more && !mended) ring.copy(i + ring_stages - 1);
      isa::sync_threads(64);
      if (more && mended) ring.copy(i + ring_stages - 1);
      isa::copy_async_commit();
      CopyRing::read(i);
    }
    isa::copy_async_wait<0>();
  };
  expect_mended(kernel, Only{Check::data_race, Check::in_flight_access}, two_warps, ring.in);
}

// cp.async is a generic write: before TMA (or wgmma) reads the bytes, it takes a proxy
// fence behind the wait, by the thread that waited.
// PTX ISA 8.9 and 9.7.9.25.3; CUTLASS sm90_mma_multistage_gmma_ss fences there.
TEST(CopyAsync, NoFenceBeforeATensorStore) {
  CopyRing ring;
  Tensor out("out", 1, Access::output);
  enum class Fence { none, early, right };
  const auto kernel = [&](Fence fence) {
    ring.copy(0);
    isa::copy_async_commit();
    if (fence == Fence::early) isa::fence_proxy_async_shared();
    isa::copy_async_wait<0>();
    if (fence == Fence::right) isa::fence_proxy_async_shared();
    isa::sync_threads(64);
    if (isa::thread_index() != 0) return;
    store(out, data());
    isa::bulk_wait_read<0>();
  };
  for (const Fence fence : {Fence::none, Fence::early}) {
    expect_guilty(run(chosen(kernel, fence), two_warps, ring.in, out.memory),
                  Only{Check::missing_proxy_fence});
  }
  EXPECT_CLEAN(run(chosen(kernel, Fence::right), two_warps, ring.in, out.memory));
}

// A kernel ends with copies on their way into memory that the next CTA gets.
// PTX ISA 9.7.9.25.3.3: nothing but a wait completes them for the thread.
TEST(CopyAsync, ExitBeforeTheCopyLands) {
  CopyRing ring;
  const auto kernel = [&](bool mended) {
    ring.copy(0);
    isa::copy_async_commit();
    if (mended) isa::copy_async_wait<0>();
  };
  expect_mended(kernel, OnlyLate{Check::undrained_exit}, two_warps, ring.in);
}

}  // namespace
}  // namespace warpwright::corpus
