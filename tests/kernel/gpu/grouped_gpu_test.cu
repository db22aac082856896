// Grouped products on a GPU: every kernel against float64 products, with NaN around every tensor;
// offsets that an earlier kernel writes late; graphs whose offsets change between replays.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu.h"
#include "tests/kernel/problem_cuda.h"
#include "warpwright/device/launch.h"
#include "warpwright/isa/fence.h"

namespace warpwright::tests {
namespace {

DeviceFacts facts() {
  DeviceFacts f = *known_facts("h200");
  cudaDeviceProp prop{};
  cudaGetDeviceProperties(&prop, 0);
  f.sms = prop.multiProcessorCount;
  return f;
}

Plan plan_of(const Problem& problem) {
  const auto made = plan(problem.operands(), facts(), problem.choices());
  EXPECT_TRUE(made.ok()) << made.reason();
  return made.ok() ? *made : Plan{};
}

// By the kernel of that name, with unit scales where it takes 8 bits.
Ask ask_of(const char* name, const std::vector<std::int64_t>& offsets, int columns, int k) {
  Ask ask = grouped_ask(named(name), offsets, columns, k);
  ask.scaling = Scaling::none;
  ask.seed = 2;  // offsets of 32 bits
  return ask;
}

TEST(GroupedOnTheGpu, ThousandsOfGroups) {
  WW_NEEDS_HOPPER();
  for (const char* name : {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
                           "grouped_e4m3_bf16_128x64_h_sw"}) {
    Draws draw(5);
    Ask ask = ask_of(name, lengths_to_offsets(draw, 5000, 3), 16, 48);
    ask.scaling = Scaling::group;
    const PlanChoices choices = Problem(named(name), ask).choices();
    EXPECT_EQ(fault_on_cuda({named(name), ask}, choices, facts(), 1), "") << name;
  }
}

// Waits, then writes the offsets; the product may start meanwhile.
__global__ void write_offsets_late(std::int32_t* to, const std::int32_t* from, int count,
                                   long long clocks) {
  isa::launch_dependents();
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    to[i] = from[i];
  }
}

TEST(GroupedOnTheGpu, OffsetsThatComeLate) {
  WW_NEEDS_HOPPER();
  for (const char* name :
       {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
        "grouped_e4m3_bf16_128x64_h_sw", "grouped_bf16_bf16_128x256_v",
        "grouped_bf16_bf16_128x32_b_sw_ix", "grouped_bf16_bf16_128x128_v_pp_ix"}) {
    Draws draw(17);
    for (int round = 0; round < 5; ++round) {
      Problem problem(named(name), ask_of(name, lengths_to_offsets(draw, 40, 60), 128, 128));
      SCOPED_TRACE(problem.text());
      const Plan made = plan_of(problem);
      const auto there = std::make_unique<OnCuda>(problem);
      there->prepare(made);
      const Problem::Piece offsets = problem.piece(Problem::pieces - 1);
      const auto right = cuda_memory(offsets.bytes);
      require(right->from_host(offsets.memory, right->bytes()));
      // What must not be read: groups that cross the tensor.
      std::vector<std::int64_t> wrong(problem.ask().offsets.size());
      for (std::size_t g = 0; g < wrong.size(); ++g) wrong[g] = g % 2 == 0 ? 0 : problem.ask().m;
      there->send_offsets(wrong);
      cudaStream_t stream{};
      cudaStreamCreate(&stream);
      write_offsets_late<<<1, 32, 0, stream>>>(static_cast<std::int32_t*>(there->offsets()),
                                               static_cast<const std::int32_t*>(right->data()),
                                               static_cast<int>(wrong.size()), 100000LL * round);
      const auto refused =
          launch(made, there->operands(), there->workspace(), stream, {.dependent = true});
      ASSERT_FALSE(refused) << refused->reason;
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      cudaStreamDestroy(stream);
      there->receive(problem);
      EXPECT_EQ(problem.fault(), "");
      if (::testing::Test::HasFailure()) return;
    }
  }
}

void replay_with_other_offsets(const char* kernel) {
  Draws draw(23);
  const auto offsets = [&] {
    std::vector<std::int64_t> o = {0};
    for (int g = 0; g < 8; ++g) o.push_back(std::min<std::int64_t>(300, o.back() + draw(0, 80)));
    return o;
  };
  Ask ask = ask_of(kernel, offsets(), 264, 256);
  ask.m = 300;
  const Problem first(named(kernel), ask);
  const Plan made = plan_of(first);
  const auto there = std::make_unique<OnCuda>(first);
  there->prepare(made);
  cudaStream_t stream{};
  cudaStreamCreate(&stream);
  cudaGraph_t graph{};
  cudaGraphExec_t run{};
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const auto refused = launch(made, there->operands(), there->workspace(), stream);
  EXPECT_FALSE(refused) << refused->reason;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
  for (int replay = 0; replay < 5; ++replay) {
    ask.offsets = offsets();
    Problem problem(named(kernel), ask);
    SCOPED_TRACE(problem.text());
    there->send_offsets(ask.offsets);
    there->poison_d();
    ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    there->receive(problem);
    EXPECT_EQ(problem.fault(), "");
  }
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(GroupedOnTheGpu, OneGraphOtherOffsets) {
  WW_NEEDS_HOPPER();
  replay_with_other_offsets("grouped_e4m3_bf16_128x32_b_sw");
}

TEST(GroupedOnTheGpu, OffsetsInDisorderStayInside) {
  WW_NEEDS_HOPPER();
  Draws draw(9);
  for (const Instance& instance : grouped_instances()) {
    std::vector<std::int64_t> offsets;
    for (int g = 0; g <= 12; ++g) offsets.push_back(7 * g);
    const int broken = draw(1, 11);
    offsets[index(broken)] = broken % 2 == 0 ? 1LL << 40 : -(1LL << 40);
    Ask ask = grouped_ask(instance, offsets, 136, 64);  // offsets of 64 bits
    ask.m = 90;
    Problem problem(instance, ask);
    SCOPED_TRACE(problem.text());
    const Plan made = plan_of(problem);
    OnCuda there(problem);
    const auto refused = there.launch(made, nullptr, {.check_offsets = true});
    ASSERT_FALSE(refused) << refused->reason;
    EXPECT_EQ(there.status(made), static_cast<std::uint32_t>(broken));
    there.receive(problem);
    EXPECT_EQ(problem.d().disturbed({{0, 90}}), 0);
  }
}

}  // namespace
}  // namespace warpwright::tests
