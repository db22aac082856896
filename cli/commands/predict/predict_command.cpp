#include "cli/commands/predict/predict_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/gemm/product.h"
#include "cli/commands/predict/sample.h"
#include "cli/files/machine_file.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/plan/cost/prediction.h"

namespace warpwright::cli {
namespace {

// Only an H200's times were at hand, of products without packed weights.
bool is_held_against_times(const Plan& plan) {
  return plan.device.name == "h200" && plan.facts().architecture == 90 && !plan.problem.packed;
}

std::string text_of(const Plan& plan, const Prediction& p) {
  char text[1024];
  const double us = 1e6;
  std::snprintf(text, sizeof text,
                "%s on %s: %.2f us, bounded by %s (%.0f TFLOP/s, %.2f TB/s, %.2f waves, %.2f GHz)\n"
                "  start      %8.2f us  launch, and until the first operands are there\n"
                "  multiply   %8.2f us  k_tiles at an SM's own pace; %.2f of it the tail: SMs idle "
                "in a last wave\n"
                "  loads      %8.2f us  waited for L2 or memory\n"
                "  epilogue   %8.2f us  that no multiplication hides\n",
                plan.name().c_str(), plan.device.name.c_str(), us * p.seconds, limit_name(p.limit),
                operations(plan.problem) / p.seconds * 1e-12, p.memory_bytes / p.seconds * 1e-12,
                p.waves, p.clock_hz * 1e-9, us * p.start, us * p.multiply, us * p.tail,
                us * p.loads, us * p.epilogue);
  std::string all = text;
  if (p.exchange > 0) {
    std::snprintf(text, sizeof text, "  exchange   %8.2f us  of sums through the workspace\n",
                  us * p.exchange);
    all += text;
  }
  if (is_held_against_times(plan)) {
    std::snprintf(text, sizeof text,
                  "  sure to    %8.0f %%   in the mean, as measured H200 products that %s bounds\n",
                  100 * p.within, limit_name(p.limit));
    return all + text;
  }
  return all + "  how sure: not known, as no measured product of this kind was held beside it\n";
}

nlohmann::ordered_json to_json(const Plan& plan, const TilePhases& phases, const Prediction& p) {
  nlohmann::ordered_json json;
  json["plan"] = plan.name();
  json["device"] = plan.device.name;
  json["microseconds"] = 1e6 * p.seconds;
  json["limit"] = limit_name(p.limit);
  json["breakdown"] = {{"start", 1e6 * p.start},       {"multiply", 1e6 * p.multiply},
                       {"tail", 1e6 * p.tail},         {"loads", 1e6 * p.loads},
                       {"epilogue", 1e6 * p.epilogue}, {"exchange", 1e6 * p.exchange}};
  json["mean_error"] =
      is_held_against_times(plan) ? nlohmann::ordered_json(p.within) : nlohmann::ordered_json();
  json["waves"] = p.waves;
  json["clock_ghz"] = 1e-9 * p.clock_hz;
  json["memory_bytes"] = p.memory_bytes;
  json["l2_lines"] = p.l2_lines;
  json["clocks"] = {{"first", phases.first}, {"k_tile", phases.k_tile}, {"tile", phases.between}};
  return json;
}

}  // namespace

int predict_command(const GemmOptions& given, const std::string& machine, std::ostream& out,
                    std::ostream& err) {
  return exit_status(out, err, given.json, [&] {
    GemmOptions options = given;
    if (options.as.empty() && options.device == "model") options.as = "h200";
    const std::optional<MachineNumbers> numbers =
        machine.empty() ? std::nullopt : std::optional(read_machine("--machine", machine));
    const Product product(options, facts_elsewhere(options), err);
    const TilePhases phases =
        product.plan.ctas > 0 ? sample_phases(options, product.plan) : TilePhases{};
    const Prediction prediction =
        predict(product.plan, phases,
                numbers ? prediction_machine(*numbers) : prediction_machine(product.plan.device),
                product.job.lengths());
    if (options.json) {
      out << json_text(to_json(product.plan, phases, prediction));
    } else {
      out << text_of(product.plan, prediction);
    }
    return 0;
  });
}

}  // namespace warpwright::cli
