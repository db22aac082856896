// Plans that are chosen by measuring, on a GPU.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/gpu.h"
#include "tests/must.h"
#include "warpwright/plan/tuning/tuning.h"
#include "warpwright/run.h"

namespace warpwright {
namespace {

using testing::HasSubstr;

// A cache of its own, before anybody asks where it lies.
const std::string cache = [] {
  std::string path = std::filesystem::temp_directory_path() / "warpwright-measure-";
  path += std::to_string(::getpid());
  ::setenv("XDG_CACHE_HOME", path.c_str(), 1);
  return path;
}();

class MeasureOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
    facts_ = **run_facts(0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache); }

  // Memory of zeros, and a D of 0xff.
  GemmOperands product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups = 0) {
    const auto memory = [&](std::int64_t bytes, int fill) {
      kept_.push_back(*device::CudaBuffer::make(bytes, fill));
      return kept_.back()->data();
    };
    GemmOperands o;
    o.a = matrix(memory(m * k * 2, 0), DType::bf16, m, k);
    o.b = matrix(memory(std::max<std::int64_t>(groups, 1) * n * k * 2, 0), DType::bf16, n, k);
    d_ = static_cast<std::int64_t>(kept_.size());
    o.d = matrix(memory(m * n * 2, 0xff), DType::bf16, m, n);
    if (groups > 0) {
      o.b.batch = groups;
      o.b.batch_stride = n * k;
      std::vector<std::int32_t> offsets;
      for (std::int64_t g = 0; g <= groups; ++g) {
        offsets.push_back(static_cast<std::int32_t>(g * m / groups));
      }
      o.groups = Groups{memory(4 * (groups + 1), 0)};
      EXPECT_FALSE(kept_.back()->from_host(offsets.data(), 4 * (groups + 1)));
    }
    return o;
  }
  // Every byte of D.
  [[nodiscard]] std::vector<unsigned char> result() const {
    const auto& d = kept_[static_cast<std::size_t>(d_)];
    std::vector<unsigned char> bytes(static_cast<std::size_t>(d->bytes()));
    EXPECT_FALSE(d->to_host(bytes.data(), d->bytes()));
    return bytes;
  }

  DeviceFacts facts_;
  std::vector<std::shared_ptr<device::CudaBuffer>> kept_;
  std::int64_t d_ = 0;
};

TEST_F(MeasureOnGpu, LeavesTheCallersMemoryAndIsKept) {
  for (const std::int64_t groups : {0, 16}) {
    const GemmOperands o = product(512, 384, 1024, groups);
    const auto made = must(measured_plan(o, facts_, 0, {}, 4));
    EXPECT_THAT(made->reason, HasSubstr("the fastest of 4 that were measured here"));
    EXPECT_THAT(made->explain(), HasSubstr("measured here"));
    EXPECT_THAT(result(), testing::Each(0xff));
    const TuningCache file(TuningCache::default_path());
    const auto entry = file.find(tuning_key(made->problem, facts_));
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->kernel, made->kernel);
    // Its plan is that of whoever asks next, measured or not.
    EXPECT_EQ(run_plan(o, facts_, {})->name(), made->name());
    EXPECT_THAT(measured_plan(o, facts_, 0, {}, 8)->reason, testing::Not(HasSubstr("of 8")));
  }
}

TEST_F(MeasureOnGpu, KeepsToWhatIsChosen) {
  const GemmOperands o = product(96, 512, 4096);
  PlanChoices choices;
  choices.batch_invariant = true;
  const auto made = must(measured_plan(o, facts_, 0, choices, 6));
  EXPECT_FALSE(mismatch(*made, choices));
  EXPECT_THAT(made->reason, HasSubstr("were measured here"));
  EXPECT_TRUE(
      TuningCache(TuningCache::default_path()).find(tuning_key(made->problem, facts_, true)));
  choices = {};
  choices.cluster = atom::ClusterShape{1, 1};
  const auto alone = must(measured_plan(o, facts_, 0, choices, 3));
  EXPECT_EQ(alone->cluster, (atom::ClusterShape{1, 1}));
}

TEST_F(MeasureOnGpu, NotInACapture) {
  const GemmOperands o = product(160, 256, 512);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  RunOptions how{.device = 0, .stream = stream};
  ASSERT_FALSE(run(o, how));  // loads a kernel
  how.measure = 4;
  std::shared_ptr<const Plan> made;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_FALSE(run(o, how, &made));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(made->reason, testing::Not(HasSubstr("measured")));
  ASSERT_FALSE(run(o, how, &made));
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(made->reason, HasSubstr("were measured here"));
  ASSERT_FALSE(run(o, how, &made));
  EXPECT_EQ(made, nullptr);  // kept
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaStreamDestroy(stream);
  EXPECT_THAT(result(), testing::Each(0));
}

}  // namespace
}  // namespace warpwright
