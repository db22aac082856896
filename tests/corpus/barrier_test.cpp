// Bugs of mbarriers inside one CTA: life, counts, bytes and phases.
#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

// A function called mbarrier_init_tx_bytes was taken for the initialisation; it only expects bytes.
// NVIDIA/cutlass #2364 ("unspecified launch failure"):
// https://github.com/NVIDIA/cutlass/issues/2364
TEST(Barrier, ExpectsBytesOnABarrierThatIsNone) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](bool mended) {
    if (mended) {
      make_barrier(barrier(), 1, {"full", 0});
    }
    load_expected(data(), in, barrier());
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
  };
  expect_mended(kernel, Only{Check::dead_barrier}, one_thread, in.memory);
}

// Too few or too many bytes are expected. Triton's ConSan, test_async_tma_expect_bytes_mismatch;
// tile-ai/tilelang #2644 lists twice the bytes as a candidate. The bytes of a box that reaches past
// the tensor count in full (docs/model.md): expecting only those inside hangs as well.
// https://github.com/tile-ai/tilelang/issues/2644
TEST(Barrier, WrongBytes) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](int bytes, int row) {
    make_barrier(barrier(), 1, {"full", 0});
    load_and_wait(bytes, data(), in.map, barrier(), isa::Coords{0, row});
  };
  for (const int bytes : {box_bytes / 2, box_bytes - 16, 2 * box_bytes}) {
    expect_guilty(run(chosen(kernel, bytes, 0), one_thread, in.memory),
                  Only{Check::transaction_bytes, Check::deadlock});
  }
  expect_guilty(run(chosen(kernel, box_bytes / 2, 4), one_thread, in.memory),
                Only{Check::transaction_bytes, Check::deadlock});
  EXPECT_CLEAN(run(chosen(kernel, box_bytes, 0), one_thread, in.memory));
  EXPECT_CLEAN(run(chosen(kernel, box_bytes, 4), one_thread, in.memory));
}

// Bytes that never come from a thread that hangs itself follow from what it waits for: that is said
// first. Where it has gone on without sending them they are the cause. Our own hand edits N90, N91.
TEST(Barrier, WhoSendsTheBytesHangs) {
  Tensor in("in", 1, Access::input);
  enum class Way { opens_the_gate, forgets_the_gate, forgets_the_load };
  const auto kernel = [&](Way way) {
    const isa::BarrierName full{"full", 0}, gate{"gate", 0};
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(barrier(), 1, full);
      isa::mbarrier_init(barrier(1), 1, gate);
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      load(data(), in, barrier());
      if (way == Way::forgets_the_load) return;
      isa::mbarrier_wait<Scope::cta>(barrier(1), 0, gate);
      load(data(1), in, barrier());
    }
    if (isa::thread_index() != 32) return;
    for (unsigned phase = 0; phase < 2; ++phase) {
      isa::mbarrier_arrive_expect(barrier(), box_bytes);
      isa::mbarrier_wait<Scope::cta>(barrier(), phase, full);
      if (phase == 0 && way == Way::opens_the_gate) isa::mbarrier_arrive<Scope::cta>(barrier(1));
    }
  };
  const auto held_up = run(chosen(kernel, Way::forgets_the_gate), two_warps, in.memory);
  expect_guilty(held_up, Only{Check::transaction_bytes, Check::deadlock});
  for (const auto& one : held_up.runs) {
    EXPECT_EQ(one.report.findings.front().check, Check::deadlock) << one.report.text();
  }
  expect_says(held_up, {"which sent them before, waits itself"});
  const auto forgotten = run(chosen(kernel, Way::forgets_the_load), two_warps, in.memory);
  expect_guilty(forgotten, Only{Check::transaction_bytes, Check::deadlock});
  for (const auto& one : forgotten.runs) {
    EXPECT_EQ(one.report.findings.front().check, Check::transaction_bytes) << one.report.text();
  }
  EXPECT_CLEAN(run(chosen(kernel, Way::opens_the_gate), two_warps, in.memory));
}

