// The kernel on a GPU: one launch, checked against plain loops. The kernel itself is the header's,
// the same lines that the unit tests run on the machine model.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

#include <warpwright/numeric/scalar.h>

#include "linear_relu.h"

using warpwright::numeric::bf16_t;
using Kernel = own::LinearRelu<>;

__global__ void __launch_bounds__(Kernel::threads)
    linear_relu(const __grid_constant__ own::LinearParams params) {
  Kernel::run(params);
}

namespace {

bool failed(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return false;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  return true;
}

// The driver's description of a row-major bf16 matrix in 64 x 64 boxes, without linking libcuda.
bool encode(warpwright::isa::TensorMap& map, void* base, int rows, int columns) {
  void* pointer = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &pointer, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    std::printf("the driver has no tensor maps\n");
    return false;
  }
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns) * sizeof(bf16_t)};
  const cuuint32_t box[] = {Kernel::side, Kernel::side};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap encoded;
  static_assert(sizeof encoded == sizeof map);
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(pointer)(
      &encoded, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, base, extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  std::memcpy(map.opaque, &encoded, sizeof map.opaque);
  if (result != CUDA_SUCCESS) std::printf("the driver refused a tensor map\n");
  return result == CUDA_SUCCESS;
}

template <class T>
T* upload(const std::vector<T>& host) {
  void* device = nullptr;
  if (failed(cudaMalloc(&device, host.size() * sizeof(T)), "cudaMalloc") ||
      failed(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice),
             "cudaMemcpy")) {
    return nullptr;
  }
  return static_cast<T*>(device);
}

}  // namespace

int main() {
  constexpr int m = 1000;
  constexpr int n = 520;
  constexpr int k = 776;
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("skipped: no device of compute capability 9.0 here\n");
    return 77;
  }
  std::vector<bf16_t> x(std::size_t{m} * k);
  std::vector<bf16_t> w(std::size_t{n} * k);
  std::vector<bf16_t> y(std::size_t{m} * n);
  std::vector<float> bias(n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_t(static_cast<int>(i % 7) - 3);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = bf16_t(static_cast<int>(i % 5) - 2);
  for (int i = 0; i < n; ++i) bias[i] = static_cast<float>(i % 9 - 4);

  bf16_t* const device_x = upload(x);
  bf16_t* const device_w = upload(w);
  bf16_t* const device_y = upload(y);
  own::LinearParams p;
  p.bias = upload(bias);
  p.n = n;
  p.k = k;
  if (device_x == nullptr || device_w == nullptr || device_y == nullptr || p.bias == nullptr ||
      !encode(p.x, device_x, m, k) || !encode(p.w, device_w, n, k) ||
      !encode(p.y, device_y, m, n)) {
    return 1;
  }
  // Tiles start where the swizzle repeats: the kernel's shared memory is aligned to 1024 bytes.
  if (failed(cudaFuncSetAttribute(linear_relu, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  Kernel::shared_bytes),
             "cudaFuncSetAttribute")) {
    return 1;
  }
  const auto tiles = [](int extent) { return (extent + Kernel::side - 1) / Kernel::side; };
  linear_relu<<<tiles(m) * tiles(n), Kernel::threads, Kernel::shared_bytes>>>(p);
  if (failed(cudaGetLastError(), "launch") || failed(cudaDeviceSynchronize(), "the kernel") ||
      failed(cudaMemcpy(y.data(), device_y, y.size() * sizeof(bf16_t), cudaMemcpyDeviceToHost),
             "cudaMemcpy")) {
    return 1;
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float want = bias[j];
      for (int l = 0; l < k; ++l) {
        want += static_cast<float>((i * k + l) % 7 - 3) * static_cast<float>((j * k + l) % 5 - 2);
      }
      want = static_cast<float>(bf16_t(want > 0.0F ? want : 0.0F));
      const auto got = static_cast<float>(y[static_cast<std::size_t>(i) * n + j]);
      if (got != want) {
        std::printf("y[%d,%d] is %g, not %g\n", i, j, got, want);
        return 1;
      }
    }
  }
  std::printf("all %d elements are right on %s\n", m * n, device.name);
  return 0;
}
