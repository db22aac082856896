#include "warpwright/device/cuda_kernels.h"

#include <algorithm>
#include <utility>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/kernel/check_rows.h"
#include "warpwright/kernel/copy_rows.h"
#include "warpwright/kernel/families.h"
#include "warpwright/kernel/moe/gate_rows.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/kernel/zero_rows.h"

namespace warpwright::device {
namespace {

__global__ void __launch_bounds__(kernel::ZeroRowsKernel::threads)
    zero_rows(const __grid_constant__ kernel::ZeroRowsParams params) {
  kernel::ZeroRowsKernel::run(params);
}

__global__ void __launch_bounds__(kernel::CheckRowsKernel::threads)
    check_rows(const __grid_constant__ kernel::CheckRowsParams params) {
  kernel::CheckRowsKernel::run(params);
}

__global__ void __launch_bounds__(kernel::CopyRowsKernel::threads,
                                  kernel::CopyRowsKernel::ctas_an_sm)
    copy_rows(const __grid_constant__ kernel::CopyRowsParams params) {
  kernel::CopyRowsKernel::run(params);
}

__global__ void __launch_bounds__(kernel::SortSlotsKernel::threads)
    sort_slots([[maybe_unused]] const __grid_constant__ kernel::SortSlotsParams params) {
#if WW_CLUSTERS  // in builds for targets before sm_90 nobody starts it
  kernel::SortSlotsKernel::run(params);
#endif
}

__global__ void __launch_bounds__(kernel::GatherRowsKernel::threads,
                                  kernel::GatherRowsKernel::ctas_an_sm)
    gather_rows([[maybe_unused]] const __grid_constant__ kernel::GatherRowsParams params) {
#if WW_CLUSTERS  // codes of e4m3 are of sm_89 and later
  kernel::GatherRowsKernel::run(params);
#endif
}

__global__ void __launch_bounds__(kernel::GateRowsKernel::threads,
                                  kernel::GateRowsKernel::ctas_an_sm)
    gate_rows([[maybe_unused]] const __grid_constant__ kernel::GateRowsParams params) {
#if WW_CLUSTERS  // as above
  kernel::GateRowsKernel::run(params);
#endif
}

__global__ void __launch_bounds__(kernel::SortGatherKernel::threads,
                                  kernel::SortGatherKernel::ctas_an_sm)
    sort_gather([[maybe_unused]] const __grid_constant__ kernel::SortGatherParams params) {
#if WW_CLUSTERS  // as above
  kernel::SortGatherKernel::run(params);
#endif
}

__global__ void __launch_bounds__(kernel::SumSlotsKernel::threads,
                                  kernel::SumSlotsKernel::ctas_an_sm)
    sum_slots([[maybe_unused]] const __grid_constant__ kernel::SumSlotsParams params) {
#if WW_CLUSTERS  // as all of a mixture
  kernel::SumSlotsKernel::run(params);
#endif
}

template <class Table, int... chunk>
void add_all(std::vector<CudaKernel>& all, std::integer_sequence<int, chunk...> /*chunks*/) {
  (add_cuda_kernels<Table, chunk>(all), ...);
}

// A kernel beside those of the tables.
template <class Kernel>
void add_one(std::vector<CudaKernel>& all, std::string_view name, int architecture,
             void (*entry)(typename Kernel::Params)) {
  all.push_back({name, 0, architecture, Kernel::threads, Kernel::shared_bytes,
                 reinterpret_cast<const void*>(entry), nullptr, nullptr});
}

// As -DWARPWRIGHT_CUDA_ARCHS= names code that a device of this architecture runs.
std::string build_word(int architecture) {
  for (const int known : {75, 80, 86, 89}) {
    if (architecture == known) return std::to_string(architecture);
  }
  for (const int known : {90, 100, 103, 120, 121}) {
    if (architecture == known) return std::to_string(architecture) + "a";
  }
  return "80-virtual";
}

Refusal no_code(int architecture) {
  return refuse(RefusalCode::no_kernel, "this build has no kernels for sm_", architecture, "; ",
                as_rule("a build for ", build_word(architecture), " has them"));
}

// For which architecture its code was compiled, which a device of `own` runs.
int code_of(const cudaFuncAttributes& function, int own) {
  const int code = function.ptxVersion;
  return code >= 70 && code < own ? code : own;
}

// Loads it on the current device, which is `device`.
std::optional<Refusal> load(const CudaKernel& kernel, int device) {
  int major = 0;
  int minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (kernel.major != 0 && major != kernel.major) {
    return refuse(RefusalCode::wrong_device, "the kernel is for sm_", kernel.major * 10, "; ",
                  as_rule("CUDA device ", device, " is sm_", major * 10));
  }
  cudaFuncAttributes attributes{};
  for (const cudaError_t error :
       {cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kernel.shared_bytes),
        cudaFuncSetAttribute(kernel.function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
        cudaFuncGetAttributes(&attributes, kernel.function), watch_waits(kernel.watch)}) {
    if (error == cudaErrorNoKernelImageForDevice) {
      cudaGetLastError();
      return no_code(major * 10 + minor);
    }
    if (error != cudaSuccess) {
      return cuda_refusal(error, "loading the kernel " + std::string(kernel.name));
    }
  }
  const int own = major * 10 + minor;
  const int code = code_of(attributes, own);
  if (code < kernel.architecture) {
    return refuse(RefusalCode::wrong_device, "the kernel ", kernel.name, " is for sm_",
                  kernel.architecture, " and newer, and CUDA device ", device,
                  " runs the code for sm_", code, " of this build; ",
                  as_rule("a build for ", build_word(own), " has it"));
  }
  return std::nullopt;
}

}  // namespace

const std::vector<CudaKernel>& cuda_kernels() {
  static const std::vector<CudaKernel> all = [] {
    std::vector<CudaKernel> found;
#define WW_ADD_ALL(Family, ...)  \
  add_all<kernel::Family##Rows>( \
      found, std::make_integer_sequence<int, WARPWRIGHT_##Family##_CUDA_CHUNKS>{});
    WW_FAMILIES(WW_ADD_ALL)
#undef WW_ADD_ALL
    // Behind the tables, the first of which tells how many clusters are resident.
    add_one<kernel::ZeroRowsKernel>(found, zero_rows_kernel, 0, &zero_rows);
    add_one<kernel::CheckRowsKernel>(found, check_rows_kernel, 0, &check_rows);
    add_one<kernel::CopyRowsKernel>(found, copy_rows_kernel, 0, &copy_rows);
    add_one<kernel::SortSlotsKernel>(found, sort_slots_kernel, 90, &sort_slots);
    add_one<kernel::GatherRowsKernel>(found, gather_rows_kernel, 90, &gather_rows);
    add_one<kernel::GateRowsKernel>(found, gate_rows_kernel, 90, &gate_rows);
    add_one<kernel::SortGatherKernel>(found, sort_gather_kernel, 90, &sort_gather);
    add_one<kernel::SumSlotsKernel>(found, sum_slots_kernel, 90, &sum_slots);
    if constexpr (WARPWRIGHT_Hopper_CUDA_CHUNKS > 0) add_layer_kernels(found);
    return found;
  }();
  return all;
}

const CudaKernel* cuda_kernel(std::string_view name) {
  const std::vector<CudaKernel>& all = cuda_kernels();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const CudaKernel& k) { return k.name == name; });
  return found == all.end() ? nullptr : &*found;
}

