// Bugs of tcgen05: tensor memory, MMAs that one thread issues for a CTA or a pair, and commits.
#include "warpwright/isa/tcgen05.h"

#include "tests/corpus/corpus.h"
#include "warpwright/atom/cluster.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/tcgen05_scaled.h"

namespace warpwright::corpus {
namespace {

using isa::TmemAddress;

// One CTA, or the two of a pair, of 128 threads. A is 128 x 16 a CTA, four boxes, and B 64 x 16,
// two boxes; the words of tensor memory's address and of barriers lie before them.
const Launch single{.threads = 128, .shared_bytes = 16384};
const Launch warpgroup_pair{.ctas = 2, .cluster_size = 2, .threads = 128, .shared_bytes = 16384};
constexpr atom::OperandTile operand_a{128, 16, 16, atom::Major::k, atom::SmemSwizzle::none};
constexpr atom::OperandTile operand_b{64, 16, 16, atom::Major::k, atom::SmemSwizzle::none};

constexpr atom::UmmaAtom atom_of(int ctas, int n = 64) {
  return atom::umma_atom(DType::bf16, DType::bf16, DType::f32, 128 * ctas, n * ctas, ctas == 2);
}

SharedAddress address_word() {
  return isa::shared_base() + 512;
}

// D at `d` from the operands at `a` and the two boxes after it.
template <int Ctas = 1>
void umma(TmemAddress d, bool accumulate = false, int box = 0, isa::Site site = isa::Site::here()) {
  isa::tcgen05_mma<atom::UmmaKind::f16, Ctas>(
      d, atom::encode_umma(atom::descriptor(operand_a, data(box))),
      atom::encode_umma(atom::descriptor(operand_b, data(box + 4))),
      atom::encode_instruction(atom_of(Ctas)), accumulate, site);
}

void fill_operands(bool fence = true) {
  for (int box = 0; box < 6; ++box) fill(data(box), isa::thread_index(), 128);
  if (fence) isa::fence_proxy_async_shared();
}

template <int Ctas = 1>
void allocate(int columns) {
  if (isa::warp_index() == 0) isa::tcgen05_allocate<Ctas>(address_word(), columns);
}

template <int Ctas = 1>
void deallocate(TmemAddress tmem, int columns) {
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<Ctas>(tmem, columns);
}

// The CTA's operands, `columns` of tensor memory and barriers that each expect one arrival.
template <int Ctas = 1>
TmemAddress start(int columns, int barriers = 1) {
  fill_operands();
  if constexpr (Ctas == 2) cluster_sync();
  allocate<Ctas>(columns);
  if (isa::thread_index() == 0) {
    for (int i = 0; i < barriers; ++i) isa::mbarrier_init(barrier(i), 1, {"done", i});
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(128);
  if constexpr (Ctas == 2) cluster_sync();
  return isa::SharedView<std::uint32_t>{address_word()}.load();
}

TmemAddress own_lanes(TmemAddress tmem) {
  return tmem + atom::tmem_address(32 * (isa::warp_index() % 4), 0);
}

float load_one(TmemAddress from, isa::Site site = isa::Site::here()) {
  isa::Fragment<float, 8> f;
  isa::tcgen05_load(f, from, site);
  isa::tcgen05_wait_load(f, site);
  return f[0];
}

// The threads of the CTA learn that what barrier `i` counts is over, and give the memory back.
template <int Ctas = 1>
void finish(TmemAddress tmem, int columns, int i = 0) {
  isa::mbarrier_wait<Scope::cta>(barrier(i), 0, {"done", i});
  isa::tcgen05_fence_after_sync();
  deallocate<Ctas>(tmem, columns);
}

bool issuer() {
  return isa::thread_index() == 0 && isa::cluster_rank() == 0;
}

// --- U1: allocation ------------------------------------------------------------------------------

// Not every CTA gives its columns back.
// Compute Sanitizer 2025.2 (leak report of memcheck)
TEST(Tcgen05, ColumnsThatAreNotGivenBack) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64);
    if (mended) deallocate(tmem, 64);
  };
  expect_mended(kernel, Only{Check::tmem_allocation}, single);
}

