// Bugs of bulk groups: shared memory that is reused, or global memory that is read, too early.
#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

// A ring of two stages, each loaded, then stored from. Waiting for "all but one" of the stores lets
// the newest one, which is the one that reads this very stage, go on while the next load lands.
// deepseek-ai/DeepEP #657: https://github.com/deepseek-ai/DeepEP/issues/657
TEST(Store, WaitsForTheWrongGroup) {
  Tensor in("in", 6, Access::input);
  Tensor out("out", 6, Access::output);
  const auto kernel = [&](bool mended) {
    for (int s = 0; s < 2; ++s) {
      make_barrier(barrier(s), 1, {"full", s});
      load_expected(data(s), in, barrier(s), s);
    }
    for (int i = 0; i < 6; ++i) {
      const int s = i % 2;
      isa::mbarrier_wait<Scope::cta>(barrier(s), i / 2 & 1, {"full", s});
      store(out, data(s), i);
      if (i + 2 >= 6) continue;
      if (mended) {
        isa::bulk_wait_read<0>();
      } else {
        isa::bulk_wait_read<1>();
      }
      load_expected(data(s), in, barrier(s), i + 2);
    }
    isa::bulk_wait_read<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, one_thread, in.memory, out.memory);
}

// The same buffer is filled again without any wait for the store that reads it.
// The family of NVIDIA/TransformerEngine #3417:
// https://github.com/NVIDIA/TransformerEngine/pull/3417
TEST(Store, NoWaitBeforeTheBufferIsReused) {
  Tensor out("out", 4, Access::output);
  const auto kernel = [&](bool mended) {
    for (int i = 0; i < 4; ++i) {
      if (mended) isa::bulk_wait_read<0>();
      fill(data());
      isa::fence_proxy_async_shared();
      store(out, data(), i);
    }
    isa::bulk_wait_read<0>();
  };
  const auto broken = expect_mended(kernel, Only{Check::in_flight_access}, one_thread, out.memory);
  expect_says(broken, {"bulk_wait_read"});
}

// Bulk groups belong to the thread that committed them. Other threads' waits do nothing, and the
// leader's wait tells the others nothing without a barrier after it.
// NVIDIA/TransformerEngine #3417 fixed both in several kernels:
// https://github.com/NVIDIA/TransformerEngine/pull/3417
TEST(Store, TheLeadersGroupsAndTheOthersWait) {
  Tensor out("out", 4, Access::output);
  enum class Wait { by_others, by_leader, by_leader_then_barrier };
  const auto kernel = [&](Wait wait) {
    const bool leader = isa::thread_index() == 0;
    for (int i = 0; i < 4; ++i) {
      if (leader != (wait == Wait::by_others)) isa::bulk_wait_read<0>();
      if (wait == Wait::by_leader_then_barrier) isa::sync_threads(64);
      fill(data(), isa::thread_index(), 64);
      isa::fence_proxy_async_shared();
      isa::sync_threads(64);
      if (leader) store(out, data(), i);
    }
    if (leader) isa::bulk_wait_read<0>();
  };
  // Both ways the others may write before the leader has even issued the store.
  expect_guilty(run(chosen(kernel, Wait::by_others), two_warps, out.memory),
                Only{Check::in_flight_access, Check::data_race});
  expect_guilty(run(chosen(kernel, Wait::by_leader), two_warps, out.memory),
                Only{Check::in_flight_access, Check::data_race});
  EXPECT_CLEAN(run(chosen(kernel, Wait::by_leader_then_barrier), two_warps, out.memory));
}

// Two buffers alternate by the number of the chunk, and "all but the newest group" is waited for.
// A chunk outside the matrix is skipped: the chunks before and after it then use the same buffer,
// and the wait guards the other one.
// Our own: the epilogue of warpwright/kernel/epilogue.h had it at the edge of D
// (docs/design.md, "What the model found in this project"); 100 random shapes on a GPU had passed.
TEST(Store, ASkippedChunkSwapsTheBuffers) {
  Tensor out("out", 6, Access::output);
  const auto kernel = [&](bool mended) {
    int used = 0;
    for (int chunk = 0; chunk < 6; ++chunk) {
      if (chunk == 3) continue;  // chunks 2 and 4 follow each other in buffer 0
      const SharedAddress buffer = data((mended ? used++ : chunk) % 2);
      isa::bulk_wait_read<1>();
      fill(buffer);
      isa::fence_proxy_async_shared();
      store(out, buffer, chunk);
    }
    isa::bulk_wait_read<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, one_thread, out.memory);
}

