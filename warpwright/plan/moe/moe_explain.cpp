#include <algorithm>
#include <string>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

std::string cell(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

// What the steps that a plan has say of themselves.
std::string sayings(const MixturePlan& plan) {
  std::string text;
  for (const StepRow& row : rows_of(plan)) {
    for (const char* says : {row.says, plan.problem.is_micro() ? row.says_in_tiles : nullptr}) {
      if (says == nullptr) continue;
      text += std::string(says) + "\n";
      const std::size_t type = text.find('%');
      if (type != std::string::npos) text.replace(type, 1, type_name(plan.problem.token_type()));
    }
  }
  if (plan.way.k_parts > 1) {
    text += format("tiles of the second product are cut along K into %d parts", plan.way.k_parts);
    text += ", added up in float32\n";
  }
  return text;
}

}  // namespace

std::string formula(const MixtureProblem& p) {
  std::string text = format("%lld token%s x %lld, ", static_cast<long long>(p.tokens()),
                            p.tokens() == 1 ? "" : "s", static_cast<long long>(p.hidden()));
  text += p.is_routed()
              ? format("top-%lld of %lld experts (%lld here from %lld), ",
                       static_cast<long long>(p.top_k()), static_cast<long long>(p.total()),
                       static_cast<long long>(p.experts()), static_cast<long long>(p.first_expert))
              : "no router, ";
  text += format("inner %lld, ", static_cast<long long>(p.inner()));
  text += type_name(p.x.dtype) + " by " + type_name(p.w13.dtype) + ", ";
  if (p.is_micro()) {
    text += micro_words(known_micro_format(p.token_type(), p.micro_scale()),
                        known_micro_format(p.w13.dtype, p.micro_scale())) +
            ", ";
  }
  if (p.is_packed()) {
    text += "w13 " + packed_words(*p.packed13) + ", w2 " + packed_words(*p.packed2) + ", ";
  }
  text += scaling_words(p.scaling) + block_words(p.scale_block()) + ", " + name(p.activation);
  if (!p.is_gated) text += " without a gate";
  if (p.has_codes()) text += ", tokens as they come with their scales";
  if (p.apply_router_weight_on_input) text += ", router weights on the input";
  if (p.combine != Combine::sum) text += std::string(", combine ") + name(p.combine);
  if (is_given(p.shared_output)) text += ", a shared output";
  return text;
}

std::string MixturePlan::explain() const {
  const MixtureProblem& p = problem;
  std::string text = "mixture: " + formula(p) + ", on " + device.name + "\n";
  if (!reason.empty()) text += "choice: " + reason + "\n";
  text += format("%d launch%s; workspace %lld bytes", launches(),
                 launches() == 1 ? "" : "es, each dependent on the one before",
                 static_cast<long long>(workspace_bytes()));
  if (p.is_routed()) {
    text += format("; %.1f experts are expected to be hit",
                   p.tokens() > 0 ? busy_groups(first.problem) : 0.0);
  }
  text += "\n";
  const bool rated = device.memory_bytes_per_second > 0;
  const std::vector<PlannedStep> all = steps();
  std::size_t wide = 44;  // names of kernels
  for (const PlannedStep& step : all) wide = std::max(wide, step.kernel.size());
  wide += 2;
  text += cell("step", 10) + cell("kernel", wide) + cell("MB", 11) + cell("GFLOP", 11) +
          (rated ? "floor us\n" : "\n");
  double floors = 0;
  std::string early;
  for (const PlannedStep& step : all) {
    text += cell(step.name, 10) + cell(step.kernel, wide) +
            cell(format("%.3f", step.bytes / 1e6), 11) +
            cell(step.operations > 0 ? format("%.3f", step.operations / 1e9) : "", 11);
    if (rated) text += format("%.2f", step.floor * 1e6);
    floors += step.floor;
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
    if (step.asks_early) early += (early.empty() ? "" : " and ") + std::string(step.name);
  }
  if (rated) {
    text +=
        format("floors together %.2f us; predicted to take %.2f us\n", floors * 1e6, cost * 1e6);
  }
  if (p.is_routed()) {
    text += way.by_index ? "the first product reads tokens by number\n"
                         : "tokens are put into the order of the experts first\n";
  }
  text += sayings(*this);
  if (!early.empty()) {
    text += "asked for before the launch before has ended: the weights of the first tiles of " +
            early + "\n";
  }
  if (asks_early(MixtureStep::first) && counts_slots()) {
    text += "first counts the slots of experts by itself, to know its first tiles then\n";
  }
  if (!p.is_routed()) return text;
  text += "a row is rounded to " + type_name(p.row_type());
  if (p.weighs_results()) text += ", times its weight";
  text += p.combine == Combine::sum ? ", added in float32 in the order of expert, then slot"
                                    : ", put where its slot is";
  if (is_given(p.shared_output)) text += ", the shared output last";
  return text + "\n";
}

}  // namespace warpwright
