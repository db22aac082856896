#include "warpwright/plan/moe/moe_alternatives.h"

#include <string>
#include <vector>

#include "warpwright/plan/search/fastest_of.h"

namespace warpwright {
namespace {

struct Mixtures {
  using AnyPlan = MixturePlan;
  using Problem = MixtureProblem;
  using Chosen = ChosenMixture;
  static constexpr const char* noun = "mixture";

  // The mixture without what alternatives differ in.
  static MixtureProblem without_weights(MixtureProblem p) {
    for (PlannedMatrix* w : {&p.w13, &p.w2}) {
      w->dtype = DType::e4m3;
      w->row_stride = w->column_stride = w->batch_stride = 0;
      w->alignment = 16;
    }
    p.scale_w13 = p.scale_w2 = p.factor_w13 = p.factor_w2 = {};
    p.packed13.reset();
    p.packed2.reset();
    return p;
  }
  static std::string weights(const MixtureProblem& p) {
    return alternatives::weights_of(p.packed13, p.w13.dtype);
  }
  static std::string formula(const MixtureProblem& p) { return warpwright::formula(p); }
};

}  // namespace

Result<ChosenMixture> fastest(std::span<const MixturePlan> plans) {
  return alternatives::fastest_of<Mixtures>(plans);
}

Result<ChosenMixture> plan_fastest(std::span<const MixtureProblem> mixtures,
                                   const DeviceFacts& device, const MixtureChoices& choices) {
  return alternatives::plan_fastest_of<Mixtures>(
      mixtures, choices.batch_invariant,
      [&](const MixtureProblem& mixture) { return plan_moe(mixture, device, choices); });
}

Result<ChosenMixture> plan_fastest(std::span<const MixtureOperands> mixtures,
                                   const DeviceFacts& device, const MixtureChoices& choices) {
  std::vector<MixtureProblem> problems;
  for (const MixtureOperands& operands : mixtures) {
    auto problem = describe(operands, has_memory(operands));
    if (!problem) return problem.refusal();
    problems.push_back(*problem);
  }
  return plan_fastest(problems, device, choices);
}

}  // namespace warpwright
