#include "bench/gemm_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>

#include "bench/cublaslt.h"
#include "bench/device_math.h"
#include "bench/host_time.h"
#include "bench/judgement.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "warpwright/device/cuda.h"

namespace warpwright::bench {
namespace {

// Of a ranking: those that are measured again in turns.
constexpr std::size_t kFinalists = 4;

// Starts a plan. How a launch of ours is made is said here and nowhere else.
Launch start(const Plan& plan, void* workspace, bool dependent) {
  return [&plan, workspace, dependent](const GemmOperands& set, void* on) {
    return device::launch_on_cuda(plan, set, workspace, plan.workspace_bytes, on,
                                  {.dependent = dependent});
  };
}

// A plan that takes part, with a workspace of its own, made ready once.
class Contender {
 public:
  Contender(const Plan& plan, bool dependent) : plan_(plan) {
    require(device::prepare_on_cuda(plan_));
    if (plan_.workspace_bytes > 0) {
      const auto made = filled_memory(plan_.workspace_bytes);
      if (!made) throw Failure{made.reason()};
      workspace_ = *made;
      require(device::prepare_workspace_on_cuda(plan_, workspace_->data(), nullptr));
      require(device::synchronise_cuda());
    }
    launch_ = start(plan_, workspace_ ? workspace_->data() : nullptr, dependent);
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Launch& launch() const { return launch_; }

 private:
  Plan plan_;
  std::shared_ptr<device::CudaBuffer> workspace_;
  Launch launch_;
};

// The right result: cuBLASLt's where it has the product, else that of a plain kernel in float32.
class Judge {
 public:
  Judge(const OperandSets& sets, const GemmProblem& problem, CublasLt* library, cudaStream_t stream)
      : sets_(sets), problem_(problem), stream_(stream) {
    const GemmOperands& last = sets_.all().back();
    if (library != nullptr) {
      name_ = "cuBLASLt";
      run([library](const GemmOperands& set, void* on) { return library->launch(0, set, on); },
          last);
      return;
    }
    name_ = "a plain product in float32";
    const std::int64_t elements = last.a.rows * last.b.rows * last.d.batch;
    const auto made = filled_memory(elements * 4);
    if (!made) throw Failure{made.reason()};
    product_ = *made;
    require(reference_product(last, static_cast<float*>(product_->data()), stream_));
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  // The relative error of a plan's result; throws where it is not right.
  double check(const Contender& contender) const {
    const GemmOperands& set = sets_.all().front();
    run(contender.launch(), set);
    const auto* product = product_ ? static_cast<const float*>(product_->data()) : nullptr;
    const Result<Comparison> found =
        compare(set, sets_.all().back().d, product, tolerance(problem_), stream_);
    if (!found) throw Failure{found.reason()};
    if (const auto wrong = fault(*found, problem_, contender.plan().name(), name_)) {
      throw Failure{*wrong};
    }
    return found->relative;
  }

 private:
  // D is poisoned first: what nobody stores is NaN.
  void run(const Launch& launch, const GemmOperands& set) const {
    require(cudaMemsetAsync(set.d.data, 0xff, static_cast<std::size_t>(span_bytes(set.d)), stream_),
            "filling D");
    require(launch(set, stream_));
    require(cudaStreamSynchronize(stream_), "multiplying");
  }

  const OperandSets& sets_;
  const GemmProblem& problem_;
  cudaStream_t stream_;
  std::string name_;
  std::shared_ptr<device::CudaBuffer> product_;
};

// One problem on one device: operands, the baseline, and the judge.
class Session {
 public:
  Session(const std::vector<Plan>& plans, const GemmOperands* host, const TimeOptions& options)
      : problem_(plans.front().problem),
        options_(options),
        sets_(host != nullptr ? *host : operands_for(problem_), plans.front().device.l2_bytes,
              options.seed, stream_.get()),
        library_(CublasLt::make(sets_.all(), options.offers)),
        judge_(sets_, problem_, library_ ? library_->get() : nullptr, stream_.get()) {
    contenders_.push_back(std::make_unique<Contender>(plans.front(), options.dependent));
    error_ = judge_.check(*contenders_.front());
    const double each = estimate(on_sets(contenders_.front()->launch(), sets_.all()),
                                 sets_.all().size(), stream_.get());
    const bool hot = roof(problem_, plans.front().device).bound == Bound::tensor_cores;
    race_.emplace(sets_.all().size(), each, hot, options, stream_.get());
    all_ = static_cast<int>(plans.size()) + (library_ ? (*library_)->algorithms() : 0);
    step();
    for (std::size_t i = 1; i < plans.size(); ++i) add(plans[i]);
  }

