// Small kernels of sm_100 whole: a pair's MMAs with a ring of accumulators, and tiles taken by
// CLC. All their mutants are killed or the same program, and their timelines are right.
#include <gtest/gtest.h>

#include <set>

#include "tests/model/harness.h"
#include "tests/model/mutants.h"
#include "tests/model/operands.h"
#include "warpwright/atom/umma.h"
#include "warpwright/facts/machines.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/clc.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;

constexpr atom::OperandTile operand_a{64, 16, 16, atom::Major::k, atom::SmemSwizzle::none};
constexpr atom::OperandTile operand_b{16, 16, 16, atom::Major::k, atom::SmemSwizzle::none};
constexpr atom::UmmaAtom pair_atom =
    atom::umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 32, true);
constexpr int tiles = 3;
int wrong_values = 0;  // that the epilogues have read

struct Places {
  SharedAddress base = isa::shared_base();
  SharedAddress full = base;       // 1 arrival: the commit
  SharedAddress empty = base + 8;  // 2 arrivals, of the epilogues of both CTAs; for the even one
  SharedAddress word = base + 16;
  SharedAddress a = base + 1024;
  SharedAddress b = a + 2048;
};

void issue_tile(const Places& at, TmemAddress tmem, int tile) {
  const isa::Mark mark("tile %", tile);
  isa::mbarrier_wait<Scope::cta>(at.empty, (tile & 1) ^ 1, {"empty"});
  isa::tcgen05_fence_after_sync();
  for (int step = 0; step < 2; ++step) {
    isa::tcgen05_mma<atom::UmmaKind::f16, 2>(tmem,
                                             atom::encode_umma(atom::descriptor(operand_a, at.a)),
                                             atom::encode_umma(atom::descriptor(operand_b, at.b)),
                                             atom::encode_instruction(pair_atom), step > 0);
  }
  isa::tcgen05_commit_multicast<2>(at.full, 3);
}

void read_tile(const Places& at, TmemAddress tmem, int tile) {
  isa::mbarrier_wait<Scope::cta>(at.full, tile & 1, {"full"});
  isa::tcgen05_fence_after_sync();
  isa::Fragment<float, 16> d;
  isa::tcgen05_load(d, tmem + atom::tmem_address(32, 0));
  isa::tcgen05_wait_load(d);
  for (int i = 0; i < 16; ++i) wrong_values += d[i] == 2.0F * 16 * 3 ? 0 : 1;
  isa::tcgen05_fence_before_sync();
  // The wait was the warp's, so its first lane may speak for all.
  if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(isa::map_rank(at.empty, 0));
}

// Warp 0 of the even CTA issues, warp 1 of each reads its lanes of the accumulator.
void accumulate_tiles() {
  const Places at;
  const isa::SharedView<isa::Words<4>> words{at.a};
  for (int i = isa::thread_index(); i < 2560 / 16; i += 64) {
    const std::uint32_t value = i < 128 ? 0x3f803f80 : 0x40404040;  // A is 1, B is 3
    words.store(i, {{value, value, value, value}});
  }
  isa::fence_proxy_async_shared();
  if (isa::thread_index() == 32) {
    isa::mbarrier_init(at.full, 1, {"full"});
    isa::mbarrier_init(at.empty, 2, {"empty"});
    isa::fence_mbarrier_init();
  }
  isa::cluster_arrive();
  isa::cluster_wait();
  if (isa::warp_index() == 0) isa::tcgen05_allocate<2>(at.word, 32);
  isa::sync_threads(64);
  const TmemAddress tmem = isa::SharedView<std::uint32_t>{at.word}.load();
  const bool issues = isa::cluster_rank() == 0 && isa::thread_index() == 0;
  isa::set_role(isa::warp_index() == 1 ? "epilogue" : issues ? "mma" : "idle");
  if (isa::warp_index() == 1) {
    for (int tile = 0; tile < tiles; ++tile) read_tile(at, tmem, tile);
  } else if (issues) {
    for (int tile = 0; tile < tiles; ++tile) issue_tile(at, tmem, tile);
    isa::mbarrier_wait<Scope::cta>(at.empty, (tiles & 1) ^ 1, {"empty"});
  }
  isa::sync_threads(64);
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<2>(tmem, 32);
}

const Kernel accumulator{{.ctas = 2, .cluster_size = 2, .threads = 64, .shared_bytes = 8192},
                         accumulate_tiles};

TEST(TensorProtocol, AccumulatorIsClean) {
  wrong_values = 0;
  expect_clean(accumulator);
  EXPECT_EQ(wrong_values, 0);
}

TEST(TensorProtocol, MutantsOfTheAccumulatorAreKilledOrTheSame) {
  const int all = static_cast<int>(mutations(sites_of(accumulator)).size());
  EXPECT_GT(all, 45);
  // The same program: no wait for the accumulator that nobody has used yet, and a fence by one
  // lane for its warp's loads.
  EXPECT_GE(killed_or_same(accumulator), all - 2);
}

