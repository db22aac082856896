// The predicted time of a plan. Internal to plan/.
#pragma once

#include "warpwright/plan/plan.h"

namespace warpwright {

/// Seconds that `plan` will take on an H200-like device, by roofs and by what was measured of each
/// way of multiplying; it orders candidates. On the model the same with an H200's rates.
double predicted_cost(const Plan& plan);

/// Clocks in which one SM multiplies a K block (128 bytes) of a tile of `c`.
double block_clocks(const kernel::GemmConfig& c);

}  // namespace warpwright