// Allocation after the permit is given up; a count that is no power of two; one that grows.
// ptxas -g-tmem-access-check (CUDA 12.8), PTX ISA 9.7.16.7
TEST(Tcgen05, AllocationsOutOfRule) {
  const auto kernel = [](int first, int second, bool relinquish) {
    const bool allocator = isa::warp_index() == 0;
    TmemAddress at[2] = {};
    for (int i = 0; i < 2; ++i) {
      if (!allocator) return;
      isa::tcgen05_allocate<1>(address_word(), i == 0 ? first : second);
      isa::sync_warp();
      at[i] = isa::SharedView<std::uint32_t>{address_word()}.load();
      isa::sync_warp();
      if (i == 0 && relinquish) isa::tcgen05_relinquish<1>();
    }
    isa::tcgen05_deallocate<1>(at[0], first);
    isa::tcgen05_deallocate<1>(at[1], second);
  };
  expect_guilty(run(chosen(kernel, 64, 64, true), single), Only{Check::tmem_allocation});
  expect_guilty(run(chosen(kernel, 32, 64, false), single), Only{Check::tmem_allocation});
  expect_guilty(run(chosen(kernel, 96, 32, false), single), Only{Check::tmem_allocation});
  EXPECT_CLEAN(run(chosen(kernel, 64, 32, false), single));
}

// Nobody gives columns back for which an allocation waits.
TEST(Tcgen05, AnAllocationThatNeverFits) {
  const auto kernel = [](bool mended) {
    if (isa::warp_index() > 0) return;
    TmemAddress first = 0;
    for (int i = 0; i < 2; ++i) {
      isa::tcgen05_allocate<1>(address_word(), 512);
      isa::sync_warp();
      first = isa::SharedView<std::uint32_t>{address_word()}.load();
      isa::sync_warp();
      if (mended) isa::tcgen05_deallocate<1>(first, 512);
    }
  };
  expect_mended(kernel, Only{Check::deadlock}, single);
}

// The accumulator is wider than what was allocated.
TEST(Tcgen05, AccumulatorBeyondTheAllocation) {
  const auto kernel = [](int columns) {
    const TmemAddress tmem = start(columns);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    finish(tmem, columns);
  };
  expect_guilty(run(chosen(kernel, 32), single), Only{Check::tmem_allocation});
  EXPECT_CLEAN(run(chosen(kernel, 64), single));
}

// --- U2, U3, U4 ----------------------------------------------------------------------------------

// A warp reads the rows of another: warps 4 to 7 begin at lane 0 again, not at 128.
TEST(Tcgen05, LanesOfAnotherWarp) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    isa::tcgen05_fence_after_sync();
    (void)load_one(mended ? own_lanes(tmem) : tmem);
    isa::sync_threads(128);
    deallocate(tmem, 64);
  };
  expect_mended(kernel, Only{Check::tmem_lanes}, single);
}

