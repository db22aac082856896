// Many random grouped products on a GPU, every element of them judged there; offsets that change,
// come late or are in disorder; and the extremes.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../grouped_case.h"
#include "grouped_arena.h"
#include "warpwright/device/cuda.h"
#include "warpwright/isa/fence.h"

namespace warpwright::grouped {
namespace {

constexpr std::int64_t kArenaBytes = std::int64_t{5} << 29;
constexpr std::int64_t kTensorBytes = std::int64_t{1} << 29;  // of one tensor, at most
constexpr double kProducts = 3e9;                             // of one problem, at most

// The kernels whose D has a column for each row of B: the arena's products are not gated, and its
// weights not packed (grouped cases are, here and on the model).
const std::vector<Instance>& plain_instances() {
  static const std::vector<Instance> all = [] {
    std::vector<Instance> found;
    for (const Instance& i : instances()) {
      if (!i.config.gated && !kernel::packed_a(i.config)) found.push_back(i);
    }
    return found;
  }();
  return all;
}

class RandomGroupedOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
      GTEST_SKIP() << "did not run: no CUDA device here";
    }
    const auto found = device::cuda_device(0);
    ASSERT_TRUE(found.ok()) << found.reason();
    facts_ = *found;
    arena_ = std::make_unique<Arena>(kArenaBytes);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory_, workspace_bytes), cudaSuccess);
    workspace_ = Workspace(memory_, workspace_bytes);
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }

  // Any of the plans for what lies in the arena; one of this kernel, when it has a name.
  Plan any_plan(Draws& draw, const std::string& kernel = "") const {
    const auto problem = describe(arena_->operands());
    EXPECT_TRUE(problem.ok()) << problem.reason();
    if (!problem.ok()) return {};
    PlanChoices choices;
    if (!kernel.empty()) choices.kernel = kernel;
    const auto all = candidates(*problem, facts_, choices);
    EXPECT_TRUE(all.ok()) << all.reason();
    if (!all.ok()) return {};
    return (*all)[index(draw(0, static_cast<int>(all->size()) - 1))];
  }

  void launch(const Plan& plan, bool dependent, bool check) {
    const auto refused = warpwright::launch(plan, arena_->operands(), workspace_, stream_,
                                            {.dependent = dependent, .check_offsets = check});
    ASSERT_FALSE(refused) << plan.name() << ": " << refused->reason;
  }

  // Waits for the word that the check of the offsets leaves.
  [[nodiscard]] std::uint32_t status(const Plan& plan) const {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    std::uint32_t word = 0;
    EXPECT_EQ(cudaMemcpy(&word, workspace_.status(plan), 4, cudaMemcpyDeviceToHost), cudaSuccess);
    return word;
  }

  DeviceFacts facts_;
  std::unique_ptr<Arena> arena_;
  cudaStream_t stream_ = nullptr;
  /// Room for the maps of 16,000 groups.
  static constexpr std::int64_t workspace_bytes = 4 << 20;
  void* memory_ = nullptr;
  Workspace workspace_;
};

// What this build has kernels for.
struct Kind {
  DType type;
  DType result;
  Scaling scaling;
  Accumulation accumulation;

  friend bool operator<(const Kind& x, const Kind& y) {
    return std::tie(x.type, x.result, x.scaling, x.accumulation) <
           std::tie(y.type, y.result, y.scaling, y.accumulation);
  }
};

std::vector<Kind> kinds() {
  std::set<Kind> all;
  for (const Instance& i : plain_instances()) {
    const kernel::GemmConfig& c = i.config;
    for (const Scaling scaling : scalings(c)) {
      const bool promoted = c.sums == kernel::Sums::promoted;
      all.insert(
          {c.a.stored, c.result, scaling, promoted ? Accumulation::promoted : Accumulation::fast});
    }
  }
  return {all.begin(), all.end()};
}

int log_uniform(Draws& draw, int high) {
  const double share = draw(0, 1 << 20) / static_cast<double>(1 << 20);
  return std::min(high, static_cast<int>(std::exp2(share * std::log2(high + 1.0))));
}

std::vector<std::int64_t> draw_offsets(Draws& draw, int groups, int longest) {
  std::vector<std::int64_t> o = {draw(0, 3) == 0 ? draw(0, 50) : 0};
  for (int g = 0; g < groups; ++g) {
    o.push_back(o.back() + (draw(0, 3) == 0 ? 0 : draw(0, longest)));
  }
  return o;
}

