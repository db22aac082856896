// The machine model as a device, for programs that link warpwright::model: with this header
// included somewhere, launches of plans for the model (model_facts) run.
#pragma once

#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"
#include "warpwright/warpwright.h"

namespace warpwright::device {

inline const bool model_is_in_use = use_model();

}  // namespace warpwright::device