// The instruction descriptor of another kind, of another group, or with a reserved bit; a matrix
// descriptor made for wgmma.
TEST(Tcgen05, DescriptorsOfAnotherInstruction) {
  const std::uint32_t right = atom::encode_instruction(atom_of(1));
  const auto kernel = [](std::uint32_t word, bool wgmma) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      const atom::Descriptor a = atom::descriptor(operand_a, data());
      const atom::Descriptor b = atom::descriptor(operand_b, data(4));
      isa::tcgen05_mma<atom::UmmaKind::f16, 1>(tmem, wgmma ? atom::encode(a) : atom::encode_umma(a),
                                               atom::encode_umma(b), word, false);
      isa::tcgen05_commit<1>(barrier());
    }
    finish(tmem, 64);
  };
  const std::uint32_t fp8 = atom::encode_instruction(
      atom::umma_atom(DType::tf32, DType::tf32, DType::f32, 128, 64, false));
  expect_guilty(run(chosen(kernel, fp8, false), single), Only{Check::bad_instruction});
  const std::uint32_t tall = atom::encode_instruction(atom_of(2));
  expect_guilty(run(chosen(kernel, tall, false), single), Only{Check::bad_instruction});
  expect_guilty(run(chosen(kernel, right | 1U << 23, false), single), Only{Check::bad_instruction});
  expect_guilty(run(chosen(kernel, right, true), single), Only{Check::bad_descriptor});
  EXPECT_CLEAN(run(chosen(kernel, right, false), single));
}

// Allocated for a pair, used by each CTA for itself.
TEST(Tcgen05, GroupsOfTwoSizes) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start<2>(128);
    if (issuer()) {
      umma<2>(tmem);
      if (mended) {
        isa::tcgen05_commit_multicast<2>(barrier(), 3);
      } else {
        isa::tcgen05_commit_multicast<1>(barrier(), 3);
      }
    }
    finish<2>(tmem, 128);
  };
  expect_mended(kernel, Only{Check::mixed_groups}, warpgroup_pair);
}

// --- U5, U6: the order of tensor memory ----------------------------------------------------------

// The epilogue reads the accumulator without a commit, or without the fence after its wait.
// JAX Mosaic GPU interpreter (tcgen05 ordering tests), PTX ISA 9.7.16.6
TEST(Tcgen05, AccumulatorReadTooEarly) {
  const auto kernel = [](bool wait, bool fence) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    if (wait) isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    if (fence) isa::tcgen05_fence_after_sync();
    isa::sync_threads(128);
    (void)load_one(own_lanes(tmem));
    if (!wait) isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    isa::sync_threads(128);
    deallocate(tmem, 64);
  };
  expect_guilty(run(chosen(kernel, false, true), single), Only{Check::tmem_unordered});
  expect_guilty(run(chosen(kernel, true, false), single), Only{Check::tmem_fence});
  EXPECT_CLEAN(run(chosen(kernel, true, true), single));
}

// The accumulator goes back to the issuer before the epilogue's loads are over, or without a fence
// on either side.
TEST(Tcgen05, AccumulatorGivenBackTooEarly) {
  const auto kernel = [](bool wait, bool before, bool after) {
    const TmemAddress tmem = start(64, 2);
    for (int tile = 0; tile < 2; ++tile) {
      if (issuer()) {
        if (tile > 0 && after) isa::tcgen05_fence_after_sync();
        umma(tmem);
        isa::tcgen05_commit<1>(barrier(tile));
      }
      isa::mbarrier_wait<Scope::cta>(barrier(tile), 0);
      isa::tcgen05_fence_after_sync();
      isa::Fragment<float, 8> f;
      isa::tcgen05_load(f, own_lanes(tmem));
      if (wait) isa::tcgen05_wait_load(f);
      if (before) isa::tcgen05_fence_before_sync();
      isa::sync_threads(128);
      if (!wait) isa::tcgen05_wait_load(f);
    }
    isa::sync_threads(128);
    deallocate(tmem, 64);
  };
  expect_guilty(run(chosen(kernel, false, true, true), single), Only{Check::tmem_unordered});
  expect_guilty(run(chosen(kernel, true, false, true), single), Only{Check::tmem_fence});
  expect_guilty(run(chosen(kernel, true, true, false), single), Only{Check::tmem_fence});
  EXPECT_CLEAN(run(chosen(kernel, true, true, true), single));
}

