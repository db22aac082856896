#include "bench/gemm_bench.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "bench/cublaslt.h"
#include "bench/host_time.h"
#include "bench/judgement.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "warpwright/device/launch.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/tuning/times.h"

namespace warpwright::bench {
namespace {

// From a ranking: those that are measured again in turns.
constexpr std::size_t kFinalists = 4;

// cuBLASLt's calls for one product, one for each part, prepared once for each length that there is.
class Baseline {
 public:
  // Keeps a reference to the parts of the sets.
  static Result<std::unique_ptr<Baseline>> make(const std::vector<Parts>& sets, int offers,
                                                bool grouped) {
    std::map<std::int64_t, std::vector<GemmOperands>> by_length;
    for (const Parts& parts : sets) {
      for (const GemmOperands& o : parts) by_length[o.a.rows].push_back(o);
    }
    auto baseline = std::unique_ptr<Baseline>(new Baseline(sets));
    for (const auto& [length, operands] : by_length) {
      auto made = CublasLt::make(operands, grouped ? 1 : offers);
      if (!made) {
        const std::string of =
            grouped ? "a group of " + std::to_string(length) + " tokens: " : std::string();
        return Refusal{made.code(), of + made.reason()};
      }
      baseline->products_[length] = *made;
    }
    return baseline;
  }

  [[nodiscard]] int calls() const { return static_cast<int>(sets_.front().size()); }
  // For all its products: several are asked for one each.
  [[nodiscard]] int algorithms() const { return products_.begin()->second->algorithms(); }

  [[nodiscard]] Launch launch(int algorithm) const {
    return [this, algorithm](std::size_t number, void* stream) -> std::optional<Refusal> {
      for (const GemmOperands& o : sets_[number % sets_.size()]) {
        if (auto refusal = products_.at(o.a.rows)->launch(algorithm, o, stream)) return refusal;
      }
      return std::nullopt;
    };
  }

 private:
  explicit Baseline(const std::vector<Parts>& sets) : sets_(sets) {}

  const std::vector<Parts>& sets_;
  std::map<std::int64_t, std::shared_ptr<CublasLt>> products_;
};

// A plan that takes part, with a workspace of its own, made ready once.
class Contender {
 public:
  Contender(const Plan& plan, const std::vector<GemmOperands>& sets, bool dependent,
            cudaStream_t stream)
      : plan_(plan), sets_(sets), dependent_(dependent) {
    auto made = Workspace::make(plan_);
    if (!made) throw Failure{made.reason()};
    workspace_ = std::move(*made);
    require(prepare(plan_, workspace_, stream));
    require(cudaStreamSynchronize(stream), "preparing");
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // How a launch of ours is made is said here and nowhere else.
  [[nodiscard]] Launch launch() {
    return [this](std::size_t number, void* stream) {
      return warpwright::launch(plan_, sets_[number % sets_.size()], workspace_, stream,
                                {.dependent = dependent_});
    };
  }

 private:
  Plan plan_;
  const std::vector<GemmOperands>& sets_;
  bool dependent_;
  Workspace workspace_;
};

std::shared_ptr<device::CudaBuffer> offsets_of(const std::vector<std::int64_t>& lengths,
                                               OffsetType type) {
  std::vector<std::int64_t> wide = {0};
  for (const std::int64_t length : lengths) wide.push_back(wide.back() + length);
  const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
  const bool is_wide = type == OffsetType::int64;
  const auto bytes = static_cast<std::int64_t>(wide.size()) * (is_wide ? 8 : 4);
  auto memory = filled_memory(bytes);
  require(memory->from_host(
      is_wide ? static_cast<const void*>(wide.data()) : static_cast<const void*>(narrow.data()),
      bytes));
  return memory;
}

// 0, 1, 2, ...
std::shared_ptr<device::CudaBuffer> numbers_upto(std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  auto memory = filled_memory(count * 4);
  require(memory->from_host(numbers.data(), count * 4));
  return memory;
}

// One problem on one device: operands, cuBLASLt, and the judge.
class Session {
 public:
  Session(const std::vector<Plan>& plans, const GemmOperands* host, const TimeOptions& options)
      : problem_(plans.front().problem),
        options_(options),
        roof_(roof(problem_, plans.front().device, options.lengths)) {
    make_operands(host, plans.front().device);
    if (problem_.packed) {
      no_baseline_ = "cuBLASLt has no packed weights";
    } else if (!options.beside.empty()) {
      no_baseline_ = "other products take its turns";
    } else {
      find_baseline();
    }
    judge_ = std::make_unique<Judge>(
        sets(), parts_, baseline_ && !problem_.groups ? baseline_->launch(0) : Launch(), stream());
    all_ = static_cast<int>(plans.size()) + (baseline_ ? baseline_->algorithms() : 0);
    contenders_.push_back(make(plans.front()));
    error_ = judge_->check(contenders_.front()->launch(), plans.front().name());
    for (std::size_t i = 1; i < plans.size(); ++i) add(plans[i]);
    if (baseline_ && problem_.groups) {
      judge_->check(baseline_->launch(0), "the loop of cuBLASLt calls");
    }
    const Launch first = contenders_.front()->launch();
    race_.emplace(sets().size(), estimate(first, stream()), roof_.bound() == Bound::tensor_cores,
                  options, stream());
  }