Spec draw_spec(Draws& draw, const Kind& kind, unsigned seed) {
  Spec s;
  s.type = kind.type;
  s.result = kind.result;
  s.scaling = kind.scaling;
  s.accumulation = kind.accumulation;
  const int groups = log_uniform(draw, 600);
  s.offsets = draw_offsets(draw, groups, log_uniform(draw, 2000));
  s.total = s.offsets.back() + (draw(0, 3) == 0 ? draw(1, 90) : 0);
  s.n = log_uniform(draw, 2048);
  s.k = log_uniform(draw, 2048);
  const std::int64_t width = numeric::bits(s.type) / 8;
  const auto too_large = [&] {
    return static_cast<double>(s.total) * static_cast<double>(s.n * s.k) > kProducts ||
           groups * (s.n + 1) * (s.k + 48) * width > kTensorBytes ||
           s.total * (s.k + 48) * width > kTensorBytes || s.total * (s.n + 16) * 2 > kTensorBytes;
  };
  while (too_large()) {
    auto& larger = s.n > s.k ? s.n : s.k;
    larger = (larger + 1) / 2;
  }
  // Whole 16 bytes as often as odd extents: they are stored in different ways.
  if (draw(0, 1) == 0) s.n = (s.n + 7) / 8 * 8;
  s.k_pad = draw(0, 1) == 0 ? 0 : 16;
  s.d_pad = draw(0, 1) == 0 ? (8 - s.n % 8) % 8 : draw(0, 9);
  s.d_shift = draw(0, 2) == 0 ? draw(1, 7) : 0;
  s.offset_type = draw(0, 1) == 0 ? OffsetType::int32 : OffsetType::int64;
  s.k_major_scales = draw(0, 1) == 0;
  s.one_a_scale = draw(0, 1) == 0;
  s.seed = seed;
  return s;
}

TEST_F(RandomGroupedOnTheGpu, FiveHundredProblems) {
  constexpr unsigned seed = 20261121;
  std::printf("problems by seed %u\n", seed);
  Draws draw(seed);
  const std::vector<Kind> all = kinds();
  std::set<std::string> kernels;
  for (unsigned i = 0; i < 500; ++i) {
    const Spec s = draw_spec(draw, all[i % all.size()], i + 1);
    SCOPED_TRACE("problem " + std::to_string(i));
    arena_->make(s);
    const Plan plan = any_plan(draw);
    SCOPED_TRACE(plan.name());
    kernels.insert(plan.kernel);
    const bool check = draw(0, 1) == 0;
    launch(plan, draw(0, 1) == 0, check);
    if (HasFailure()) return;
    if (check) {
      EXPECT_EQ(status(plan), 0U);
    }
    arena_->expect_product();
    if (HasFailure()) return;
  }
  // So many draws leave no kernel of the build out.
  EXPECT_EQ(kernels.size(), plain_instances().size());
}

// One Spec in which the kernel `name` takes part.
Spec spec_for(const Instance& instance, int groups, int longest, Draws& draw) {
  Spec s;
  s.type = instance.config.a.stored;
  s.result = instance.config.result;
  s.scaling = scalings(instance.config).back();
  if (instance.config.sums == kernel::Sums::promoted) s.accumulation = Accumulation::promoted;
  s.offsets = draw_offsets(draw, groups, longest);
  s.total = s.offsets.back();
  s.n = 264;
  s.k = 272;
  s.seed = 3;
  return s;
}

TEST_F(RandomGroupedOnTheGpu, ExtremesOfEveryKernel) {
  Draws draw(31);
  for (const Instance& instance : plain_instances()) {
    for (const int what : {0, 1, 2, 3}) {
      Spec s = spec_for(instance, 1, 700, draw);  // one group
      if (what == 1) s.offsets.assign(301, 0);    // all empty, no tokens
      if (what == 2) s.offsets.assign(301, 40);   // all empty, tokens that belong to none
      if (what == 3) s.offsets = draw_offsets(draw, 5000, 4);
      s.total = s.offsets.back() + (what == 2 ? 30 : 0);
      SCOPED_TRACE(std::string(instance.name) + ", case " + std::to_string(what));
      arena_->make(s);
      const Plan plan = any_plan(draw, instance.name);
      launch(plan, false, true);
      if (HasFailure()) return;
      EXPECT_EQ(status(plan), 0U);
      arena_->expect_product();
      if (HasFailure()) return;
    }
  }
}