// A warp stores and loads the same columns: nothing orders the two but wait::st.
TEST(Tcgen05, StoreThenLoad) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64);
    isa::Fragment<float, 8> f;
    for (int i = 0; i < 8; ++i) f[i] = 1.0F;
    isa::tcgen05_store(own_lanes(tmem), f);
    if (mended) isa::tcgen05_wait_store();
    (void)load_one(own_lanes(tmem));
    isa::tcgen05_wait_store();
    isa::tcgen05_fence_before_sync();
    isa::sync_threads(128);
    deallocate(tmem, 64);
  };
  expect_mended(kernel, Only{Check::tmem_unordered}, single);
}

// The columns are given back while a warp still loads from them.
TEST(Tcgen05, GivenBackWhileAWarpLoads) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    isa::tcgen05_fence_after_sync();
    if (isa::warp_index() == 1) (void)load_one(own_lanes(tmem));
    if (mended) isa::sync_threads(128);
    deallocate(tmem, 64);
  };
  expect_mended(kernel, Only{Check::tmem_unordered, Check::tmem_allocation}, single);
}

// --- registers and operands ----------------------------------------------------------------------

// Registers read before tcgen05.wait::ld, or a warp that leaves without it.
TEST(Tcgen05, RegistersBeforeTheWait) {
  const auto kernel = [](bool early, bool wait) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    isa::tcgen05_fence_after_sync();
    isa::Fragment<float, 8> f;
    if (isa::warp_index() == 0) {
      isa::tcgen05_load(f, own_lanes(tmem));
      if (early) (void)f[0];
      if (wait) isa::tcgen05_wait_load(f);
      deallocate(tmem, 64);
    }
  };
  expect_guilty(run(chosen(kernel, true, true), single), Only{Check::fragment_in_flight});
  expect_guilty(run(chosen(kernel, false, false), single),
                Only{Check::undrained_exit, Check::tmem_unordered});
  EXPECT_CLEAN(run(chosen(kernel, false, true), single));
}

// The first MMA of a tile adds to what is in tensor memory.
TEST(Tcgen05, FirstMmaAccumulates) {
  const auto kernel = [](bool accumulate) {
    const TmemAddress tmem = start(64);
    if (issuer()) {
      umma(tmem, accumulate);
      isa::tcgen05_commit<1>(barrier());
    }
    finish(tmem, 64);
  };
  expect_guilty(run(chosen(kernel, true), single), Only{Check::uninitialised_read});
  EXPECT_CLEAN(run(chosen(kernel, false), single));
}

// Operands written by threads, and no proxy fence.
TEST(Tcgen05, NoFenceBeforeAnMma) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64);
    fill_operands(mended);
    isa::sync_threads(128);
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit<1>(barrier());
    }
    finish(tmem, 64);
  };
  // Where a starved warp writes last, the others have fenced: too early.
  expect_mended(kernel, Only{Check::missing_proxy_fence, Check::misplaced_proxy_fence}, single);
}

// A stage is handed back when its MMA is issued, not when it has read it.
TEST(Tcgen05, StageReleasedBeforeTheCommit) {
  Tensor in("in", 6, Access::input);
  const auto kernel = [&](bool mended) {
    const TmemAddress tmem = start(64, 3);
    if (issuer()) {
      umma(tmem);
      if (mended) {
        isa::tcgen05_commit<1>(barrier(1));
      } else {
        isa::mbarrier_arrive<Scope::cta>(barrier(1));
      }
      isa::tcgen05_commit<1>(barrier());
    }
    if (isa::thread_index() == 32) {
      isa::mbarrier_wait<Scope::cta>(barrier(1), 0);
      load_expected(data(), in, barrier(2));
      isa::mbarrier_wait<Scope::cta>(barrier(2), 0);
    }
    isa::sync_warp();
    finish(tmem, 64);
  };
  expect_mended(kernel, Only{Check::in_flight_access}, single, in.memory);
}

// --- U7: pairs and commits across CTAs -----------------------------------------------------------

