// Quantising, and scales put in order, on a CUDA device.
#include "warpwright/device/on_cuda.cuh"
#include "warpwright/device/quantise_by.h"

namespace warpwright::device {

std::optional<Refusal> quantise_on_cuda(const Quantisation& q, void* stream) {
  if (auto r = fault(q)) return r;
  OnCuda on(stream);
  quantise_by(q, on);
  return on.refusal("quantising x");
}

std::optional<Refusal> reorder_scales_on_cuda(const ScaleReordering& what, void* stream) {
  if (auto r = fault(what)) return r;
  OnCuda on(stream);
  reorder_by(what, on);
  return on.refusal("putting scales in order");
}

}  // namespace warpwright::device
