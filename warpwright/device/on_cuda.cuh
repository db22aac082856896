// Kernels beside those of the tables, which depend on no grid before: put on a stream one behind
// the other. Internal to device/, for its .cu files.
#pragma once

#include <string>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/isa/config.h"

namespace warpwright::device {

/// As many as the kernel asks for, and the target holds: ptxas refuses more.
template <class Kernel>
constexpr int ctas_an_sm() {
  constexpr int most = WW_THREADS_AN_SM / Kernel::threads;
  return Kernel::ctas_an_sm < most ? Kernel::ctas_an_sm : most;
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, ctas_an_sm<Kernel>())
    enter(const __grid_constant__ typename Kernel::Params params) {
  Kernel::run(params);
}

/// What is done to memory by quantise_by.h and its kind, here on a stream. After an error nothing
/// more is.
class OnCuda {
 public:
  explicit OnCuda(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  void fill(void* at, int byte, std::int64_t bytes) {
    note([&] { return cudaMemsetAsync(at, byte, static_cast<std::size_t>(bytes), stream_); });
  }
  /// A grid of at least a CTA.
  template <class Kernel>
  void run(int ctas, const typename Kernel::Params& params) {
    note([&] {
      enter<Kernel>
          <<<static_cast<unsigned>(ctas), Kernel::threads, Kernel::shared_bytes, stream_>>>(params);
      return cudaGetLastError();
    });
  }
  /// From the host, and to it: these wait.
  void write(void* to, const void* from, std::int64_t bytes) {
    copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  void read(const void* from, void* to, std::int64_t bytes) {
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }

  [[nodiscard]] std::optional<Refusal> refusal(const std::string& what) const {
    return cuda_refusal(error_, what);
  }

 private:
  template <class Do>
  void note(const Do& act) {
    if (error_ == cudaSuccess) error_ = act();
  }
  void copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind) {
    note([&] { return cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream_); });
    note([&] { return cudaStreamSynchronize(stream_); });
  }

  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace warpwright::device
