// A kernel instance as the model runs it. Each instance is a translation unit of its own, made by
// the build from the tables in kernel/. Internal to device/.
#pragma once

// Defines what model.cpp looks up for the instance `tag` of the kernel template `Gemm`.
#define WW_DEFINE_MODEL_INSTANCE(Gemm, tag)                         \
  namespace warpwright::device {                                    \
  void run_##tag(const kernel::Gemm<kernel::tag>::Params& params);  \
  void run_##tag(const kernel::Gemm<kernel::tag>::Params& params) { \
    kernel::Gemm<kernel::tag>::run(params);                         \
  }                                                                 \
  }
