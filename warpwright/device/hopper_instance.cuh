// The __global__ entry of a Hopper GEMM instance. The tables of instances are for the includer.
#pragma once

#include "warpwright/device/instance.cuh"
#include "warpwright/kernel/hopper_gemm.h"

namespace warpwright::device {

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), Tag::config.ctas_per_sm)
    hopper_gemm(const __grid_constant__ kernel::HopperGemmParams params) {
  kernel::HopperGemm<Tag>::run(params);
}

}  // namespace warpwright::device

#define WW_DEFINE_HOPPER_INSTANCE(tag) WW_DEFINE_INSTANCE(hopper_gemm, tag)
