// CUDA GPUs as devices. In a build without the CUDA side every function is there and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpwright/device/launch.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// Was the CUDA side built?
bool built_with_cuda();

/// The CUDA devices of this machine with what the runtime says of them; none where there is no
/// driver or no device.
std::vector<DeviceFacts> cuda_devices();

/// One of them by its index; refuses with a sentence when it is not there.
Result<DeviceFacts> cuda_device(int index);

/// Waits for the current device. A kernel that failed comes back as a sentence; with bounded waits
/// (WARPWRIGHT_DEBUG_WAITS) a kernel that hung says who waited on what.
[[nodiscard]] std::optional<Refusal> synchronise_cuda();

/// Makes `index` the current CUDA device of this thread.
[[nodiscard]] std::optional<Refusal> use_cuda_device(int index);

/// The current CUDA device of this thread; -1 where there is none.
int current_cuda_device();

/// Why launches for device `index` cannot go to `stream` (a cudaStream_t), or nothing. The default
/// streams are of every device. Not for a stream that is captured: to be asked ends its capture.
[[nodiscard]] std::optional<Refusal> stream_fault(void* stream, int index);

/// Does what is put on `stream` become a graph?
bool is_captured(void* stream);

/// Waits for `stream`.
[[nodiscard]] std::optional<Refusal> synchronise_stream(void* stream);

/// Copies from the memory of a CUDA device, and waits.
[[nodiscard]] std::optional<Refusal> copy_to_host(void* to, const void* from, std::int64_t bytes);

/// Memory of the current CUDA device.
class CudaBuffer {
 public:
  CudaBuffer() = default;
  CudaBuffer(CudaBuffer&& other) noexcept;
  CudaBuffer& operator=(CudaBuffer&& other) noexcept;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  ~CudaBuffer();  // NOLINT(performance-trivially-destructible): only of a build without CUDA

  /// `bytes` of device memory, filled with `poison` when this returns; out of memory is a refusal
  /// that says how much is free.
  static Result<std::shared_ptr<CudaBuffer>> make(std::int64_t bytes, int poison = 0xff);
  /// All of it, when this returns.
  [[nodiscard]] std::optional<Refusal> fill(int byte);
  [[nodiscard]] std::optional<Refusal> from_host(const void* data, std::int64_t bytes);
  [[nodiscard]] std::optional<Refusal> to_host(void* data, std::int64_t bytes) const;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace warpwright::device
