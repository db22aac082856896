// What launches on CUDA devices have in common. Internal to device/, for its .cu files.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "warpwright/device/cuda_kernels.h"
#include "warpwright/device/params.h"

namespace warpwright::device {

/// Nothing, or for an error a refusal that says what failed.
[[nodiscard]] std::optional<Refusal> cuda_refusal(cudaError_t error, const std::string& what);

struct EncodeFailure {
  std::string sentence;
};
/// A tensor map by the driver's encoder. Throws EncodeFailure.
isa::TensorMap encode_for_cuda(const MapRequest& request);

/// Hands a kernel the memory in which its bounded waits report, in a build that has them.
cudaError_t watch_waits(WatchWaits watch);

/// Remembers what this thread launched last, to name the part that a hanging warp plays.
void note_launch(const kernel::GemmConfig& config);

}  // namespace warpwright::device
