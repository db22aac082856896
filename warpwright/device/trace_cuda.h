// Timelines of kernels on a CUDA device. Recording is compiled in with WARPWRIGHT_TRACE; in other
// builds every function is there and says so.
#pragma once

#include <memory>

#include "warpwright/model/report/trace.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// Were the kernels built to record timelines?
bool built_with_trace();

/// A recording on the current CUDA device: launches of the plan's kernel between `start` and
/// `finish` write their events. Each warp of each CTA has a ring of isa::trace_ring_records events;
/// the oldest are dropped and counted.
class CudaTrace {
 public:
  static Result<std::shared_ptr<CudaTrace>> start(const Plan& plan);
  /// Waits for the device, stops the recording and reads it. Once.
  Result<model::Trace> finish();

  CudaTrace();
  ~CudaTrace();
  CudaTrace(const CudaTrace&) = delete;
  CudaTrace& operator=(const CudaTrace&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpwright::device
