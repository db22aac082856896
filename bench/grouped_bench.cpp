#include "bench/grouped_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

#include "bench/cublaslt.h"
#include "bench/device_math.h"
#include "bench/judgement.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/grouped.h"

namespace warpwright::bench {
namespace {

constexpr const char* kReference = "a plain product in float32";

// The scaling of one group as a dense product.
Scaling dense_scaling(GroupedScaling scaling) {
  switch (scaling) {
    case GroupedScaling::tensor:
    case GroupedScaling::group:
      return Scaling::tensor;
    case GroupedScaling::row_column:
      return Scaling::row_column;
    case GroupedScaling::block:
      return Scaling::block;
    default:
      return Scaling::none;
  }
}

MatrixView batch_of(MatrixView v, std::int64_t batch) {
  v.batch = batch;
  v.batch_stride = batch == 1 ? 0 : v.rows * v.columns;
  return v;
}

// The tensors of a grouped problem, without memory: X, W, Y and scales as A, B, D and scales, so
// that the memory of dense operands is theirs too. Scales of tokens 1 x 128 lie as quantisers write
// them, tokens next to each other in a multiple of 4.
GemmOperands tensors_of(const GroupedProblem& p) {
  GemmOperands o;
  o.a = matrix(nullptr, p.x, p.total, p.k);
  o.b = batch_of(matrix(nullptr, p.w, p.n, p.k), p.groups);
  o.d = matrix(nullptr, p.y, p.total, p.n);
  o.scaling = dense_scaling(p.scaling);
  o.accumulation = p.accumulation;
  const auto blocks = [](std::int64_t extent) { return (extent + 127) / 128; };
  switch (p.scaling) {
    case GroupedScaling::tensor:
      o.scale_a = o.scale_b = matrix(nullptr, DType::f32, 1, 1);
      break;
    case GroupedScaling::group:
      o.scale_a = o.scale_b = matrix(nullptr, DType::f32, p.groups, 1);
      break;
    case GroupedScaling::row_column:
      o.scale_a = matrix(nullptr, DType::f32, p.total, 1);
      o.scale_b = batch_of(matrix(nullptr, DType::f32, p.n, 1), p.groups);
      break;
    case GroupedScaling::block:
      o.scale_a = matrix(nullptr, DType::f32, p.total, blocks(p.k));
      o.scale_a.row_stride = 1;
      o.scale_a.column_stride = (p.total + 3) / 4 * 4;
      o.scale_b = batch_of(matrix(nullptr, DType::f32, blocks(p.n), blocks(p.k)), p.groups);
      break;
    default:
      break;
  }
  return o;
}

GroupedOperands grouped_of(const GemmOperands& set, GroupedScaling scaling, const void* offsets) {
  GroupedOperands o;
  o.x = set.a;
  o.w = set.b;
  o.y = set.d;
  o.offsets = offsets;
  o.scaling = scaling;
  o.accumulation = set.accumulation;
  o.scale_x = set.scale_a;
  o.scale_w = set.scale_b;
  return o;
}

MatrixView rows_of(MatrixView v, std::int64_t first, std::int64_t count) {
  v.data = static_cast<std::byte*>(v.data) + first * v.row_stride * numeric::bits(v.dtype) / 8;
  v.rows = count;
  return v;
}

MatrixView matrix_of(MatrixView v, std::int64_t which) {
  v.data = static_cast<std::byte*>(v.data) + which * v.batch_stride * numeric::bits(v.dtype) / 8;
  v.batch = 1;
  v.batch_stride = 0;
  return v;
}

// A group as a dense product on the same memory.
GemmOperands dense_of(const GemmOperands& set, GroupedScaling scaling, std::int64_t group,
                      std::int64_t first, std::int64_t length) {
  GemmOperands o = set;
  o.a = rows_of(set.a, first, length);
  o.b = matrix_of(set.b, group);
  o.d = rows_of(set.d, first, length);
  if (scaling == GroupedScaling::group) {
    o.scale_a = rows_of(set.scale_a, group, 1);
    o.scale_b = rows_of(set.scale_b, group, 1);
  } else if (scaling == GroupedScaling::row_column || scaling == GroupedScaling::block) {
    o.scale_a = rows_of(set.scale_a, first, length);
    o.scale_b = matrix_of(set.scale_b, group);
  }
  return o;
}

// The groups that have tokens, as dense products, for each set of operands.
using DenseGroups = std::vector<std::vector<GemmOperands>>;

DenseGroups dense_groups(const std::vector<GemmOperands>& sets, GroupedScaling scaling,
                         const std::vector<std::int64_t>& lengths) {
  DenseGroups all;
  for (const GemmOperands& set : sets) {
    std::vector<GemmOperands> groups;
    std::int64_t first = 0;
    for (std::size_t g = 0; g < lengths.size(); ++g) {
      if (lengths[g] > 0) {
        groups.push_back(dense_of(set, scaling, static_cast<std::int64_t>(g), first, lengths[g]));
      }
      first += lengths[g];
    }
    all.push_back(std::move(groups));
  }
  return all;
}

// cuBLASLt's call for each group, as prepared once for each length that there is.
class Loop {
 public:
  // Keeps a reference to `groups`.
  static Result<std::unique_ptr<Loop>> make(const DenseGroups& groups) {
    std::map<std::int64_t, std::vector<GemmOperands>> by_length;
    for (const auto& set : groups) {
      for (const GemmOperands& o : set) by_length[o.a.rows].push_back(o);
    }
    auto loop = std::unique_ptr<Loop>(new Loop(groups));
    for (const auto& [length, operands] : by_length) {
      auto made = CublasLt::make(operands, 1);
      if (!made) {
        return Refusal{made.code(),
                       "a group of " + std::to_string(length) + " tokens: " + made.reason()};
      }
      loop->products_[length] = *made;
    }
    return loop;
  }

