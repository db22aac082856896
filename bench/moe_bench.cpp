#include "bench/moe_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "bench/device_math.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "warpwright/device/moe.h"
#include "warpwright/reference/formulas.h"
#include "warpwright/reference/mixture.h"

namespace warpwright::bench {
namespace {

// Rows that are compared with float64 on the host: as many as take a second or so, up to three.
constexpr double kCheckedProducts = 4e8;

// A tensor in memory: that of packed weights begins with their header.
struct Placed {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;

  Placed(const MixtureOperands& o, const MatrixView& v)
      : begin(is_packed(o, v) ? packed::kHeaderBytes : 0), bytes(span_bytes(stored(o, v))) {}
  static bool is_packed(const MixtureOperands& o, const MatrixView& v) {
    return o.is_packed() && v.dtype == o.w13.dtype;
  }
  [[nodiscard]] std::int64_t padded() const { return (begin + bytes + 255) / 256 * 256; }
};

// Tensors that have a matrix for each expert.
bool is_of_experts(std::string_view name) {
  return name.starts_with("w") || name.starts_with("scale_") || name.starts_with("bias");
}

// Calls visit(name, view, number) for the tensors that a mixture has.
template <class Operands, class Visit>
void for_each_tensor(Operands& o, const Visit& visit) {
  std::uint64_t number = 0;
  for_each_field_of_mixtures(
      [&](const char* name, auto& field) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, MatrixView>) {
          if (field.rows > 0 && field.columns > 0) visit(name, field, number);
          ++number;
        }
      },
      o);
}

// Copies of a mixture's operands, each with random tensors and a result of its own.
class MixtureSets {
 public:
  MixtureSets(const MixturePlan& plan, const MoeTimeOptions& options, cudaStream_t stream) {
    const MixtureOperands shapes = with_matrices(
        plan.problem, [](const MatrixShape& shape) { return MatrixView(nullptr, shape); });
    const double hit = static_cast<double>(busy_groups(options.how.lengths)) /
                       static_cast<double>(std::max<std::int64_t>(shapes.experts(), 1));
    double touched = 0;
    std::int64_t step = 0;
    for_each_tensor(shapes, [&](const char* name, const MatrixView& v, std::uint64_t) {
      const Placed placed(shapes, v);
      touched += static_cast<double>(placed.bytes) * (is_of_experts(name) ? hit : 1);
      step += placed.padded();
    });
    const auto [count, cold] =
        count_sets(static_cast<std::int64_t>(touched), step, plan.device.l2_bytes);
    cold_ = cold;
    memory_ = filled_memory(count * step);
    auto* at = static_cast<std::byte*>(memory_->data());
    for (std::int64_t i = 0; i < count; ++i) {
      MixtureOperands set = shapes;
      for_each_tensor(set, [&](const char* name, MatrixView& v, std::uint64_t number) {
        const Placed placed(set, v);
        v.data = at + placed.begin;
        at += placed.padded();
        if (!Placed::is_packed(set, v)) return fill(name, v, number, options, stream);
        const MatrixView& of_first = name == std::string_view("w2") ? first_.w2 : first_.w13;
        if (of_first.data == nullptr) {
          const auto& form = name == std::string_view("w2") ? set.packed2 : set.packed13;
          // The values that it gives are of no use here: it waits, and lets go of them.
          const auto values = fill_packed(form->format, v, options.how.seed, number, stream);
          require(cudaStreamSynchronize(stream), "packing weights");
        } else {
          require(cudaMemcpyAsync(v.data, of_first.data, static_cast<std::size_t>(placed.bytes),
                                  cudaMemcpyDeviceToDevice, stream),
                  "copying packed weights");
        }
      });
      if (i == 0) first_ = set;
      sets_.push_back(set);
    }
    require(cudaStreamSynchronize(stream), "making operands");
  }

  [[nodiscard]] const std::vector<MixtureOperands>& all() const { return sets_; }
  [[nodiscard]] bool cold() const { return cold_; }

