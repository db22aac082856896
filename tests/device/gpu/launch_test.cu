// Launches on a CUDA device: many in a row, graphs, and programmatic dependent launch.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/gpu.h"
#include "tests/kernel/problem_cuda.h"
#include "warpwright/isa/fence.h"

namespace warpwright::tests {
namespace {

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const { ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Lets the next kernel start, takes its time, and only then writes.
__global__ void late_copy(const uint4* from, uint4* to, std::int64_t count, long long clocks) {
  isa::launch_dependents();
  const long long start = clock64();
  while (clock64() - start < clocks) {
  }
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = from[i];
  }
}

class LaunchOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
    const auto devices = device::cuda_devices();
    ASSERT_FALSE(device::use_cuda_device(0));
    facts_ = devices.front();
  }

  // The basic kernel, and one that splits K: with a workspace.
  static std::vector<Instance> two_kernels() {
    std::vector<Instance> found;
    for (const auto& one : {one_with("tiles in turns",
                                     [](const kernel::GemmConfig& c) {
                                       return is_basic(c, kernel::Schedule::pingpong) &&
                                              stored_a(c) == DType::bf16;
                                     }),
                            one_with("K split", [](const kernel::GemmConfig& c) {
                              return splits_k(c) && !sums_in_registers(c);
                            })}) {
      if (one) found.push_back(*one);
    }
    return found;
  }

  static Ask ask_for(const Instance& i, unsigned seed) {
    Ask ask = extents(i, 2, seed);
    ask.k = 8 * kernel::tile_k(i.config);
    return ask;
  }

  std::optional<DeviceFacts> facts_;
};

// Many launches in flight, without a graph: each is accepted, and what they leave is right. How
// long the host takes for one is a matter of `bench dense`.
TEST_F(LaunchOnGpu, TakesHundredsOfLaunchesInARow) {
  constexpr int batch = 100;  // far fewer than a stream holds: no launch waits for room
  constexpr int batches = 5;
  for (const bool dependent : {false, true}) {
    for (const Instance& i : two_kernels()) {
      SCOPED_TRACE(std::string(i.name) + (dependent ? ", dependent" : ""));
      Problem problem(i, ask_for(i, 1));
      OnCuda there(problem);
      const auto made = plan(there.operands(), *facts_, problem.choices());
      ASSERT_TRUE(made) << made.reason();
      there.prepare(*made);
      const Stream stream;
      for (int b = 0; b < batches; ++b) {
        for (int n = 0; n < batch; ++n) {
          const auto refusal = there.launch(*made, stream.get(), {.dependent = dependent});
          ASSERT_FALSE(refusal) << refusal->reason;
        }
        stream.wait();
      }
      there.receive(problem);
      EXPECT_EQ(problem.fault(), "");
    }
  }
}

TEST_F(LaunchOnGpu, GraphsReplayWithOtherInputs) {
  for (const Instance& i : two_kernels()) {
    SCOPED_TRACE(i.name);
    const Ask ask = ask_for(i, 1);
    Problem first(i, ask);
    OnCuda there(first);
    const auto made = plan(there.operands(), *facts_, first.choices());
    ASSERT_TRUE(made) << made.reason();
    there.prepare(*made);
    const Stream stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
    const auto refusal = there.launch(*made, stream.get());
    const auto again = there.launch(*made, stream.get(), {.dependent = true});
    ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
    ASSERT_FALSE(refusal) << refusal->reason;
    ASSERT_FALSE(again) << again->reason;
    ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
    // Nothing has run yet.
    there.receive(first);
    EXPECT_NE(first.fault(), "");
    for (const unsigned seed : {1U, 2U, 3U}) {
      Ask other = ask;
      other.seed = seed;
      Problem now(i, other);
      there.send(now);
      ASSERT_EQ(cudaGraphLaunch(runnable, stream.get()), cudaSuccess);
      stream.wait();
      there.receive(now);
      EXPECT_EQ(now.fault(), "") << "replay " << seed;
    }
    cudaGraphExecDestroy(runnable);
    cudaGraphDestroy(graph);
  }
}

TEST_F(LaunchOnGpu, DependentLaunchesWaitForTheirInputs) {
  constexpr long long clocks = 400000;  // some 200 us
  for (const Instance& i : two_kernels()) {
    SCOPED_TRACE(i.name);
    Problem problem(i, ask_for(i, 5));
    OnCuda there(problem);
    const auto made = plan(there.operands(), *facts_, problem.choices());
    ASSERT_TRUE(made) << made.reason();
    there.prepare(*made);
    // A's place is poisoned; the kernel before writes the true A, late, after it has let ours go.
    const Problem::Piece a = problem.piece(0);
    const auto source = cuda_memory(a.bytes);
    ASSERT_FALSE(source->from_host(a.memory, a.bytes));
    const Stream stream;
    for (int round = 0; round < 5; ++round) {
      const MatrixView view = there.operands().a;
      // The whole of the tensor's memory, which begins 256 bytes before its first element.
      auto* const to = static_cast<std::byte*>(view.data) - 256;
      ASSERT_EQ(cudaMemset(to, 0xff, static_cast<std::size_t>(a.bytes)), cudaSuccess);
      ASSERT_EQ(cudaMemset(there.operands().d.data, 0xff,
                           static_cast<std::size_t>(problem.d().bytes()) - 256),
                cudaSuccess);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      late_copy<<<4, 128, 0, stream.get()>>>(static_cast<const uint4*>(source->data()),
                                             reinterpret_cast<uint4*>(to), a.bytes / 16, clocks);
      ASSERT_EQ(cudaGetLastError(), cudaSuccess);
      const auto refusal = there.launch(*made, stream.get(), {.dependent = true});
      ASSERT_FALSE(refusal) << refusal->reason;
      // And one behind it that overwrites the same D with the same.
      const auto second = there.launch(*made, stream.get(), {.dependent = true});
      ASSERT_FALSE(second) << second->reason;
      stream.wait();
      there.receive(problem);
      ASSERT_EQ(problem.fault(), "") << "round " << round;
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
