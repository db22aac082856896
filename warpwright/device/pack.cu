// Packing on a CUDA device.
#include "warpwright/device/on_cuda.cuh"
#include "warpwright/device/pack_by.h"

namespace warpwright::device {

std::optional<Refusal> pack_on_cuda(const PlainInt4& w, const PackedFormat& format, void* packed,
                                    void* stream) {
  OnCuda on(stream);
  const auto refused = pack_by(w, format, packed, on);
  if (auto failed = on.refusal("packing on the device")) return failed;
  return refused;
}

}  // namespace warpwright::device