 private:
  // Every set has the same values; d keeps its NaN.
  static void fill(std::string_view name, const MatrixView& v, std::uint64_t number,
                   const MoeTimeOptions& options, cudaStream_t stream) {
    const std::uint64_t seed = options.how.seed;
    if (name == "d") return;
    if (name == "topk_ids") {
      require(cudaMemcpyAsync(v.data, options.ids.data(), options.ids.size() * sizeof(std::int32_t),
                              cudaMemcpyHostToDevice, stream),
              "copying ids to the GPU");
    } else if (name == "topk_weights" || name.starts_with("scale_")) {
      fill_scales(v.data, v.dtype, span_elements(v), seed, number, stream);
    } else {
      fill_normal(v.data, v.dtype, span_elements(v), seed, number, stream);
    }
  }

  std::shared_ptr<device::CudaBuffer> memory_;
  MixtureOperands first_;  // once it is filled
  std::vector<MixtureOperands> sets_;
  bool cold_ = true;
};

// A mixture's operands in host memory, of which only those of some experts were copied: the rest
// is never touched, and takes no memory.
class HostMixture {
 public:
  HostMixture(const MixtureOperands& there, const std::vector<bool>& experts) : operands_(there) {
    for_each_tensor(operands_, [&](const char* name, MatrixView& v, std::uint64_t) {
      const void* const from = v.data;
      const std::int64_t bytes = Placed(there, v).bytes;
      memory_.emplace_back(std::calloc(static_cast<std::size_t>(bytes), 1), &std::free);
      v.data = memory_.back().get();
      if (v.data == nullptr) throw Failure{"this machine has no memory for a check of the mixture"};
      if (!is_of_experts(name)) {
        copy(v.data, from, bytes);
        return;
      }
      const std::int64_t each = bytes / v.batch;
      for (std::size_t e = 0; e < experts.size(); ++e) {
        const std::int64_t begin = static_cast<std::int64_t>(e) * each;
        if (!experts[e]) continue;
        copy(static_cast<std::byte*>(v.data) + begin, static_cast<const std::byte*>(from) + begin,
             each);
      }
    });
  }
  [[nodiscard]] const MixtureOperands& operands() const { return operands_; }

 private:
  static void copy(void* to, const void* from, std::int64_t bytes) {
    require(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
            "copying from the GPU");
  }

  MixtureOperands operands_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
};

// One mixture on one device.
class MoeSession {
 public:
  MoeSession(const MixturePlan& plan, const MoeTimeOptions& options)
      : plan_(plan), options_(options), sets_(plan, options, stream_.get()) {
    workspace_ = prepared(plan_);
    if (options_.beside) beside_ = prepared(*options_.beside);
    check();
  }

  MoeTimes measure() {
    const Launch whole = launch(plan_, workspace_, {});
    const Roof roof = moe_roof(plan_.problem, plan_.device, options_.how.lengths);
    const bool hot = roof.bound() == Bound::tensor_cores;
    const Race race(sets_.all().size(), estimate(whole, stream_.get()), hot, options_.how,
                    stream_.get());
    std::vector<Launch> contenders = {whole};
    const std::vector<PlannedStep> steps =
        options_.steps ? plan_.steps() : std::vector<PlannedStep>{};
    for (const PlannedStep& step : steps) {
      contenders.push_back(launch(plan_, workspace_, step.step));
    }
    if (options_.beside) {
      contenders.push_back(launch(*options_.beside, beside_, {}));
      require(contenders.back()(0, stream_.get()));
    }
    // What the steps find between them is of a whole launch.
    require(whole(0, stream_.get()));
    const std::vector<Timing> all = race.run(contenders);
    times_.ours = all.front();
    for (std::size_t i = 0; i < steps.size(); ++i) times_.steps.push_back({steps[i], all[i + 1]});
    if (options_.beside) times_.beside = all.back();
    times_.cold = sets_.cold();
    times_.rounds = options_.how.rounds;
    times_.launches = race.launches();
    times_.buffer_sets = static_cast<int>(sets_.all().size());
    return times_;
  }