TEST_F(RandomGroupedOnTheGpu, OffsetsInDisorderAreReportedAndHarmless) {
  Draws draw(37);
  int broken_cases = 0;
  for (int i = 0; i < 150; ++i) {
    const Instance& instance = plain_instances()[index(i) % plain_instances().size()];
    Spec s = spec_for(instance, draw(1, 70), 90, draw);
    if (s.total == 0) continue;
    s.offset_type = draw(0, 1) == 0 ? OffsetType::int32 : OffsetType::int64;
    arena_->make(s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    std::vector<std::int64_t> bad = s.offsets;
    const std::int64_t far =
        s.offset_type == OffsetType::int64 ? std::int64_t{1} << 40 : 0x7fffffff;
    for (int broken = draw(1, 3); broken > 0; --broken) {
      const std::int64_t values[] = {-1, -far, s.total + 1, far, s.total, 0, draw(0, 1000)};
      bad[index(draw(0, static_cast<int>(s.groups())))] = values[draw(0, 6)];
    }
    std::uint32_t first = 0;
    for (std::size_t g = 0; g + 1 < bad.size() && first == 0; ++g) {
      if (!tile::in_order(bad[g], bad[g + 1], static_cast<int>(s.total))) {
        first = static_cast<std::uint32_t>(g) + 1;
      }
    }
    broken_cases += first != 0 ? 1 : 0;
    SCOPED_TRACE(plan.name() + " " + s.text() + ", first group in disorder " +
                 std::to_string(static_cast<int>(first) - 1));
    arena_->set_offsets(bad);
    launch(plan, false, true);
    EXPECT_EQ(status(plan), first);
    EXPECT_EQ(offsets_fault(first).has_value(), first != 0);
    arena_->expect_untouched(0, s.total);
    if (HasFailure()) return;
  }
  EXPECT_GT(broken_cases, 75);
}

TEST_F(RandomGroupedOnTheGpu, GraphsWithOtherOffsetsEveryReplay) {
  Draws draw(41);
  for (const Instance& instance : plain_instances()) {
    Spec s = spec_for(instance, 70, 60, draw);
    s.offset_type = draw(0, 1) == 0 ? OffsetType::int32 : OffsetType::int64;
    s.total = 2400;
    SCOPED_TRACE(instance.name);
    arena_->make(s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    ASSERT_FALSE(prepare(plan, workspace_, stream_));
    cudaGraph_t graph{};
    cudaGraphExec_t run{};
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    launch(plan, false, false);
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 6 && !HasFailure(); ++replay) {
      std::vector<std::int64_t> offsets = draw_offsets(draw, 70, 20 << (replay % 3));
      for (std::int64_t& o : offsets) o = std::min(o, s.total);
      arena_->set_offsets(offsets);
      arena_->poison_d();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(cudaGraphLaunch(run, stream_), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      arena_->expect_product();
    }
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    if (HasFailure()) return;
  }
}

// Lets the kernel behind it start, takes its time, and then writes what that one reads.
__global__ void write_late(unsigned char* to, const unsigned char* from, int count,
                           long long clocks) {
  isa::launch_dependents();
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    to[i] = from[i];
  }
}

TEST_F(RandomGroupedOnTheGpu, ADependentLaunchWaitsForItsOffsets) {
  Draws draw(43);
  void* right = nullptr;
  ASSERT_EQ(cudaMalloc(&right, 4096), cudaSuccess);
  for (int repeat = 0; repeat < 100 && !HasFailure(); ++repeat) {
    const Instance& instance = plain_instances()[index(repeat) % plain_instances().size()];
    Spec s = spec_for(instance, 64, 40, draw);
    s.total += 1;  // never none
    arena_->make(s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    ASSERT_FALSE(prepare(plan, workspace_, stream_));
    arena_->write_offsets(right, s.offsets);
    // What must not be read: all groups have all tokens.
    std::vector<std::int64_t> stale(s.offsets.size());
    for (std::size_t g = 0; g < stale.size(); ++g) stale[g] = g % 2 == 0 ? 0 : s.total;
    auto* to = static_cast<unsigned char*>(arena_->offsets());
    arena_->write_offsets(to, stale);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto bytes = static_cast<int>(s.offsets.size() * 4);
    SCOPED_TRACE(plan.name() + ", repeat " + std::to_string(repeat));
    write_late<<<1, 64, 0, stream_>>>(to, static_cast<const unsigned char*>(right), bytes,
                                      1000LL * draw(0, 100));
    launch(plan, true, false);
    arena_->expect_product();
  }
  cudaFree(right);
}

}  // namespace
}  // namespace warpwright::grouped
