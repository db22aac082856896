// Bugs of whole pipelines: who releases, who goes first, and whose memory it is.
#include <algorithm>

#include "tests/corpus/corpus.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/pipeline/tma_pipeline.h"

namespace warpwright::corpus {
namespace {

// Lane 0 releases the stage for its warp as soon as it has read its own part.
// Why triton-lang/triton #8969 and #11573 put bar.warp.sync before a warp's arrival:
// https://github.com/triton-lang/triton/pull/11573
TEST(Pipeline, OneLaneReleasesBeforeTheOthersHaveRead) {
  Tensor in("in", 4, Access::input);
  const auto kernel = [&](bool mended) {
    const bool loader = isa::thread_index() == 32;
    if (loader) {
      isa::mbarrier_init(barrier(0), 1, {"full", 0});
      isa::mbarrier_init(barrier(1), 1, {"empty", 0});
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
        if (mended) isa::sync_warp();
        if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      }
    }
  };
  const Launch launch{.threads = 64, .shared_bytes = 8192};
  expect_mended(kernel, Among{Check::data_race}, launch, in.memory);
}

// In a cluster each lane releases the CTA of its own number. One lane off, and one producer hears
// too little, another too much.
// The same kind as deepseek-ai/DeepGEMM #51 (which lane arrives where, and how often):
// https://github.com/deepseek-ai/DeepGEMM/issues/51
TEST(Pipeline, TheWrongLaneReleases) {
  const auto kernel = [](bool mended) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 2, {"empty", 0}, "one lane of each CTA");
    }
    cluster_sync();
    const int lane = isa::lane_index();
    const bool slips = !mended && isa::cluster_rank() == 1;
    if (lane < 2) {
      isa::mbarrier_arrive<Scope::cta>(isa::map_rank(barrier(), slips ? 0 : lane));
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"empty", 0});
    cluster_sync();
  };
  const Launch pair{.ctas = 2, .cluster_size = 2, .threads = 32, .shared_bytes = 64};
  expect_mended(kernel, Among{Check::deadlock}, pair);
}

// Two consumers take whole tiles in turn from one ring.
struct Ring {
  static constexpr pipeline::TmaPipelineShape value{2, 4, box_bytes};
};

