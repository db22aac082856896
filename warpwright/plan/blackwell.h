// The choice of a Blackwell kernel. Internal to plan/.
#pragma once

#include <vector>

#include "warpwright/plan/plan.h"

namespace warpwright {

/// `candidates` of a Blackwell device: completes `start`, whose problem and device are legal, with
/// every configuration that `choices` leave. Refuses what these kernels do not compute.
Result<std::vector<Plan>> blackwell_candidates(const Plan& start, const PlanChoices& choices);

}  // namespace warpwright
