// The sort of slots on a CUDA device: one launch of its kernel, or three.
#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/sort_slots_params.h"

namespace warpwright::device {

std::optional<Refusal> sort_slots_on_cuda(const SlotSort& what, void* stream) {
  if (auto r = fault(what)) return r;
  const CudaKernel* kernel = nullptr;
  if (auto r = load_kernel(sort_slots_kernel, 90, kernel)) return r;  // refuses code before sm_90
  using kernel::SortSlotsKernel;
  const kernel::SortSlotsParams all = sort_slots_params(what);
  for (int i = 0; i < SortSlotsKernel::launches(all); ++i) {
    kernel::SortSlotsParams p = SortSlotsKernel::launch(all, i);
    CudaGrid grid;
    grid.function = kernel->function;
    grid.ctas = SortSlotsKernel::ctas(p, 0);
    grid.threads = 32 * p.warps;
    grid.shared_bytes = SortSlotsKernel::shared_bytes_of(p);
    grid.cluster_size = p.cluster > 1 ? p.cluster : 0;
    grid.dependent = i > 0;
    grid.stream = static_cast<cudaStream_t>(stream);
    if (auto r = cuda_refusal(start_grid(grid, &p), "sorting slots")) return r;
  }
  return std::nullopt;
}

}  // namespace warpwright::device