 private:
  // Flags are clear before the first capture.
  Workspace prepared(const MixturePlan& plan) {
    auto made = make_workspace(plan);
    if (!made) throw Failure{made.reason()};
    require(prepare(plan, *made, stream_.get()));
    return std::move(*made);
  }
  // Keeps references to `plan` and `workspace`.
  Launch launch(const MixturePlan& plan, Workspace& workspace, std::optional<MixtureStep> only) {
    return [this, &plan, &workspace, only](std::size_t number, void* stream) {
      const MixtureOperands& set = sets_.all()[number % sets_.all().size()];
      return warpwright::launch(plan, set, workspace, stream,
                                {.dependent = options_.how.dependent, .only = only});
    };
  }

  // Compares rows of some tokens, the first and the last among them, with float64.
  void check() {
    require(launch(plan_, workspace_, {})(0, stream_.get()));
    require(cudaStreamSynchronize(stream_.get()), "running the mixture");
    const MixtureProblem& p = plan_.problem;
    const double row = static_cast<double>(p.top_k()) * 3 * static_cast<double>(p.hidden()) *
                       static_cast<double>(p.inner());
    const int most = std::clamp(static_cast<int>(kCheckedProducts / row), 1, 3);
    std::vector<std::int64_t> tokens = {p.tokens() - 1, 0, p.tokens() / 2};
    tokens.resize(static_cast<std::size_t>(most));
    std::vector<bool> experts(static_cast<std::size_t>(p.experts()));
    for (const std::int64_t t : tokens) {
      for (std::int64_t j = 0; j < p.top_k(); ++j) {
        const std::int64_t expert =
            options_.ids[static_cast<std::size_t>(t * p.top_k() + j)] - p.first_expert;
        if (expert >= 0 && expert < p.experts()) experts[static_cast<std::size_t>(expert)] = true;
      }
    }
    const HostMixture host(sets_.all().front(), experts);
    for (const std::int64_t t : tokens) check_row(host.operands(), t);
    times_.checked_tokens = most;
  }

  void check_row(const MixtureOperands& host, std::int64_t token) {
    const reference::MixtureRow right = reference::mixture_row(host, token);
    for (std::int64_t n = 0; n < host.hidden(); ++n) {
      const auto at = static_cast<std::size_t>(n);
      const double got = reference::element(host.d, 0, token, n);
      const double off = std::abs(got - right.want[at]);
      if (off <= right.allowed[at]) {
        if (off > 0) times_.worst_share = std::max(times_.worst_share, off / right.allowed[at]);
        continue;
      }
      throw Failure{"the mixture is not right: d[" + std::to_string(token) + ", " +
                    std::to_string(n) + "] is " + std::to_string(got) + " where " +
                    std::to_string(right.want[at]) + " is due, and " +
                    std::to_string(right.allowed[at]) + " allowed"};
    }
  }

  MixturePlan plan_;
  MoeTimeOptions options_;
  Stream stream_;
  MixtureSets sets_;
  Workspace workspace_;
  Workspace beside_;
  MoeTimes times_;
};

}  // namespace

Result<MoeTimes> time_moe(const MixturePlan& plan, const MoeTimeOptions& options) {
  if (plan.problem.tokens() == 0) {
    return Refusal{RefusalCode::bad_value, "there is no mixture to time: it has no tokens"};
  }
  if (std::ssize(options.ids) != plan.problem.slots() ||
      std::ssize(options.how.lengths) != plan.problem.experts() ||
      plan.problem.id_type != OffsetType::int32) {
    return Refusal{RefusalCode::bad_value, "the ids are not those of the mixture"};
  }
  try {
    return MoeSession(plan, options).measure();
  } catch (const Failure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

}  // namespace warpwright::bench