  [[nodiscard]] int calls() const { return static_cast<int>(groups_.front().size()); }

  std::optional<Refusal> launch(std::size_t set, void* stream) const {
    for (const GemmOperands& o : groups_[set]) {
      if (auto r = products_.at(o.a.rows)->launch(0, o, stream)) return r;
    }
    return std::nullopt;
  }

 private:
  explicit Loop(const DenseGroups& groups) : groups_(groups) {}

  const DenseGroups& groups_;
  std::map<std::int64_t, std::shared_ptr<CublasLt>> products_;
};

std::shared_ptr<device::CudaBuffer> memory_for(std::int64_t bytes) {
  auto made = filled_memory(bytes);
  if (!made) throw Failure{made.reason()};
  return *made;
}

std::shared_ptr<device::CudaBuffer> offsets_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> offsets = {0};
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
  }
  const auto bytes = static_cast<std::int64_t>(offsets.size() * sizeof offsets[0]);
  auto memory = memory_for(bytes);
  require(memory->from_host(offsets.data(), bytes));
  return memory;
}

// A workspace that serves every one of `plans`.
std::shared_ptr<device::CudaBuffer> workspace_of(const std::vector<GroupedPlan>& plans) {
  std::int64_t bytes = 0;
  for (const GroupedPlan& plan : plans) bytes = std::max(bytes, plan.workspace_bytes);
  return memory_for(bytes);
}

// The cache that OperandSets is told of. Weights of empty groups are memory that nobody reads: more
// sets are needed, as if the cache were larger.
std::int64_t cache_of(const GroupedProblem& p, const GroupedWork& work, const DeviceFacts& device) {
  const auto idle = static_cast<double>(p.groups - work.busy);
  const double unread =
      idle * static_cast<double>(p.n) * static_cast<double>(p.k) * numeric::bits(p.w) / 8;
  return static_cast<std::int64_t>(static_cast<double>(device.l2_bytes) *
                                   (1 + unread / work.bytes));
}

