// The __global__ entry of a register GEMM, for the files that the build makes of
// cmake/cuda_chunk.cu.in.
#pragma once

#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/registers/gemm.h"

namespace warpwright::device {

constexpr int first_architecture(const kernel::RegisterConfig& c) {
  return kernel::first_target(c);
}

/// Is the kernel one for the target that is being compiled for?
template <class Tag>
constexpr bool is_for_this_target() {
#if defined(__CUDA_ARCH__)
  return kernel::config_fault(Tag::config, __CUDA_ARCH__ / 10) == nullptr;
#else
  return true;
#endif
}

/// In a build for several targets, those that lack what it is made of have it without a body: plans
/// do not choose it there.
template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), Tag::config.ctas_per_sm)
    registers_gemm([[maybe_unused]] const __grid_constant__
                   typename kernel::RegistersGemm<Tag>::Params params) {
  if constexpr (is_for_this_target<Tag>()) kernel::RegistersGemm<Tag>::run(params);
}

}  // namespace warpwright::device
