#include "warpwright/plan/search/alternatives.h"

#include <string>
#include <vector>

#include "warpwright/plan/search/fastest_of.h"

namespace warpwright {
namespace {

struct Products {
  using AnyPlan = Plan;
  using Problem = GemmProblem;
  using Chosen = ChosenPlan;
  static constexpr const char* noun = "product";

  // The product without what alternatives differ in.
  static GemmProblem without_weights(GemmProblem p) {
    p.b.dtype = DType::e4m3;
    p.b.row_stride = p.b.column_stride = p.b.batch_stride = 0;
    p.b.alignment = 16;
    p.scale_b = {};
    p.accumulation = Accumulation::fast;
    p.packed.reset();
    return p;
  }
  static std::string weights(const GemmProblem& p) {
    return alternatives::weights_of(p.packed, p.b.dtype);
  }
  static std::string formula(const GemmProblem& p) { return warpwright::formula(p); }
};

}  // namespace

Result<ChosenPlan> fastest(std::span<const Plan> plans) {
  return alternatives::fastest_of<Products>(plans);
}

Result<ChosenPlan> plan_fastest(std::span<const GemmProblem> products, const DeviceFacts& device,
                                const PlanChoices& choices) {
  return alternatives::plan_fastest_of<Products>(
      products, choices.batch_invariant,
      [&](const GemmProblem& product) { return plan(product, device, choices); });
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
