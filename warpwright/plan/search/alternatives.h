// Weights that a caller has in two forms: which of them a product takes.
#pragma once

#include <cstddef>
#include <span>

#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// One of several plans: its number, and the plan, whose reason says what it was chosen among.
struct ChosenPlan {
  std::size_t index = 0;
  Plan plan;
};

/// The plan with the least predicted time, the first of equals. All are of products that differ in
/// only B, its type, its scales and how its sums are kept: of packed weights, say, and of fp8 ones
/// with the same values (weights/fp8.h). Refuses products that differ in more, or devices. Sums of
/// other weights round otherwise: where the bits of a row must not depend on how many there are,
/// `plan_fastest` knows.
Result<ChosenPlan> fastest(std::span<const Plan> plans);

/// The same of products that have no plans yet: those that no kernel of the device serves are left
/// out, unless there is no other. With PlanChoices::batch_invariant the first one that has a plan
/// is taken, for which is the fastest depends on M.
Result<ChosenPlan> plan_fastest(std::span<const GemmProblem> products, const DeviceFacts& device,
                                const PlanChoices& choices = {});
Result<ChosenPlan> plan_fastest(std::span<const GemmOperands> products, const DeviceFacts& device,
                                const PlanChoices& choices = {});

}  // namespace warpwright
