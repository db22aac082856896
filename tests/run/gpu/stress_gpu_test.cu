// A device under stress: many host threads and streams, graphs replayed by the thousand, chains of
// dependent launches beside a grid that holds SMs, no memory left, a context that is broken. What
// comes out must have the same bits each time. WARPWRIGHT_CAMPAIGN=1 takes the full counts.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/campaign.h"
#include "tests/gpu.h"
#include "tests/kernel/problem_cuda.h"
#include "warpwright/run.h"

namespace warpwright::tests {
namespace {

using Bytes = std::vector<std::byte>;

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  [[nodiscard]] bool wait() const { return cudaStreamSynchronize(stream_) == cudaSuccess; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Holds an SM a CTA, by its shared memory, for so many clocks.
__global__ void hold_sms(long long clocks) {
  extern __shared__ unsigned char all[];
  all[threadIdx.x] = 1;
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
}
constexpr int held_bytes = 200 * 1024;
constexpr long long a_while = 2000000;  // about a millisecond

void hold(int sms, const Stream& stream) {
  ASSERT_EQ(cudaFuncSetAttribute(hold_sms, cudaFuncAttributeMaxDynamicSharedMemorySize, held_bytes),
            cudaSuccess);
  hold_sms<<<sms, 32, held_bytes, stream.get()>>>(a_while);
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void trap() {
  asm volatile("trap;");
}

/// Offsets out of a table of them: what an earlier kernel of a model would write.
__global__ void choose_offsets(const std::int32_t* table, int each, const int* which,
                               std::int32_t* to) {
  if (static_cast<int>(threadIdx.x) < each) to[threadIdx.x] = table[*which * each + threadIdx.x];
}

class Stress : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
    const auto devices = device::cuda_devices();
    ASSERT_FALSE(device::use_cuda_device(0));
    facts_ = devices.front();
  }

  /// The kernels whose CTAs share tiles along K: whose sums could come in any order.
  static std::vector<Instance> sharing() {
    return all_with([](const kernel::GemmConfig& c) { return !takes_whole_tiles(c); });
  }

  std::optional<DeviceFacts> facts_;
};

// Each thread plans and launches products of its own through `run`, four threads on a stream, with
// the plans and workspaces that all of them share.
TEST_F(Stress, SixtyFourThreadsOnSixteenStreams) {
  constexpr int threads = 64;
  constexpr int streams = 16;
  const int rounds = campaign() ? 200 : 20;
  const std::vector<Stream> all(streams);
  std::mutex mutex;
  const auto say = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    ADD_FAILURE() << what;
  };
  const auto work = [&](int thread) {
    const Stream& stream = all[static_cast<std::size_t>(thread % streams)];
    try {
      require(device::use_cuda_device(0));
      for (int round = 0; round < rounds; ++round) {
        // Few shapes, so that threads meet in the same plans, and some of its own.
        const auto seed =
            static_cast<std::uint64_t>(round % 2 == 0 ? round : 1000 * thread + round);
        const Seeded seeded(seed, 4e6, false);
        if (seeded.in_groups() || seeded.ask().in_place) continue;
        Problem problem(seeded.instance(), seeded.ask());
        const OnCuda there(problem);
        RunOptions options;
        options.device = 0;
        options.stream = stream.get();
        // Register kernels are chosen only by name here, and their operands may lie anywhere.
        if (problem.architecture() != 90) options.choices = problem.choices();
        Bytes first;
        for (int again = 0; again < 3; ++again) {
          if (const auto refused = run(there.operands(), options)) {
            return say(seeded.text() + ": " + refused->reason);
          }
          if (!stream.wait()) return say(seeded.text() + ": the stream failed");
          there.receive(problem);
          if (again == 0) {
            first = problem.d_bytes();
            if (const std::string fault = problem.fault(); !fault.empty()) {
              return say(seeded.text() + ": " + fault);
            }
          }
          if (first != problem.d_bytes()) return say(seeded.text() + ": other bits");
        }
      }
    } catch (const std::exception& failed) {
      say(failed.what());
    }
  };
  std::vector<std::jthread> pool;
  for (int thread = 0; thread < threads; ++thread) pool.emplace_back(work, thread);
}

// A graph of a product in groups, whose offsets a kernel of the graph chooses.
TEST_F(Stress, GraphsReplayedWithOtherOffsets) {
  const int replays = campaign() ? 100000 : 2000;
  constexpr int sets = 8;
  constexpr int groups = 8;
  for (const char* kernel : {"grouped_e4m3_bf16_128x32_b_sw", "grouped_bf16_bf16_128x128_v_pp"}) {
    SCOPED_TRACE(kernel);
    Draws draw(29);
    constexpr int tokens = 300;
    std::vector<std::vector<std::int64_t>> offsets(sets);
    std::vector<std::int32_t> table;
    for (auto& set : offsets) {
      set = {0};
      for (int g = 0; g < groups; ++g) {
        set.push_back(std::min<std::int64_t>(tokens, set.back() + draw(0, 80)));
      }
      table.insert(table.end(), set.begin(), set.end());
    }
    Ask ask = grouped_ask(named(kernel), offsets.front(), 264, 256);
    ask.m = tokens;
    ask.scaling = Scaling::none;
    ask.seed = 2;  // offsets of 32 bits
    Problem problem(named(kernel), ask);
    OnCuda there(problem);
    const auto made = plan(there.operands(), *facts_, problem.choices());
    ASSERT_TRUE(made) << made.reason();
    there.prepare(*made);
    const auto choices = cuda_memory(static_cast<std::int64_t>(table.size()) * 4);
    require(choices->from_host(table.data(), choices->bytes()));
    const auto which = cuda_memory(4);
    const Stream stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
    choose_offsets<<<1, 32, 0, stream.get()>>>(static_cast<const std::int32_t*>(choices->data()),
                                               groups + 1, static_cast<const int*>(which->data()),
                                               static_cast<std::int32_t*>(there.offsets()));
    const auto refused = there.launch(*made, stream.get(), {.dependent = true});
    ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
    ASSERT_FALSE(refused) << refused->reason;
    ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
    std::vector<Bytes> first(sets);
    for (int i = 0; i < replays; ++i) {
      const int set = draw(0, sets - 1);
      ASSERT_EQ(cudaMemcpyAsync(which->data(), &set, 4, cudaMemcpyHostToDevice, stream.get()),
                cudaSuccess);
      const bool looks = i < 4 * sets || i % 101 == 0;
      if (looks) {
        ASSERT_TRUE(stream.wait());
        there.poison_d();
      }
      ASSERT_EQ(cudaGraphLaunch(runnable, stream.get()), cudaSuccess);
      if (!looks) continue;
      ASSERT_TRUE(stream.wait());
      ask.offsets = offsets[static_cast<std::size_t>(set)];
      Problem here(named(kernel), ask);
      there.receive(here);
      Bytes& known = first[static_cast<std::size_t>(set)];
      if (known.empty()) {
        ASSERT_EQ(here.fault(), "") << "replay " << i;
        known = here.d_bytes();
      }
      ASSERT_EQ(here.d_bytes(), known) << "replay " << i;
    }
    ASSERT_TRUE(stream.wait());
    cudaGraphExecDestroy(runnable);
    cudaGraphDestroy(graph);
  }
}

// Each product of a chain reads what the one before has written, while SMs come and go.
TEST_F(Stress, DependentChainsBesideAGridThatHoldsSms) {
  constexpr int rows = 192;
  constexpr int width = 256;  // N and K
  const int links = campaign() ? 400 : 40;
  Tensor weights = matrices(DType::bf16, 1, width, width);
  Tensor start = matrices(DType::bf16, 1, rows, width);
  Draws draw(3);
  weights.fill([&] { return draw(-16, 16) / 256.0; });
  start.fill([&] { return draw(-16, 16) / 16.0; });
  const auto copy = [](const Tensor& t) {
    auto there = cuda_memory(t.bytes());
    require(there->from_host(t.memory(), t.bytes()));
    return there;
  };
  const auto b = copy(weights);
  const std::shared_ptr<device::CudaBuffer> states[] = {copy(start), copy(start)};
  const auto link = [&](int i) {
    GemmOperands o;
    o.a = start.view(states[i % 2]->data());
    o.b = weights.view(b->data());
    o.d = start.view(states[(i + 1) % 2]->data());
    return o;
  };
  const auto made = plan(link(0), *facts_);
  ASSERT_TRUE(made) << made.reason();
  auto workspace = Workspace::make(*made);
  ASSERT_TRUE(workspace) << workspace.reason();
  const Stream stream;
  const Stream beside;
  Bytes first;
  for (const bool dependent : {false, true, true, true}) {
    require(states[0]->from_host(start.memory(), start.bytes()));
    require(device::synchronise_cuda());
    for (int i = 0; i < links; ++i) {
      if (dependent && i % 8 == 0) hold(facts_->sms - 1 - i % 5, beside);
      const auto refused =
          launch(*made, link(i), *workspace, stream.get(), {.dependent = dependent});
      ASSERT_FALSE(refused) << refused->reason;
      if (!dependent) ASSERT_TRUE(stream.wait());
    }
    ASSERT_TRUE(stream.wait());
    Bytes end(static_cast<std::size_t>(start.bytes()));
    require(device::synchronise_cuda());
    require(states[links % 2]->to_host(end.data(), start.bytes()));
    if (first.empty()) first = end;
    EXPECT_EQ(end, first);
  }
}

// Sums that several CTAs make parts of: the same bits, whoever comes first.
TEST_F(Stress, SharedSumsHaveTheSameBits) {
  const int launches = campaign() ? 2000 : 100;
  const Stream stream;
  const Stream beside;
  for (const Instance& i : sampled(sharing(), 4)) {
    SCOPED_TRACE(i.name);
    Ask ask = extents(i, 2, 77);
    ask.k = 11 * kernel::tile_k(i.config);
    ask.clusters = 5;
    Problem problem(i, ask);
    OnCuda there(problem);
    const auto made = plan(there.operands(), *facts_, problem.choices());
    ASSERT_TRUE(made) << made.reason();
    there.prepare(*made);
    Bytes first;
    for (int n = 0; n < launches; ++n) {
      if (n % 10 == 9) hold(facts_->sms / 2 + n % 7, beside);
      const auto refused = there.launch(*made, stream.get(), {.dependent = n % 2 == 1});
      ASSERT_FALSE(refused) << refused->reason;
      ASSERT_TRUE(stream.wait());
      there.receive(problem);
      if (first.empty()) {
        ASSERT_EQ(problem.fault(), "");
        first = problem.d_bytes();
      }
      ASSERT_EQ(problem.d_bytes(), first) << "launch " << n;
    }
  }
}

// Nothing is left of the device's memory: a sentence, and the next product is right.
TEST_F(Stress, NoMemoryIsLeft) {
  const std::vector<Instance> kernels =
      all_with([](const kernel::GemmConfig& c) { return splits_k(c); });
  ASSERT_FALSE(kernels.empty());
  Ask ask = extents(kernels.front(), 2, 5);
  ask.k = 9 * kernel::tile_k(kernels.front().config);
  ask.clusters = 3;
  Problem problem(kernels.front(), ask);
  OnCuda there(problem);
  const auto made = plan(there.operands(), *facts_, problem.choices());
  ASSERT_TRUE(made) << made.reason();
  ASSERT_GT(made->workspace_bytes, 0);
  {
    std::vector<std::unique_ptr<void, void (*)(void*)>> taken;
    for (std::size_t bytes = std::size_t{1} << 36; bytes >= 4096;) {
      void* memory = nullptr;
      if (cudaMalloc(&memory, bytes) == cudaSuccess) {
        taken.emplace_back(memory, [](void* p) { cudaFree(p); });
      } else {
        (void)cudaGetLastError();  // out of memory is no sticky error
        bytes /= 2;
      }
    }
    const auto workspace = Workspace::make(*made);
    ASSERT_FALSE(workspace);
    EXPECT_NE(workspace.reason().find("memory"), std::string::npos) << workspace.reason();
  }
  there.prepare(*made);
  ASSERT_FALSE(there.launch(*made));
  there.receive(problem);
  EXPECT_EQ(problem.fault(), "");
}

// After a kernel that trapped nothing runs in this process: every call says so and returns. In a
// process of its own, whose status says what it saw.
TEST_F(Stress, ALaunchAfterAStickyError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto child = [&]() -> int {
    const Instance& i = instances().front();
    Ask ask = extents(i, 1, 5);
    ask.k = 64;
    Problem problem(i, ask);
    OnCuda there(problem);
    const auto made = plan(there.operands(), *facts_, problem.choices());
    if (!made) return 2;
    there.prepare(*made);
    trap<<<1, 1>>>();
    const auto failed = device::synchronise_cuda();
    if (!failed || failed->reason.empty()) return 3;
    for (int n = 0; n < 3; ++n) {
      const auto refused = there.launch(*made);
      if (!refused && !device::synchronise_cuda()) return 4;
      if (refused && refused->reason.empty()) return 5;
    }
    return 0;
  };
  EXPECT_EXIT(std::_Exit(child()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace warpwright::tests
