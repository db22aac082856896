#include "cli/commands/predict/predict_command.h"

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/gemm/product.h"
#include "cli/commands/predict/configurations.h"
#include "cli/commands/predict/predicted.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/learnt.h"

namespace warpwright::cli {
namespace {

std::string text_of(const Plan& plan, const Prediction& p) {
  if (!(p.seconds > 0)) {
    return plan.name() + " on " + plan.device.name + ": " + prediction_words(plan, p) + "\n";
  }
  const double us = 1e6;
  std::string all = plan.name() + " on " + plan.device.name + ": ";
  if (const auto learnt = learnt_seconds(plan)) {
    all += format("%.2f us by measured times of others, simulated: ", us * *learnt);
  }
  all += prediction_words(plan, p) + "\n" +
         format(
             "  start      %8.2f us  launch, and until the first operands are there\n"
             "  multiply   %8.2f us  k_tiles at an SM's own pace; %.2f of it the tail: SMs idle "
             "in a last wave\n"
             "  loads      %8.2f us  waited for L2 or memory\n"
             "  epilogue   %8.2f us  that no multiplication hides\n",
             us * p.start, us * p.multiply, us * p.tail, us * p.loads, us * p.epilogue);
  if (p.exchange > 0) {
    all += format("  exchange   %8.2f us  of sums through the workspace\n", us * p.exchange);
  }
  return all + certainty_line(plan, p);
}

// Ways to run the product, in the order of their costs.
int list_configs(const GemmOptions& options, const Product& product, std::ostream& out) {
  PlanChoices choices;
  choices.batch_invariant = options.batch_invariant;
  const auto ways = taken(bench_plans(product.plan.problem, product.plan.device, choices,
                                      parse_configs(options.configs)));
  nlohmann::ordered_json json;
  json["device"] = product.plan.device.name;
  json["configs"] = nlohmann::ordered_json::array();
  std::string text = "predicted us  cost us  config\n";
  for (const Plan& way : ways) {
    const auto made = predicted_by_counts(way, product.job.lengths());
    const double us = made ? 1e6 * made->time.seconds : 0;
    const auto learnt = learnt_seconds(way);
    text += format("%12.2f  %7.2f  ", us, 1e6 * way.cost) + way.name() + "\n";
    json["configs"].push_back(
        {{"config", way.name()},
         {"ctas", way.ctas},
         {"predicted_us", made ? nlohmann::ordered_json(us) : nullptr},
         {"learnt_us", learnt ? nlohmann::ordered_json(1e6 * *learnt) : nullptr},
         {"cost_us", 1e6 * way.cost}});
    if (made) json["configs"].back().update(prediction_json(way, *made));
  }
  out << (options.json ? json_text(json) : text);
  return 0;
}

}  // namespace

int predict_command(const GemmOptions& given, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, given.json, [&] {
    GemmOptions options = given;
    if (options.as.empty() && options.machine.empty() && options.device == "model") {
      options.as = "h200";
    }
    const Product product(options, facts_elsewhere(options), err);
    if (!options.configs.empty()) return list_configs(options, product, out);
    const Predicted made = predicted(options, product.plan, product.job.lengths());
    if (options.json) {
      nlohmann::ordered_json json;
      json["plan"] = product.plan.name();
      json["device"] = product.plan.device.name;
      const auto learnt = learnt_seconds(product.plan);
      json["learnt_us"] = learnt ? nlohmann::ordered_json(1e6 * *learnt) : nullptr;
      json.update(prediction_json(product.plan, made));
      out << json_text(json);
    } else {
      out << text_of(product.plan, made.time);
    }
    return 0;
  });
}

}  // namespace warpwright::cli