// Without ordered turns the second consumer waits for its tile's phase on a ring that has not come
// round yet: on the fresh barrier the parity of the second phase reads as "complete".
// Our own, met when the ping-pong schedule was written (docs/design.md, "One GEMM, from call to
// store"): on an H200 the kernel hung or read early.
TEST(Pipeline, PingPongWithoutTurns) {
  Tensor in("in", 8, Access::input);
  const auto kernel = [&](bool mended) {
    const pipeline::TmaPipeline<Ring> loads(barrier(), {1, 1}, 1);
    const int consumer = isa::warp_index() / 4;
    pipeline::OrderedSequence turn(barrier(8), consumer & 1);
    if (isa::thread_index() == 256) {
      loads.initialise();
      pipeline::OrderedSequence::initialise(barrier(8));
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(288);
    pipeline::PipelineState state;
    if (isa::thread_index() == 256) {
      isa::set_role("producer");
      for (int i = 0; i < 8; ++i) {
        load(data(state.stage), in, loads.acquire(state), i);
        state.advance(2);
      }
    }
    if (consumer == 2) return;
    isa::set_role(consumer == 0 ? "consumer 0" : "consumer 1");
    if (consumer == 1) state.skip(2, 2);
    for (int tile = consumer; tile < 4; tile += 2) {
      if (mended) turn.enter();
      for (int block = 0; block < 2; ++block) {
        loads.wait(state);
        read(data(state.stage), isa::thread_index() % 128, 128);
        isa::sync_warp();
        loads.release(state);
        state.advance(2);
      }
      if (mended) turn.leave();
      state.skip(2, 2);
    }
  };
  const Launch launch{.threads = 288, .shared_bytes = 8192};
  const auto broken = run(chosen(kernel, false), launch, in.memory);
  EXPECT_FINDING(broken, Check::in_flight_access);
  EXPECT_CLEAN(run(chosen(kernel, true), launch, in.memory));
}

// The epilogue stages its result in memory of the operand ring, into which the next tile is being
// loaded already.
// Meta's worked example (found by comparing compiler output; racecheck pointed elsewhere):
// facebookexperimental/triton, WarpSpecialization/docs/DebuggingAccuracyAndDeadlocks.md
TEST(Pipeline, StagingOverTheNextTile) {
  Tensor in("in", 2, Access::input);
  Tensor out("out", 2, Access::output);
  const auto kernel = [&](bool mended) {
    make_barrier(barrier(), 1, {"full", 0});
    const SharedAddress staging = mended ? data(1) : data(0);
    load_expected(data(0), in, barrier(), 0);
    for (int tile = 0; tile < 2; ++tile) {
      isa::mbarrier_wait<Scope::cta>(barrier(), tile & 1, {"full", 0});
      read(data(0));
      if (tile == 0) {
        isa::mbarrier_arrive_expect(barrier(), box_bytes);
        load(data(0), in, barrier(), 1);  // the next tile, before this one is stored
      }
      isa::bulk_wait_read<0>();
      fill(staging);
      isa::fence_proxy_async_shared();
      store(out, staging, tile);
    }
    isa::bulk_wait_read<0>();
  };
  const Launch launch{.threads = 1, .shared_bytes = 8192};
  expect_mended(kernel, Only{Check::in_flight_access}, launch, in.memory, out.memory);
}

// The last stage of the ring is the buffer of C, too. The producer waits for the store of C at the
// step of a tile where the ring would be at that stage, had the tile begun at stage 0. It does so
// only where K is a multiple of the ring; elsewhere the wait comes behind the load.
// uccl-project/mKernel #18 (AllGather with GEMM, SM90; merged: the wait goes to the tile's begin).
// Which stage is shared, and how the consumer says that C is stored, are our reading.
// https://github.com/uccl-project/mKernel/pull/18
TEST(Pipeline, TheWaitForCStandsAtAFixedStep) {
  constexpr int stages = 3, tiles = 3;
  Tensor in("in", 6, Access::input), out("out", tiles, Access::output);
  const auto kernel = [&](int k_tiles, bool mended) {
    const auto full = [](int i) { return barrier(i % stages); };
    const auto empty = [](int i) { return barrier(stages + i % stages); };
    const SharedAddress stored = barrier(2 * stages), c = data(stages - 1);
    const bool producer = isa::thread_index() == 32;
    if (producer) {
      for (int i = 0; i < stages; ++i) isa::mbarrier_init(full(i), 1, {"full", i});
      for (int i = 0; i < stages; ++i) isa::mbarrier_init(empty(i), 1, {"empty", i});
      isa::mbarrier_init(stored, 1, {"C stored"});
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    for (int i = 0; i < tiles * k_tiles; ++i) {
      const int tile = i / k_tiles, k_tile = i % k_tiles, parity = i / stages & 1;
      if (producer) {
        if (tile > 0 && k_tile == (mended ? 0 : std::min(stages, k_tiles) - 1)) {
          isa::mbarrier_wait<Scope::cta>(stored, (tile - 1) & 1, {"C stored"});
        }
        isa::mbarrier_wait<Scope::cta>(empty(i), parity ^ 1, {"empty", i % stages});
        load_expected(data(i % stages), in, full(i), i % 6);
      }
      if (isa::warp_index() == 1) continue;
      isa::mbarrier_wait<Scope::cta>(full(i), parity, {"full", i % stages});
      read(data(i % stages), isa::lane_index(), 32);
      isa::sync_warp();
      if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(empty(i));
      if (k_tile < k_tiles - 1) continue;
      fill(c, isa::lane_index(), 32);
      isa::fence_proxy_async_shared();
      isa::sync_warp();
      if (isa::lane_index() == 0) {
        store(out, c, tile);
        isa::bulk_wait_read<0>();
        isa::mbarrier_arrive<Scope::cta>(stored);
      }
    }
  };
  const Launch launch{.threads = 64, .shared_bytes = 8192};
  for (const int k_tiles : {2, 4, 5}) {
    EXPECT_FINDING(run(chosen(kernel, k_tiles, false), launch, in.memory, out.memory),
                   Check::in_flight_access);
  }
  for (const int k_tiles : {3, 6}) {  // the shapes that passed
    EXPECT_CLEAN(run(chosen(kernel, k_tiles, false), launch, in.memory, out.memory));
  }
  for (const int k_tiles : {2, 3, 4, 5, 6}) {
    EXPECT_CLEAN(run(chosen(kernel, k_tiles, true), launch, in.memory, out.memory));
  }
}

// Rows of experts are counted by the kernel that gathers them, in tiles of one size, and multiplied
// in tiles of another: both sizes follow from the mean length, by tables that no longer agree. The
// loader walks the tiles that were counted, the warp that multiplies those of its own size, and
// waits for loads that nobody starts. Tencent/hpc-ops #53, f52e8fe (merged): a product of blocks in
// fp8 hung at 128 tokens an expert, where the one took 64 and the other 32; with 64 or 256, where
// they agree, it did not. That the two roles of one kernel take the two numbers is our reading.
// https://github.com/Tencent/hpc-ops/pull/53
TEST(Pipeline, TilesAreCountedInAnotherSize) {
  constexpr int groups = 2;
  Tensor in("tokens", 8, Access::input);
  Buffer<std::int32_t> tokens("tokens of groups", groups, Access::input);
  Buffer<std::int32_t> counted("tiles of groups", groups, Access::input);
  const auto tile_for = [](int mean, bool is_old) {
    if (mean <= 64 || mean > 144 || is_old) return 64;
    return mean <= 96 || mean > 128 ? 48 : 32;
  };
  const auto tiles = [](int rows, int tile) { return (rows + tile - 1) / tile; };
  const auto kernel = [&](int mean, bool mended) {
    for (std::size_t g = 0; g < groups; ++g) {
      tokens[g] = mean;
      counted[g] = tiles(mean, tile_for(mean, !mended));
    }
    return [&, mean] {
      const bool loads = isa::warp_index() == 1;
      if (isa::thread_index() == 0) {
        isa::mbarrier_init(barrier(0), 1, {"full", 0});
        isa::mbarrier_init(barrier(1), 1, {"empty", 0});
        isa::fence_mbarrier_init();
      }
      isa::sync_threads(64);
      if (isa::lane_index() != 0) return;
      isa::set_role(loads ? "loader" : "multiplier");
      int done = 0;
      for (int g = 0; g < groups; ++g) {
        const int rows = isa::GlobalView<const std::int32_t>{tokens.data()}.load(g);
        const int of_group = loads ? isa::GlobalView<const std::int32_t>{counted.data()}.load(g)
                                   : tiles(rows, tile_for(mean, false));
        for (int i = 0; i < of_group; ++i, ++done) {
          if (loads) {
            isa::mbarrier_wait<Scope::cta>(barrier(1), (done & 1) ^ 1, {"empty", 0});
            load_expected(data(), in, barrier(0), done % 8);
          } else {
            isa::mbarrier_wait<Scope::cta>(barrier(0), done & 1, {"full", 0});
            read(data());
            isa::mbarrier_arrive<Scope::cta>(barrier(1));
          }
        }
      }
    };
  };
  for (const int mean : {64, 128, 256}) {
    const auto found = run(kernel(mean, false), two_warps, in.memory, tokens, counted);
    if (mean == 128) {
      expect_guilty(found, Only{Check::deadlock});
      expect_says(found, {"multiplier"});
    } else {
      EXPECT_CLEAN(found);
    }
    EXPECT_CLEAN(run(kernel(mean, true), two_warps, in.memory, tokens, counted));
  }
}

}  // namespace
}  // namespace warpwright::corpus