  // Contender 0 is the first plan.
  [[nodiscard]] const std::vector<std::unique_ptr<Contender>>& contenders() const {
    return contenders_;
  }
  [[nodiscard]] bool has_library() const { return static_cast<bool>(library_); }
  [[nodiscard]] const std::string& no_library() const { return library_.reason(); }

  Launch library(int algorithm) const {
    return [this, algorithm](const GemmOperands& set, void* on) {
      return (*library_)->launch(algorithm, set, on);
    };
  }
  [[nodiscard]] int algorithms() const { return (*library_)->algorithms(); }

  [[nodiscard]] std::unique_ptr<Graph> graph(const Launch& launch) const {
    return race_->graph(on_sets(launch, sets_.all()));
  }
  [[nodiscard]] double screen(const Launch& launch) const {
    return race_->screen(on_sets(launch, sets_.all()));
  }
  [[nodiscard]] std::vector<Timing> final_rounds(const std::vector<const Graph*>& graphs) const {
    return race_->run(graphs);
  }

  // Of the first plan's launches.
  [[nodiscard]] HostTimes host() const {
    const Contender& first = *contenders_.front();
    return host_times(first.plan(), on_sets(first.launch(), sets_.all()), sets_.all().size(),
                      options_.dependent, stream_.get());
  }

  void step() {
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, all_), all_);
  }

  void describe(GemmTimes& times) const {
    times.problem = problem_;
    times.checked_against = judge_.name();
    times.relative_error = error_;
    times.cold = sets_.cold();
    times.rounds = options_.rounds;
    times.launches = race_->launches();
    times.buffer_sets = static_cast<int>(sets_.all().size());
  }

 private:
  // A plan that this GPU does not launch is left out; one with a wrong result ends everything.
  void add(const Plan& plan) {
    try {
      auto contender = std::make_unique<Contender>(plan, options_.dependent);
      require(contender->launch()(sets_.all().front(), stream_.get()));
      contenders_.push_back(std::move(contender));
    } catch (const Failure&) {
      step();
      return;
    }
    judge_.check(*contenders_.back());
  }

