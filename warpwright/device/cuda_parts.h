// What launches on CUDA devices have in common. Internal to device/, for its .cu files.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "warpwright/device/cuda_kernels.h"
#include "warpwright/plan/families/family.h"

namespace warpwright::device {

/// Nothing, or for an error a refusal that says what failed.
[[nodiscard]] std::optional<Refusal> cuda_refusal(cudaError_t error, const std::string& what);

/// The driver has no encoder, or refuses a map.
struct EncodeFailure {
  std::string sentence;
};
/// Hands a kernel the memory in which its bounded waits report, in a build that has them.
cudaError_t watch_waits(WatchWaits watch);

}  // namespace warpwright::device