// A loop of tests is legal however long it takes, also where a schedule holds back those who
// arrive: a hand edit of ours was said to hang (docs/log/reliability.md).
TEST(Barrier, ALoopOfTestsMayTakeLong) {
  const auto kernel = [](bool arrives) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 32, {"done", 0});
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 32) {
      while (!isa::mbarrier_try_wait<Scope::cta>(barrier(), 0)) {
      }
    }
    if (isa::warp_index() == 1) return;
    for (int i = 0; i < 700; ++i) isa::sync_warp();
    if (arrives) isa::mbarrier_arrive<Scope::cta>(barrier());
  };
  Launch timed = two_warps;
  timed.schedules = {.eager = false, .latest = false, .random = 0, .starve = 0};
  EXPECT_CLEAN(run(chosen(kernel, true), timed));
  expect_says(expect_mended(kernel, Only{Check::spin_budget}, two_warps), {"done[0]"});
  Launch first_held = two_warps;  // the warp that arrives, and the other one asks at its every step
  first_held.schedules = {
      .eager = false, .latest = false, .timed = false, .random = 0, .starve = 1, .first_seed = 6};
  EXPECT_CLEAN(run(chosen(kernel, true), first_held));
}

// A copy without a tensor map brings other bytes than are expected; it is read before it has
// landed; or its length is no multiple of 16 bytes, which the instruction cannot copy.
// PTX ISA 9.7.9.25.4.1 (cp.async.bulk).
TEST(Barrier, BytesOfABulkLoad) {
  Tensor in("in", 2, Access::input);
  struct How {
    int expected = box_bytes;
    int bytes = box_bytes;
    bool waits = true;
  };
  const auto kernel = [&](How how) {
    make_barrier(barrier(), 1, {"full", 0});
    isa::mbarrier_arrive_expect(barrier(), how.expected);
    isa::bulk_load(data(), in.memory.data() + 8, how.bytes, barrier());
    if (how.waits) isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    read(data());
    if (!how.waits) isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
  };
  expect_guilty(run(chosen(kernel, How{.expected = box_bytes + 64}), one_thread, in.memory),
                Only{Check::transaction_bytes, Check::deadlock});
  EXPECT_FINDING(run(chosen(kernel, How{.waits = false}), one_thread, in.memory),
                 Check::in_flight_access);
  expect_guilty(run(chosen(kernel, How{.bytes = box_bytes - 8}), one_thread, in.memory),
                Only{Check::misaligned});
  EXPECT_FINDING(run(chosen(kernel, How{.expected = 2 * box_bytes, .bytes = 2 * box_bytes}),
                     one_thread, in.memory),
                 Check::global_bounds);
  EXPECT_CLEAN(run(chosen(kernel, How{}), one_thread, in.memory));
}

// Other threads use a barrier before anything orders its initialisation before them.
// The barrier-initialisation races that compute-sanitizer's racecheck reports since 2024.1, among
// them those of NVIDIA/cutlass #2626: https://github.com/NVIDIA/cutlass/issues/2626
TEST(Barrier, UsedBeforeTheCtaHasSynchronised) {
  const auto kernel = [](bool mended) {
    if (isa::thread_index() == 0) isa::mbarrier_init(barrier(), 64, {"all", 0});
    if (mended) isa::sync_threads(64);
    isa::mbarrier_arrive<Scope::cta>(barrier());
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"all", 0});
  };
  // Whoever comes before thread 0 finds no barrier there at all (dead_barrier).
  expect_mended(kernel, Among{Check::barrier_unpublished}, two_warps);
}

// The second tile initialises its barriers again without ending the life of the first ones.
// NVIDIA/TransformerEngine #3417 (initialisation and invalidation):
// https://github.com/NVIDIA/TransformerEngine/pull/3417
TEST(Barrier, InitialisedAgainWhileItLives) {
  Tensor in("in", 2, Access::input);
  const auto kernel = [&](bool mended) {
    for (int tile = 0; tile < 2; ++tile) {
      make_barrier(barrier(), 1, {"full", 0});
      load_expected(data(), in, barrier(), tile);
      isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
      if (mended) isa::mbarrier_invalidate(barrier());
    }
  };
  expect_mended(kernel, Only{Check::barrier_storage}, one_thread, in.memory);
}