  GemmProblem problem_;
  TimeOptions options_;
  Stream stream_;
  OperandSets sets_;
  Result<std::shared_ptr<CublasLt>> library_;
  Judge judge_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  double error_ = 0;
  std::optional<Race> race_;
  int done_ = 0;
  int all_ = 1;
};

// The fastest contender by a few replays each.
std::size_t fastest_plan(Session& session) {
  std::size_t fastest = 0;
  double least = 0;
  const auto& contenders = session.contenders();
  for (std::size_t i = 0; i < contenders.size() && contenders.size() > 1; ++i) {
    const double time = session.screen(contenders[i]->launch());
    if (i == 0 || time < least) {
      least = time;
      fastest = i;
    }
    if (i > 0) session.step();
  }
  return fastest;
}

// Likewise of cuBLASLt's offers; one that does not launch is left out.
void fastest_offer(Session& session, GemmTimes& times) {
  double least = 0;
  for (int i = 0; i < session.algorithms(); ++i) {
    try {
      const double time = session.screen(session.library(i));
      ++times.offered;
      if (least == 0 || time < least) {
        least = time;
        times.best_index = i;
      }
    } catch (const Failure&) {
      if (i == 0) throw;
    }
    session.step();
  }
}

GemmTimes measure(const std::vector<Plan>& plans, const GemmOperands* host,
                  const TimeOptions& options) {
  Session session(plans, host, options);
  GemmTimes times;
  session.describe(times);
  const Roof limit = roof(times.problem, plans.front().device);
  times.roof_us = limit.seconds * 1e6;
  times.bound = limit.bound;
  times.configs = static_cast<int>(session.contenders().size());
  const std::size_t winner = fastest_plan(session);
  const auto& contenders = session.contenders();
  times.plan = contenders.front()->plan().name();
  times.config = contenders[winner]->plan().name();

  std::vector<std::unique_ptr<Graph>> graphs;
  graphs.push_back(session.graph(contenders.front()->launch()));
  if (winner != 0) graphs.push_back(session.graph(contenders[winner]->launch()));
  const std::size_t theirs = graphs.size();
  times.baseline = session.has_library() ? "cuBLASLt " + cublaslt_version() : session.no_library();
  if (session.has_library()) {
    fastest_offer(session, times);
    graphs.push_back(session.graph(session.library(0)));
    if (times.best_index != 0) graphs.push_back(session.graph(session.library(times.best_index)));
  }
  std::vector<const Graph*> turns;
  turns.reserve(graphs.size());
  for (const auto& graph : graphs) turns.push_back(graph.get());
  const std::vector<Timing> all = session.final_rounds(turns);

  times.host = session.host();
  times.ours = all.front();
  times.config_time = all[theirs - 1];
  // What looked faster in the few replays need not be so in the many.
  if (times.config_time.median > times.ours.median) {
    times.config_time = times.ours;
    times.config = times.plan;
  }
  if (!session.has_library()) return times;
  times.first = all[theirs];
  times.best = all.back();
  if (times.best->median > times.first->median) {
    times.best = times.first;
    times.best_index = 0;
  }
  return times;
}

std::vector<RankedPlan> rank(const std::vector<Plan>& plans, const TimeOptions& options) {
  Session session(plans, nullptr, options);
  std::vector<std::pair<double, const Contender*>> order;
  for (const auto& contender : session.contenders()) {
    order.emplace_back(session.screen(contender->launch()), contender.get());
    session.step();
  }
  std::sort(order.begin(), order.end(),
            [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<const Graph*> turns;
  for (std::size_t i = 0; i < std::min(kFinalists, order.size()); ++i) {
    graphs.push_back(session.graph(order[i].second->launch()));
    turns.push_back(graphs.back().get());
  }
  const std::vector<Timing> finals = session.final_rounds(turns);
  std::vector<RankedPlan> ranked;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double time = order[i].first;
    ranked.push_back(
        {order[i].second->plan(), i < finals.size() ? finals[i] : Timing{time, time, time}});
  }
  std::stable_sort(
      ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(finals.size()),
      [](const RankedPlan& x, const RankedPlan& y) { return x.timing.median < y.timing.median; });
  return ranked;
}

std::optional<Refusal> nothing_to_time(const std::vector<Plan>& plans) {
  if (plans.empty() || plans.front().ctas == 0 || !plans.front().problem.reads_ab) {
    return Refusal{RefusalCode::bad_value,
                   "there is no product to time: M, N, K and alpha must not be 0"};
  }
  return std::nullopt;
}

}  // namespace

Result<GemmTimes> time_gemm(const std::vector<Plan>& plans, const GemmOperands* host,
                            const TimeOptions& options) {
  if (const auto refusal = nothing_to_time(plans)) return *refusal;
  try {
    return measure(plans, host, options);
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

Result<std::vector<RankedPlan>> rank_plans(const std::vector<Plan>& plans,
                                           const TimeOptions& options) {
  if (const auto refusal = nothing_to_time(plans)) return *refusal;
  try {
    return rank(plans, options);
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

std::string line(const GemmTimes& t) {
  const auto times = [&t](const Timing& x) {
    char text[120];
    std::snprintf(text, sizeof(text), "%.2f us (%.2f..%.2f) %.1f TFLOP/s", x.median, x.low, x.high,
                  tflops(t.problem, x));
    return std::string(text);
  };
  std::string text = "ours " + times(t.ours);
  if (t.first && t.best) {
    char ratio[80];
    std::snprintf(ratio, sizeof(ratio), "; ratio %.3f to the best, %.3f to the first",
                  t.best->median / t.ours.median, t.first->median / t.ours.median);
    text += "; " + t.baseline + " first pick " + times(*t.first) + ", best of " +
            std::to_string(t.offered) + " (number " + std::to_string(t.best_index + 1) + ") " +
            times(*t.best) + ratio;
  } else {
    text += "; no ratio: " + t.baseline;
  }
  text += "; medians (quartiles) of " + std::to_string(t.rounds) + " rounds of " +
          std::to_string(t.launches) + " launches over " + std::to_string(t.buffer_sets) +
          " sets of buffers; checked against " + t.checked_against;
  if (!t.cold) text += "; too few buffers to keep the operands out of L2";
  return text;
}

Software software() {
  int version = 0;
  Software s;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) {
    s.cuda = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  s.cublaslt = cublaslt_version();
  return s;
}

}  // namespace warpwright::bench
