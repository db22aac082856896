// The probes of a build without code for sm_90: every device is refused. CMake takes this file
// instead of calibrate.cu.
#include "warpwright/device/calibrate.h"
#include "warpwright/device/cuda.h"

namespace warpwright::device {

Result<std::vector<MeasuredNumber>> measure_machine(int index, int /*rounds*/) {
  const auto facts = cuda_device(index);
  if (!facts) return facts.refusal();
  return *probes_fault(*facts);
}

}  // namespace warpwright::device
