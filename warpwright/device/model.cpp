#include "warpwright/device/model.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "warpwright/device/model_parts.h"
#include "warpwright/device/params.h"
#include "warpwright/kernel/blackwell_instances.h"
#include "warpwright/kernel/instances.h"

namespace warpwright::device {

// Each is defined in a translation unit of its own, which the build makes (model_instance.h).
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::HopperGemmParams& params);
WW_HOPPER_GEMM_INSTANCES(WW_DECLARE)
#undef WW_DECLARE
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::BlackwellGemmParams& params);
WW_BLACKWELL_GEMM_INSTANCES(WW_DECLARE)
#undef WW_DECLARE

namespace {

template <class Params>
using Body = void (*)(const Params&);

#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &run_##tag;
Body<kernel::HopperGemmParams> body_for(const kernel::GemmConfig& config) {
  WW_HOPPER_GEMM_INSTANCES(WW_BODY)
  return nullptr;
}
Body<kernel::BlackwellGemmParams> body_for(const kernel::BlackwellConfig& config) {
  WW_BLACKWELL_GEMM_INSTANCES(WW_BODY)
  return nullptr;
}
#undef WW_BODY

// What is launched: a kernel with its parameters, and the registers of its threads.
struct Kernel {
  std::function<void()> body;
  int registers = 0;
};

template <class Config, class Params>
std::optional<Kernel> kernel_of(const Config& config, const Params& params) {
  const Body<Params> body = body_for(config);
  if (body == nullptr) return std::nullopt;
  return Kernel{[body, params] { body(params); }, kernel::launch_registers(config)};
}

}  // namespace

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
  const std::optional<Kernel> kernel =
      plan.blackwell
          ? kernel_of(*plan.blackwell, make_blackwell_params(plan, operands, encode_for_model))
          : kernel_of(plan.config, make_params(plan, operands, workspace.data(), encode_for_model));
  if (!kernel)
    return Refusal{RefusalCode::no_kernel, "the plan's configuration is not among the kernels"};

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
  const model::LaunchShape shape{.ctas = plan.ctas,
                                 .cluster_size = plan.cluster_ctas(),
                                 .threads = plan.threads(),
                                 .shared_bytes = plan.shared_bytes(),
                                 .registers_per_thread = kernel->registers};
  return run_on_model(shape, plan.device, options, allocations, kernel->body);
}

}  // namespace warpwright::device
