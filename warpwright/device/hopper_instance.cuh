// The __global__ entry of a Hopper GEMM instance. Each instance is a translation unit of its own,
// made by the build from the tables in kernel/instances.h and grouped_instances.h.
#pragma once

#include "warpwright/isa/bounded_wait.h"
#include "warpwright/kernel/grouped_instances.h"
#include "warpwright/kernel/hopper_gemm.h"
#include "warpwright/kernel/instances.h"

namespace warpwright::device {

template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config), 1)
    hopper_gemm(const __grid_constant__ kernel::HopperGemmParams params) {
  kernel::HopperGemm<Tag>::run(params);
}

}  // namespace warpwright::device

// Defines what cuda.cu looks up for this instance: the entry, and where its bounded waits report.
#define WW_DEFINE_HOPPER_INSTANCE(tag)                                                       \
  namespace warpwright::device {                                                             \
  const void* entry_##tag() {                                                                \
    return reinterpret_cast<const void*>(&hopper_gemm<kernel::tag>);                         \
  }                                                                                          \
  cudaError_t watch_##tag([[maybe_unused]] isa::WaitReport* report){WW_WATCH} WW_RECORD(tag) \
  }
#if WARPWRIGHT_DEBUG_WAITS
#define WW_WATCH return cudaMemcpyToSymbol(isa::wait_report, &report, sizeof report);
#else
#define WW_WATCH return cudaSuccess;
#endif
#if WARPWRIGHT_TRACE
#define WW_RECORD(tag)                                                    \
  cudaError_t record_##tag(isa::TraceBuffer buffer) {                     \
    return cudaMemcpyToSymbol(isa::trace_buffer, &buffer, sizeof buffer); \
  }
#else
#define WW_RECORD(tag)
#endif
