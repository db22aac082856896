// Memory of a GPU for what one command runs there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {

/// Memory of the current CUDA device. New memory is filled with 0xff: an element of the result that
/// nobody stores shows as NaN. All throw InputError.
class CudaMemory {
 public:
  device::CudaBuffer& make(std::int64_t bytes) {
    const auto buffer = device::CudaBuffer::make(bytes, 0xff);
    if (!buffer) throw InputError(buffer.refusal());
    buffers_.push_back(*buffer);
    return **buffer;
  }
  /// A copy of `bytes` of host memory.
  void* copy(const void* data, std::int64_t bytes) {
    device::CudaBuffer& buffer = make(bytes);
    require(buffer.from_host(data, bytes));
    return buffer.data();
  }

 private:
  std::vector<std::shared_ptr<device::CudaBuffer>> buffers_;
};

/// Waits for the device; a kernel that failed is a RunError.
inline void wait_for_device() {
  if (const auto failure = device::synchronise_cuda()) throw RunError(*failure);
}

}  // namespace warpwright::cli
