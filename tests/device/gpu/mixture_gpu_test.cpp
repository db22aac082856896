// Mixtures of experts on a GPU: every way of the first product against float64, the same bits in
// every launch and in a captured one.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/device/mixture.h"
#include "tests/gpu.h"
#include "tests/must.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/moe.h"
#include "warpwright/reference/mixture.h"

namespace warpwright {
namespace {

using tests::MixtureAsk;
using tests::SomeMixture;

std::int64_t bytes_of(const MatrixView& v) {
  return v.data == nullptr ? 0 : v.batch * v.rows * v.columns * element_bytes(v.dtype);
}
std::int64_t bytes_of(const MixtureOperands& o, const MatrixView& v) {
  if (o.is_packed() && v.dtype == o.w13.dtype) return bytes_of(stored(o, v));
  return (v.dtype == DType::s32 && o.id_type == OffsetType::int64 ? 2 : 1) * bytes_of(v);
}

// The operands of a mixture on the device. Their results start as bytes of 0xff.
class OnGpu {
 public:
  explicit OnGpu(SomeMixture& some) : host_(&some.o) {
    o = with_matrices(some.o, [this](const MatrixView& v) {
      MatrixView there = v;
      if (v.data == nullptr) return there;
      const std::int64_t bytes = bytes_of(*host_, v);
      memory_.push_back(*device::CudaBuffer::make(bytes));
      EXPECT_FALSE(memory_.back()->from_host(v.data, bytes));
      there.data = memory_.back()->data();
      return there;
    });
    EXPECT_EQ(cudaMemset(o.d.data, 0xff, static_cast<std::size_t>(bytes_of(o.d))), cudaSuccess);
  }
  // d, into the mixture in host memory.
  void take() {
    ASSERT_FALSE(device::synchronise_cuda());
    ASSERT_EQ(cudaMemcpy(host_->d.data, o.d.data, static_cast<std::size_t>(bytes_of(o.d)),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
  }
  MixtureOperands o;

 private:
  MixtureOperands* host_;
  std::vector<std::shared_ptr<device::CudaBuffer>> memory_;
};

std::vector<std::byte> bits_of(const SomeMixture& some) {
  std::vector<std::byte> bits(static_cast<std::size_t>(bytes_of(some.o.d)));
  std::memcpy(bits.data(), some.o.d.data, bits.size());
  return bits;
}

void run_and_check(SomeMixture& some, const MixtureChoices& choices, int& ran) {
  OnGpu gpu(some);
  const auto plan = plan_moe(gpu.o, *device::cuda_device(0), choices);
  if (!plan && plan.refusal().code == RefusalCode::no_kernel) return;  // of this build
  ASSERT_TRUE(plan) << plan.reason();
  SCOPED_TRACE(plan->explain());
  auto workspace = must(make_workspace(*plan));
  ASSERT_EQ(cudaMemset(workspace->data(), 0xff, static_cast<std::size_t>(plan->workspace_bytes())),
            cudaSuccess);
  std::vector<std::byte> first;
  for (int i = 0; i < 3; ++i) {
    must_do(launch(*plan, gpu.o, *workspace, nullptr, {.dependent = i == 2}));
    gpu.take();
    if (i == 0) {
      first = bits_of(some);
      const auto verdict = reference::check_mixture(some.o, plan->way.gates_behind);
      EXPECT_EQ(verdict.failures, 0)
          << verdict.worst_token << " " << verdict.worst_column << " got " << verdict.worst_got
          << " want " << verdict.worst_want << " +- " << verdict.worst_allowed;
    } else {
      EXPECT_EQ(bits_of(some), first);
    }
  }
  ++ran;
}

TEST(MixturesOnGpu, EveryWayAgreesWithFloat64) {
  WW_NEEDS_HOPPER();
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const int tokens : {1, 8, 40, 150}) {
      for (const bool by_index : {false, true}) {
        for (const bool fused : {false, true}) {
          if (fused && scaling != Scaling::blockwise) continue;
          SomeMixture some({.tokens = tokens,
                            .experts = 6,
                            .top_k = 4,
                            .hidden = 256,
                            .inner = 256,
                            .scaling = scaling,
                            .seed = 7});
          SCOPED_TRACE(std::string(name(scaling)) + " tokens " + std::to_string(tokens) +
                       (by_index ? " by index" : "") + (fused ? " fused" : ""));
          int ran = 0;
          run_and_check(some, {.quantises_in_epilogue = fused, .by_index = by_index}, ran);
          if (!by_index && !fused) {
            EXPECT_EQ(ran, 1);
          }
        }
      }
    }
  }
}

TEST(MixturesOnGpu, RandomOnesAgreeWithFloat64) {
  WW_NEEDS_HOPPER();
  int ran = 0;
  int gated_behind = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    MixtureAsk ask;
    ask.seed = seed;
    const int kind = draw(0, 2);
    ask.scaling = kind == 0 ? Scaling::none : kind == 1 ? Scaling::row_column : Scaling::blockwise;
    if (kind == 2) ask.block = 128 >> draw(0, 2);
    const int unit = ask.scaling == Scaling::none ? 8 : ask.block;
    ask.tokens = draw(0, 3) == 0 ? draw(70, 200) : draw(1, 60);
    ask.experts = draw(1, 8);
    ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 5));
    if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
    ask.top_k = draw(1, 8);
    ask.hidden = unit * draw(1, unit == 8 ? 30 : 256 / unit);
    ask.inner = unit * draw(1, unit == 8 ? 30 : 256 / unit);
    ask.wide_ids = draw(0, 1) == 1;
    ask.biases = draw(0, 1) == 1;
    ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
    ask.weight = draw(0, 1) == 0 ? DType::f32 : DType::bf16;
    SomeMixture some(ask);
    run_and_check(some, {.batch_invariant = draw(0, 1) == 1}, ran);
    some.o.activation = draw(0, 1) == 1 ? Activation::gelu_erf : Activation::silu;
    run_and_check(some, {.gates_in_epilogue = false}, gated_behind);
  }
  EXPECT_GT(ran, 25);
  EXPECT_GT(gated_behind, 25);
}

