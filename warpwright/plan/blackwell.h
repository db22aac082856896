// The choice of a Blackwell kernel. Internal to plan/.
#pragma once

#include <optional>

#include "warpwright/plan/plan.h"

namespace warpwright {

/// Why no MMA multiplies these types; nothing when one does.
std::optional<Refusal> check_blackwell_types(DType a, DType b);

/// Completes `start`, whose problem and device are legal, with the best configuration that
/// `choices` leave.
Result<Plan> choose_blackwell(const Plan& start, const PlanChoices& choices);

}  // namespace warpwright