// Each CTA does its own tile, then those that it is given; a tile takes `work` cycles and more.
Kernel worker(Memory<std::uint32_t>& done, int ctas, bool asks, int work = 0) {
  Kernel kernel;
  kernel.shape = {.ctas = ctas, .threads = 32, .shared_bytes = 1024};
  kernel.memory = {done.allocation("done")};
  const isa::GlobalView<std::uint32_t> view{done.data()};
  const auto stride = static_cast<int>(done.size()) / ctas;
  kernel.body = [=] {
    const SharedAddress answered = isa::shared_base();
    const SharedAddress answer = answered + 16;
    if (isa::thread_index() != 0) return;
    isa::set_role("worker");
    const auto tile = [&](int i) {
      const isa::Mark mark("tile %", i);
      for (int j = 0; j < work; ++j) isa::fence_proxy_async_shared();
      view.store(i, 1);
    };
    if (!asks) {
      for (int i = 0; i < stride; ++i) tile(isa::cta_index() + i * ctas);
      return;
    }
    make_barrier(answered, 1, {"answered"});
    int next = isa::cta_index();
    for (int round = 0;; ++round) {
      isa::mbarrier_arrive_expect(answered, 16);
      isa::try_cancel(answer, answered);
      tile(next);
      isa::mbarrier_wait<Scope::cta>(answered, round & 1, {"answered"});
      const isa::LaunchAnswer got = isa::load_launch_answer(answer);
      isa::fence_proxy_async_shared();
      if (!isa::cluster_canceled(got)) return;
      next = isa::canceled_first_cta(got);
    }
  };
  return kernel;
}

Options on(int sms, int occupied = -1) {
  Options how;
  how.mode = Mode::timed;
  how.sms = sms;
  how.occupied_sm = occupied;
  return how;
}

Trace traced(const Kernel& kernel, Options how) {
  Trace trace;
  how.trace = &trace;
  must_be_clean(run(kernel, how));
  EXPECT_EQ(trace.fault(), "");
  return trace;
}

TEST(LaunchQueue, EveryTileIsDoneOnce) {
  for (const Options& schedule : schedules()) {
    Memory<std::uint32_t> done(12);
    for (std::size_t i = 0; i < 12; ++i) done[i] = 0;
    Options how = schedule;
    how.sms = 3;
    SCOPED_TRACE(text(how));
    must_be_clean(run(worker(done, 12, true), how));
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(done[i], 1U) << "tile " << i;
  }
}

TEST(LaunchQueue, MutantsAreKilledOrTheSame) {
  Memory<std::uint32_t> done(2);
  Kernel kernel = worker(done, 2, true);
  kernel.body = [body = kernel.body] { body(); };
  EXPECT_GE(killed_or_same(kernel), 10);
}

// With 15 tiles of equal length and 4 SMs of which another grid holds one: 4 workers with fixed
// tiles take two rounds of 4 tiles each, one after the other; 3 that ask take 5 tiles each.
TEST(LaunchQueue, TakesOverWhatAnSmCannotDo) {
  constexpr int work = 300;
  const auto tile_cycles = work * Costs(machine_of_architecture(90), 0).proxy_fence;
  Memory<std::uint32_t> done(16);
  const Trace fixed = traced(worker(done, 4, false, work), on(4, 2));
  const Trace asked = traced(worker(done, 16, true, work), on(4, 2));
  EXPECT_GE(fixed.end(), 8 * tile_cycles);
  EXPECT_LT(asked.end(), 7 * tile_cycles);
  for (const Trace* trace : {&fixed, &asked}) {
    std::set<int> sms;
    for (const TraceTrack& t : trace->tracks) sms.insert(t.sm);
    EXPECT_EQ(sms, (std::set<int>{0, 1, 3}));
  }
  const Trace whole = traced(worker(done, 4, false, work), on(4));
  EXPECT_LT(whole.end(), 5 * tile_cycles);
}

// Both CTAs' tensor cores show the pair's MMAs, as long as the table says, and the epilogue starts
// when they are over.
TEST(TensorTimeline, ShowsTheMmasOfAPair) {
  const Trace trace = traced(accumulator, on(2));
  const Costs costs(machine_of_architecture(90), 0);
  std::vector<const TraceTrack*> cores;
  for (const TraceTrack& t : trace.tracks) {
    if (t.kind == TraceTrack::Kind::tensor_core) cores.push_back(&t);
  }
  ASSERT_EQ(cores.size(), 2U);
  const std::int64_t cycles = std::llround(2 * costs.umma(pair_atom));
  for (const TraceTrack* core : cores) {
    ASSERT_EQ(core->events.size(), 2U * tiles);
    for (int tile = 0; tile < tiles; ++tile) {
      const TraceEvent& begin = core->events[index(2 * tile)];
      const TraceEvent& end = core->events[index(2 * tile + 1)];
      EXPECT_EQ(trace.texts[index(begin.name)], "tile " + std::to_string(tile));
      EXPECT_GE(end.time - begin.time, cycles);
      EXPECT_LE(end.time - begin.time, cycles + 2 * costs.umma_issue);
    }
  }
}

}  // namespace
}  // namespace warpwright::model
