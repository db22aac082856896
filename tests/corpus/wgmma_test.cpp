// Bugs of the tensor core's asynchrony and of the register budget.
#include <cmath>
#include <string>

#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

const Launch warpgroup{.threads = 128, .shared_bytes = 16384};

// Operands A and B of one wgmma, two boxes each, written and fenced by `threads` threads.
void operands(int threads) {
  for (int box = 0; box < 4; ++box) fill(data(box), isa::thread_index(), threads);
  isa::fence_proxy_async_shared();
  isa::sync_threads(threads);
}

// The epilogue reads the accumulator while the last group is in flight: no wait, or one that leaves
// the newest group pending.
// triton-lang/triton #8964 (missing waits): https://github.com/triton-lang/triton/pull/8964
TEST(Wgmma, AccumulatorReadBeforeTheWait) {
  const auto kernel = [](int pending) {
    operands(128);
    Accumulator sum;
    isa::wgmma_fence(sum);
    multiply(sum, data(0), data(2));
    isa::wgmma_commit();
    if (pending == 1) isa::wgmma_wait<1>();
    if (pending == 0) isa::wgmma_wait<0>(sum);
    const float first = sum[0];
    isa::wgmma_wait<0>(sum);
    (void)first;
  };
  expect_guilty(run(chosen(kernel, 2), warpgroup), Only{Check::fragment_in_flight});
  expect_guilty(run(chosen(kernel, 1), warpgroup), Only{Check::fragment_in_flight});
  EXPECT_CLEAN(run(chosen(kernel, 0), warpgroup));
}

// The wait covers the wgmma and does not name its accumulator: nothing keeps the compiler from
// reading the registers before the wait.
// CUTLASS's warpgroup_fence_operand after warpgroup_wait (cute/arch/mma_sm90_gmma.hpp).
TEST(Wgmma, TheWaitDoesNotNameTheAccumulator) {
  const auto kernel = [](bool names) {
    operands(128);
    Accumulator sum;
    isa::wgmma_fence(sum);
    multiply(sum, data(0), data(2));
    isa::wgmma_commit();
    if (names) {
      isa::wgmma_wait<0>(sum);
    } else {
      isa::wgmma_wait<0>();
    }
    (void)sum[0];
  };
  expect_mended(kernel, Only{Check::fragment_in_flight}, warpgroup);
}

// Registers are written between the fence and the wgmma that uses them.
// triton-lang/triton #9530 (moves of the operands had to come before wgmma.fence):
// https://github.com/triton-lang/triton/pull/9530
TEST(Wgmma, RegistersWrittenAfterTheFence) {
  const auto kernel = [](bool mended) {
    operands(128);
    Accumulator sum;
    if (!mended) isa::wgmma_fence(sum);
    for (int i = 0; i < 32; ++i) sum[i] = 1.0F;
    if (mended) isa::wgmma_fence(sum);
    multiply(sum, data(0), data(2), true);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(sum);
  };
  expect_mended(kernel, Only{Check::wgmma_unfenced}, warpgroup);
}

// The next A is converted into registers that a wgmma in flight still reads; the wait comes after,
// or does not name them.
// PTX ISA 9.7.15.4: accessing the registers before wgmma.wait_group is undefined, "including the
// registers containing the matrix A"; CUTLASS's mixed-input main loop waits for the same reason.
TEST(Wgmma, RegistersOfAWrittenBeforeTheWait) {
  const auto kernel = [](int waits) {
    operands(128);
    Accumulator sum;
    isa::Fragment<std::uint32_t, 4> a;
    for (int i = 0; i < 2; ++i) {
      for (int r = 0; r < 4; ++r) a[r] = 0x3f803f80;
      isa::wgmma_fence(sum, a);
      isa::wgmma_registers<DType::bf16, 64>(
          sum, a, atom::encode(atom::descriptor(operand, data(2))), i > 0);
      isa::wgmma_commit();
      if (waits == 1) isa::wgmma_wait<0>(sum);
      if (waits == 2) isa::wgmma_wait<0>(sum, a);
    }
    isa::wgmma_wait<0>(sum, a);
  };
  expect_guilty(run(chosen(kernel, 0), warpgroup), Only{Check::fragment_in_flight});
  expect_guilty(run(chosen(kernel, 1), warpgroup), Only{Check::fragment_in_flight});
  EXPECT_CLEAN(run(chosen(kernel, 2), warpgroup));
}

