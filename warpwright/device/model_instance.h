// A Hopper GEMM instance as the model runs it. Each instance is a translation unit of its own, made
// by the build from the tables in kernel/instances.h and grouped_instances.h.
#pragma once

#include "warpwright/kernel/grouped_instances.h"
#include "warpwright/kernel/hopper_gemm.h"
#include "warpwright/kernel/instances.h"

#define WW_DEFINE_MODEL_INSTANCE(tag)                         \
  namespace warpwright::device {                              \
  void run_##tag(const kernel::HopperGemmParams& params);     \
  void run_##tag(const kernel::HopperGemmParams& params) {    \
    kernel::HopperGemm<kernel::tag>::run(params);             \
  }                                                           \
  }
