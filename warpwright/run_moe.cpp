#include "warpwright/run_moe.h"

#include <string>
#include <utility>

#include "warpwright/run_parts.h"

namespace warpwright {
namespace {

// Starts a plan: `launch`, or what is below its check of the operands.
using StartMixture = std::optional<Refusal> (*)(const MixturePlan&, const MixtureOperands&,
                                                Workspace&, void*, const MixtureLaunchOptions&);

std::optional<Refusal> run_moe_by(StartMixture start, const MixturePlan& plan,
                                  const MixtureOperands& operands, const MixtureRunOptions& o) {
  const std::int64_t bytes = plan.problem.tokens() > 0 ? plan.workspace_bytes() : 0;
  return start_in_place({o.device, o.stream, o.workspace}, bytes > 0,
                        {.bytes = bytes, .flag_bytes = plan.flag_bytes()},
                        o.check_ids ? "check_ids" : nullptr, plan,
                        [&](Workspace& workspace) -> std::optional<Refusal> {
                          if (auto r = start(plan, operands, workspace, o.stream, o.launch)) {
                            return r;
                          }
                          return o.check_ids ? ids_fault(plan, workspace, o.stream) : std::nullopt;
                        });
}

}  // namespace

std::optional<Refusal> run_moe(const MixturePlan& plan, const MixtureOperands& operands,
                               const MixtureRunOptions& options) {
  if (auto r = mismatch(plan, options.choices)) return r;
  return run_moe_by(launch, plan, operands, options);
}

std::optional<Refusal> run_moe(const MixtureOperands& operands, const MixtureRunOptions& options,
                               std::shared_ptr<const MixturePlan>* made) {
  if (made != nullptr) made->reset();
  const auto problem = describe(operands);
  if (!problem) return problem.refusal();
  const auto device = device_key(options.device);
  if (!device) return device.refusal();
  MixturePlans::Key key{*problem, options.choices, *device};
  std::shared_ptr<const MixturePlan> plan = MixturePlans::of_process().find(key);
  if (plan == nullptr) {
    const auto facts = run_facts(options.device);
    if (!facts) return facts.refusal();
    auto fresh = plan_moe(*problem, **facts, options.choices);
    if (!fresh) return fresh.refusal();
    plan = std::make_shared<const MixturePlan>(std::move(*fresh));
    MixturePlans::of_process().keep(std::move(key), plan);
    if (made != nullptr) *made = plan;
  }
  return run_moe_by(device::launch_matched, *plan, operands, options);
}

Result<MixturePlan> run_moe_plan(const MixtureOperands& operands, const DeviceFacts& device,
                                 const MixtureChoices& choices) {
  const auto problem = describe(operands, has_memory(operands));
  if (!problem) return problem.refusal();
  return plan_moe(*problem, device, choices);
}

std::string plan_line(const MixturePlan& plan) {
  const std::string text = plan.explain();
  const std::string what = text.substr(0, text.find('\n'));
  if (plan.launches() == 0) return what + ": no launch";
  return what + ": " + plan.name() + ", " + std::to_string(plan.launches()) + " launches";
}

}  // namespace warpwright
