// Many random grouped products on a GPU, every element of them judged there; offsets that change,
// come late or are in disorder; and the extremes.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grouped_arena.h"
#include "tests/gpu.h"
#include "tests/kernel/problems.h"
#include "warpwright/device/cuda.h"
#include "warpwright/isa/fence.h"

namespace warpwright::tests {
namespace {

constexpr std::int64_t kArenaBytes = std::int64_t{5} << 29;
constexpr double kProducts = 3e9;  // of one problem, at most

// Whether its D has a column for each row of B: the arena's products are not gated, its weights not
// packed and its tokens not by index (others are, on the model and in ProblemsBySeed).
bool arena_takes(const Instance& i) {
  return !i.config.gated && !kernel::packed_a(i.config) && !kernel::gathers(i.config);
}

const std::vector<Instance>& plain_instances() {
  static const std::vector<Instance> all = [] {
    std::vector<Instance> found;
    for (const Instance& i : grouped_instances()) {
      if (arena_takes(i)) found.push_back(i);
    }
    return found;
  }();
  return all;
}

class RandomGroupedOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
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

  // The word that the check of the offsets leaves.
  [[nodiscard]] std::uint32_t status(const Plan& plan) const {
    const auto word = offsets_status(plan, workspace_, stream_);
    EXPECT_TRUE(word) << word.reason();
    return *word;
  }

  DeviceFacts facts_;
  std::unique_ptr<Arena> arena_;
  cudaStream_t stream_ = nullptr;
  /// Room for the maps of 16,000 groups.
  static constexpr std::int64_t workspace_bytes = 4 << 20;
  void* memory_ = nullptr;
  Workspace workspace_;
};

TEST_F(RandomGroupedOnTheGpu, FiveHundredProblems) {
  constexpr std::uint64_t first = 20261121;
  std::printf("problems by the seeds from %llu on\n", static_cast<unsigned long long>(first));
  std::set<std::string> kernels;
  std::uint64_t seed = first;
  for (int i = 0; i < 500; ++seed) {
    const Seeded problem(seed, kProducts, false);
    if (!problem.in_groups() || !arena_takes(problem.instance())) continue;
    ++i;
    SCOPED_TRACE(problem.text());
    arena_->make(problem.instance(), problem.ask());
    Draws draw(seed);
    const Plan plan = any_plan(draw, problem.instance().name);
    SCOPED_TRACE(plan.name());
    kernels.insert(plan.kernel);
    const bool check = draw(0, 1) == 0;
    for (int launches = problem.twice() ? 2 : 1; launches > 0; --launches) {
      arena_->poison_d();
      launch(plan, draw(0, 1) == 0, check);
      if (HasFailure()) return;
      if (check) {
        EXPECT_EQ(status(plan), 0U);
      }
      arena_->expect_product();
      if (HasFailure()) return;
    }
  }
  // So many draws leave no kernel of the build out.
  EXPECT_EQ(kernels.size(), plain_instances().size());
}

Ask ask_for(const Instance& instance, int groups, int longest, Draws& draw) {
  Ask ask = grouped_ask(instance, lengths_to_offsets(draw, groups, longest), 264, 272);
  ask.alpha = 1;
  ask.seed = 3;
  return ask;
}

TEST_F(RandomGroupedOnTheGpu, ExtremesOfEveryKernel) {
  Draws draw(31);
  for (const Instance& instance : plain_instances()) {
    for (const int what : {0, 1, 2, 3}) {
      Ask s = ask_for(instance, 1, 700, draw);   // one group
      if (what == 1) s.offsets.assign(301, 0);   // all empty, no tokens
      if (what == 2) s.offsets.assign(301, 40);  // all empty, tokens that belong to none
      if (what == 3) s.offsets = lengths_to_offsets(draw, 5000, 4);
      s.m = static_cast<int>(s.offsets.back()) + (what == 2 ? 30 : 0);
      SCOPED_TRACE(std::string(instance.name) + ", case " + std::to_string(what));
      arena_->make(instance, s);
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
    Ask s = ask_for(instance, draw(1, 70), 90, draw);
    if (s.m == 0) continue;
    s.seed = 3 + static_cast<unsigned>(draw(0, 1));  // offsets of 64 bits, or of 32
    arena_->make(instance, s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    std::vector<std::int64_t> bad = s.offsets;
    const std::int64_t far = arena_->wide() ? std::int64_t{1} << 40 : 0x7fffffff;
    for (int broken = draw(1, 3); broken > 0; --broken) {
      const std::int64_t values[] = {-1, -far, s.m + 1, far, s.m, 0, draw(0, 1000)};
      bad[index(draw(0, static_cast<int>(s.offsets.size()) - 1))] = values[draw(0, 6)];
    }
    std::uint32_t first = 0;
    for (std::size_t g = 0; g + 1 < bad.size() && first == 0; ++g) {
      if (!tile::in_order(bad[g], bad[g + 1], s.m)) {
        first = static_cast<std::uint32_t>(g) + 1;
      }
    }
    broken_cases += first != 0 ? 1 : 0;
    SCOPED_TRACE(plan.name() + " " + text(s) + ", first group in disorder " +
                 std::to_string(static_cast<int>(first) - 1));
    arena_->set_offsets(bad);
    launch(plan, false, true);
    EXPECT_EQ(status(plan), first);
    EXPECT_EQ(offsets_fault(first).has_value(), first != 0);
    arena_->expect_untouched(0, s.m);
    if (HasFailure()) return;
  }
  EXPECT_GT(broken_cases, 75);
}

TEST_F(RandomGroupedOnTheGpu, GraphsWithOtherOffsetsEveryReplay) {
  Draws draw(41);
  for (const Instance& instance : plain_instances()) {
    Ask s = ask_for(instance, 70, 60, draw);
    s.seed = 3 + static_cast<unsigned>(draw(0, 1));  // offsets of 64 bits, or of 32
    s.m = 2400;
    SCOPED_TRACE(instance.name);
    arena_->make(instance, s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    ASSERT_FALSE(prepare(plan, workspace_, stream_));
    cudaGraph_t graph{};
    cudaGraphExec_t run{};
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    launch(plan, false, false);
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 6 && !HasFailure(); ++replay) {
      std::vector<std::int64_t> offsets = lengths_to_offsets(draw, 70, 20 << (replay % 3));
      for (std::int64_t& o : offsets) o = std::min<std::int64_t>(o, s.m);
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
    Ask s = ask_for(instance, 64, 40, draw);
    s.seed = 4;  // offsets of 32 bits
    s.m += 1;    // never none
    arena_->make(instance, s, /*all_tokens=*/true);
    const Plan plan = any_plan(draw, instance.name);
    ASSERT_FALSE(prepare(plan, workspace_, stream_));
    arena_->write_offsets(right, s.offsets);
    // What must not be read: all groups have all tokens.
    std::vector<std::int64_t> stale(s.offsets.size());
    for (std::size_t g = 0; g < stale.size(); ++g) stale[g] = g % 2 == 0 ? 0 : s.m;
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
}  // namespace warpwright::tests
