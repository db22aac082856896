// The recording of timelines in a build whose kernels record none. CMake takes this file instead of
// trace_cuda.cu.

#include "warpwright/device/trace_cuda.h"

namespace warpwright::device {

struct CudaTrace::State {};

bool built_with_trace() {
  return false;
}

CudaTrace::CudaTrace() = default;
CudaTrace::~CudaTrace() = default;

Result<std::shared_ptr<CudaTrace>> CudaTrace::start(const Plan& /*plan*/) {
  return refuse(RefusalCode::unsupported, "this build's kernels record no timeline; ",
                as_rule("those of a CUDA build with tracing do"));
}

Result<model::Trace> CudaTrace::finish() {
  return refuse(RefusalCode::unsupported, "nothing was recorded");
}

}  // namespace warpwright::device
