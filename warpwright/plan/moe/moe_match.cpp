// What a mixture's plan is held against: operands, choices, what a launch says of its ids.
#include <string>
#include <type_traits>

#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

const char* yes_no(bool x) {
  return x ? "true" : "false";
}

PlannedMatrix least_aligned(PlannedMatrix known, const PlannedMatrix& wanted) {
  if (known.alignment >= wanted.alignment) known.alignment = wanted.alignment;
  return known;
}

}  // namespace

std::optional<Refusal> mismatch(const MixturePlan& plan, const MixtureOperands& operands) {
  const auto described = describe(operands);
  if (!described) return described.refusal();
  MixtureProblem problem = *described;
  // Better addresses than the plan was made for are right too.
  for_each_field_of_mixtures(
      [](const char*, auto& here, const auto& planned) {
        if constexpr (std::is_same_v<decltype(planned), const PlannedMatrix&>) {
          here = least_aligned(here, planned);
        }
      },
      problem, plan.problem);
  // Hints are only for the choice, which was made.
  problem.expected_lengths = plan.problem.expected_lengths;
  problem.expected_zipf = plan.problem.expected_zipf;
  if (problem == plan.problem) return std::nullopt;
  return refuse(RefusalCode::plan_mismatch, "the operands are not those of the mixture's plan; ",
                as_rule("a plan serves tensors of the shapes, types, strides and alignments that "
                        "it was made for"));
}

std::optional<Refusal> mismatch(const MixturePlan& plan, const MixtureChoices& choices) {
  const struct {
    const std::optional<bool>& asked;
    bool is;
    const char* name;
  } ways[] = {{choices.quantises_in_epilogue, plan.way.fused, "quantises_in_epilogue"},
              {choices.gates_in_epilogue, !plan.way.gates_behind, "gates_in_epilogue"},
              {choices.by_index, plan.way.by_index, "by_index"},
              {choices.early_weights, plan.way.early, "early_weights"},
              {choices.sort_with_gather, plan.way.sorts_rows, "sort_with_gather"},
              {choices.one_launch, plan.way.one_launch(), "one_launch"}};
  for (const auto& way : ways) {
    if (way.asked.value_or(way.is) == way.is) continue;
    return refuse(RefusalCode::bad_choice, way.name, " is ", yes_no(*way.asked),
                  ", and the plan's is ", yes_no(way.is),
                  "; leave it out, or make the plan with it");
  }
  if (choices.sort_parts.value_or(plan.way.sort_parts) != plan.way.sort_parts) {
    return refuse(RefusalCode::bad_choice, "sort_parts is ", *choices.sort_parts,
                  ", and the plan's is ", plan.way.sort_parts,
                  "; leave it out, or make the plan with it");
  }
  if (plan.problem.tokens() == 0) return std::nullopt;
  for (const MixtureProduct& each : mixture_products) {
    PlanChoices how;
    how.batch_invariant = choices.batch_invariant;
    how.kernel = choices.*each.kernel;
    auto r = mismatch(plan.*each.plan, how);
    if (!r) continue;
    r->reason = std::string("the product with ") + each.weights + ": " + r->reason;
    return r;
  }
  return std::nullopt;
}

std::optional<std::string> ids_fault(std::uint32_t status) {
  if ((status & 1U) == 0) return std::nullopt;
  return "topk_ids has an id that is neither -1 nor one of experts_total";
}

}  // namespace warpwright
