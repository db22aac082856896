// What cuda.cu and trace_cuda.cu look up for a kernel: its entry, where its bounded waits report
// and where it records. Each kernel is a translation unit of its own, made by the build from a
// table.
#pragma once

#include "warpwright/isa/bounded_wait.h"

// Defines them for the __global__ function template `entry` and the instance `tag`.
#define WW_DEFINE_INSTANCE(entry, tag)                                                       \
  namespace warpwright::device {                                                             \
  const void* entry_##tag() {                                                                \
    return reinterpret_cast<const void*>(&entry<kernel::tag>);                               \
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