// Tensor memory is allocated for the pair before the cluster has met.
// NVIDIA/cutlass #3316: https://github.com/NVIDIA/cutlass/pull/3316
TEST(Tcgen05, PairAllocatesBeforeThePeerIsKnownToRun) {
  const auto kernel = [](bool mended) {
    if (mended) cluster_sync();
    allocate<2>(64);
    isa::sync_threads(128);
    cluster_sync();
    deallocate<2>(isa::SharedView<std::uint32_t>{address_word()}.load(), 64);
  };
  expect_mended(kernel, Only{Check::pair_lifetime}, warpgroup_pair);
}

// Only one CTA of the pair comes to the collective allocation.
TEST(Tcgen05, HalfAPairAllocates) {
  const auto kernel = [](bool mended) {
    cluster_sync();
    if (mended || isa::cluster_rank() == 0) allocate<2>(64);
    isa::sync_threads(128);
    cluster_sync();
    deallocate<2>(isa::SharedView<std::uint32_t>{address_word()}.load(), 64);
  };
  expect_mended(kernel, Only{Check::deadlock}, warpgroup_pair);
}

// A CTA leaves before the commit of its peer, which nobody there waits for, has arrived.
TEST(Tcgen05, ExitBeforeThePeersCommit) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start(64, 2);
    cluster_sync();
    if (issuer()) {
      umma(tmem);
      isa::tcgen05_commit_multicast<1>(barrier(), 3);
      isa::tcgen05_commit<1>(barrier(1));
    }
    if (isa::cluster_rank() == 0) return finish(tmem, 64, 1);
    if (mended) isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    deallocate(tmem, 64);
  };
  expect_mended(kernel, Only{Check::pair_lifetime}, warpgroup_pair);
}

// The pair's odd CTA leaves while the MMA reads its half of the operands.
TEST(Tcgen05, ExitDuringThePairsMma) {
  const auto kernel = [](bool mended) {
    const TmemAddress tmem = start<2>(128);
    if (issuer()) {
      umma<2>(tmem);
      isa::tcgen05_commit_multicast<2>(barrier(), mended ? 3 : 1);
    }
    if (mended || isa::cluster_rank() == 0) isa::mbarrier_wait<Scope::cta>(barrier(), 0);
    isa::tcgen05_fence_after_sync();
    deallocate<2>(tmem, 128);
  };
  expect_mended(kernel, OnlyLate{Check::tmem_unordered}, warpgroup_pair);
}

// The commit mask leaves a CTA out that waits for the stage.
// Triton ConSan (test_tcgen5_commit_multicast_barrier_count)
TEST(Tcgen05, CommitMaskTooNarrow) {
  const auto kernel = [](std::uint16_t mask) {
    const TmemAddress tmem = start<2>(128);
    if (issuer()) {
      umma<2>(tmem);
      isa::tcgen05_commit_multicast<2>(barrier(), mask);
    }
    finish<2>(tmem, 128);
  };
  expect_guilty(run(chosen(kernel, 1), warpgroup_pair), Only{Check::deadlock});
  expect_guilty(run(chosen(kernel, 7), warpgroup_pair), Only{Check::multicast_mask});
  EXPECT_CLEAN(run(chosen(kernel, 3), warpgroup_pair));
}

