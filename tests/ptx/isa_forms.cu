// Every form of the sm_100 instructions in isa/, once: isa_test.py compiles it and reads the
// result.
#include "warpwright/isa/clc.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/tcgen05_scaled.h"
#include "warpwright/isa/tma.h"

namespace {

using namespace warpwright;
using isa::SharedAddress;
using isa::TmemAddress;
using isa::TmemCopy;
using isa::TmemShape;

struct Words {
  std::uint64_t a;
  std::uint64_t b;
  std::uint32_t instruction;
};

template <atom::UmmaKind Kind, int Block, int Ctas>
__device__ void scaled_forms(TmemAddress tmem, const Words& w) {
  isa::tcgen05_mma_scaled<Kind, Block, Ctas>(tmem, w.a, w.b, w.instruction, tmem + 256, tmem + 260,
                                             true);
  isa::tcgen05_mma_scaled_tmem<Kind, Block, Ctas>(tmem, tmem + 64, w.b, w.instruction, tmem + 256,
                                                  tmem + 260, true);
}

template <TmemCopy Shape, int Ctas>
__device__ void copy_forms(TmemAddress tmem, std::uint64_t from) {
  isa::tcgen05_copy<Shape, Ctas>(tmem, from);
  isa::tcgen05_copy<Shape, Ctas, isa::TmemWiden::from_b4x16_p64>(tmem, from);
  isa::tcgen05_copy<Shape, Ctas, isa::TmemWiden::from_b6x16_p32>(tmem, from);
}

template <int Ctas>
__device__ void mma_forms(TmemAddress tmem, const Words& w, SharedAddress barrier) {
  isa::tcgen05_mma<atom::UmmaKind::f16, Ctas>(tmem, w.a, w.b, w.instruction, false);
  isa::tcgen05_mma<atom::UmmaKind::tf32, Ctas>(tmem, w.a, w.b, w.instruction, true);
  isa::tcgen05_mma<atom::UmmaKind::f8f6f4, Ctas>(tmem, w.a, w.b, w.instruction, true);
  isa::tcgen05_mma_tmem<atom::UmmaKind::f16, Ctas>(tmem, tmem + 64, w.b, w.instruction, true);
  isa::tcgen05_mma_tmem<atom::UmmaKind::tf32, Ctas>(tmem, tmem + 64, w.b, w.instruction, true);
  isa::tcgen05_mma_tmem<atom::UmmaKind::f8f6f4, Ctas>(tmem, tmem + 64, w.b, w.instruction, true);
  scaled_forms<atom::UmmaKind::mxf8f6f4, 32, Ctas>(tmem, w);
  scaled_forms<atom::UmmaKind::mxf4, 32, Ctas>(tmem, w);
  scaled_forms<atom::UmmaKind::mxf4nvf4, 32, Ctas>(tmem, w);
  scaled_forms<atom::UmmaKind::mxf4nvf4, 16, Ctas>(tmem, w);
  copy_forms<TmemCopy::b32x128_warpx4, Ctas>(tmem, w.a);
  copy_forms<TmemCopy::b128x256, Ctas>(tmem, w.a);
  copy_forms<TmemCopy::b128x128, Ctas>(tmem, w.a);
  copy_forms<TmemCopy::b4x256, Ctas>(tmem, w.a);
  copy_forms<TmemCopy::b64x128_warpx2_02_13, Ctas>(tmem, w.a);
  copy_forms<TmemCopy::b64x128_warpx2_01_23, Ctas>(tmem, w.a);
  isa::tcgen05_commit<Ctas>(barrier);
  isa::tcgen05_commit_multicast<Ctas>(barrier, 3);
}

template <TmemShape Shape, int N>
__device__ float there_and_back(TmemAddress tmem) {
  isa::Fragment<float, N> fragment;
  isa::tcgen05_load<Shape>(fragment, tmem);
  isa::tcgen05_wait_load(fragment);
  float sum = 0;
  for (int i = 0; i < N; ++i) sum += fragment[i];
  for (int i = 0; i < N; ++i) fragment[i] = sum;
  isa::tcgen05_store<Shape>(tmem, fragment);
  isa::tcgen05_wait_store();
  return sum;
}

template <int Ctas, int Rank>
__device__ void load_forms(const isa::TensorMap& map, SharedAddress to, SharedAddress barrier) {
  isa::Coords<Rank> at{};
  isa::tensor_load<Ctas>(to, map, barrier, at);
  isa::tensor_load_multicast<Ctas>(to, map, barrier, 3, at);
}

__device__ void launch_forms(SharedAddress answer, SharedAddress barrier, float* out) {
  isa::try_cancel(answer, barrier);
  isa::try_cancel_multicast(answer, barrier);
  const isa::LaunchAnswer got = isa::load_launch_answer(answer);
  if (isa::cluster_canceled(got)) out[0] = static_cast<float>(isa::canceled_first_cta(got));
}

// A group's size is one for a whole kernel, so each has its own.
template <int Ctas>
__device__ void all(const isa::TensorMap& map, const Words& words, float* out) {
  const SharedAddress base = isa::shared_base();
  isa::tcgen05_allocate<Ctas>(base, 512);
  isa::tcgen05_relinquish<Ctas>();
  __syncthreads();
  const TmemAddress tmem = isa::SharedView<std::uint32_t>{base}.load();
  load_forms<Ctas, 1>(map, base + 1024, base + 8);
  load_forms<Ctas, 2>(map, base + 1024, base + 8);
  load_forms<Ctas, 3>(map, base + 1024, base + 8);
  mma_forms<Ctas>(tmem, words, base + 8);
  launch_forms(base + 16, base + 8, out);
  isa::tcgen05_fence_before_sync();
  __syncthreads();
  isa::tcgen05_fence_after_sync();
  float sum = there_and_back<TmemShape::lanes32, 1>(tmem);
  sum += there_and_back<TmemShape::lanes32, 2>(tmem);
  sum += there_and_back<TmemShape::lanes32, 4>(tmem);
  sum += there_and_back<TmemShape::lanes32, 8>(tmem);
  sum += there_and_back<TmemShape::lanes32, 16>(tmem);
  sum += there_and_back<TmemShape::lanes32, 32>(tmem);
  sum += there_and_back<TmemShape::lanes32, 64>(tmem);
  sum += there_and_back<TmemShape::lanes32, 128>(tmem);
  sum += there_and_back<TmemShape::lanes16, 4>(tmem);
  sum += there_and_back<TmemShape::lanes16, 8>(tmem);
  sum += there_and_back<TmemShape::lanes16, 16>(tmem);
  sum += there_and_back<TmemShape::lanes16, 32>(tmem);
  sum += there_and_back<TmemShape::lanes16, 64>(tmem);
  sum += there_and_back<TmemShape::lanes16, 128>(tmem);
  out[threadIdx.x] = sum;
  isa::tcgen05_deallocate<Ctas>(tmem, 512);
}

}  // namespace

extern "C" __global__ void group_1(const __grid_constant__ isa::TensorMap map, Words words,
                                   float* out) {
  all<1>(map, words, out);
}
extern "C" __global__ void group_2(const __grid_constant__ isa::TensorMap map, Words words,
                                   float* out) {
  all<2>(map, words, out);
}