// The same where every step has registers of its own: what they hold ends with the step.
TEST(Wgmma, RegistersOfAEndBeforeTheWait) {
  enum class Waits { after, unnamed, named };
  const auto kernel = [](Waits waits) {
    operands(128);
    Accumulator sum;
    for (int i = 0; i < 2; ++i) {
      isa::Fragment<std::uint32_t, 4> a;
      for (int r = 0; r < 4; ++r) a[r] = 0x3f803f80;
      isa::wgmma_fence(sum, a);
      isa::wgmma_registers<DType::bf16, 64>(
          sum, a, atom::encode(atom::descriptor(operand, data(2))), i > 0);
      isa::wgmma_commit();
      if (waits == Waits::unnamed) isa::wgmma_wait<0>(sum);
      if (waits == Waits::named) isa::wgmma_wait<0>(sum, a);
    }
    isa::wgmma_wait<0>(sum);
  };
  expect_guilty(run(chosen(kernel, Waits::after), warpgroup), Only{Check::fragment_in_flight});
  expect_guilty(run(chosen(kernel, Waits::unnamed), warpgroup), Only{Check::fragment_in_flight});
  EXPECT_CLEAN(run(chosen(kernel, Waits::named), warpgroup));
}

// The registers of A are written between the fence and the wgmma that reads them, or before a fence
// that does not name them, over which the compiler may move the writes.
// CUTLASS's warpgroup_arrive before wgmmas with A from registers (cute/arch/mma_sm90_gmma.hpp).
TEST(Wgmma, RegistersOfAWrittenAfterTheFence) {
  enum class Fence { before, unnamed, named };
  const auto kernel = [](Fence fence) {
    operands(128);
    Accumulator sum;
    isa::Fragment<std::uint32_t, 4> a;
    if (fence == Fence::before) isa::wgmma_fence(sum);
    for (int r = 0; r < 4; ++r) a[r] = 0x3f803f80;
    if (fence == Fence::unnamed) isa::wgmma_fence(sum);
    if (fence == Fence::named) isa::wgmma_fence(sum, a);
    isa::wgmma_registers<DType::bf16, 64>(sum, a, atom::encode(atom::descriptor(operand, data(2))),
                                          false);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(sum, a);
  };
  expect_guilty(run(chosen(kernel, Fence::before), warpgroup), Only{Check::wgmma_unfenced});
  expect_guilty(run(chosen(kernel, Fence::unnamed), warpgroup), Only{Check::wgmma_unfenced});
  EXPECT_CLEAN(run(chosen(kernel, Fence::named), warpgroup));
}

// The stage is released when its wgmmas are issued, not when they have read it.
// NVIDIA/Fuser #3561 (no wrong result ever seen, no sanitizer finding), and why the wait of
// NVIDIA/cutlass #2508 is not redundant: https://github.com/NVIDIA/Fuser/issues/3561,
// https://github.com/NVIDIA/cutlass/issues/2508
TEST(Wgmma, StageReleasedBeforeTheWait) {
  Tensor in("in", 12, Access::input);
  const auto kernel = [&](bool mended) {
    const bool loader = isa::thread_index() == 128;
    if (loader) {
      isa::mbarrier_init(barrier(0), 1, {"full", 0});
      isa::mbarrier_init(barrier(1), 4, {"empty", 0});
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(160);
    Accumulator sum;
    for (int i = 0; i < 3; ++i) {
      if (loader) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        isa::mbarrier_arrive_expect(barrier(0), 4 * box_bytes);
        for (int box = 0; box < 4; ++box) load(data(box), in, barrier(0), i * 4 + box);
      }
      if (isa::warp_index() == 4) continue;
      isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
      isa::wgmma_fence(sum);
      multiply(sum, data(0), data(2), i > 0);
      isa::wgmma_commit();
      if (mended) isa::wgmma_wait<0>(sum);
      if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      if (!mended) isa::wgmma_wait<0>(sum);
    }
  };
  const Launch launch{.threads = 160, .shared_bytes = 16384};
  const auto broken = expect_mended(kernel, Only{Check::in_flight_access}, launch, in.memory);
  expect_says(broken, {"wgmma"});
}

