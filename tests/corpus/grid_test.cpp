// Grids that follow each other, and the flags and maps that one leaves to the next; what clusters
// hand each other in global memory; loops that wait on plain loads.
#include <stdexcept>

#include "tests/corpus/corpus.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/tma.h"

namespace warpwright::corpus {
namespace {

const Launch overlapped{.ctas = 2, .threads = 32, .launches = 2, .dependent = true};

const Launch warp{.threads = 32};

// A kernel reads its operands, or stores its result, before griddepcontrol.wait: the grid before
// may still write the one and read the other. Our own: every kernel of this library starts early
// (docs/design.md); NVIDIA/cutlass #2087 asks where the wait belongs.
TEST(Grids, TouchesMemoryBeforeTheGridBeforeHasEnded) {
  enum class Wait { none, after_read, by_one_lane, by_one_lane_and_meets, first };
  Buffer<std::uint32_t> in("in", 64, Access::input);
  Buffer<std::uint32_t> out("out", 64);
  Buffer<std::uint32_t> table("table", 64, Access::constant);
  const auto kernel = [&](Wait wait) {
    isa::launch_dependents();
    const int i = isa::cta_index() * 32 + isa::lane_index();
    std::uint32_t value = isa::GlobalView<const std::uint32_t>{table.data()}.load(i);
    const bool one = wait == Wait::by_one_lane || wait == Wait::by_one_lane_and_meets;
    if (wait == Wait::first || (one && isa::lane_index() == 0)) isa::wait_for_prerequisites();
    if (wait == Wait::by_one_lane_and_meets) isa::sync_warp();
    value += isa::GlobalView<const std::uint32_t>{in.data()}.load(i);
    if (wait == Wait::after_read) isa::wait_for_prerequisites();
    isa::GlobalView<std::uint32_t>{out.data()}.store(i, value);
  };
  for (const Wait wait : {Wait::none, Wait::after_read, Wait::by_one_lane}) {
    expect_guilty(run(chosen(kernel, wait), overlapped, in, out, table),
                  Always{Check::before_prerequisites});
  }
  EXPECT_CLEAN(run(chosen(kernel, Wait::by_one_lane_and_meets), overlapped, in, out, table));
  EXPECT_CLEAN(run(chosen(kernel, Wait::first), overlapped, in, out, table));
}

// A copy of many rows is one access.
TEST(Grids, StoresATileBeforeTheGridBeforeHasEnded) {
  Buffer<std::uint32_t> out("out", 64);
  const auto map = model::testing::tensor_map(out, {8, 8, 8, 8});
  const auto kernel = [&](bool waits) {
    const isa::SharedView<std::uint32_t> tile{isa::shared_base()};
    for (int i = 0; i < 64; ++i) tile.store(i, 1);
    isa::fence_proxy_async_shared();
    if (waits) isa::wait_for_prerequisites();
    store_until_written(map, tile.address, isa::Coords{0, 0});
  };
  const Launch one_thread{.threads = 1, .shared_bytes = 1024, .dependent = true};
  const auto outcome = run(chosen(kernel, false), one_thread, out);
  expect_guilty(outcome, Only{Check::before_prerequisites});
  for (const model::testing::Run& r : outcome.runs) EXPECT_EQ(r.report.findings[0].count, 1);
  EXPECT_CLEAN(run(chosen(kernel, true), one_thread, out));
}

// The second launch starts while the first still writes: without the wait both write at once.
TEST(Grids, TwoLaunchesWriteAtOnce) {
  Buffer<std::uint32_t> out("out", 64, Access::output);
  const auto kernel = [&](bool waits) {
    isa::launch_dependents();
    if (waits) isa::wait_for_prerequisites();
    isa::GlobalView<std::uint32_t>{out.data()}.store(isa::cta_index() * 32 + isa::lane_index(), 1);
  };
  expect_mended(kernel, Always{Check::data_race}, overlapped, out);
}

// CTA 0 hands CTA 1 words behind a flag; the flag is 0 before the launch and must be after it. Not
// put back, it lets the next launch read before the words are there.
// Our own: the flags of tiles shared along K (kernel/stream_k_fixup.h).
TEST(Grids, AFlagIsNotPutBack) {
  Buffer<std::uint32_t> words("words", 32);
  Buffer<std::uint32_t> flag("flag", 1);
  flag[0] = 0;
  const auto kernel = [&](bool clears) {
    isa::wait_for_prerequisites();
    const int lane = isa::lane_index();
    const isa::GlobalView<std::uint32_t> view{words.data()};
    if (isa::cta_index() == 0) {
      view.store(lane, 5);
      isa::sync_warp();
      if (lane == 0) isa::flag_set(flag.data(), 1);
      return;
    }
    if (lane == 0) isa::flag_wait(flag.data(), 1);
    isa::sync_warp();
    (void)view.load(lane);
    if (lane == 0 && clears) isa::flag_clear(flag.data());
  };
  Launch launch = overlapped;
  launch.left = [&] { return flag[0] == 0 ? "" : "the flag is " + std::to_string(flag[0]); };
  expect_guilty(run(chosen(kernel, false), launch, words, flag), Always{Check::left_behind});
  flag[0] = 0;
  EXPECT_CLEAN(run(chosen(kernel, true), launch, words, flag));
}

// A grid publishes a tensor map by plain stores; the next acquires it and copies through it. The
// proxy through which copies read maps has seen no release.
// Our own: examples/studies/group_maps; the rule of the CUDA programming guide.
TEST(Grids, AMapIsPublishedByPlainStores) {
  Tensor in("in", 1, Access::input);
  Buffer<isa::TensorMap> map("map", 1);
  Buffer<std::uint32_t> round("round", 1);
  round[0] = 0;
  const auto publish = [&](bool released) {
    const int lane = isa::lane_index();
    constexpr int words = sizeof(isa::TensorMap) / 8;
    const isa::SharedView<std::uint64_t> copy{data()};
    if (lane < words) copy.store(lane, in.map.opaque[lane]);
    isa::sync_warp();
    const isa::GlobalView<std::uint64_t> to{reinterpret_cast<std::uint64_t*>(map.data())};
    if (released) {
      isa::tensormap_cp_fenceproxy(map.data(), data());
    } else if (lane < words) {
      to.store(lane, copy.load(lane));
    }
    isa::sync_warp();
    if (lane == 0) isa::GlobalView<std::uint32_t>{round.data()}.store(0, 1);
  };
  const auto use = [&] {
    if (isa::lane_index() != 0) return;
    make_barrier(barrier(), 1, {"full", 0});
    isa::fence_proxy_tensormap_acquire(map[0]);
    load_and_wait(box_bytes, data(), map[0], barrier(), isa::Coords{0, 0});
  };
  const auto kernel = [&](bool released) {
    isa::wait_for_prerequisites();
    const bool first = isa::GlobalView<std::uint32_t>{round.data()}.load() == 0;
    isa::sync_warp();
    if (first) {
      publish(released);
    } else {
      use();
    }
  };
  const Launch twice{.threads = 32, .shared_bytes = 8192, .launches = 2, .dependent = true};
  const auto broken =
      expect_mended(kernel, Only{Check::tensor_map_changed}, twice, in.memory, map, round);
  expect_says(broken, {"tensormap_cp_fenceproxy"});
}

// CTA 0 stores a box with TMA and tells another cluster by a flag, whose threads read
// it. Legal once the whole group is waited for; not when only its source has been read.
// The completion of a bulk group makes its writes visible to the thread that waits (PTX ISA
// 9.7.9.25), which releases them with the flag.
TEST(Grids, ATmaStoreIsHandedToAnotherCluster) {
  enum class Wait { none, source, whole };
  Tensor out("out", 1, Access::output);
  Buffer<std::uint32_t> flag("flag", 1);
  const auto kernel = [&](Wait wait, bool by_copy, bool fences) {
    flag[0] = 0;
    return [&, wait, by_copy, fences] {
      if (isa::lane_index() != 0) return;
      if (isa::cta_index() == 0) {
        fill(data());
        isa::fence_proxy_async_shared();
        store(out, data());
        if (wait == Wait::source) isa::bulk_wait_read<0>();
        if (wait == Wait::whole) isa::bulk_wait<0>();
        isa::fence_proxy_async_global();
        isa::flag_set(flag.data(), 1);
        isa::bulk_wait<0>();
        return;
      }
      isa::flag_wait(flag.data(), 1);
      if (fences) isa::fence_proxy_async_global();
      if (!by_copy) {
        (void)isa::GlobalView<std::uint16_t>{out.memory.data()}.load(3);
        return;
      }
      make_barrier(barrier(), 1, {"full", 0});
      load_expected(data(), out, barrier());
      isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    };
  };
  const Launch two{.ctas = 2, .threads = 32, .shared_bytes = 8192};
  for (const Wait wait : {Wait::none, Wait::source}) {
    expect_guilty(run(kernel(wait, false, true), two, out.memory, flag), Only{Check::data_race});
  }
  EXPECT_CLEAN(run(kernel(Wait::whole, false, false), two, out.memory, flag));
  EXPECT_CLEAN(run(kernel(Wait::whole, false, true), two, out.memory, flag));
  // A copy that reads it: behind a fence of the reader's, or of the writer's before the flag.
  EXPECT_CLEAN(run(kernel(Wait::whole, true, true), two, out.memory, flag));
}

// Words that a thread writes, and a copy in another cluster reads behind a flag: through the
// asynchronous proxy, and so behind a fence on one side.
TEST(Grids, ACopyReadsWhatAnotherClusterWrote) {
  Tensor words("words", 1, Access::output);
  Buffer<std::uint32_t> flag("flag", 1);
  const auto kernel = [&](bool writer_fences, bool reader_fences) {
    flag[0] = 0;
    return [&, writer_fences, reader_fences] {
      if (isa::cta_index() == 0) {
        isa::GlobalView<std::uint16_t>{words.memory.data()}.store(1, 7);
        if (writer_fences) isa::fence_proxy_async_global();
        isa::flag_set(flag.data(), 1);
        return;
      }
      isa::flag_wait(flag.data(), 1);
      if (reader_fences) isa::fence_proxy_async_global();
      make_barrier(barrier(), 1, {"full", 0});
      load_expected(data(), words, barrier());
      isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    };
  };
  const Launch two{.ctas = 2, .threads = 1, .shared_bytes = 8192};
  expect_guilty(run(kernel(false, false), two, words.memory, flag),
                Only{Check::missing_proxy_fence});
  EXPECT_CLEAN(run(kernel(true, false), two, words.memory, flag));
  EXPECT_CLEAN(run(kernel(false, true), two, words.memory, flag));
}

// A flag in plain memory: the reader's loop may never end, and orders nothing when it does.
// Every "while (*flag == 0)" of the forums; compute-sanitizer has no check for it.
TEST(Grids, ALoopOfPlainLoads) {
  Buffer<std::uint32_t> flag("flag", 2);
  const auto kernel = [&](int sets) {
    flag[0] = flag[1] = 0;
    return [&, sets] {
      const isa::GlobalView<std::uint32_t> word{flag.data()};
      if (isa::cta_index() == 0) {
        if (sets == 1) word.store(1, 1);
        if (sets == 2) isa::flag_set(flag.data() + 1, 1);
        return;
      }
      if (sets == 2) {
        isa::flag_wait(flag.data() + 1, 1);
        return;
      }
      while (word.load(1) == 0) {
      }
    };
  };
  const Launch two{.ctas = 2, .threads = 1};
  const auto hangs = run(kernel(0), two, flag);
  expect_guilty(hangs, Only{Check::spin_budget});
  expect_says(hangs, {"bytes 4 to 7 of flag"});
  // So does one on several words.
  const auto of_two = [&] {
    const isa::GlobalView<std::uint32_t> word{flag.data()};
    while (word.load(0) + word.load(1) < 2) {
    }
  };
  flag[0] = flag[1] = 0;
  expect_guilty(run(of_two, two, flag), Only{Check::spin_budget});
  // So does one that stores in every round, or counts its rounds in memory.
  for (const bool counts : {false, true}) {
    const auto stores = [&] {
      const isa::GlobalView<std::uint32_t> word{flag.data()};
      if (isa::cta_index() == 1) return;
      for (std::uint32_t i = 1; word.load(1) == 0; ++i)
        word.store(0, counts ? word.load(0) + 1 : i);
    };
    flag[0] = flag[1] = 0;
    const auto found = run(stores, two, flag);
    expect_guilty(found, Only{Check::spin_budget});
    expect_says(found, {"bytes 4 to 7 of flag"});
  }
  // Stores that get somewhere are no loop that waits, however often one word is loaded again.
  Buffer<std::uint32_t> all("all", 30000);
  EXPECT_CLEAN(run(
      [&] {
        const isa::GlobalView<std::uint32_t> word{flag.data()}, out{all.data()};
        for (int i = 0; i < 30000; ++i) out.store(i, word.load(1));
      },
      one_thread, flag, all));
  // It ends, and is a race.
  expect_guilty(run(kernel(1), two, flag), Only{Check::data_race});
  EXPECT_CLEAN(run(kernel(2), two, flag));
  // So is a loop on shared memory.
  const auto shared = [](bool mended) {
    isa::SharedView<std::uint32_t> word{data()};
    if (isa::thread_index() == 0) word.store(0, 0);
    isa::sync_threads(64);
    if (isa::thread_index() == 32 && !mended) {
      while (word.load() == 0) {
      }
    }
  };
  expect_guilty(run(chosen(shared, false), two_warps), Only{Check::spin_budget});
  EXPECT_CLEAN(run(chosen(shared, true), two_warps));
}

// What a kernel throws on the model ends the run with a finding, not the process.
TEST(Grids, AnException) {
  const auto kernel = [](bool throws) {
    if (throws && isa::lane_index() == 3) throw std::runtime_error("no such tile");
  };
  const auto broken = run(chosen(kernel, true), warp);
  expect_guilty(broken, Only{Check::exception});
  expect_says(broken, {"lane 3) threw an exception: no such tile"});
  EXPECT_CLEAN(run(chosen(kernel, false), warp));
}

// A loader goes from group to group with one map in global memory, which it changes in place. It
// publishes the next group's map when the loads of the group before are issued, not when they are
// over: a load that still reads the map brings elements of the wrong tensor.
// deepseek-ai/DeepGEMM #343 (SM90, K-grouped) and again #430, #431 (the copy for SM120); the mended
// way is theirs: let the loads land first. That one map serves all groups is our reading.
// https://github.com/deepseek-ai/DeepGEMM/pull/343
TEST(Grids, AMapIsChangedUnderTheLoadsOfTheGroupBefore) {
  constexpr int per_group = 2, groups = 3;
  Tensor even("even groups", per_group, Access::input), odd("odd groups", per_group, Access::input);
  Buffer<isa::TensorMap> map("map", 1);
  const auto kernel = [&](bool drains) {
    const auto full = [](int i) { return barrier(i % 4); };
    const auto empty = [](int i) { return barrier(4 + i % 4); };
    const int lane = isa::lane_index();
    if (isa::thread_index() == 0) {
      for (int i = 0; i < 4; ++i) isa::mbarrier_init(full(i), 1, {"full", i});
      for (int i = 0; i < 4; ++i) isa::mbarrier_init(empty(i), 1, {"empty", i});
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    if (isa::warp_index() == 1) {
      for (int i = 0; i < groups * per_group; ++i) {
        isa::mbarrier_wait<Scope::cta>(full(i), i / 4 & 1);
        read(data(i % 4), lane, 32);
        isa::sync_warp();
        if (lane == 0) isa::mbarrier_arrive<Scope::cta>(empty(i));
      }
      return;
    }
    const isa::SharedView<std::uint64_t> next{data(4)};
    constexpr int words = sizeof(isa::TensorMap) / 8;
    if (lane < words) next.store(lane, even.map.opaque[lane]);
    for (int group = 0; group < groups; ++group) {
      isa::sync_warp();
      for (int i = (group - 1) * per_group; drains && group > 0 && i < group * per_group; ++i) {
        isa::mbarrier_wait<Scope::cta>(full(i), i / 4 & 1);
      }
      Tensor& of = group % 2 == 0 ? even : odd;
      if (lane == 0) isa::tensormap_replace_global_address(next.address, of.memory.data());
      isa::sync_warp();
      isa::tensormap_cp_fenceproxy(map.data(), next.address);
      isa::sync_warp();
      if (lane != 0) continue;
      isa::fence_proxy_tensormap_acquire(map[0]);
      for (int i = group * per_group; i < (group + 1) * per_group; ++i) {
        isa::mbarrier_wait<Scope::cta>(empty(i), (i / 4 & 1) ^ 1);
        expect_load(box_bytes, data(i % 4), map[0], full(i), isa::Coords{0, i % per_group * 8});
      }
    }
  };
  const auto broken = run(chosen(kernel, false), two_warps, even.memory, odd.memory, map);
  expect_guilty(broken, Only{Check::tensor_map_changed});
  EXPECT_CLEAN(run(chosen(kernel, true), two_warps, even.memory, odd.memory, map));
}

// A grouped product that may start early: its loader waits for the grid before and then reads how
// many tiles there are; the warp that multiplies reads it without a wait. Where the grid before
// writes that number, the two roles see different ones, and one of them waits for tiles that the
// other never loads or never takes.
// Dao-AILab/quack #206 (SM100), met in a hang of training on GB200: marin-community/marin #9183.
// Their threads call it a candidate: no probe of theirs made the hang come back.
// https://github.com/Dao-AILab/quack/issues/206
TEST(Grids, ARoleReadsTheGroupsBeforeTheGridBeforeHasEnded) {
  Tensor in("in", 4, Access::input);
  Buffer<std::uint32_t> tiles("tiles", 1);
  const auto kernel = [&](bool every_role_waits) {
    tiles[0] = 4;
    return [&, every_role_waits] {
      isa::launch_dependents();
      const isa::GlobalView<std::uint32_t> count{tiles.data()};
      const bool loader = isa::warp_index() == 1;
      if (isa::thread_index() == 0) {
        isa::mbarrier_init(barrier(0), 1, {"full", 0});
        isa::mbarrier_init(barrier(1), 1, {"empty", 0});
        isa::fence_mbarrier_init();
      }
      isa::sync_threads(64);
      if (loader || every_role_waits) isa::wait_for_prerequisites();
      const int of_mine = static_cast<int>(count.load());
      for (int i = 0; isa::lane_index() == 0 && i < of_mine; ++i) {
        isa::set_role(loader ? "loader" : "multiplier");
        if (loader) {
          isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
          load_expected(data(), in, barrier(0), i);
        } else {
          isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
          read(data());
          isa::mbarrier_arrive<Scope::cta>(barrier(1));
        }
      }
      isa::sync_threads(64);
      if (isa::thread_index() == 32) count.store(0, 1);  // for the next grid
    };
  };
  const Launch launch{.threads = 64, .shared_bytes = 8192, .launches = 2, .dependent = true};
  const auto broken = run(kernel(false), launch, in.memory, tiles);
  expect_guilty(broken, Always{Check::before_prerequisites});
  EXPECT_CLEAN(run(kernel(true), launch, in.memory, tiles));
}

// The layer of a mixture: routing, a product, and the sum over a token's experts, each grid
// starting early. The sum relied on what routing had signalled. Between the two stands the product,
// which is still storing the rows that are summed. flashinfer-ai/flashinfer #3835 (open): on sm_100
// the loads of the sum never came back. Their mend launches the sum without an early start. That
// routing's signal is a flag here is our reading: what a grid waits for is its own launch's affair,
// and the model has that right. https://github.com/flashinfer-ai/flashinfer/pull/3835
TEST(Grids, TheSumOverExpertsWaitsForTheRoutingAlone) {
  Tensor rows("rows of slots", 1, Access::output);
  Buffer<std::uint32_t> routed("routed", 1);
  Buffer<std::uint32_t> layer("layer", 1);
  Buffer<std::uint32_t> sums("sums", 32);
  const auto route_and_multiply = [&] {
    isa::flag_set(routed.data(), 1);
    fill(data());
    isa::fence_proxy_async_shared();
    store(rows, data());
    isa::bulk_wait<0>();
    isa::GlobalView<std::uint32_t>{layer.data()}.store(0, 1);
  };
  const auto sum = [&] {
    const int lane = isa::lane_index();
    const isa::GlobalView<const std::uint16_t> from{rows.memory.data()};
    const std::uint32_t total = from.load(lane) + from.load(64 + lane);
    isa::wait_for_prerequisites();
    isa::GlobalView<std::uint32_t>{sums.data()}.store(lane, total);
  };
  // The first launch routes and multiplies with its warp 0, the second sums with its warp 1.
  const auto kernel = [&](bool waits_for_the_product) {
    routed[0] = layer[0] = 0;
    return [&, waits_for_the_product] {
      isa::launch_dependents();
      const bool sums_up = isa::warp_index() == 1;
      if (sums_up && !waits_for_the_product) {
        if (isa::lane_index() == 0) isa::flag_wait(routed.data(), 1);
        isa::sync_warp();
        return sum();
      }
      isa::wait_for_prerequisites();
      const bool first = isa::GlobalView<const std::uint32_t>{layer.data()}.load() == 0;
      if (waits_for_the_product) isa::sync_threads(64);
      isa::sync_warp();
      if (sums_up && !first) sum();
      if (!sums_up && first && isa::lane_index() == 0) route_and_multiply();
    };
  };
  const Launch launch{.threads = 64, .shared_bytes = 8192, .launches = 2, .dependent = true};
  const auto broken = run(kernel(false), launch, rows.memory, routed, layer, sums);
  expect_guilty(broken, Always{Check::before_prerequisites});
  expect_says(broken, {"rows of slots"});
  EXPECT_CLEAN(run(kernel(true), launch, rows.memory, routed, layer, sums));
}

// A product over an array of pointers: a map in the workspace is pointed at the matrix of the next
// step, and acquired by the step that copies through it. The acquire is missing, or stands before
// the wait for the grid that made the map: the copy may go through the map of the step before.
// flashinfer-ai/flashinfer #4036 (open; CUTLASS' grouped fp8 product on H200): a load met a map
// that was none, more often in CUDA graphs. They suspect the map's update against its use; which
// side lacks what is our reading. https://github.com/flashinfer-ai/flashinfer/issues/4036
TEST(Grids, AnArrayOfPointersWithAStaleMap) {
  enum class Acquire { never, before_the_wait, behind_the_wait };
  Tensor even("even steps", 1, Access::input), odd("odd steps", 1, Access::input);
  Buffer<isa::TensorMap> map("map in the workspace", 1);
  Buffer<const std::uint16_t*> pointers("pointers", 2, Access::constant);
  Buffer<std::uint32_t> step("step", 1);
  pointers[0] = even.memory.data();
  pointers[1] = odd.memory.data();
  const auto multiply = [&] {
    make_barrier(barrier(), 1, {"full", 0});
    load_and_wait(box_bytes, data(), map[0], barrier(), isa::Coords{0, 0});
    read(data());
  };
  const auto point_at = [&](std::uint32_t next_step) {
    const int lane = isa::lane_index();
    const isa::SharedView<std::uint64_t> next{data(2)};
    if (lane < static_cast<int>(sizeof(isa::TensorMap) / 8)) {
      next.store(lane, even.map.opaque[lane]);
    }
    isa::sync_warp();
    if (lane == 0) {
      const auto* const matrix =
          isa::GlobalView<const std::uint16_t* const>{pointers.data()}.load(next_step % 2);
      isa::tensormap_replace_global_address(next.address, matrix);
    }
    isa::sync_warp();
    isa::tensormap_cp_fenceproxy(map.data(), next.address);
    isa::sync_warp();
    if (lane == 0) isa::GlobalView<std::uint32_t>{step.data()}.store(0, next_step);
  };
  const auto kernel = [&](Acquire acquire) {
    step[0] = 0;
    return [&, acquire] {
      isa::launch_dependents();
      if (acquire == Acquire::before_the_wait) isa::fence_proxy_tensormap_acquire(map[0]);
      isa::wait_for_prerequisites();
      const std::uint32_t done = isa::GlobalView<const std::uint32_t>{step.data()}.load();
      isa::sync_warp();
      if (done > 0 && isa::lane_index() == 0) {
        if (acquire == Acquire::behind_the_wait) isa::fence_proxy_tensormap_acquire(map[0]);
        multiply();
      }
      isa::sync_warp();
      point_at(done + 1);
    };
  };
  const Launch steps{.threads = 32, .shared_bytes = 8192, .launches = 3, .dependent = true};
  for (const Acquire wrong : {Acquire::never, Acquire::before_the_wait}) {
    expect_guilty(run(kernel(wrong), steps, even.memory, odd.memory, map, pointers, step),
                  Always{Check::tensor_map_changed});
  }
  EXPECT_CLEAN(
      run(kernel(Acquire::behind_the_wait), steps, even.memory, odd.memory, map, pointers, step));
}

}  // namespace
}  // namespace warpwright::corpus
