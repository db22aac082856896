// The __global__ entry of a Blackwell GEMM instance. The table of instances is for the includer.
#pragma once

#include "warpwright/device/instance.cuh"
#include "warpwright/kernel/blackwell_gemm.h"

namespace warpwright::device {

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), 1)
    blackwell_gemm(const __grid_constant__ kernel::BlackwellGemmParams params) {
  kernel::BlackwellGemm<Tag>::run(params);
}

}  // namespace warpwright::device

#define WW_DEFINE_BLACKWELL_INSTANCE(tag) WW_DEFINE_INSTANCE(blackwell_gemm, tag)
