#include "cli/reports/moe_report.h"

#include "cli/reports/plan_json.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {

using nlohmann::ordered_json;

std::string mixture_words(const MixtureProblem& p) {
  const auto number = [](std::int64_t x) { return std::to_string(x); };
  std::string text = number(p.tokens()) + (p.tokens() == 1 ? " token x " : " tokens x ") +
                     number(p.hidden()) + ", " + type_name(p.x.dtype) + " by " +
                     type_name(p.w13.dtype);
  if (p.scaling != Scaling::none) text += std::string(" (") + name(p.scaling) + ")";
  text += ", inner " + number(p.inner());
  if (!p.is_routed()) return text + ", no router";
  text += ", top-" + number(p.top_k()) + " of " + number(p.total()) + " experts";
  if (p.experts() == p.total()) return text;
  return text + ", of which " + number(p.experts()) + " from " + number(p.first_expert) +
         " are here";
}

ordered_json mixture_json(const MixturePlan& plan) {
  const MixtureProblem& p = plan.problem;
  ordered_json json;
  json["device"] = plan.device.name;
  json["tokens"] = p.tokens();
  json["hidden"] = p.hidden();
  json["inner"] = p.inner();
  json["routed"] = p.is_routed();
  json["top_k"] = p.top_k();
  json["experts"] = p.experts();
  json["first_expert"] = p.first_expert;
  json["experts_total"] = p.total();
  json["dtype"] = {numeric::word(p.x.dtype), numeric::word(p.w13.dtype)};
  json["d_dtype"] = numeric::word(p.d.dtype);
  json["scaling"] = name(p.scaling);
  json["activation"] = name(p.activation);
  json["gated"] = p.is_gated;
  json["gate_up"] = p.interleaved ? "interleaved" : "halves";
  json["combine"] = name(p.combine);
  json["router_weights_on_input"] = p.apply_router_weight_on_input;
  json["shared_output"] = is_given(p.shared_output);
  json["bias"] = p.bias13.rows > 0 || p.bias2.rows > 0;
  json["reason"] = plan.reason;
  json["launches"] = plan.launches();
  json["workspace_bytes"] = plan.workspace_bytes();
  json["by_index"] = plan.way.by_index;
  json["quantises_in_epilogue"] = plan.way.fused;
  json["gates_in_epilogue"] = p.is_gated && !plan.way.gates_behind;
  json["sorts_with_gather"] = plan.way.sorts_rows;
  json["one_launch"] = plan.way.one_launch();
  json["steps"] = ordered_json::array();
  for (const PlannedStep& step : plan.steps()) {
    json["steps"].push_back(
        {{"step", step.name},
         {"kernel", step.kernel},
         {"bytes", step.bytes},
         {"operations", step.operations},
         {"floor_us", step.floor > 0 ? ordered_json(step.floor * 1e6) : ordered_json()}});
  }
  if (p.tokens() > 0) {
    json["first"] = plan_json(plan.first);
    json["second"] = plan_json(plan.second);
  }
  return json;
}

}  // namespace warpwright::cli
