#include "warpwright/device/model.h"

#include <algorithm>
#include <vector>

#include "warpwright/device/model_kernels.h"
#include "warpwright/device/model_parts.h"
#include "warpwright/device/params.h"

namespace warpwright::device {

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{RefusalCode::wrong_device, "the plan was made for device " + plan.device.name +
                                                  "; plan for the model to run on it"};
  }
  if (plan.problem.m == 0 || plan.problem.n == 0) return model::Report{};
  // Flags are 0 before a launch and after it; the rest of the workspace is nobody's.
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes), std::byte{0xff});
  if (plan.splits_k) {
    std::fill_n(workspace.begin(), kernel::split_flag_bytes(plan.config, plan.ctas), std::byte{0});
  }
  const ModelKernel* kernel = model_kernel(plan.kernel);
  if (kernel == nullptr) {
    return Refusal{RefusalCode::no_kernel, "the plan's kernel is not among those of this build"};
  }
  kernel::BlackwellGemmParams blackwell;
  kernel::HopperGemmParams hopper;
  if (plan.blackwell) {
    blackwell = make_blackwell_params(plan, operands, encode_for_model);
  } else {
    hopper = make_params(plan, operands, workspace.data(), encode_for_model);
  }
  const void* params = plan.blackwell ? static_cast<const void*>(&blackwell) : &hopper;

  Allocations allocations;
  allocations.add(operands.d, "D", true);
  if (operands.beta != 0.0F) allocations.add(operands.c, "C");
  if (operands.alpha != 0.0F && plan.problem.k > 0) {
    allocations.add(operands.a, "A");
    allocations.add(operands.b, "B");
  }
  allocations.add(operands.bias, "bias");
  allocations.add(operands.scale_a, "scale_a");
  allocations.add(operands.scale_b, "scale_b");
  allocations.add(operands.scale_d, "scale_d");
  allocations.add(workspace.data(), plan.workspace_bytes, "workspace");
  const model::LaunchShape shape{
      .ctas = plan.ctas,
      .cluster_size = plan.cluster_ctas(),
      .threads = plan.threads(),
      .shared_bytes = plan.shared_bytes(),
      .registers_per_thread = plan.blackwell ? kernel::launch_registers(*plan.blackwell)
                                             : kernel::launch_registers(plan.config)};
  return run_on_model(shape, plan.device, options, allocations, [&] { kernel->run(params); });
}

}  // namespace warpwright::device
