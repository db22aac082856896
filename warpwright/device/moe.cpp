#include "warpwright/device/moe.h"

#include <cstddef>

#include "warpwright/device/cuda.h"
#include "warpwright/device/launch_parts.h"

namespace warpwright {

Result<Workspace> make_workspace(const MixturePlan& plan) {
  const auto backend = device::backend_for(plan.device);
  if (!backend) return backend.refusal();
  return Workspace::of(*backend, plan.workspace_bytes());
}

std::optional<Refusal> launch(const MixturePlan& plan, const MixtureOperands& operands,
                              Workspace& workspace, void* stream,
                              const MixtureLaunchOptions& options) {
  if (const auto backend = device::backend_for(plan.device); !backend) return backend.refusal();
  if (auto r = mismatch(plan, operands)) return r;
  return device::launch_matched(plan, operands, workspace, stream, options);
}

std::optional<Refusal> device::launch_matched(const MixturePlan& plan,
                                              const MixtureOperands& operands, Workspace& workspace,
                                              void* stream, const MixtureLaunchOptions& options) {
  const auto backend = backend_for(plan.device);
  if (!backend) return backend.refusal();
  if (plan.problem.tokens() == 0) return std::nullopt;
  if (options.only && (plan.device.is_model || !plan.takes(*options.only))) {
    return refuse(RefusalCode::bad_choice, "the step ", name(*options.only),
                  " is asked for by itself; ",
                  as_rule("a GPU launches by itself only a step that the plan takes"));
  }
  if (auto r = workspace.fault(plan.workspace_bytes(), plan.flag_bytes())) return r;
  const bool captured = !plan.device.is_model && is_captured(stream);
  const bool clears =
      workspace.note_launch(plan.flag_bytes(), captured) == Workspace::Flags::clear_first;
  auto refused =
      (*backend)->launch_mixture(plan, operands, workspace.data(), clears, stream, options);
  if (refused) workspace.forget();
  return refused;
}

Result<std::uint32_t> ids_status(const MixturePlan& plan, const Workspace& workspace,
                                 void* stream) {
  const auto backend = device::backend_for(plan.device);
  if (!backend) return backend.refusal();
  if (plan.problem.tokens() == 0 || !plan.problem.is_routed()) return std::uint32_t{0};
  if (auto r = workspace.fault(plan.workspace_bytes(), plan.flag_bytes())) return *r;
  return (*backend)->read_word(
      static_cast<const std::byte*>(workspace.data()) + plan.layout[MixturePart::status].at,
      stream);
}

std::optional<Refusal> ids_fault(const MixturePlan& plan, const Workspace& workspace,
                                 void* stream) {
  const auto status = ids_status(plan, workspace, stream);
  if (!status) return status.refusal();
  const auto sentence = ids_fault(*status);
  if (!sentence) return std::nullopt;
  return refuse(RefusalCode::bad_value, *sentence);
}

std::optional<Refusal> prepare(const MixturePlan& plan) {
  const auto backend = device::backend_for(plan.device);
  if (!backend) return backend.refusal();
  return plan.problem.tokens() == 0 ? std::nullopt : (*backend)->prepare_mixture(plan);
}

std::optional<Refusal> prepare(const MixturePlan& plan, Workspace& workspace, void* stream) {
  if (auto r = prepare(plan)) return r;
  if (plan.problem.tokens() == 0 || plan.flag_bytes() == 0) return std::nullopt;
  if (auto r = workspace.fault(plan.workspace_bytes(), plan.flag_bytes())) return r;
  const auto backend = device::backend_for(plan.device);
  if (auto r = (*backend)->clear(workspace.data(), plan.flag_bytes(), stream)) return r;
  const bool captured = !plan.device.is_model && device::is_captured(stream);
  if (!captured) workspace.note_cleared(plan.flag_bytes());
  return std::nullopt;
}

}  // namespace warpwright