// A tile lies over a live barrier.
// Triton's ConSan asserts it since triton-lang/triton #11244 (payload overlapping live barriers).
TEST(Barrier, ATileOverABarrier) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](int offset) {
    const SharedAddress bar = data() + static_cast<SharedAddress>(offset);
    make_barrier(bar, 1, {"full", 0});
    load_expected(data(), in, bar);
    isa::mbarrier_wait<Scope::cta>(bar, 0, {"full", 0});
  };
  EXPECT_FINDING(run(chosen(kernel, box_bytes - 8), one_thread, in.memory), Check::barrier_storage);
  EXPECT_CLEAN(run(chosen(kernel, box_bytes), one_thread, in.memory));
}

// One thread, one barrier, three stages: what the wait says of the phase.
enum class Law { by_iteration, by_ring, constant };
auto loop(const Tensor& in, Law law) {
  return [&in, law] {
    make_barrier(barrier(), 1, {"full", 0});
    for (int i = 0; i < 6; ++i) {
      load_expected(data(i % 3), in, barrier(), i);
      const int parity = law == Law::by_iteration ? i & 1 : law == Law::by_ring ? i / 3 & 1 : 0;
      isa::mbarrier_wait<Scope::cta>(barrier(), parity, {"full", 0});
      read(data(i % 3));
    }
  };
}

// The wait takes the parity of the ring of stages, the barrier flips every iteration.
// tile-ai/tilelang #3087: https://github.com/tile-ai/tilelang/pull/3087
TEST(Barrier, TheParityOfAnotherLaw) {
  Tensor in("in", 6, Access::input);
  // The second wait returns at once, and the bytes are still on their way; where they have landed
  // already, it waits for a phase that nobody will complete.
  expect_guilty(run(loop(in, Law::by_ring), one_thread, in.memory),
                Only{Check::in_flight_access, Check::arrival_count, Check::deadlock});
  EXPECT_CLEAN(run(loop(in, Law::by_iteration), one_thread, in.memory));
}

// The phase is a constant: the first iteration is right, the second passes too early or hangs.
// Meta's worked example of a hang (facebookexperimental/triton, "Debugging accuracy and
// deadlocks"): https://github.com/facebookexperimental/triton
TEST(Barrier, AConstantPhase) {
  Tensor in("in", 6, Access::input);
  expect_guilty(run(loop(in, Law::constant), one_thread, in.memory),
                Only{Check::in_flight_access, Check::arrival_count, Check::deadlock});
}

// Two roles wait for different phases of one barrier, each for what the other was to do first.
// Triton's ConSan, test_deadlock_different_phases.
TEST(Barrier, WaitersOfDifferentPhases) {
  const auto kernel = [](bool mended) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 64, {"step", 0});
    }
    isa::sync_threads(64);
    if (mended || isa::warp_index() == 0) isa::mbarrier_arrive<Scope::cta>(barrier());
    // Warp 1 believes that phase 0 is over, and that its arrival belongs to phase 1.
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"step", 0});
    if (!mended && isa::warp_index() == 1) isa::mbarrier_arrive<Scope::cta>(barrier());
  };
  expect_mended(kernel, Only{Check::deadlock}, two_warps);
}