  // Contender 0 is the first plan.
  [[nodiscard]] const std::vector<std::unique_ptr<Contender>>& contenders() const {
    return contenders_;
  }
  // Null where there is none.
  [[nodiscard]] const Baseline* baseline() const { return baseline_.get(); }
  [[nodiscard]] const Race& race() const { return *race_; }

  // For the first plan's launches.
  [[nodiscard]] HostTimes host() const {
    Contender& first = *contenders_.front();
    return host_times(first.plan(), first.launch(), options_.dependent, stream());
  }

  // One launch of the first plan and one of cuBLASLt's first pick, each behind its mark.
  void profile(int number) {
    require(cudaProfilerStart(), "starting the profiler");
    mark(number, stream());
    require(contenders_.front()->launch()(0, stream()));
    if (baseline_) {
      mark(number + 1, stream());
      require(baseline_->launch(0)(0, stream()));
    }
    require(cudaStreamSynchronize(stream()), "launching under the profiler");
    require(cudaProfilerStop(), "stopping the profiler");
  }

  // What each of them takes by a few replays; nothing where it does not launch, or is the only one.
  std::vector<std::optional<double>> screen(const std::vector<Launch>& launches) {
    std::vector<std::optional<double>> all(launches.size());
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < launches.size(); ++i) {
      try {
        if (launches.size() > 1) all[i] = race_->screen(launches[i], least);
        least = std::min(least, all[i].value_or(least));
      } catch (const Failure&) {
        if (i == 0) throw;
      }
      step();
    }
    return all;
  }

  void step() {
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, all_), all_);
  }

  void describe(GemmTimes& times) const {
    times.problem = problem_;
    times.baseline = no_baseline_.empty() ? "cuBLASLt " + cublaslt_version() : no_baseline_;
    times.checked_against = judge_->name();
    times.relative_error = error_;
    times.cold = operands_->cold();
    times.rounds = options_.rounds;
    times.launches = race_->launches();
    times.buffer_sets = static_cast<int>(sets().size());
    times.roof = roof_;
  }

