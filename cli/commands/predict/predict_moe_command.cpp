#include "cli/commands/predict/predict_moe_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/predict/predicted.h"
#include "cli/compute/expert_shapes.h"
#include "cli/compute/routing.h"
#include "cli/reports/moe_report.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/moe/moe_prediction.h"

namespace warpwright::cli {
namespace {

constexpr double us = 1e6;

// The rows of each expert that is here, as its router draws the ids.
std::vector<std::int64_t> drawn_lengths(const MoeOptions& o, const MoeJob& job) {
  const MixtureOperands& m = job.operands;
  const ExpertModel model = o.model.empty() ? ExpertModel{} : expert_model(o.model);
  const auto ids = routed_choices(moe_routing(m, o.routing, model), m.total(), o.seed);
  return lengths_of(ids, m.experts(), m.first_expert);
}

std::string text_of(const MixturePlan& plan, const MixturePrediction& p, std::int64_t hit) {
  std::string all = mixture_words(plan.problem) + ", on " + plan.device.name +
                    format(" (%lld hit): ", static_cast<long long>(hit));
  if (learnt_seconds(plan.first)) {
    all += format("%.2f us by measured times of other products, simulated: ", us * plan.cost);
  }
  all += format("%.2f us, %d launches\n", us * p.seconds, plan.launches());
  const auto line = [&](const char* name, double seconds, const std::string& what) {
    all += format("  %-10s %8.2f us  ", name, us * seconds) + what + "\n";
  };
  line("launch", p.launch, "of the first grid");
  for (const StepPrediction& step : p.steps) {
    line(step.name, step.seconds, step.kernel + ", bounded by " + limit_name(step.limit));
  }
  line("between", p.between, "launches, each early");
  if (p.early > 0) line("early", -p.early, "weights asked for before the step before has ended");
  return all;
}

nlohmann::ordered_json to_json(const MixturePlan& plan, const MixturePrediction& p,
                               const std::vector<std::int64_t>& lengths) {
  nlohmann::ordered_json json;
  json["plan"] = plan.name();
  json["device"] = plan.device.name;
  json["lengths"] = lengths;
  json["learnt_us"] = learnt_seconds(plan.first) ? nlohmann::ordered_json(us * plan.cost)
                                                 : nlohmann::ordered_json();
  json["microseconds"] = us * p.seconds;
  json["launches"] = plan.launches();
  json["launch"] = us * p.launch;
  json["between"] = us * p.between;
  json["early"] = us * p.early;
  json["steps"] = nlohmann::ordered_json::array();
  for (const StepPrediction& step : p.steps) {
    json["steps"].push_back({{"step", step.name},
                             {"kernel", step.kernel},
                             {"microseconds", us * step.seconds},
                             {"limit", limit_name(step.limit)}});
  }
  return json;
}

TilePhases phases_of(const Plan& product) {
  if (product.ctas == 0) return {};
  const GemmOptions options = options_of(product.problem);
  TilePhases phases = sample_phases(options, product);
  phases.first += search_clocks(options, product);
  return phases;
}

}  // namespace

int predict_moe_command(const MoeOptions& given, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, given.json, [&] {
    MoeOptions o = given;
    if (o.as.empty() && o.machine.empty() && o.device == "model") o.as = "h200";
    const MoeJob job(o, facts_elsewhere(o));
    const std::vector<std::int64_t> lengths = drawn_lengths(o, job);
    const MixturePrediction p = predict(job.plan, lengths, phases_of);
    if (o.json) {
      out << json_text(to_json(job.plan, p, lengths));
      return 0;
    }
    const auto hit = std::count_if(lengths.begin(), lengths.end(), [](auto n) { return n > 0; });
    out << text_of(job.plan, p, hit);
    return 0;
  });
}

}  // namespace warpwright::cli
