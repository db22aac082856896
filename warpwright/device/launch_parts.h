// What `launch` is made of, and what it hands on by the kind of device. Internal to device/ and
// run.cpp.
#pragma once

#include "warpwright/device/launch.h"
#include "warpwright/device/moe.h"
#include "warpwright/plan/families/family.h"

namespace warpwright::device {

/// The ways of one kind of device.
struct Backend {
  std::optional<Refusal> (*launch)(const Plan& plan, const GemmOperands& operands,
                                   Workspace& workspace, void* stream,
                                   const LaunchOptions& options);
  std::optional<Refusal> (*prepare)(const Plan& plan, Workspace& workspace, void* stream);
  Result<std::shared_ptr<void>> (*allocate)(std::int64_t bytes);
  /// A word of the device's memory, behind all that `stream` has been given.
  Result<std::uint32_t> (*read_word)(const void* word, void* stream);
  /// The same of mixtures with tokens, in memory that has room for them; `clears` its flags first.
  std::optional<Refusal> (*launch_mixture)(const MixturePlan& plan, const MixtureOperands& operands,
                                           void* workspace, bool clears, void* stream,
                                           const MixtureLaunchOptions& options);
  std::optional<Refusal> (*prepare_mixture)(const MixturePlan& plan);
  /// Clears so many bytes of memory.
  std::optional<Refusal> (*clear)(void* memory, std::int64_t bytes, void* stream);
};

const Backend& cuda_backend();
/// The model's; null until `use_model` (warpwright/model.h) has set it.
const Backend*& model_backend();

/// That of a device, or why there is none.
Result<const Backend*> backend_for(const DeviceFacts& facts);

/// `launch` of operands that are known to be those of `plan`.
[[nodiscard]] std::optional<Refusal> launch_matched(const Plan& plan, const GemmOperands& operands,
                                                    Workspace& workspace, void* stream,
                                                    const LaunchOptions& options);

/// Can a launch of `plan` not do without a workspace?
bool needs_workspace(const Plan& plan, bool check_offsets);

/// For a launch with check_offsets, behind the flags: the word of the offsets, and two of the
/// numbers of tokens.
inline constexpr std::int64_t status_bytes = 12;

}  // namespace warpwright::device
