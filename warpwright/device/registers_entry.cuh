// The __global__ entry of a register GEMM, for the files that the build makes of
// cmake/cuda_chunk.cu.in.
#pragma once

#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/registers/gemm.h"

namespace warpwright::device {

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), Tag::config.ctas_per_sm)
    registers_gemm(const __grid_constant__ kernel::RegisterGemmParams params) {
  kernel::RegistersGemm<Tag>::run(params);
}

}  // namespace warpwright::device
