// The __global__ entry of a Hopper GEMM, for the files that the build makes of
// cmake/cuda_chunk.cu.in.
#pragma once

#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/hopper/gemm.h"

namespace warpwright::device {

constexpr int first_architecture(const kernel::GemmConfig& /*config*/) {
  return 90;
}

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), Tag::config.ctas_per_sm)
    hopper_gemm(const __grid_constant__ typename kernel::HopperGemm<Tag>::Params params) {
  kernel::HopperGemm<Tag>::run(params);
}

}  // namespace warpwright::device
