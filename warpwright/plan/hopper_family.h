// The parts of the Hopper family. Internal to plan/.
#pragma once

#include <vector>

#include "warpwright/plan/family.h"
#include "warpwright/plan/kernels.h"

namespace warpwright {

/// Its kernels of this build, whole products' before those for groups.
const std::vector<KernelRow<kernel::GemmConfig>>& hopper_rows();

/// Family::candidates.
Result<std::vector<Plan>> hopper_candidates(const Plan& start, const PlanChoices& choices);

}  // namespace warpwright
