// The __global__ entry of a register GEMM, for the files that the build makes of
// cmake/cuda_chunk.cu.in.
#pragma once

#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/registers/gemm.h"

namespace warpwright::device {

/// N of the sm_N that is compiled for; on the host any that has kernels.
#if defined(__CUDA_ARCH__)
inline constexpr int compiled_target = __CUDA_ARCH__ / 10;
#else
inline constexpr int compiled_target = 90;
#endif

/// In a build for several targets kernels that one of them lacks are empty there: no plan has them.
template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), Tag::config.ctas_per_sm)
    registers_gemm(const __grid_constant__ typename kernel::RegistersGemm<Tag>::Params params) {
  if constexpr (kernel::config_fault(Tag::config, compiled_target) == nullptr) {
    kernel::RegistersGemm<Tag>::run(params);
  }
}

}  // namespace warpwright::device
