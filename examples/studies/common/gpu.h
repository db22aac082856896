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

namespace study {

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

/// Launches `kernel` in clusters and waits for it.
template <class Params>
bool launch(void (*kernel)(Params), const Params& params, int ctas, int cluster, int threads,
            int shared_bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return !failed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      shared_bytes),
                 "cudaFuncSetAttribute") &&
         !failed(cudaLaunchKernelEx(&config, kernel, params), "launch") &&
         !failed(cudaDeviceSynchronize(), "the kernel");
}

}  // namespace study
