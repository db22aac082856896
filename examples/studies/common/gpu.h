// What the studies' GPU programs share: errors, tensor maps from the driver, memory on the device.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <warpwright/isa/tma.h>
#include <warpwright/numeric/scalar.h>

namespace study {

using warpwright::numeric::bf16_t;

inline bool failed(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return false;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  return true;
}

/// A bf16 tensor as TMA sees it, innermost dimension first. Strides are bytes, one fewer.
struct DeviceTensor {
  void* base = nullptr;
  std::vector<cuuint64_t> extents;
  std::vector<cuuint64_t> strides;
  std::vector<cuuint32_t> box;
  bool swizzled = false;  ///< 128 bytes
};

/// The driver's map of it, without linking libcuda.
inline bool encode(warpwright::isa::TensorMap& map, const DeviceTensor& t) {
  void* pointer = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &pointer, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    std::printf("the driver has no tensor maps\n");
    return false;
  }
  const std::vector<cuuint32_t> steps(t.extents.size(), 1);
  CUtensorMap encoded;
  static_assert(sizeof encoded == sizeof map);
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(pointer)(
      &encoded, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(t.extents.size()), t.base,
      t.extents.data(), t.strides.data(), t.box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      t.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  std::memcpy(map.opaque, &encoded, sizeof map.opaque);
  if (result != CUDA_SUCCESS) std::printf("the driver refused a tensor map\n");
  return result == CUDA_SUCCESS;
}

/// The host's elements in memory of the device, or nullptr. The program ends with it.
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

/// Whole numbers from -3 to 3: every sum is exact in float32.
inline float whole(std::size_t i) {
  return static_cast<float>(i * 2654435761U % 7) - 3.0F;
}

/// D = A * B^T on the device: A is m x k and B n x k, rows one behind the other.
class DeviceProduct {
 public:
  DeviceProduct(int rows, int columns, int depth) : m(rows), n(columns), k(depth) {
    std::vector<bf16_t> values(std::size_t(m) * k);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bf16_t(whole(i));
    a = upload(values);
    values.resize(std::size_t(n) * k);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = bf16_t(whole(i + 5));
    b = upload(values);
    values.resize(std::size_t(m) * n);
    d = upload(values);
  }
  [[nodiscard]] bool ready() const { return a != nullptr && b != nullptr && d != nullptr; }

  /// The map of A or B in boxes of `box_rows` x 64, 128-byte swizzled.
  bool encode_operand(warpwright::isa::TensorMap& map, bf16_t* base, int rows,
                      unsigned box_rows) const {
    const auto depth = static_cast<cuuint64_t>(k);
    return encode(map, {base,
                        {depth, static_cast<cuuint64_t>(rows)},
                        {depth * sizeof(bf16_t)},
                        {64, box_rows},
                        true});
  }

  /// Compares D with sums in float64 and says so; the program's exit status. `by_columns`: D(i, j)
  /// lies at j * m + i.
  [[nodiscard]] int check(const char* device, bool by_columns) const {
    std::vector<bf16_t> got(std::size_t(m) * n);
    if (failed(cudaMemcpy(got.data(), d, got.size() * sizeof(bf16_t), cudaMemcpyDeviceToHost),
               "cudaMemcpy")) {
      return 1;
    }
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) {
          sum += double(whole(std::size_t(i) * k + l)) * double(whole(std::size_t(j) * k + l + 5));
        }
        const auto want = static_cast<float>(bf16_t(static_cast<float>(sum)));
        const auto is =
            static_cast<float>(got[by_columns ? std::size_t(j) * m + i : std::size_t(i) * n + j]);
        if (is == want) continue;
        std::printf("D(%d, %d) is %g, not %g\n", i, j, is, want);
        return 1;
      }
    }
    std::printf("all %d elements are right on %s\n", m * n, device);
    return 0;
  }

  int m, n, k;
  bf16_t* a = nullptr;
  bf16_t* b = nullptr;
  bf16_t* d = nullptr;
};

/// Puts `kernel` on the default stream, with one attribute.
template <class Params>
bool start(void (*kernel)(Params), const Params& params, cudaLaunchAttribute attribute, int ctas,
           int threads, int shared_bytes) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return !failed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      shared_bytes),
                 "cudaFuncSetAttribute") &&
         !failed(cudaLaunchKernelEx(&config, kernel, params), "launch");
}

/// Launches `kernel` in clusters and waits for it.
template <class Params>
bool launch(void (*kernel)(Params), const Params& params, int ctas, int cluster, int threads,
            int shared_bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  return start(kernel, params, attribute, ctas, threads, shared_bytes) &&
         !failed(cudaDeviceSynchronize(), "the kernel");
}

}  // namespace study