// A ring of one stage: warp 2 loads, warps 0 and 1 read and release.
enum class Release { each_warp, each_lane, twice_a_warp, one_warp, one_warp_after_meeting };
auto ring(const Tensor& in, Release release, bool reads = true) {
  return [&in, release, reads] {
    const int warp = isa::warp_index();
    const bool loader = isa::thread_index() == 64;
    const bool together =
        release == Release::one_warp || release == Release::one_warp_after_meeting;
    if (loader) {
      isa::mbarrier_init(barrier(0), 1, {"full", 0}, "the loader");
      isa::mbarrier_init(barrier(1), together ? 1 : 2, {"empty", 0}, "the readers");
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(96);
    for (int i = 0; i < 5; ++i) {
      if (loader) {
        isa::set_role("loader");
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        load_expected(data(), in, barrier(0), i);
      }
      if (warp == 2) continue;
      isa::set_role("reader");
      isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
      if (reads) read(data(), isa::thread_index(), 64);
      isa::sync_warp();
      if (release == Release::one_warp_after_meeting) isa::named_barrier_sync(1, 64);
      const bool mine = release == Release::each_lane || isa::lane_index() == 0;
      if (mine && !(together && warp == 1)) {
        isa::mbarrier_arrive<Scope::cta>(barrier(1));
        if (release == Release::twice_a_warp) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      }
    }
  };
}
const Launch three_warps{.threads = 96, .shared_bytes = 8192};

// Every lane arrives where one of the warp was counted.
// tile-ai/tilelang #1396 (the election was missing): https://github.com/tile-ai/tilelang/pull/1396;
// Triton's ConSan, test_deadlock_overarrival.
TEST(Barrier, EveryLaneArrives) {
  Tensor in("in", 5, Access::input);
  EXPECT_FINDING(run(ring(in, Release::each_lane), three_warps, in.memory), Check::stale_parity);
  EXPECT_CLEAN(run(ring(in, Release::each_warp), three_warps, in.memory));
}

// Each warp arrives twice, so that one warp by itself completes the phase while the other still
// reads. The same sources.
TEST(Barrier, TwoArrivalsAWarp) {
  Tensor in("in", 5, Access::input);
  EXPECT_FINDING(run(ring(in, Release::twice_a_warp), three_warps, in.memory), Check::data_race);
}

// The count is one off, or a thread arrives once too often: every round moves one arrival on, and
// after as many rounds as the count is a phase too many has passed, or one never does. Our own: a
// ring of six tiles was clean in all schedules. Who arrives on the next phase must know that the
// one before is over: said of the first such arrival, in every schedule.
TEST(Barrier, ACountThatIsOneOff) {
  Tensor in("in", 6, Access::input);
  struct How {
    int count = 128;
    int extra = 0;  // threads that arrive twice
    bool first_only = false;
  };
  const auto kernel = [&](How how) {
    const isa::BarrierName full{"full", 0}, empty{"empty", 0};
    constexpr int stages = 2;
    const auto stage = [](int i) { return barrier(i % stages); };
    const auto freed = [](int i) { return barrier(stages + i % stages); };
    const bool loader = isa::thread_index() == 128;
    for (int i = 0; i < stages && loader; ++i) {
      isa::mbarrier_init(stage(i), 1, full);
      isa::mbarrier_init(freed(i), how.count, empty);
    }
    if (loader) isa::fence_mbarrier_init();
    isa::sync_threads(160);
    if (isa::warp_index() == 4 && !loader) return;
    for (int i = 0; i < 6; ++i) {
      const int phase = i / stages & 1;
      if (loader) {
        isa::mbarrier_wait<Scope::cta>(freed(i), phase ^ 1, empty);
        load_expected(data(i % stages), in, stage(i), i);
        continue;
      }
      isa::mbarrier_wait<Scope::cta>(stage(i), phase, full);
      isa::mbarrier_arrive<Scope::cta>(freed(i));
      if (isa::thread_index() < how.extra && (i == 0 || !how.first_only)) {
        isa::mbarrier_arrive<Scope::cta>(freed(i));
      }
    }
  };
  const Launch launch{.threads = 160, .shared_bytes = 8192};
  for (const How& how :
       {How{.count = 127}, {.extra = 1}, {.count = 64}, {.extra = 1, .first_only = true}}) {
    const auto outcome = run(chosen(kernel, how), launch, in.memory);
    for (const auto& one : outcome.runs) {
      ASSERT_FALSE(one.report.clean()) << how.count << " " << one.schedule;
      EXPECT_EQ(one.report.findings.front().check, Check::stale_parity) << one.report.text();
    }
  }
  expect_guilty(run(chosen(kernel, How{.count = 129}), launch, in.memory), Only{Check::deadlock});
  EXPECT_CLEAN(run(chosen(kernel, How{}), launch, in.memory));
  EXPECT_CLEAN(run(chosen(kernel, How{.count = 129, .extra = 1}), launch, in.memory));
}

// One warp arrives for a barrier that counts two. Triton's ConSan, test_deadlock_underarrival;
// hangs of the kind of vllm-project/vllm #26026 and flashinfer-ai/flashinfer #2623.
TEST(Barrier, TooFewArrivals) {
  const auto kernel = [](int arrivals) {
    if (isa::thread_index() == 0) {
      make_barrier(barrier(), 2, {"empty", 0}, "each warp");
    }
    isa::sync_threads(64);
    const int warp = isa::warp_index();
    if (isa::lane_index() == 0 && warp < arrivals) {
      isa::mbarrier_arrive<Scope::cta>(barrier());
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"empty", 0});
  };
  expect_guilty(run(chosen(kernel, 1), two_warps), Only{Check::deadlock});
  EXPECT_CLEAN(run(chosen(kernel, 2), two_warps));
}

