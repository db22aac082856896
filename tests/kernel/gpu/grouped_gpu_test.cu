// Grouped products on a GPU: every kernel against float64 products, with NaN around every tensor;
// offsets that an earlier kernel writes late; graphs whose offsets change between replays.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernel/grouped_cuda.h"
#include "warpwright/device/launch.h"
#include "warpwright/isa/fence.h"

namespace warpwright::grouped {
namespace {

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

DeviceFacts facts() {
  DeviceFacts f = *known_facts("h200");
  cudaDeviceProp prop{};
  cudaGetDeviceProperties(&prop, 0);
  f.sms = prop.multiProcessorCount;
  return f;
}

#define SKIP_WITHOUT_DEVICE() \
  if (!has_device()) GTEST_SKIP() << "did not run: no CUDA device here"

Plan plan_of(const Case& c, const Tensors& t) {
  const auto made = plan(t.operands, facts(), {.cluster = c.cluster, .kernel = c.kernel});
  EXPECT_TRUE(made.ok()) << made.reason();
  return made.ok() ? *made : Plan{};
}

void expect_right(const Case& c) {
  SCOPED_TRACE(text(c));
  Tensors t(c);
  const Plan made = plan_of(c, t);
  const auto there = std::make_unique<OnCuda>(t);
  const auto refused =
      launch(made, there->operands(), there->workspace(), nullptr, {.check_offsets = true});
  ASSERT_FALSE(refused) << refused->reason;
  EXPECT_EQ(there->status(made), 0U);
  there->receive(t);
  expect_product(c, t);
}

TEST(GroupedOnTheGpu, ThousandsOfGroups) {
  SKIP_WITHOUT_DEVICE();
  for (const char* name : {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
                           "grouped_e4m3_bf16_128x64_h_sw"}) {
    Draws draw(5);
    Case c;
    c.kernel = name;
    c.cluster = {1, 1};
    c.offsets = lengths_to_offsets(draw, 5000, 3);
    c.total = c.offsets.back();
    c.n = 16;
    c.k = 48;
    c.scaling = Scaling::group;
    expect_right(c);
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
  SKIP_WITHOUT_DEVICE();
  for (const char* name :
       {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
        "grouped_e4m3_bf16_128x64_h_sw", "grouped_bf16_bf16_128x256_v",
        "grouped_e4m3_bf16_128x16_b_sw_gm", "grouped_e4m3_bf16_128x128_v_pp_gm"}) {
    Draws draw(17);
    for (int round = 0; round < 5; ++round) {
      Case c;
      c.kernel = name;
      c.cluster = {1, 1};
      c.offsets = lengths_to_offsets(draw, 40, 60);
      c.total = c.offsets.back();
      c.n = 128;
      c.k = 128;
      SCOPED_TRACE(text(c));
      Tensors t(c);
      const Plan made = plan_of(c, t);
      const auto there = std::make_unique<OnCuda>(t);
      ASSERT_FALSE(there->prepare(made));
      const auto right = tests::cuda_memory(static_cast<std::int64_t>(t.narrow.size()) * 4);
      tests::require(right->from_host(t.narrow.data(), right->bytes()));
      // What must not be read: groups that cross the tensor.
      std::vector<std::int32_t> wrong(t.narrow.size());
      for (std::size_t g = 0; g < wrong.size(); ++g) {
        wrong[g] = static_cast<std::int32_t>(g % 2 == 0 ? 0 : c.total);
      }
      there->send_offsets({wrong.begin(), wrong.end()});
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
      there->receive(t);
      expect_product(c, t);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

void replay_with_other_offsets(const char* kernel) {
  Draws draw(23);
  Case c;
  c.kernel = kernel;
  c.cluster = {1, 1};
  c.n = 264;
  c.k = 256;
  c.total = 300;
  const auto offsets = [&] {
    std::vector<std::int64_t> o = {0};
    for (int g = 0; g < 8; ++g) o.push_back(std::min<std::int64_t>(300, o.back() + draw(0, 80)));
    return o;
  };
  c.offsets = offsets();
  Tensors t(c);
  const Plan made = plan_of(c, t);
  const auto there = std::make_unique<OnCuda>(t);
  ASSERT_FALSE(there->prepare(made));
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
    c.offsets = offsets();
    SCOPED_TRACE(text(c));
    there->send_offsets(c.offsets);
    there->poison_d();
    ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    there->receive(t);
    expect_product(c, t);
  }
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(GroupedOnTheGpu, OneGraphOtherOffsets) {
  SKIP_WITHOUT_DEVICE();
  replay_with_other_offsets("grouped_e4m3_bf16_128x32_b_sw");
}

// The kernel that makes the maps is in the graph too.
TEST(GroupedOnTheGpu, OneGraphOtherOffsetsWithMapsOfGroups) {
  SKIP_WITHOUT_DEVICE();
  replay_with_other_offsets("grouped_e4m3_bf16_128x16_b_sw_gm");
  replay_with_other_offsets("grouped_e4m3_bf16_128x128_v_pp_gm");
}

// Launches with other groups one behind the other, all through one workspace.
TEST(GroupedOnTheGpu, MapsOfGroupsAreMadeAnewForEveryLaunch) {
  SKIP_WITHOUT_DEVICE();
  for (const char* name :
       {"grouped_e4m3_bf16_128x16_b_sw_gm", "grouped_e4m3_bf16_128x128_v_pp_gm"}) {
    Draws draw(41);
    std::vector<std::unique_ptr<Tensors>> tensors;
    std::vector<std::unique_ptr<OnCuda>> there;
    std::vector<Case> cases;
    for (int i = 0; i < 8; ++i) {
      Case c;
      c.kernel = name;
      c.cluster = {1, 1};
      c.offsets = lengths_to_offsets(draw, 24, 70);
      c.total = c.offsets.back();
      c.n = 256;
      c.k = 384;
      c.seed = 300 + static_cast<unsigned>(i);
      cases.push_back(c);
      tensors.push_back(std::make_unique<Tensors>(c));
      there.push_back(std::make_unique<OnCuda>(*tensors.back()));
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Plan made = plan_of(cases[i], *tensors[i]);
      ASSERT_FALSE(there[0]->prepare(made));
      const auto refused = launch(made, there[i]->operands(), there[0]->workspace(), nullptr,
                                  {.dependent = i % 2 == 1});
      ASSERT_FALSE(refused) << refused->reason;
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(text(cases[i]));
      there[i]->receive(*tensors[i]);
      expect_product(cases[i], *tensors[i]);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(GroupedOnTheGpu, OffsetsInDisorderStayInside) {
  SKIP_WITHOUT_DEVICE();
  Draws draw(9);
  for (const Instance& instance : instances()) {
    Case c;
    c.kernel = instance.name;
    c.cluster = {1, 1};
    c.scaling = scalings(instance.config).back();
    c.total = 90;
    c.n = 136;
    c.k = 64;
    c.type = OffsetType::int64;
    for (int g = 0; g <= 12; ++g) c.offsets.push_back(7 * g);
    const int broken = draw(1, 11);
    c.offsets[index(broken)] = broken % 2 == 0 ? 1LL << 40 : -(1LL << 40);
    SCOPED_TRACE(text(c));
    Tensors t(c);
    const Plan made = plan_of(c, t);
    const auto there = std::make_unique<OnCuda>(t);
    const auto refused =
        launch(made, there->operands(), there->workspace(), nullptr, {.check_offsets = true});
    ASSERT_FALSE(refused) << refused->reason;
    EXPECT_EQ(there->status(made), static_cast<std::uint32_t>(broken));
    there->receive(t);
    EXPECT_EQ(t.d.disturbed({{0, 90}}), 0);
  }
}

}  // namespace
}  // namespace warpwright::grouped
