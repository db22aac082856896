// Grouped products on the model.
#include <cstdint>
#include <utility>
#include <vector>

#include "warpwright/device/grouped.h"
#include "warpwright/device/grouped_params.h"
#include "warpwright/device/model_kernels.h"
#include "warpwright/device/model_parts.h"

namespace warpwright::device {

namespace {

// How the kernel that makes the maps is run. The timeline and the decisions that a reduction counts
// are those of the product; this one keeps its schedule, which the seed gives.
ModelOptions beside(const ModelOptions& options) {
  ModelOptions how = options;
  how.only.reset();
  how.record_decisions = false;
  how.on_tile = nullptr;
  how.trace = nullptr;
  return how;
}

// The report of two grids, one after the other.
model::Report join(model::Report first, model::Report second) {
  second.findings.insert(second.findings.begin(), first.findings.begin(), first.findings.end());
  second.sites.insert(second.sites.begin(), first.sites.begin(), first.sites.end());
  second.order_hash += first.order_hash * 0x9e3779b97f4a7c15;
  model::Statistics& s = second.statistics;
  s.fiber_switches += first.statistics.fiber_switches;
  s.decisions += first.statistics.decisions;
  return second;
}

}  // namespace

Result<model::Report> launch_grouped_on_model(const GroupedPlan& plan,
                                              const GroupedOperands& operands,
                                              const ModelOptions& options, std::uint32_t* status) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{RefusalCode::wrong_device, "the plan was made for device " + plan.device.name +
                                                  "; plan for the model to run on it"};
  }
  if (status != nullptr) *status = 0;
  if (plan.ctas == 0) return model::Report{};
  const ModelKernel* kernel = model_kernel(plan.kernel);
  if (kernel == nullptr) {
    return Refusal{RefusalCode::no_kernel, "the plan's kernel is not among those of this build"};
  }
  // Fresh in every launch, so that no map is left from another one.
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes), std::byte{0xff});
  isa::TensorMap* const maps = plan.map_ctas > 0 ? group_maps_in(workspace.data()) : nullptr;
  const kernel::HopperGemmParams params =
      make_grouped_params(plan, operands, status, maps, encode_for_model);
  const std::int64_t width = operands.offset_type == OffsetType::int64 ? 8 : 4;
  const std::int64_t offsets_bytes = (plan.problem.groups + 1) * width;
  const std::int64_t maps_bytes = 2 * plan.problem.groups * std::int64_t{sizeof *maps};
  model::Report before;
  if (maps != nullptr) {
    Allocations allocations;
    allocations.add(operands.offsets, offsets_bytes, "offsets", false);
    allocations.add(maps, maps_bytes, "maps");
    const kernel::GroupMapsParams making =
        make_group_maps_params(plan, operands, params, maps, encode_for_model);
    before = run_on_model({.ctas = plan.map_ctas,
                           .threads = kernel::GroupMapsKernel::threads,
                           .shared_bytes = kernel::GroupMapsKernel::shared_bytes},
                          plan.device, beside(options), allocations,
                          [&] { kernel::GroupMapsKernel::run(making); });
    if (!before.clean()) return before;
  }
  Allocations allocations;
  allocations.add(operands.y, "Y", true);
  if (params.operands.k > 0) {
    allocations.add(operands.x, "X");
    allocations.add(operands.w, "W");
  }
  allocations.add(operands.offsets, offsets_bytes, "offsets", false);
  if (maps != nullptr) allocations.add(maps, maps_bytes, "maps", false);
  allocations.add(operands.scale_x, "scale_x");
  allocations.add(operands.scale_w, "scale_w");
  if (status != nullptr) allocations.add(status, sizeof *status, "status");
  return join(std::move(before),
              run_on_model(launch_shape(plan.config, plan.cluster, plan.ctas), plan.device, options,
                           allocations, [&] { kernel->run(&params); }));
}

}  // namespace warpwright::device
