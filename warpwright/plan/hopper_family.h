// The parts of the Hopper family. Internal to plan/.
#pragma once

#include <vector>

#include "warpwright/plan/family.h"
#include "warpwright/plan/kernels.h"

namespace warpwright {

/// Family::candidates.
Result<std::vector<Plan>> hopper_candidates(const Plan& start, const PlanChoices& choices);

}  // namespace warpwright
