// Packing on a CUDA device.
#include "warpwright/device/cuda.h"
#include "warpwright/device/on_cuda.cuh"
#include "warpwright/device/pack_by.h"

namespace warpwright::device {

Result<WeightsThere> look_on_cuda(weights::Source source, const weights::PackOptions& options,
                                  void* stream) {
  const auto notes = CudaBuffer::make(sizeof(kernel::PackingNotes));
  if (!notes) return notes.refusal();
  OnCuda on(stream);
  auto seen =
      look_by(std::move(source), options, static_cast<kernel::PackingNotes*>((*notes)->data()), on);
  if (auto failed = on.refusal("looking at weights on the device")) return *failed;
  return seen;
}

std::optional<Refusal> pack_on_cuda(const WeightsThere& w, void* packed, void* stream) {
  OnCuda on(stream);
  const auto refused = pack_by(w, packed, on);
  if (auto failed = on.refusal("packing on the device")) return failed;
  return refused;
}

}  // namespace warpwright::device
