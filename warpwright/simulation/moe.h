// Mixtures of experts on the model.
#pragma once

#include <functional>
#include <vector>

#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/simulation/model.h"

namespace warpwright {

struct Grid;

namespace device {

/// What the threads of a grid run in place of its kernel's body: a compiler's text of it, say. None
/// for the body. The memory that the grid may touch stays until the run has ended.
using GridBody =
    std::function<std::function<void()>(const Grid&, const std::vector<model::Allocation>&)>;

/// Runs `plan` on the model, all of its grids with all checks, each as early as it may start.
/// `workspace` is memory of plan.workspace_bytes(), from a multiple of 256, whose flags are 0, or
/// null: of its own.
/// Refuses operands that are not those of the plan.
Result<model::Report> launch_on_model(const MixturePlan& plan, const MixtureOperands& operands,
                                      const ModelOptions& options = {}, void* workspace = nullptr,
                                      const GridBody& body = {});

}  // namespace device
}  // namespace warpwright