// Both CTAs' loads signal the even one, which expects the bytes of both.
TEST(Tcgen05, PairLoadsSignalTheLeader) {
  Tensor in("in", 12, Access::input);
  const auto kernel = [&](int expected, bool leader) {
    const TmemAddress tmem = start<2>(128, 2);
    const bool even = isa::cluster_rank() == 0;
    if (isa::thread_index() == 0) {
      const SharedAddress own = barrier(1);
      if (even) isa::mbarrier_arrive_expect(own, expected * box_bytes);
      for (int box = 0; box < 6; ++box) {
        isa::tensor_load<2>(data(box), in.map, leader ? atom::pair_leader_address(own) : own,
                            isa::Coords{0, (6 * isa::cluster_rank() + box) * 8});
      }
    }
    if (issuer()) {
      isa::mbarrier_wait<Scope::cta>(barrier(1), 0);
      umma<2>(tmem);
      isa::tcgen05_commit_multicast<2>(barrier(), 3);
    }
    isa::sync_warp();
    finish<2>(tmem, 128);
  };
  EXPECT_FINDING(run(chosen(kernel, 6, true), warpgroup_pair, in.memory), Check::transaction_bytes);
  EXPECT_FINDING(run(chosen(kernel, 12, false), warpgroup_pair, in.memory), Check::deadlock);
  EXPECT_CLEAN(run(chosen(kernel, 12, true), warpgroup_pair, in.memory));
}

// --- scales in tensor memory
// ----------------------------------------------------------------------

// Columns of scales are copied anew behind MMAs of a pair that still read them. The thread that
// issued those may do so at once. The warp that puts scales into order may not: it waits for the
// MMAs' commit, not for a word of the issuer.
// deepseek-ai/DeepGEMM, impls/sm100_fp8_fp4_gemm_1d1d.cuh: a comment there doubts whether the
// copies of two CTAs are behind the MMAs before them; the ISA says so of one thread since 9.3. Who
// copies here in the thread's place is our own.
TEST(Tcgen05, ScalesOfAPairAreCopiedOverMmasThatReadThem) {
  enum class Copies : std::uint8_t { issuer, another_behind_a_word, another_behind_the_commit };
  constexpr atom::OperandTile a{128, 32, 8, atom::Major::k, atom::SmemSwizzle::none};
  constexpr atom::OperandTile b{64, 32, 8, atom::Major::k, atom::SmemSwizzle::none};
  constexpr atom::UmmaAtom mma =
      atom::scaled_umma_atom(atom::UmmaKind::mxf8f6f4, DType::e4m3, DType::e4m3, 256, 128, true);
  constexpr TmemAddress scales = 128;  // behind D
  const auto copy = [](TmemAddress tmem) {
    for (const TmemAddress column : {0U, 4U}) {
      isa::tcgen05_copy<isa::TmemCopy::b32x128_warpx4, 2>(
          tmem + scales + column,
          atom::encode_umma(atom::scale_descriptor(data(6) + 128 * column)));
    }
  };
  const auto multiply = [&](TmemAddress tmem, bool accumulate) {
    isa::tcgen05_mma_scaled<atom::UmmaKind::mxf8f6f4, 32, 2>(
        tmem, atom::encode_umma(atom::descriptor(a, data())),
        atom::encode_umma(atom::descriptor(b, data(4))), atom::encode_instruction(mma),
        tmem + scales, tmem + scales + 4, accumulate);
  };
  const auto kernel = [&](Copies who) {
    fill(data(6), isa::thread_index(), 128);
    const TmemAddress tmem = start<2>(256, 3);
    if (isa::thread_index() == 32 && isa::cluster_rank() == 0 && who != Copies::issuer) {
      isa::mbarrier_wait<Scope::cta>(barrier(1), 0);
      isa::tcgen05_fence_after_sync();
      copy(tmem);
      isa::tcgen05_commit<2>(barrier(2));
    }
    if (issuer()) {
      copy(tmem);
      multiply(tmem, false);
      if (who == Copies::another_behind_the_commit) isa::tcgen05_commit<2>(barrier(1));
      if (who == Copies::another_behind_a_word) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      if (who == Copies::issuer) {
        copy(tmem);
      } else {
        isa::mbarrier_wait<Scope::cta>(barrier(2), 0);
        isa::tcgen05_fence_after_sync();
      }
      multiply(tmem, true);
      isa::tcgen05_commit_multicast<2>(barrier(), 3);
    }
    isa::sync_warp();
    finish<2>(tmem, 256);
  };
  EXPECT_FINDING(run(chosen(kernel, Copies::another_behind_a_word), warpgroup_pair),
                 Check::tmem_unordered);
  EXPECT_CLEAN(run(chosen(kernel, Copies::another_behind_the_commit), warpgroup_pair));
  EXPECT_CLEAN(run(chosen(kernel, Copies::issuer), warpgroup_pair));
}

