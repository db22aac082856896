// What a file with entries of kernels tells device/ beside them: where the bounded waits of its
// kernels report, and where they record. Both are memory of the file's own module.
#pragma once

#include "warpwright/device/cuda_kernels.h"
#include "warpwright/isa/bounded_wait.h"
#include "warpwright/isa/trace.h"

namespace warpwright::device {
namespace {

cudaError_t watch_this_file([[maybe_unused]] isa::WaitReport* report) {
#if WARPWRIGHT_DEBUG_WAITS
  return cudaMemcpyToSymbol(isa::wait_report, &report, sizeof report);
#else
  return cudaSuccess;
#endif
}

#if WARPWRIGHT_TRACE
cudaError_t record_into(const isa::TraceBuffer& buffer) {
  return cudaMemcpyToSymbol(isa::trace_buffer, &buffer, sizeof buffer);
}
constexpr RecordInto record_this_file = &record_into;
#else
constexpr RecordInto record_this_file = nullptr;
#endif

}  // namespace
}  // namespace warpwright::device