// The leading warp releases the stage for both warps as soon as it has waited itself. Before the
// other warp has looked, the ring has come round: its parity says "not complete" again.
// triton-lang/triton #10035: https://github.com/triton-lang/triton/pull/10035
TEST(Barrier, TheLeadingWarpReleasesForAll) {
  Tensor in("in", 5, Access::input);
  // Nothing orders the wait of warp 1 before the next phase: said in every schedule.
  const auto slips = run(ring(in, Release::one_warp, false), three_warps, in.memory);
  // A starved warp 1 does miss a whole round.
  expect_guilty(slips, Only{Check::stale_parity, Check::deadlock});
  // With reads in it, they race with the next load, too.
  EXPECT_FINDING(run(ring(in, Release::one_warp), three_warps, in.memory), Check::data_race);
  EXPECT_CLEAN(run(ring(in, Release::one_warp_after_meeting), three_warps, in.memory));
}

// All lanes of a warp wait, and lane 0 arrives for them at once: the others may look when the
// barrier has gone on. An instruction that converges the warp is enough to keep them together.
// Our own: the accumulators' barrier on sm_100, of warps without rows
// (pipeline/umma_accumulator.h).
TEST(Barrier, LanesWaitAndLaneZeroArrivesForThem) {
  enum class Between { nothing, syncwarp, shuffle };
  const auto kernel = [](Between between) {
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(barrier(0), 1, {"full", 0});
      isa::mbarrier_init(barrier(1), 1, {"empty", 0});
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    for (int i = 0; i < 4; ++i) {
      if (isa::warp_index() == 0) {
        isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
        if (between == Between::syncwarp) isa::sync_warp();
        if (between == Between::shuffle) (void)isa::elect_one();
        if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      } else if (isa::lane_index() == 0) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        isa::mbarrier_arrive<Scope::cta>(barrier(0));
      }
    }
  };
  const auto slips = run(chosen(kernel, Between::nothing), two_warps);
  EXPECT_EQ(slips.count(Check::stale_parity), static_cast<int>(slips.runs.size())) << slips.text();
  EXPECT_CLEAN(run(chosen(kernel, Between::syncwarp), two_warps));
  EXPECT_CLEAN(run(chosen(kernel, Between::shuffle), two_warps));
}

// A named barrier whose id is none of the 16.
// flashinfer-ai/flashinfer #4533 (correction-reduce barrier ids):
// https://github.com/flashinfer-ai/flashinfer/pull/4533
TEST(Barrier, NamedBarrierOutOfRange) {
  const auto kernel = [](int first) {
    return [=] { isa::named_barrier_sync(first + isa::warp_index(), 32); };
  };
  expect_guilty(run(kernel(15), two_warps), Only{Check::named_barrier});
  EXPECT_CLEAN(run(kernel(14), two_warps));
}

}  // namespace
}  // namespace warpwright::corpus
