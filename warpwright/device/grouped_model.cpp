// Grouped products on the model.
#include <cstdint>

#include "warpwright/device/grouped.h"
#include "warpwright/device/grouped_params.h"
#include "warpwright/device/model_parts.h"
#include "warpwright/kernel/grouped_instances.h"

namespace warpwright::device {

// Each is defined in a translation unit of its own, which the build makes (model_instance.h).
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::HopperGemmParams& params);
WW_HOPPER_GROUPED_INSTANCES(WW_DECLARE)
#undef WW_DECLARE

namespace {

using Body = void (*)(const kernel::HopperGemmParams&);

Body body_for(const kernel::GemmConfig& config) {
#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &run_##tag;
  WW_HOPPER_GROUPED_INSTANCES(WW_BODY)
#undef WW_BODY
  return nullptr;
}

}  // namespace

Result<model::Report> launch_grouped_on_model(const GroupedPlan& plan,
                                              const GroupedOperands& operands,
                                              const ModelOptions& options, std::uint32_t* status) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{"the plan was made for device " + plan.device.name +
                   "; plan for the model to run on it"};
  }
  if (status != nullptr) *status = 0;
  if (plan.ctas == 0) return model::Report{};
  const Body body = body_for(plan.config);
  if (body == nullptr) return Refusal{"the plan's configuration is not among the kernels"};
  const kernel::HopperGemmParams params =
      make_grouped_params(plan, operands, status, encode_for_model);
  Allocations allocations;
  allocations.add(operands.y, "Y", true);
  if (params.k > 0) {
    allocations.add(operands.x, "X");
    allocations.add(operands.w, "W");
  }
  const std::int64_t width = operands.offset_type == OffsetType::int64 ? 8 : 4;
  allocations.add(operands.offsets, (plan.problem.groups + 1) * width, "offsets", false);
  allocations.add(operands.scale_x, "scale_x");
  allocations.add(operands.scale_w, "scale_w");
  if (status != nullptr) allocations.add(status, sizeof *status, "status");
  return run_on_model(launch_shape(plan.config, plan.cluster, plan.ctas), plan.device, options,
                      allocations, [&] { body(params); });
}

}  // namespace warpwright::device
