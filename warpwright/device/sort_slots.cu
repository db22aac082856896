// The sort of slots on a CUDA device: one launch of its kernel.
#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/sort_slots_params.h"

namespace warpwright::device {

std::optional<Refusal> sort_slots_on_cuda(const SlotSort& what, void* stream) {
  if (auto r = fault(what)) return r;
  int index = 0;
  int major = 0;
  if (auto r = cuda_refusal(cudaGetDevice(&index), "asking for the current device")) return r;
  if (auto r =
          cuda_refusal(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
                       "asking for the device's architecture")) {
    return r;
  }
  if (major < 9) {
    return refuse(RefusalCode::wrong_device, "CUDA device ", index, " is sm_", major * 10, "; ",
                  as_rule("slots are sorted on sm_90 and newer"));
  }
  const CudaKernel* kernel = nullptr;
  if (auto r = load_kernel(sort_slots_kernel, major * 10, kernel)) return r;
  kernel::SortSlotsParams p = sort_slots_params(what);
  CudaGrid grid;
  grid.function = kernel->function;
  grid.ctas = p.cluster;
  grid.threads = 32 * p.warps;
  grid.shared_bytes = kernel::sort_slots_shared_bytes(p.experts, p.warps, p.cluster);
  grid.cluster_size = p.cluster > 1 ? p.cluster : 0;
  grid.stream = static_cast<cudaStream_t>(stream);
  return cuda_refusal(start_grid(grid, &p), "sorting slots");
}

}  // namespace warpwright::device
