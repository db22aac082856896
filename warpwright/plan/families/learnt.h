// What a product takes by measured times of others: its floor, corrected by what floors lacked of
// these.
#pragma once

#include <optional>
#include <string>

#include "warpwright/plan/cost/correction.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// The correction that this build has.
const Correction& built_correction();

/// Seconds of what has this floor.
double learnt_seconds(const Floor& floor);
/// Seconds of the plan on its device; nothing where no product of the kind was measured: where
/// there is no floor either.
std::optional<double> learnt_seconds(const Plan& plan);

/// "2048x2048x2048": M, N and K, as the correction names products.
std::string shape_text(const GemmProblem& problem);
/// Had products of this shape no part in the correction?
bool is_held_out(const GemmProblem& problem);

}  // namespace warpwright