 private:
  [[nodiscard]] const std::vector<GemmOperands>& sets() const { return operands_->all(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  void make_operands(const GemmOperands* host, const DeviceFacts& device) {
    GemmOperands one = host != nullptr ? *host : operands_for(problem_);
    double l2_bytes = static_cast<double>(device.l2_bytes);
    if (one.groups) {
      offsets_ = offsets_of(options_.lengths, one.groups->type);
      one.groups->offsets = offsets_->data();
      if (one.is_by_index()) {  // in order, so that a group is a product of its own
        numbers_ = numbers_upto(problem_.m());
        one.groups->rows = static_cast<const std::int32_t*>(numbers_->data());
      }
      // B's matrices of empty groups are memory that nobody reads: more sets are needed, as if the
      // cache were larger.
      const auto idle = static_cast<double>(problem_.group_count() - busy_groups(options_.lengths));
      l2_bytes *= 1 + idle * matrix_bytes(problem_) / roof_.bytes;
    }
    operands_.emplace(one, static_cast<std::int64_t>(l2_bytes), options_.seed, stream());
    for (std::size_t i = 0; i < sets().size(); ++i) {
      parts_.push_back(parts_of(operands_->plain(i), options_.lengths));
    }
  }

  void find_baseline() {
    auto made = Baseline::make(parts_, options_.offers, problem_.group_count());
    if (!made) {
      no_baseline_ = made.reason();
    } else if (const auto refusal = (*made)->launch(0)(0, stream())) {
      no_baseline_ = refusal->reason;
    } else {
      baseline_ = std::move(*made);
    }
  }

  [[nodiscard]] std::unique_ptr<Contender> make(const Plan& plan) const {
    return std::make_unique<Contender>(plan, sets(), options_.dependent, stream());
  }

  // A plan that this GPU does not launch is left out; one with a wrong result ends everything.
  void add(const Plan& plan) {
    try {
      auto contender = make(plan);
      require(contender->launch()(0, stream()));
      contenders_.push_back(std::move(contender));
    } catch (const Failure&) {
      step();
      return;
    }
    judge_->check(contenders_.back()->launch(), plan.name());
  }

  GemmProblem problem_;
  TimeOptions options_;
  Roof roof_;
  Stream stream_;
  std::shared_ptr<device::CudaBuffer> offsets_;
  std::shared_ptr<device::CudaBuffer> numbers_;  // of tokens, where these are read by them
  std::optional<OperandSets> operands_;
  std::vector<Parts> parts_;  // of the sets
  std::unique_ptr<Baseline> baseline_;
  std::string no_baseline_;  // why there is none
  std::unique_ptr<Judge> judge_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  double error_ = 0;
  std::optional<Race> race_;
  int done_ = 0;
  int all_ = 0;
};

// How many there are.
int ran(const std::vector<std::optional<double>>& times) {
  return static_cast<int>(
      std::count_if(times.begin(), times.end(), [](const auto& time) { return time.has_value(); }));
}

// The least of the times; the first where there are none.
std::size_t fastest(const std::vector<std::optional<double>>& times) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i] && (!times[best] || *times[i] < *times[best])) best = i;
  }
  return best;
}

// One product of a race: its times, and what takes part.
struct Entry {
  Entry(const std::vector<Plan>& plans, const GemmOperands* host, const TimeOptions& options)
      : session(plans, host, options) {}

  Session session;
  GemmTimes times;
  std::vector<Launch> finals;  // the first plan, the fastest one if another, cuBLASLt's likewise
  std::size_t ours = 0;        // of them
};

// Its contenders, and who is in the finals.
std::unique_ptr<Entry> entry_of(const std::vector<Plan>& plans, const GemmOperands* host,
                                const TimeOptions& options) {
  auto entry = std::make_unique<Entry>(plans, host, options);
  Session& session = entry->session;
  GemmTimes& times = entry->times;
  session.describe(times);
  std::vector<Launch> ours;
  for (const auto& contender : session.contenders()) ours.push_back(contender->launch());
  const auto tried = session.screen(ours);
  const std::size_t winner = fastest(tried);
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const Plan& plan = session.contenders()[i]->plan();
    if (tried[i]) times.tried.push_back({plan.name(), configuration_text(plan), *tried[i]});
  }
  times.configs = std::max(1, ran(tried));
  times.plan = session.contenders().front()->plan().name();
  times.config = session.contenders()[winner]->plan().name();

  std::vector<Launch>& finals = entry->finals;
  finals.push_back(ours.front());
  if (winner != 0) finals.push_back(ours[winner]);
  entry->ours = finals.size();
  if (const Baseline* const baseline = session.baseline()) {
    std::vector<Launch> offers;
    offers.reserve(static_cast<std::size_t>(baseline->algorithms()));
    for (int i = 0; i < baseline->algorithms(); ++i) offers.push_back(baseline->launch(i));
    const auto theirs_tried = session.screen(offers);
    const std::size_t best = fastest(theirs_tried);
    times.calls = baseline->calls();
    times.offered = std::max(1, ran(theirs_tried));
    times.best_index = static_cast<int>(best);
    finals.push_back(offers.front());
    if (best != 0) finals.push_back(offers[best]);
  }
  return entry;
}

// What the finals say, which are this entry's.
GemmTimes times_of(const Entry& entry, std::span<const Timing> finals) {
  GemmTimes times = entry.times;
  if (!times.problem.groups) times.host = entry.session.host();
  times.ours = finals.front();
  times.config_time = finals[entry.ours - 1];
  // What looked faster in the few replays need not be so in the many.
  if (times.config_time.median > times.ours.median) {
    times.config_time = times.ours;
    times.config = times.plan;
  }
  if (entry.session.baseline() == nullptr) return times;
  times.first = finals[entry.ours];
  times.best = finals.back();
  if (times.best->median > times.first->median) {
    times.best = times.first;
    times.best_index = 0;
  }
  return times;
}