// --- tails: what a CTA without rows of its own still owes ---------------------------------------

// The last pair of a grid has rows only for its even CTA. The odd one leaves its loads out, and
// the even one's barrier expects the bytes of both. The load of rows outside the tensor brings
// zeros, and counts. flashinfer-ai/flashinfer #4814 (MXFP4 grouped product, B300): two-CTA tactics
// hang where those of one CTA end. The thread names no cause; this one is our reading.
// https://github.com/flashinfer-ai/flashinfer/issues/4814
TEST(Tcgen05, ATailCtaOfAPairLeavesItsLoadsOut) {
  Tensor in("in", 6, Access::input);
  const auto kernel = [&](bool mended) {
    const TmemAddress tmem = start<2>(128, 2);
    const bool even = isa::cluster_rank() == 0;
    if (isa::thread_index() == 0) {
      const SharedAddress own = barrier(1);
      if (even) isa::mbarrier_arrive_expect(own, 12 * box_bytes);
      for (int box = 0; box < 6 && (even || mended); ++box) {
        isa::tensor_load<2>(data(box), in.map, atom::pair_leader_address(own),
                            isa::Coords{0, (6 * isa::cluster_rank() + box) * 8});
      }
    }
    if (issuer()) {
      isa::mbarrier_wait<Scope::cta>(barrier(1), 0);
      umma<2>(tmem);
      isa::tcgen05_commit_multicast<2>(barrier(), 3);
    }
    isa::sync_warp();
    finish<2>(tmem, 128);
  };
  expect_mended(kernel, Among{Check::deadlock}, warpgroup_pair, in.memory);
}

// A CTA beyond the last tile goes round the allocation, and not round its end.
// flashinfer-ai/flashinfer #4611, #4032 (NVFP4 grouped product of experts, SM103): warps stop at
// "unallocated columns being deallocated" in a tail CTA, and the kernel behind waits for ever.
// Where the tail branches is our own. https://github.com/flashinfer-ai/flashinfer/issues/4611
TEST(Tcgen05, ATailCtaGivesBackWhatItDidNotAllocate) {
  const auto kernel = [](bool mended) {
    const bool tail = isa::cta_index() == 1;
    if (isa::thread_index() == 0) isa::SharedView<std::uint32_t>{address_word()}.store(0, 0U);
    isa::sync_threads(128);
    if (!tail) allocate(64);
    isa::sync_threads(128);
    const TmemAddress tmem = isa::SharedView<std::uint32_t>{address_word()}.load();
    if (!tail || !mended) deallocate(tmem, 64);
  };
  Launch two = single;
  two.ctas = 2;
  expect_mended(kernel, Only{Check::tmem_allocation}, two);
}