// One problem and its lengths on one device.
class GroupedSession {
 public:
  GroupedSession(const std::vector<GroupedPlan>& plans, const std::vector<std::int64_t>& lengths,
                 const TimeOptions& options)
      : plans_(plans),
        problem_(plans.front().problem),
        dependent_(options.dependent),
        work_(grouped_work(problem_, lengths)),
        offsets_(offsets_of(lengths)),
        sets_(tensors_of(problem_), cache_of(problem_, work_, plans.front().device), options.seed,
              stream_.get()),
        groups_(dense_groups(sets_.all(), problem_.scaling, lengths)),
        product_(memory_for(problem_.total * problem_.n * 4)),
        workspace_(workspace_of(plans)) {
    for (const GemmOperands& set : sets_.all()) {
      operands_.push_back(grouped_of(set, problem_.scaling, offsets_->data()));
    }
    auto* to = static_cast<float*>(product_->data());
    for (const GemmOperands& group : groups_.front()) {
      require(reference_product(group, to, stream_.get()));
      to += group.a.rows * problem_.n;
    }
    error_ = check(launch(0), plans.front().name());
    const DeviceFacts& device = plans.front().device;
    const bool hot = compute_seconds(work_, problem_, device) >= memory_seconds(work_, device);
    race_.emplace(operands_.size(), estimate(launch(0), operands_.size(), stream_.get()), hot,
                  options, stream_.get());
  }

  // How a launch of ours is made.
  [[nodiscard]] LaunchOnSet launch(std::size_t plan) const {
    return [this, plan](std::size_t set, void* on) {
      return device::launch_grouped_on_cuda(plans_[plan], operands_[set], workspace_->data(),
                                            plans_[plan].workspace_bytes, on,
                                            {.dependent = dependent_});
    };
  }

  // The relative error of a result, the worst group's; throws where it is not right.
  double check(const LaunchOnSet& launch, const std::string& name) const {
    const MatrixView& y = sets_.all().front().d;
    cudaStream_t stream = stream_.get();
    // What nobody stores is NaN.
    require(cudaMemsetAsync(y.data, 0xff, static_cast<std::size_t>(span_bytes(y)), stream),
            "filling Y");
    require(launch(0, stream));
    require(cudaStreamSynchronize(stream), "multiplying");
    const auto* product = static_cast<const float*>(product_->data());
    double worst = 0;
    for (const GemmOperands& group : groups_.front()) {
      GemmProblem p = packed_problem(group.a.rows, problem_.n, problem_.k, problem_.x, problem_.y);
      p.scaling = group.scaling;
      p.accumulation = group.accumulation;
      const Result<Comparison> found = compare(group, group.d, product, tolerance(p), stream);
      if (!found) throw Failure{found.reason()};
      if (const auto wrong = fault(*found, p, name + ", in a group", kReference)) {
        throw Failure{*wrong};
      }
      worst = std::max(worst, found->relative);
      product += group.a.rows * problem_.n;
    }
    return worst;
  }

  // Is the plan launched here? One with a wrong result ends everything.
  [[nodiscard]] bool takes_part(std::size_t plan) const {
    if (device::prepare_grouped_on_cuda(plans_[plan]) || attempt(launch(plan))) return false;
    check(launch(plan), plans_[plan].name());
    return true;
  }

  // Starts a launch and says what keeps it from being started.
  [[nodiscard]] std::optional<Refusal> attempt(const LaunchOnSet& launch) const {
    return launch(0, stream_.get());
  }

  [[nodiscard]] Result<std::unique_ptr<Loop>> loop() const { return Loop::make(groups_); }
  [[nodiscard]] const Race& race() const { return *race_; }

  void describe(GroupedTimes& times) const {
    times.problem = problem_;
    times.relative_error = error_;
    times.cold = sets_.cold();
    times.launches = race_->launches();
    times.buffer_sets = static_cast<int>(operands_.size());
  }

