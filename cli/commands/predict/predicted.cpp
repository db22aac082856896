#include "cli/commands/predict/predicted.h"

#include <algorithm>
#include <cmath>

#include "cli/commands/gemm/gemm_arguments.h"
#include "warpwright/facts/costs.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machine_numbers.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/cost/kernel_work.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

// For products with packed weights, on both cards (docs/log/prediction.md).
constexpr double kWithinPacked = 0.1;

// The mean error of measured products of the kind; nothing where none was held beside predictions.
std::optional<double> mean_error(const Plan& plan, const Prediction& p) {
  const std::string& name = numbers_of(plan.device).name;
  if ((name != "h200" && name != "h100") || plan.facts().architecture != 90) return std::nullopt;
  return plan.problem.packed ? kWithinPacked : p.within;
}

void set_packed(GemmOptions& o, const PackedWeights& packed) {
  const PackedFormat& f = packed.format;
  if (packed.sums != GroupSums::open) o.sums = name(packed.sums);
  o.weights = packed::weights_word(f);
  o.dtype = numeric::word(f.tokens);
  if (packed::has_groups(*packed::weight_format(f.code, f.scale))) o.group = f.group;
  o.zero_points = f.zero_points != ZeroPoints::none;
}

}  // namespace

Predicted predicted(const GemmOptions& options, const Plan& plan,
                    const std::vector<std::int64_t>& lengths) {
  Predicted made;
  if (plan.ctas > 0) {
    made.phases = sample_phases(options, plan);
    made.phases.first += search_clocks(options, plan);
  }
  made.time = predict(plan, made.phases, prediction_machine(plan.device), lengths);
  return made;
}

std::optional<Predicted> predicted_by_counts(const Plan& plan,
                                             const std::vector<std::int64_t>& lengths) {
  const KernelWork* const work = kept_work(plan.kernel);
  if (work == nullptr) return std::nullopt;
  const double k_tiles = std::ceil(static_cast<double>(plan.problem.k()) / plan.tile().k) /
                         std::max(1, plan.cluster_k);
  Predicted made;
  made.phases = phases_of(*work, Costs(numbers_of(plan.device)), k_tiles);
  made.time = predict(plan, made.phases, prediction_machine(plan.device), lengths);
  return made;
}

GemmOptions options_of(const GemmProblem& p) {
  GemmOptions o;
  o.is_grouped = p.is_grouped();
  o.dtype = numeric::word(p.a.dtype);
  if (!p.is_quantised()) o.d_dtype = numeric::word(p.d.dtype);
  if (p.packed) {
    set_packed(o, *p.packed);
  } else if (p.a.dtype != p.b.dtype) {
    o.dtype += "," + std::string(numeric::word(p.b.dtype));
  }
  if (p.scaling != Scaling::none) o.scaling = name(p.scaling);
  // Packed weights say by their sums how they are added up.
  if (p.accumulation == Accumulation::promoted && !p.packed) o.accumulation = "promoted";
  if (p.epilogue.activation != Activation::none) o.activation = name(p.epilogue.activation);
  o.gated = p.epilogue.gated;
  if (p.epilogue.gated && p.epilogue.interleaved) o.gate_up = gate_up_name(true);
  if (p.is_quantised()) o.quantise_d = name(p.epilogue.quantise);
  if (p.epilogue.bias != Bias::none) o.bias = bias_name(p.epilogue.bias);
  return o;
}

std::optional<double> predicted_us(const Plan& plan, const std::vector<std::int64_t>& lengths) {
  try {
    const std::vector<std::int64_t> rows =
        lengths.empty() ? std::vector{plan.problem.m()} : lengths;
    return 1e6 * predicted(options_of(plan.problem), plan, rows).time.seconds;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string prediction_words(const Plan& plan, const Prediction& p) {
  if (!(p.seconds > 0)) return "0.00 us: there is nothing to compute, so nothing is launched";
  return format("%.2f us, bounded by %s (%.0f TFLOP/s, %.2f TB/s, %.2f waves, %.2f GHz)",
                1e6 * p.seconds, limit_name(p.limit), operations(plan.problem) / p.seconds * 1e-12,
                p.memory_bytes / p.seconds * 1e-12, p.waves, p.clock_hz * 1e-9);
}

std::string certainty_line(const Plan& plan, const Prediction& p) {
  const auto error = mean_error(plan, p);
  if (!error) {
    return "  how sure: not known, as no measured product of this kind was held beside it\n";
  }
  return format("  sure to    %8.0f %%   in the mean, as measured products %s%s\n", 100 * *error,
                plan.problem.packed ? "of packed weights" : "bounded by ",
                plan.problem.packed ? "" : limit_name(p.limit));
}

nlohmann::ordered_json prediction_json(const Plan& plan, const Predicted& made) {
  const Prediction& p = made.time;
  nlohmann::ordered_json json;
  json["microseconds"] = 1e6 * p.seconds;
  json["limit"] = limit_name(p.limit);
  json["breakdown"] = {{"start", 1e6 * p.start},       {"multiply", 1e6 * p.multiply},
                       {"tail", 1e6 * p.tail},         {"loads", 1e6 * p.loads},
                       {"epilogue", 1e6 * p.epilogue}, {"exchange", 1e6 * p.exchange}};
  const auto error = mean_error(plan, p);
  json["mean_error"] = error ? nlohmann::ordered_json(*error) : nlohmann::ordered_json();
  json["waves"] = p.waves;
  json["clock_ghz"] = 1e-9 * p.clock_hz;
  json["memory_bytes"] = p.memory_bytes;
  json["l2_lines"] = p.l2_lines;
  json["clocks"] = {
      {"first", made.phases.first}, {"k_tile", made.phases.k_tile}, {"tile", made.phases.between}};
  return json;
}

}  // namespace warpwright::cli