// A group without tokens: the thread that loads skips its tile, and the one that multiplies counts
// it. From then on it waits for the other phase of the stage.
// flashinfer-ai/flashinfer #3971 (NVFP4 grouped product, SM103): clusters stay in a wait for a
// phase of an mbarrier. The thread blames newly generated kernels and names no line; the skipped
// tile is our reading. https://github.com/flashinfer-ai/flashinfer/issues/3971
TEST(Tcgen05, AnEmptyGroupsTileIsCountedByOneRoleAlone) {
  Tensor in("in", 18, Access::input);
  const auto kernel = [&](bool mended) {
    const TmemAddress tmem = start(64, 3);  // done, full, empty: a ring of one stage
    constexpr int tokens[] = {128, 0, 128};
    if (isa::thread_index() == 32) {
      int loaded = 0;
      for (int group = 0; group < 3; ++group) {
        if (tokens[group] == 0) continue;
        isa::mbarrier_wait<Scope::cta>(barrier(2), (loaded & 1) ^ 1);
        isa::mbarrier_arrive_expect(barrier(1), 6 * box_bytes);
        for (int box = 0; box < 6; ++box) load(data(box), in, barrier(1), 6 * group + box);
        ++loaded;
      }
    }
    if (issuer()) {
      int multiplied = 0;
      for (int group = 0; group < 3; ++group) {
        if (tokens[group] == 0) {
          if (!mended) ++multiplied;
          continue;
        }
        isa::mbarrier_wait<Scope::cta>(barrier(1), multiplied & 1);
        umma(tmem, group > 0);
        isa::tcgen05_commit<1>(barrier(2));
        ++multiplied;
      }
      isa::tcgen05_commit<1>(barrier());
    }
    isa::sync_warp();
    finish(tmem, 64);
  };
  EXPECT_FINDING(run(chosen(kernel, false), single, in.memory), Check::deadlock);
  expect_mended(kernel, Among{Check::stale_parity}, single, in.memory);
}

// Two accumulators of 64 columns share the middle 32, so that a tile's MMAs may begin when the tile
// before has been read that far. The epilogue gives the shared columns back between two loads: one
// load too early, when the last of them is still to be read.
// NVIDIA/cudnn-frontend #652, #654, #673 (SM100 and SM107, grouped GEMM of a mixture of experts),
// which gives the order: load, wait::ld, fence, arrival. Halves of two loads are our own.
// https://github.com/NVIDIA/cudnn-frontend/issues/652
TEST(Tcgen05, SharedColumnsGivenBackOneLoadTooEarly) {
  constexpr int tiles = 4;
  const auto kernel = [](bool mended) {
    fill_operands();
    allocate(128);
    if (isa::thread_index() == 0) {
      isa::mbarrier_init(barrier(0), 1, {"accumulator full"}, "the commit");
      isa::mbarrier_init(barrier(1), 4, {"shared columns free"}, "each warp");
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(160);
    const TmemAddress tmem = isa::SharedView<std::uint32_t>{address_word()}.load();
    const auto accumulator = [&](int tile) { return tmem + atom::tmem_address(0, tile % 2 * 32); };
    for (int tile = 0; isa::thread_index() == 128 && tile < tiles; ++tile) {
      isa::set_role("issuer");
      if (tile > 0) isa::mbarrier_wait<Scope::cta>(barrier(1), (tile - 1) & 1);
      isa::tcgen05_fence_after_sync();
      umma(accumulator(tile));
      isa::tcgen05_commit<1>(barrier(0));
    }
    for (int tile = 0; isa::warp_index() < 4 && tile < tiles; ++tile) {
      isa::set_role("epilogue");
      isa::mbarrier_wait<Scope::cta>(barrier(0), tile & 1);
      isa::tcgen05_fence_after_sync();
      // The shared half comes first: columns 32 to 63 of tensor memory.
      const int first = tile % 2 == 0 ? 32 : 0;
      const auto release = [] {
        isa::tcgen05_fence_before_sync();
        isa::sync_warp();
        if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(barrier(1));
      };
      for (int i = 0; i < 8; ++i) {
        if (!mended && i == 3) release();
        const int column = (first + 8 * i) % 64;
        (void)load_one(own_lanes(accumulator(tile)) + atom::tmem_address(0, column));
        if (mended && i == 3) release();
      }
    }
    isa::tcgen05_fence_before_sync();
    isa::sync_threads(160);
    isa::tcgen05_fence_after_sync();
    deallocate(tmem, 128);
  };
  const Launch five_warps{.threads = 160, .shared_bytes = 16384};
  expect_mended(kernel, Only{Check::tmem_unordered}, five_warps);
}

}  // namespace
}  // namespace warpwright::corpus