// The CTA ends while TMA still reads its shared memory.
// JAX's Mosaic GPU interpreter reports it ("docs not explicit, believed necessary"); the incomplete
// store completion of NVIDIA/TransformerEngine #3417.
TEST(Store, ExitBeforeTheStoreHasRead) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](bool mended) {
    fill(data());
    isa::fence_proxy_async_shared();
    store(out, data());
    if (mended) isa::bulk_wait_read<0>();
  };
  expect_mended(kernel, OnlyLate{Check::undrained_exit}, one_thread, out.memory);
}

// The result is read back from global memory after wait_group.read, which covers only the source.
// NVIDIA/TransformerEngine #3417 (store completion); PTX ISA, cp.async.bulk.wait_group.
TEST(Store, ResultReadAfterTheSourceWait) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](bool mended) {
    fill(data());
    isa::fence_proxy_async_shared();
    store(out, data());
    if (mended) {
      isa::bulk_wait<0>();
    } else {
      isa::bulk_wait_read<0>();
    }
    (void)isa::GlobalView<std::uint16_t>{out.memory.data()}.load(9);
  };
  expect_mended(kernel, Only{Check::in_flight_access}, one_thread, out.memory);
}

// Two warps add boxes to the same result, and it is read when one of them has waited for its own:
// additions need no order among each other, but the reader one to each.
// Our own: only the latest write was remembered.
TEST(Store, OneOfTwoAdditionsIsWaitedFor) {
  Tensor out("out", 1, Access::output);
  const auto kernel = [&](int who_waits) {  // a mask of the warps
    return [&, who_waits] {
      const int warp = isa::warp_index();
      if (isa::lane_index() == 0) {
        fill(data(warp));
        isa::fence_proxy_async_shared();
        isa::tensor_reduce_add(out.map, data(warp), isa::Coords{0, 0});
        isa::bulk_commit();
        if ((who_waits >> warp & 1) != 0) isa::bulk_wait<0>();
      }
      isa::sync_threads(64);
      if (isa::thread_index() == 0) (void)isa::GlobalView<std::uint16_t>{out.memory.data()}.load();
      if (isa::lane_index() == 0) isa::bulk_wait<0>();
    };
  };
  for (const int who_waits : {1, 2}) {
    const auto broken = run(kernel(who_waits), two_warps, out.memory);
    expect_guilty(broken, Only{Check::in_flight_access});
  }
  EXPECT_CLEAN(run(kernel(3), two_warps, out.memory));
}

// A ring of three buffers for the chunks of D, chosen by the number of tiles done; the counter
// belongs to the scheduler's own copy of the state, and the epilogue's copy stays 0. Every tile
// begins at buffer 0 again, where the last chunk of the tile before may still be on its way.
// NVIDIA/cutlass #3636 (CuTe DSL, SM100 with CLC; open): four chunks, three buffers as here. Long K
// hides it. https://github.com/NVIDIA/cutlass/pull/3636
TEST(Store, EveryTileBeginsAtTheFirstBuffer) {
  constexpr int chunks = 4, buffers = 3, tiles = 3;
  Tensor out("out", chunks * tiles, Access::output);
  const auto kernel = [&](bool counts) {
    int tiles_done = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const SharedAddress buffer = data((tiles_done * chunks + chunk) % buffers);
        isa::bulk_wait_read<buffers - 1>();
        fill(buffer);
        isa::fence_proxy_async_shared();
        store(out, buffer, tile * chunks + chunk);
      }
      if (counts) ++tiles_done;
    }
    isa::bulk_wait_read<0>();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, one_thread, out.memory);
}

}  // namespace
}  // namespace warpwright::corpus
