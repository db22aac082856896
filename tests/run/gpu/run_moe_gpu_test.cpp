// `run_moe` on a GPU: the result, memory of streams, graph captures, ids that are checked.
#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "tests/device/mixture.h"
#include "tests/gpu.h"
#include "tests/must.h"
#include "warpwright/device/cuda.h"
#include "warpwright/numeric/scalar.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/run_moe.h"

namespace warpwright {
namespace {

using testing::HasSubstr;
using tests::MixtureAsk;
using tests::SomeMixture;

// A random mixture in host memory, and its copy on device 0.
class Both {
 public:
  explicit Both(const MixtureAsk& ask) : here(ask), there(copied(here.o)) {}

  // The result of the GPU, right or not, comes to the host.
  void take_result() { EXPECT_FALSE(d_->to_host(here.o.d.data, bytes_of(here.o.d))); }
  [[nodiscard]] reference::MixtureVerdict verdict() {
    take_result();
    return reference::check_mixture(here.o);
  }
  void put_ids() { EXPECT_FALSE(ids_->from_host(here.o.topk_ids.data, bytes_of(here.o.topk_ids))); }
  void forget_result() { EXPECT_FALSE(d_->fill(0xff)); }

  SomeMixture here;

 private:
  std::vector<std::shared_ptr<device::CudaBuffer>> memory_;
  std::shared_ptr<device::CudaBuffer> d_, ids_;

  static std::int64_t bytes_of(const MatrixView& v) {
    return v.batch * v.rows * v.columns * element_bytes(v.dtype);
  }
  MixtureOperands copied(const MixtureOperands& o) {
    return with_matrices(o, [&](MatrixView v) {
      if (v.data == nullptr) return v;
      auto made = must(device::CudaBuffer::make(bytes_of(v)));
      EXPECT_FALSE((*made)->from_host(v.data, bytes_of(v)));
      if (v.data == o.d.data) d_ = *made;
      if (v.data == o.topk_ids.data) ids_ = *made;
      memory_.push_back(*made);
      v.data = (*made)->data();
      return v;
    });
  }

 public:
  MixtureOperands there;  // made last: it fills the memory above
};

class RunMoeOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
    ASSERT_FALSE(device::use_cuda_device(0));
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    how_ = {.device = 0, .stream = stream_};
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  void wait() const { ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

  cudaStream_t stream_ = nullptr;
  MixtureRunOptions how_;
};

TEST_F(RunMoeOnGpu, ACallIsRightForAllTypesAndTakesNoMemoryTheSecondTime) {
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    SCOPED_TRACE(name(scaling));
    Both both({.tokens = 30, .experts = 4, .hidden = 256, .inner = 128, .scaling = scaling});
    std::shared_ptr<const MixturePlan> made;
    must_do(run_moe(both.there, how_, &made));
    EXPECT_NE(made, nullptr);
    wait();
    EXPECT_EQ(both.verdict().failures, 0);
    std::size_t before = 0;
    std::size_t after = 0;
    std::size_t all = 0;
    ASSERT_EQ(cudaMemGetInfo(&before, &all), cudaSuccess);
    both.forget_result();
    ASSERT_FALSE(run_moe(both.there, how_, &made));
    EXPECT_EQ(made, nullptr);
    wait();
    ASSERT_EQ(cudaMemGetInfo(&after, &all), cudaSuccess);
    EXPECT_EQ(before, after);
    EXPECT_EQ(both.verdict().failures, 0);
  }
}

TEST_F(RunMoeOnGpu, ACapturedCallReadsItsIdsAtEveryReplay) {
  Both both({.tokens = 9, .hidden = 256, .inner = 128});
  ASSERT_FALSE(run_moe(both.there, how_));
  wait();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const auto refused = run_moe(both.there, how_);
  how_.check_ids = true;
  const auto waits = run_moe(both.there, how_);
  how_.check_ids = false;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_FALSE(refused) << refused->reason;
  ASSERT_TRUE(waits);
  EXPECT_THAT(waits->reason, HasSubstr("check_ids waits for the kernel"));
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  for (const std::int64_t id : {1, 6, -1}) {
    both.here.ids[7] = id;
    both.here.put_ids();
    both.put_ids();
    both.forget_result();
    ASSERT_EQ(cudaGraphLaunch(ready, stream_), cudaSuccess);
    wait();
    EXPECT_EQ(both.verdict().failures, 0) << "id " << id;
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

TEST_F(RunMoeOnGpu, IdsAreCheckedWhereThatIsAskedFor) {
  Both both({});
  how_.check_ids = true;
  EXPECT_FALSE(run_moe(both.there, how_));
  both.here.ids[5] = 8;
  both.here.put_ids();
  both.put_ids();
  const auto refused = run_moe(both.there, how_);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::bad_value);
  EXPECT_EQ(both.verdict().failures, 0);  // the slot is left out
}

TEST_F(RunMoeOnGpu, EveryStepCanBeLaunchedAlone) {
  Both both({.tokens = 40, .hidden = 256, .inner = 128});
  const auto facts = must(run_facts(0));
  const auto plan = must(run_moe_plan(both.there, **facts));
  auto workspace = must(make_workspace(*plan));
  ASSERT_FALSE(launch(*plan, both.there, *workspace, stream_));
  wait();
  both.forget_result();
  // In their order they are the whole.
  for (const PlannedStep& step : plan->steps()) {
    must_do(launch(*plan, both.there, *workspace, stream_, {.only = step.step}));
    wait();
  }
  EXPECT_EQ(both.verdict().failures, 0);
  const MixtureStep other =
      plan->takes(MixtureStep::gather) ? MixtureStep::quantise : MixtureStep::gather;
  const auto refused = launch(*plan, both.there, *workspace, stream_, {.only = other});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::bad_choice);
}

// A mixture with several sets of ids, each with a result of its own: in one workspace offsets that
// are read too early are those of the launch before, and give other bits.
class ManyIds {
 public:
  ManyIds(Both& both, int experts) : bytes_(bytes_of(both.there.d)) {
    constexpr int kinds = 4;
    for (int i = 0; i < kinds; ++i) {
      for (std::int64_t& id : both.here.ids) id = id < 0 ? id : (id + 5) % experts;
      both.here.put_ids();
      each.push_back(both.there);
      each.back().topk_ids.data = copied(both.here.o.topk_ids);
      each.back().d.data = copied(both.here.o.d);
      results_.push_back(memory_.back());
    }
  }
  // All results; behind the launches.
  [[nodiscard]] std::vector<std::vector<std::byte>> content() const {
    std::vector<std::vector<std::byte>> all;
    for (const auto& d : results_) {
      all.emplace_back(static_cast<std::size_t>(bytes_));
      EXPECT_FALSE(d->to_host(all.back().data(), bytes_));
    }
    return all;
  }
  void forget() const {
    for (const auto& d : results_) EXPECT_FALSE(d->fill(0xff));
  }

