// Mixtures of experts on the model.
#pragma once

#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/simulation/model.h"

namespace warpwright::device {

/// Runs `plan` on the model, all of its grids with all checks, each as early as it may start.
/// `workspace` is memory of plan.workspace_bytes(), from a multiple of 256, whose flags are 0, or
/// null: of its own.
/// Refuses operands that are not those of the plan.
Result<model::Report> launch_on_model(const MixturePlan& plan, const MixtureOperands& operands,
                                      const ModelOptions& options = {}, void* workspace = nullptr);

}  // namespace warpwright::device