 private:
  const std::vector<GroupedPlan>& plans_;
  GroupedProblem problem_;
  bool dependent_;
  GroupedWork work_;
  Stream stream_;
  std::shared_ptr<device::CudaBuffer> offsets_;
  OperandSets sets_;
  std::vector<GroupedOperands> operands_;  // the same, as grouped products
  DenseGroups groups_;
  std::shared_ptr<device::CudaBuffer> product_;  // the right result, total x N
  std::shared_ptr<device::CudaBuffer> workspace_;
  double error_ = 0;
  std::optional<Race> race_;
};

GroupedTimes measure(const std::vector<GroupedPlan>& plans,
                     const std::vector<std::int64_t>& lengths, const TimeOptions& options) {
  const GroupedSession session(plans, lengths, options);
  const Race& race = session.race();
  GroupedTimes times;
  session.describe(times);
  times.rounds = options.rounds;
  std::size_t winner = 0;
  if (plans.size() > 1) {
    double least = race.screen(session.launch(0));
    for (std::size_t i = 1; i < plans.size(); ++i) {
      if (!session.takes_part(i)) continue;
      ++times.configs;
      const double time = race.screen(session.launch(i));
      if (time >= least) continue;
      least = time;
      winner = i;
    }
  }
  times.plan = plans.front().name();
  times.config = plans[winner].name();

  std::vector<LaunchOnSet> contenders = {session.launch(0), session.launch(winner)};
  const auto loop = session.loop();
  times.baseline = loop ? "cuBLASLt " + cublaslt_version() : loop.reason();
  bool loops = loop.ok();
  if (loops) {
    const Loop* calls = loop->get();
    contenders.emplace_back([calls](std::size_t set, void* on) { return calls->launch(set, on); });
    if (const auto refusal = session.attempt(contenders.back())) {
      contenders.pop_back();
      times.baseline = refusal->reason;
      loops = false;
    } else {
      session.check(contenders.back(), "the loop of cuBLASLt calls");
      times.calls = calls->calls();
    }
  }
  if (winner == 0) contenders.erase(contenders.begin() + 1);
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<const Graph*> turns;
  for (const LaunchOnSet& launch : contenders) {
    graphs.push_back(race.graph(launch));
    turns.push_back(graphs.back().get());
  }
  const std::vector<Timing> all = race.run(turns);
  times.ours = all.front();
  times.config_time = winner == 0 ? all.front() : all[1];
  // What looked faster in the few replays need not be so in the many.
  if (times.config_time.median > times.ours.median) {
    times.config_time = times.ours;
    times.config = times.plan;
  }
  if (loops) times.loop = all.back();
  return times;
}

std::optional<Refusal> nothing_to_time(const std::vector<GroupedPlan>& plans,
                                       const std::vector<std::int64_t>& lengths) {
  if (plans.empty() || plans.front().ctas == 0) {
    return Refusal{RefusalCode::bad_value,
                   "there is no product to time: groups, tokens, N and K must not be 0"};
  }
  const GroupedProblem& p = plans.front().problem;
  const GroupedWork work = grouped_work(p, lengths);
  const bool fit = static_cast<std::int64_t>(lengths.size()) == p.groups &&
                   work.tokens == p.total && work.tokens > 0 &&
                   *std::min_element(lengths.begin(), lengths.end()) >= 0;
  if (!fit) {
    return Refusal{RefusalCode::bad_value, "the lengths are not those of " +
                                               std::to_string(p.groups) + " groups of " +
                                               std::to_string(p.total) + " tokens in all"};
  }
  return std::nullopt;
}

}  // namespace

Result<GroupedTimes> time_grouped(const std::vector<GroupedPlan>& plans,
                                  const std::vector<std::int64_t>& lengths,
                                  const TimeOptions& options) {
  if (const auto refusal = nothing_to_time(plans, lengths)) return *refusal;
  try {
    require(device::prepare_grouped_on_cuda(plans.front()));
    return measure(plans, lengths, options);
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

}  // namespace warpwright::bench