  std::vector<MixtureOperands> each;

 private:
  static std::int64_t bytes_of(const MatrixView& v) {
    return v.rows * v.columns * element_bytes(v.dtype);
  }
  void* copied(const MatrixView& v) {
    memory_.push_back(*device::CudaBuffer::make(bytes_of(v)));
    EXPECT_FALSE(memory_.back()->from_host(v.data, bytes_of(v)));
    return memory_.back()->data();
  }

  std::int64_t bytes_;
  std::vector<std::shared_ptr<device::CudaBuffer>> memory_, results_;
};

class RunManyIdsOnGpu : public RunMoeOnGpu {
 protected:
  void launch_all(const ManyIds& ids) const {
    for (const MixtureOperands& o : ids.each) {
      must_do(run_moe(o, how_));
    }
  }
  // Launches with both choices leave the same, also where each begins while the one before ends.
  void expect_same(const ManyIds& ids, const MixtureChoices& one, const MixtureChoices& other) {
    constexpr int times = 200;
    how_.choices = one;
    launch_all(ids);
    wait();
    const auto want = ids.content();
    how_.choices = other;
    how_.launch.dependent = true;
    for (int i = 0; i < times; ++i) {
      if (i % 20 == 0) ids.forget();
      launch_all(ids);
      if (i % 20 != 19) continue;
      wait();
      ASSERT_EQ(ids.content(), want) << "launch " << i;
    }
    how_.launch.dependent = false;
  }
};

TEST_F(RunManyIdsOnGpu, WeightsAskedForEarlyChangeNoBit) {
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const bool by_index : {true, false}) {
      SCOPED_TRACE(std::string(name(scaling)) + (by_index ? ", by number" : ", gathered"));
      Both both({.tokens = 24,
                 .experts = 16,
                 .top_k = 4,
                 .hidden = 512,
                 .inner = 256,
                 .scaling = scaling});
      expect_same(ManyIds(both, 16), {.by_index = by_index, .early_weights = false},
                  {.by_index = by_index, .early_weights = true});
    }
  }
}

TEST_F(RunManyIdsOnGpu, TheSortAndTheGatherInOneLaunchChangeNoBit) {
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const int tokens : {1, 8, 33, 64, 512}) {
      for (const int total : {24, 0}) {  // of a rank that has some of the experts; all
        SCOPED_TRACE(std::string(name(scaling)) + ", tokens " + std::to_string(tokens) +
                     ", experts of all ranks " + std::to_string(total));
        Both both({.tokens = tokens,
                   .experts = 16,
                   .top_k = 8,
                   .hidden = 1024,
                   .inner = 128,
                   .scaling = scaling,
                   .first_expert = total > 0 ? 5 : 0,
                   .experts_total = total});
        // Who gates is given: plans' choices would follow the other one, and their bits differ.
        MixtureChoices one{.by_index = false, .sort_with_gather = false};
        one.gates_in_epilogue = total > 0;
        MixtureChoices other = one;
        other.sort_with_gather = true;
        expect_same(ManyIds(both, total > 0 ? total : 16), one, other);
      }
    }
  }
}

TEST_F(RunManyIdsOnGpu, ALayerInOneLaunchChangesNoBit) {
  for (const int tokens : {1, 4, 16, 32}) {
    for (const int total : {24, 0}) {  // of a rank that has some of the experts; all
      SCOPED_TRACE("tokens " + std::to_string(tokens) + ", experts of all ranks " +
                   std::to_string(total));
      Both both({.tokens = tokens,
                 .experts = 16,
                 .top_k = 8,
                 .hidden = 1024,
                 .inner = 384,
                 .first_expert = total > 0 ? 5 : 0,
                 .experts_total = total,
                 .biases = total > 0});
      expect_same(ManyIds(both, total > 0 ? total : 16),
                  {.batch_invariant = true, .one_launch = false},
                  {.batch_invariant = true, .one_launch = true});
    }
  }
}

}  // namespace
}  // namespace warpwright
