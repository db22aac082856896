// What a product takes by measured times of others: its floor, corrected by what floors lacked of
// these.
#pragma once

#include <optional>

#include "warpwright/plan/cost/correction.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// The correction that this build has.
const Correction& built_correction();

/// Seconds of the plan on its device, whose machine this is; nothing where no product of the kind
/// was measured: where there is no floor either.
std::optional<double> learnt_seconds(const Plan& plan, const PredictionMachine& machine);
std::optional<double> learnt_seconds(const Plan& plan);

}  // namespace warpwright
