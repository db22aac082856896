#include "warpwright/plan/search/alternatives.h"

#include <algorithm>
#include <string>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

// The product without what alternatives differ in.
GemmProblem without_weights(GemmProblem p) {
  p.b.dtype = DType::e4m3;
  p.b.row_stride = p.b.column_stride = p.b.batch_stride = 0;
  p.b.alignment = 16;
  p.scale_b = {};
  p.accumulation = Accumulation::fast;
  p.packed.reset();
  return p;
}

std::string weights_of(const GemmProblem& p) {
  if (p.packed) return packed_name(p.packed->format);
  return type_name(p.b.dtype) + " weights";
}

// "packed mxf4 weights in 6.1 us", on the model without the time, which has no unit there.
std::string words_of(const Plan& plan) {
  std::string weights = weights_of(plan.problem);
  if (plan.device.is_model) return weights;
  return weights + format(" in %.2f us", plan.cost * 1e6);
}

}  // namespace

Result<ChosenPlan> fastest(std::span<const Plan> plans) {
  if (plans.empty()) return refuse(RefusalCode::bad_value, "there is no plan to choose");
  const GemmProblem all = without_weights(plans.front().problem);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (without_weights(plans[i].problem) != all) {
      return refuse(RefusalCode::bad_value, "plan ", i, " is of ", formula(plans[i].problem),
                    ", and plan 0 of ", formula(plans.front().problem), ": ",
                    as_rule("plans to choose among are of one product, but for its weights"));
    }
    if (plans[i].device.name != plans.front().device.name) {
      return refuse(RefusalCode::wrong_device, "plan ", i, " is for ", plans[i].device.name,
                    ", and plan 0 for ", plans.front().device.name, ": ",
                    as_rule("plans to choose among are for one device"));
    }
  }
  const auto least = std::min_element(plans.begin(), plans.end(),
                                      [](const Plan& x, const Plan& y) { return x.cost < y.cost; });
  ChosenPlan chosen{static_cast<std::size_t>(least - plans.begin()), *least};
  if (plans.size() == 1) return chosen;
  std::string why = words_of(*least) + ", predicted to be faster than ";
  bool is_first = true;
  for (const Plan& other : plans) {
    if (&other == &*least) continue;
    why += (is_first ? "" : " and ") + words_of(other);
    is_first = false;
  }
  chosen.plan.reason = why + (chosen.plan.reason.empty() ? "" : "; ") + chosen.plan.reason;
  return chosen;
}

Result<ChosenPlan> plan_fastest(std::span<const GemmProblem> products, const DeviceFacts& device,
                                const PlanChoices& choices) {
  std::vector<Plan> plans;
  std::vector<std::size_t> numbers;
  std::optional<Refusal> first;
  for (std::size_t i = 0; i < products.size(); ++i) {
    auto made = plan(products[i], device, choices);
    if (made) {
      plans.push_back(std::move(*made));
      numbers.push_back(i);
      if (choices.batch_invariant) break;
    } else if (made.refusal().code != RefusalCode::no_kernel) {
      return made.refusal();
    } else if (!first) {
      first = made.refusal();
    }
  }
  if (plans.empty() && first) return *first;
  auto chosen = fastest(plans);
  if (chosen) (*chosen).index = numbers[chosen->index];
  return chosen;
}

Result<ChosenPlan> plan_fastest(std::span<const GemmOperands> products, const DeviceFacts& device,
                                const PlanChoices& choices) {
  std::vector<GemmProblem> problems;
  for (const GemmOperands& operands : products) {
    auto problem = describe(operands, addresses_of(operands));
    if (!problem) return problem.refusal();
    problems.push_back(*problem);
  }
  return plan_fastest(problems, device, choices);
}

}  // namespace warpwright