// Two warpgroups read one operand tile; the first overwrites it after its own wait_group<0>, which
// says nothing of the other's reads.
// tile-ai/tilelang #2613: https://github.com/tile-ai/tilelang/issues/2613
TEST(Wgmma, AnotherWarpgroupStillReads) {
  const auto kernel = [](bool mended) {
    Accumulator sum;
    for (int i = 0; i < 2; ++i) {
      if (mended) isa::sync_threads(256);
      if (isa::thread_index() < 128) {
        for (int box = 0; box < 4; ++box) fill(data(box), isa::thread_index(), 128);
        isa::fence_proxy_async_shared();
      }
      isa::sync_threads(256);
      isa::wgmma_fence(sum);
      multiply(sum, data(0), data(2), i > 0);
      isa::wgmma_commit();
      isa::wgmma_wait<0>(sum);
    }
  };
  const Launch two{.threads = 256, .shared_bytes = 16384};
  expect_mended(kernel, Among{Check::in_flight_access}, two);
}

// A group without a k_tile stores an accumulator that nothing has written.
// NVIDIA/cutlass #2674: https://github.com/NVIDIA/cutlass/issues/2674
TEST(Wgmma, GarbageWhereKIsZero) {
  Buffer<float> out("out", 128);
  const auto kernel = [&](int blocks, bool mended) {
    operands(128);
    Accumulator sum;
    for (int block = 0; block < blocks; ++block) {
      isa::wgmma_fence(sum);
      multiply(sum, data(0), data(2), block > 0);
      isa::wgmma_commit();
      isa::wgmma_wait<0>(sum);
    }
    const float value = mended && blocks == 0 ? 0.0F : sum[0];
    isa::GlobalView<float>{out.data()}.store(isa::thread_index(), value);
  };
  Launch launch = warpgroup;
  launch.verify = [&]() -> std::string {
    for (const float x : out) {
      if (std::isnan(x)) return "an element is NaN";
    }
    return "";
  };
  EXPECT_CLEAN(run(chosen(kernel, 2, false), launch, out));
  expect_guilty(run(chosen(kernel, 0, false), launch, out), Only{Check::wrong_result});
  EXPECT_CLEAN(run(chosen(kernel, 0, true), launch, out));
}

// The compute warpgroups ask for more registers than anybody gives back.
// pytorch/helion #3620 (raised to 168, nothing decreased):
// https://github.com/pytorch/helion/pull/3620
TEST(Registers, NobodyGivesAny) {
  const auto kernel = [](bool mended) {
    if (isa::warp_index() < 4) {
      if (mended) isa::decrease_registers<40>();
    } else {
      isa::increase_registers<168>();
    }
  };
  const Launch launch{.threads = 384, .registers_per_thread = 128};
  expect_mended(kernel, Only{Check::deadlock}, launch);
}

// The split 24 / 240 / 240 fits a kernel of three warpgroups that has the SM to itself. A bound of
// two CTAs an SM halves the registers at launch, and the same split waits for ever.
// tile-ai/tilelang #2559: https://github.com/tile-ai/tilelang/issues/2559
TEST(Registers, TheLaunchBoundHalvesThePool) {
  const auto kernel = [] {
    if (isa::warp_index() < 4) {
      isa::decrease_registers<24>();
    } else {
      isa::increase_registers<240>();
    }
  };
  expect_guilty(run(kernel, {.threads = 384, .registers_per_thread = 80}), Only{Check::deadlock});
  EXPECT_CLEAN(run(kernel, {.threads = 384, .registers_per_thread = 168}));
}

}  // namespace
}  // namespace warpwright::corpus