TEST(MixturesOnGpu, Int4AgreesWithFloat64) {
  WW_NEEDS_HOPPER();
  int ran = 0;
  int gated_behind = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(tests::int4_ask(seed));
    some.o.activation = seed % 3 == 0 ? Activation::swiglu_oai : Activation::silu;
    run_and_check(some, {.batch_invariant = seed % 2 == 1}, ran);
    if (seed % 5 == 0) some.o.activation = Activation::gelu_erf;
    run_and_check(some, {.gates_in_epilogue = false}, gated_behind);
  }
  EXPECT_EQ(ran, 40);
  EXPECT_EQ(gated_behind, 40);
}

TEST(MixturesOnGpu, E2m1AgreesWithFloat64) {
  WW_NEEDS_HOPPER();
  int ran = 0;
  int gated_behind = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(tests::e2m1_ask(seed));
    some.o.activation = seed % 3 == 0 ? Activation::swiglu_oai : Activation::silu;
    run_and_check(some, {.batch_invariant = seed % 2 == 1}, ran);
    // Rows of fp16 may overflow without a limit.
    if (seed % 5 == 0 && some.o.x.dtype == DType::bf16) some.o.activation = Activation::gelu_erf;
    run_and_check(some, {.gates_in_epilogue = false}, gated_behind);
  }
  EXPECT_EQ(ran, 40);
  EXPECT_EQ(gated_behind, 40);
}

TEST(MixturesOnGpu, ACapturedLaunchHasTheSameBits) {
  WW_NEEDS_HOPPER();
  SomeMixture some({.tokens = 20, .experts = 8, .top_k = 2, .hidden = 256, .inner = 256});
  OnGpu gpu(some);
  const auto plan = must(plan_moe(gpu.o, *device::cuda_device(0)));
  auto workspace = must(make_workspace(*plan));
  ASSERT_FALSE(launch(*plan, gpu.o, *workspace, nullptr));
  gpu.take();
  const auto plain = bits_of(some);
  ASSERT_EQ(cudaMemset(gpu.o.d.data, 0xff, plain.size()), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const auto refused = launch(*plan, gpu.o, *workspace, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_FALSE(refused) << refused->reason;
  ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
  gpu.take();
  EXPECT_EQ(bits_of(some), plain);
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace warpwright
