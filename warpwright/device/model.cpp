#include "warpwright/device/model.h"

#include <algorithm>
#include <vector>

#include "warpwright/device/model_parts.h"
#include "warpwright/device/params.h"
#include "warpwright/kernel/instances.h"

namespace warpwright::device {

// Each is defined in a translation unit of its own, which the build makes (model_instance.h).
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::HopperGemmParams& params);
WW_HOPPER_GEMM_INSTANCES(WW_DECLARE)
#undef WW_DECLARE

namespace {

using Body = void (*)(const kernel::HopperGemmParams&);

Body body_for(const kernel::GemmConfig& config) {
#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &run_##tag;
  WW_HOPPER_GEMM_INSTANCES(WW_BODY)
#undef WW_BODY
  return nullptr;
}

}  // namespace

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{"the plan was made for device " + plan.device.name +
                   "; plan for the model to run on it"};
  }
  if (plan.problem.m == 0 || plan.problem.n == 0) return model::Report{};
  const Body body = body_for(plan.config);
  if (body == nullptr) return Refusal{"the plan's configuration is not among the kernels"};
  // Flags are 0 before a launch and after it; the rest of the workspace is nobody's.
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes), std::byte{0xff});
  if (plan.splits_k) {
    std::fill_n(workspace.begin(), kernel::split_flag_bytes(plan.config, plan.ctas), std::byte{0});
  }
  const kernel::HopperGemmParams params =
      make_params(plan, operands, workspace.data(), encode_for_model);

  Allocations allocations;
  allocations.add(operands.d, "D", true);
  if (params.reads_c) allocations.add(operands.c, "C");
  if (params.k > 0) {
    allocations.add(operands.a, "A");
    allocations.add(operands.b, "B");
  }
  allocations.add(operands.bias, "bias");
  allocations.add(operands.scale_a, "scale_a");
  allocations.add(operands.scale_b, "scale_b");
  allocations.add(operands.scale_d, "scale_d");
  allocations.add(workspace.data(), plan.workspace_bytes, "workspace");
  return run_on_model(launch_shape(plan.config, plan.cluster, plan.ctas), plan.device, options,
                      allocations, [&] { body(params); });
}

}  // namespace warpwright::device
