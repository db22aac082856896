#include "warpwright/simulation/moe.h"

#include <memory>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/plan/moe/moe_grids.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"

namespace warpwright::device {
namespace {

Allocations touched_by(const MixtureStepGrids& step, const Grid& grid) {
  Allocations all;
  if (step.product != nullptr) {
    all = allocations_of(*step.product, grid.copies ? step.operands : step.grids.operands, grid,
                         step.workspace);
  }
  for (int i = 0; i < step.touched; ++i) {
    const MixtureTouch& t = step.touches[static_cast<std::size_t>(i)];
    all.add(t.data, t.bytes, t.name, t.writable);
  }
  return all;
}

}  // namespace

Result<model::Report> launch_on_model(const MixturePlan& plan, const MixtureOperands& operands,
                                      const ModelOptions& options, void* workspace) {
  if (auto r = mismatch(plan, operands)) return *r;
  if (!plan.device.is_model) {
    return refuse(RefusalCode::wrong_device, "the plan was made for device ", plan.device.name,
                  "; ", as_rule("plan for the model to run on it"));
  }
  if (plan.problem.tokens() == 0) return model::Report{};
  auto own = Workspace();
  if (workspace == nullptr) {
    auto made = make_workspace(plan);
    if (!made) return made.refusal();
    own = *std::move(made);
    workspace = own.data();
  }
  const auto all = std::make_unique<MixtureGrids>();
  bind_mixture(plan, operands, workspace, encode_for_model, *all);
  std::vector<model::GridLaunch> launches;
  for (int times = 0; times < options.launches; ++times) {
    for (int i = 0; i < all->count; ++i) {
      const MixtureStepGrids& step = all->steps[static_cast<std::size_t>(i)];
      for (int j = 0; j < step.grids.count; ++j) {
        const Grid& grid = step.grids.grids[static_cast<std::size_t>(j)];
        const ModelKernel* const kernel = model_kernel(grid.kernel);
        if (kernel == nullptr) {
          return refuse(RefusalCode::no_kernel,
                        "the plan's kernel is not among those of this build");
        }
        launches.push_back(grid_launch(grid, touched_by(step, grid),
                                       [kernel, &grid] { kernel->run(grid.params.data()); }));
      }
    }
  }
  return run_on_model(launches, plan.device, options);
}

}  // namespace warpwright::device
