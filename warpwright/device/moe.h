// Running a mixture of experts.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/device/launch.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

/// How a mixture is launched.
struct MixtureLaunchOptions {
  /// The first grid may start while what is before it in the stream still runs (see LaunchOptions).
  bool dependent = false;
  /// Only this step, over what the launch before has left in the workspace: to time it. On a GPU.
  std::optional<MixtureStep> only = {};
};

/// Memory of its own for launches of `plan`, on the current CUDA device or for the model.
Result<Workspace> make_workspace(const MixturePlan& plan);

/// Runs `plan` where it was made for, as `launch` of a product does: grids that depend on each
/// other, no memory taken, nothing read by the host, legal in a graph capture. `workspace`, of
/// plan.workspace_bytes() at least, may be of any content and serves one launch at a time: flags of
/// a layer in one launch are cleared where the workspace does not know them to be 0, in a capture
/// by a node of the graph. For 0 tokens nothing is launched. On the model all grids run with all
/// checks.
[[nodiscard]] std::optional<Refusal> launch(const MixturePlan& plan,
                                            const MixtureOperands& operands, Workspace& workspace,
                                            void* stream, const MixtureLaunchOptions& options = {});

/// What the last launch of `plan` in `workspace` says of its ids: 0, or what `ids_fault` makes a
/// sentence of. Waits for `stream`, so not in a graph capture.
Result<std::uint32_t> ids_status(const MixturePlan& plan, const Workspace& workspace, void* stream);

/// The same as a refusal (bad_value); nothing where all ids were in range.
[[nodiscard]] std::optional<Refusal> ids_fault(const MixturePlan& plan, const Workspace& workspace,
                                               void* stream);

/// Loads the kernels of `plan` on the current CUDA device, so that the first launch may already be
/// inside a graph capture. Does nothing for plans of the model.
[[nodiscard]] std::optional<Refusal> prepare(const MixturePlan& plan);
/// The same, and clears the flags of `workspace` on `stream`, where the plan has some: a capture
/// behind it needs no node for that.
[[nodiscard]] std::optional<Refusal> prepare(const MixturePlan& plan, Workspace& workspace,
                                             void* stream);

namespace device {

/// `launch` of operands that are known to be those of `plan`.
[[nodiscard]] std::optional<Refusal> launch_matched(const MixturePlan& plan,
                                                    const MixtureOperands& operands,
                                                    Workspace& workspace, void* stream,
                                                    const MixtureLaunchOptions& options);

}  // namespace device
}  // namespace warpwright
