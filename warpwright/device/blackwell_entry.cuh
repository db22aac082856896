// The __global__ entry of a Blackwell GEMM, for the files that the build makes of
// cmake/cuda_chunk.cu.in.
#pragma once

#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/blackwell/gemm.h"

namespace warpwright::device {

constexpr int first_architecture(const kernel::BlackwellConfig& config) {
  return config.long_k ? 103 : 100;
}

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), 1)
    blackwell_gemm(const __grid_constant__ typename kernel::BlackwellGemm<Tag>::Params params) {
  kernel::BlackwellGemm<Tag>::run(params);
}

}  // namespace warpwright::device
