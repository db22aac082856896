// The Hopper family's own. Internal to plan/ and to tests of kernels.
#pragma once

#include <vector>

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/plan/plan.h"

namespace warpwright {

/// The configuration of a Hopper plan's kernel.
const kernel::GemmConfig& hopper_config(const Plan& plan);

/// Seconds that a Hopper plan will take on an H200-like device, by roofs and by what was measured
/// of each way of multiplying (Machine); it orders candidates. On the model the same with an H200's
/// rates.
double predicted_cost(const Plan& plan);

/// Family::candidates.
Result<std::vector<Plan>> hopper_candidates(const Plan& start, const PlanChoices& choices);

}  // namespace warpwright