GemmTimes measure(const std::vector<Plan>& plans, const GemmOperands* host,
                  const TimeOptions& options) {
  std::vector<std::unique_ptr<Entry>> entries;
  entries.push_back(entry_of(plans, host, options));
  for (const auto& others : options.beside) entries.push_back(entry_of(others, nullptr, options));
  std::vector<Launch> finals;
  for (const auto& entry : entries) {
    finals.insert(finals.end(), entry->finals.begin(), entry->finals.end());
  }
  const std::vector<Timing> all = entries.front()->session.race().run(finals);
  GemmTimes times;
  std::span<const Timing> rest = all;
  for (const auto& entry : entries) {
    GemmTimes of_entry = times_of(*entry, rest.first(entry->finals.size()));
    rest = rest.subspan(entry->finals.size());
    if (entry == entries.front()) {
      times = std::move(of_entry);
    } else {
      times.beside.push_back(std::move(of_entry));
    }
  }
  return times;
}

std::vector<RankedPlan> rank(const std::vector<Plan>& plans, const TimeOptions& options) {
  Session session(plans, nullptr, options);
  std::vector<std::pair<double, Contender*>> order;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& contender : session.contenders()) {
    order.emplace_back(session.race().screen(contender->launch(), least), contender.get());
    least = std::min(least, order.back().first);
    session.step();
  }
  std::sort(order.begin(), order.end(),
            [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<Launch> finalists;
  for (std::size_t i = 0; i < std::min(kFinalists, order.size()); ++i) {
    finalists.push_back(order[i].second->launch());
  }
  const std::vector<Timing> finals = session.race().run(finalists);
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

// Why there is no product to time, of these lengths.
std::optional<Refusal> nothing_to_time(const std::vector<Plan>& plans,
                                       const std::vector<std::int64_t>& lengths) {
  if (plans.empty() || plans.front().ctas == 0 || !plans.front().problem.reads_ab()) {
    return Refusal{RefusalCode::bad_value,
                   "there is no product to time: M, N, K, alpha and groups must not be 0"};
  }
  const GemmProblem& p = plans.front().problem;
  if (!p.groups) return std::nullopt;
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const bool fit = static_cast<std::int64_t>(lengths.size()) == p.group_count() && total == p.m() &&
                   total > 0 && *std::min_element(lengths.begin(), lengths.end()) >= 0;
  if (fit) return std::nullopt;
  return Refusal{RefusalCode::bad_value, "the lengths are not those of " +
                                             std::to_string(p.group_count()) + " groups of " +
                                             std::to_string(p.m()) + " tokens in all"};
}

// What `work` gives; its failures as refusals.
template <class F>
auto refusing(const std::vector<Plan>& plans, const TimeOptions& options, F work)
    -> Result<decltype(work())> {
  if (const auto refusal = nothing_to_time(plans, options.lengths)) return *refusal;
  try {
    return work();
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

}  // namespace

Result<GemmTimes> time_gemm(const std::vector<Plan>& plans, const GemmOperands* host,
                            const TimeOptions& options) {
  return refusing(plans, options, [&] { return measure(plans, host, options); });
}

Result<std::vector<RankedPlan>> rank_plans(const std::vector<Plan>& plans,
                                           const TimeOptions& options) {
  return refusing(plans, options, [&] { return rank(plans, options); });
}

std::optional<Refusal> profile_gemm(const Plan& plan, int number, const TimeOptions& options) {
  const auto profiled = refusing({plan}, options, [&] {
    Session({plan}, nullptr, options).profile(number);
    return true;
  });
  if (!profiled) return profiled.refusal();
  return std::nullopt;
}

std::string line(const GemmTimes& t) {
  const auto times = [&t](const Timing& x) {
    return format("%.2f us (%.2f..%.2f) %.1f TFLOP/s", x.median, x.low, x.high,
                  tflops(t.roof.operations, x));
  };
  std::string text = "ours " + times(t.ours);
  if (t.first && t.best) {
    text += "; " + t.baseline + " first pick " + times(*t.first) + ", best of " +
            std::to_string(t.offered) + " (number " + std::to_string(t.best_index + 1) + ") " +
            times(*t.best) +
            format("; ratio %.3f to the best, %.3f to the first", t.best->median / t.ours.median,
                   t.first->median / t.ours.median);
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