int code_architecture(int own) {
  cudaFuncAttributes attributes{};
  const void* const everywhere = cuda_kernel(zero_rows_kernel)->function;
  if (cudaFuncGetAttributes(&attributes, everywhere) != cudaSuccess) {
    cudaGetLastError();
    return own;
  }
  return code_of(attributes, own);
}

std::optional<Refusal> load_kernel(std::string_view name, int architecture,
                                   const CudaKernel*& loaded) {
  struct Loaded {
    int device;
    const CudaKernel* kernel;
  };
  thread_local std::vector<Loaded> known;
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    return cuda_refusal(error, "asking for the CUDA device");
  }
  for (const Loaded& l : known) {
    if (l.device == device && l.kernel->name == name) {
      loaded = l.kernel;
      return std::nullopt;
    }
  }
  loaded = cuda_kernel(name);
  if (loaded == nullptr) {
    if (architecture == 70) {
      return refuse(RefusalCode::no_kernel,
                    "nvcc 13 compiles nothing for sm_70, whose kernels only the model runs");
    }
    return no_code(architecture);
  }
  if (auto r = load(*loaded, device)) return r;
  known.push_back({device, loaded});
  return std::nullopt;
}

cudaError_t start_grid(const CudaGrid& grid, void* params) {
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (grid.cluster_size > 0) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = static_cast<unsigned>(grid.cluster_size);
    attributes[count].val.clusterDim.y = 1;
    attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (grid.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.ctas));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.shared_bytes);
  config.stream = grid.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  void* arguments[] = {params};
  return cudaLaunchKernelExC(&config, grid.function, arguments);
}

}  // namespace warpwright::device
