// Grouped products on both devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "warpwright/device/model.h"
#include "warpwright/plan/grouped.h"

namespace warpwright::device {

/// How a launch of a grouped product is made.
struct GroupedLaunchOptions {
  /// As LaunchOptions::dependent. The offsets may come from the kernel before.
  bool dependent = false;
  /// The kernel says in the first word of the workspace whether the offsets are in order (see
  /// offsets_fault). Costs nothing on the way of the tiles.
  bool check_offsets = false;
};

/// Loads the kernel of `plan` on the current CUDA device (see prepare_on_cuda).
[[nodiscard]] std::optional<Refusal> prepare_grouped_on_cuda(const GroupedPlan& plan);

/// Starts `plan` on `stream` (a cudaStream_t) of the current CUDA device and returns without
/// waiting: no allocation, no synchronisation, legal inside a graph capture, where the offsets may
/// differ from replay to replay. Operands and offsets are device pointers. `workspace`, of
/// plan.workspace_bytes and 16-byte aligned, is needed with `check_offsets`, and by plans with a
/// map a group (plan.map_ctas > 0), which then launch two kernels; it needs no preparation, and
/// launches that may run at the same time need one each.
[[nodiscard]] std::optional<Refusal> launch_grouped_on_cuda(
    const GroupedPlan& plan, const GroupedOperands& operands, void* workspace,
    std::int64_t workspace_bytes, void* stream, const GroupedLaunchOptions& options = {});

/// Runs `plan` on the model, with all checks (see launch_on_model). With `status` the kernel checks
/// the offsets and leaves there what offsets_fault reads.
Result<model::Report> launch_grouped_on_model(const GroupedPlan& plan,
                                              const GroupedOperands& operands,
                                              const ModelOptions& options = {},
                                              std::uint32_t* status = nullptr);

}  // namespace warpwright::device
