// What a file with entries of kernels tells device/ beside them: where the bounded waits of its
// kernels report, and where they record. Both are memory of the file's own module.
#pragma once

#include "warpwright/device/build.h"
#include "warpwright/device/cuda_kernels.h"
#include "warpwright/isa/bounded_wait.h"
#include "warpwright/isa/trace.h"

namespace warpwright::device {
namespace {

cudaError_t watch_this_file([[maybe_unused]] isa::WaitReport* report) {
  if constexpr (bounds_waits) return cudaMemcpyToSymbol(isa::wait_report, &report, sizeof report);
  return cudaSuccess;
}

[[maybe_unused]] cudaError_t record_into(const isa::TraceBuffer& buffer) {
  if constexpr (records_timelines) {
    return cudaMemcpyToSymbol(isa::trace_buffer, &buffer, sizeof buffer);
  }
  return cudaSuccess;
}
constexpr RecordInto record_this_file = records_timelines ? &record_into : nullptr;

}  // namespace
}  // namespace warpwright::device
