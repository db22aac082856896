// One call for a mixture of experts, as `run` (run.h) is one for a product: the plan that was made
// for such a mixture before, the memory of its stream, the launches.
#pragma once

#include "warpwright/device/moe.h"
#include "warpwright/run.h"

namespace warpwright {

/// Where and how a mixture runs.
struct MixtureRunOptions {
  int device = run_on_model;  ///< the index of a CUDA device, where the tensors lie, or the model
  void* stream = nullptr;     ///< of that device; null is the default stream
  /// Memory for the launch; null: what is kept for the stream, the same as for products.
  Workspace* workspace = nullptr;
  MixtureChoices choices = {};
  MixtureLaunchOptions launch = {};
  /// `run_moe` waits for the sort, and refuses ids out of range (bad_value) behind the launch,
  /// whose result leaves their slots out. Not in a graph capture.
  bool check_ids = false;
};

/// Carries out the mixture of `operands` (plan/moe/mixture.h). One that was seen before takes no
/// memory and does not wait, and may be captured into a graph. `made`, where not null, is set to
/// the plan if this call made it. For 0 tokens nothing is launched.
[[nodiscard]] std::optional<Refusal> run_moe(const MixtureOperands& operands,
                                             const MixtureRunOptions& options,
                                             std::shared_ptr<const MixturePlan>* made = nullptr);

/// The same by this plan, which was made for `options.device`. Choices beside it are refused where
/// the plan is not what they ask for.
[[nodiscard]] std::optional<Refusal> run_moe(const MixturePlan& plan,
                                             const MixtureOperands& operands,
                                             const MixtureRunOptions& options);

/// A plan as `run_moe` makes it. For operands of which one has no memory, addresses are not read.
Result<MixturePlan> run_moe_plan(const MixtureOperands& operands, const DeviceFacts& device,
                                 const MixtureChoices& choices = {});

/// "mixture: 9 tokens x 512, top-2 of 8 experts ...: KERNELS, 4 launches", for a log.
std::string plan_line(const MixturePlan& plan);

}  // namespace warpwright
