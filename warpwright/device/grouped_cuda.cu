// Grouped products on CUDA devices.
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "warpwright/device/built_instances.h"
#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/grouped.h"
#include "warpwright/device/grouped_params.h"

namespace warpwright::device {

#define WW_DECLARE(tag, ...) \
  const void* entry_##tag(); \
  cudaError_t watch_##tag(isa::WaitReport* report);
WW_BUILT_GROUPED(WW_DECLARE)
#undef WW_DECLARE

namespace {

using kernel::GroupMapsKernel;

__global__ void __launch_bounds__(GroupMapsKernel::threads)
    make_group_maps(const __grid_constant__ kernel::GroupMapsParams params) {
  GroupMapsKernel::run(params);
}

struct Entry {
  kernel::GemmConfig config;
  const void* (*function)();
  WatchWaits watch;
};

const Entry* entry_for(const kernel::GemmConfig& config) {
#define WW_ENTRY(tag, ...) Entry{kernel::tag::config, &entry_##tag, &watch_##tag},
  static const std::vector<Entry> table = {WW_BUILT_GROUPED(WW_ENTRY)};
#undef WW_ENTRY
  for (const Entry& e : table) {
    if (e.config == config) return &e;
  }
  return nullptr;
}

// A kernel that is loaded on a device.
struct Ready {
  int device = 0;
  kernel::GemmConfig config;
  const void* function = nullptr;
};

std::optional<Refusal> load(const GroupedPlan& plan, int device, Ready& ready) {
  const Entry* entry = entry_for(plan.config);
  if (entry == nullptr) {
    return Refusal{RefusalCode::no_kernel,
                   "this build has no kernels for sm_90; a build for 90a has them"};
  }
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (major != 9) {
    return Refusal{RefusalCode::wrong_device, "the kernel is for sm_90 (H100, H200); CUDA device " +
                                                  std::to_string(device) + " is sm_" +
                                                  std::to_string(major * 10)};
  }
  ready = {device, plan.config, entry->function()};
  const int bytes = kernel::smem_map(plan.config).bytes;
  cudaFuncAttributes attributes{};
  for (const cudaError_t error :
       {cudaFuncSetAttribute(ready.function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        cudaFuncSetAttribute(ready.function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
        cudaFuncGetAttributes(&attributes, ready.function), watch_waits(entry->watch)}) {
    if (error != cudaSuccess) return cuda_refusal(error, "loading the kernel " + plan.name());
  }
  if (kernel::has_group_maps(plan.config)) {
    const cudaError_t error = cudaFuncGetAttributes(&attributes, make_group_maps);
    if (error != cudaSuccess) return cuda_refusal(error, "loading the kernel that makes maps");
  }
  return std::nullopt;
}

// The kernel of `plan`, loaded on the current device. Every thread remembers its own, so that a
// launch takes no lock.
std::optional<Refusal> find_ready(const GroupedPlan& plan, Ready& ready) {
  thread_local std::vector<Ready> known;
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    return cuda_refusal(error, "asking for the CUDA device");
  }
  for (const Ready& r : known) {
    if (r.device == device && r.config == plan.config) {
      ready = r;
      return std::nullopt;
    }
  }
  if (auto r = load(plan, device, ready)) return r;
  known.push_back(ready);
  return std::nullopt;
}

// A kernel and its grid.
struct Grid {
  const void* function = nullptr;
  int ctas = 0;
  int threads = 0;
  int shared_bytes = 0;
  int cluster_size = 1;
  bool dependent = false;  // may start before the grid before it has ended
};

cudaError_t start(const Grid& grid, void* params, cudaStream_t stream) {
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (grid.cluster_size > 1) {
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
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  void* arguments[] = {params};
  return cudaLaunchKernelExC(&config, grid.function, arguments);
}

// Starts the kernel of the plan, behind the one that makes its maps where it has such.
std::optional<Refusal> start(const GroupedPlan& plan, const GroupedOperands& operands,
                             const Ready& ready, void* status, isa::TensorMap* maps,
                             cudaStream_t stream, bool dependent) {
  kernel::HopperGemmParams params =
      make_grouped_params(plan, operands, status, maps, encode_for_cuda);
  if (maps != nullptr) {
    kernel::GroupMapsParams making =
        make_group_maps_params(plan, operands, params, maps, encode_for_cuda);
    const cudaError_t error =
        start({reinterpret_cast<const void*>(&make_group_maps), plan.map_ctas,
               GroupMapsKernel::threads, GroupMapsKernel::shared_bytes, 1, dependent},
              &making, stream);
    if (error != cudaSuccess) return cuda_refusal(error, "launching the kernel that makes maps");
    // It ends behind what it waits for, so the product waits for that too. Only its end tells the
    // product that the maps are there; the start of the product hides behind it.
    dependent = true;
  }
  note_launch(plan.config);
  const cudaError_t error =
      start({ready.function, plan.ctas, kernel::threads(plan.config),
             kernel::smem_map(plan.config).bytes, atom::cluster_size(plan.cluster), dependent},
            &params, stream);
  if (error == cudaSuccess) return std::nullopt;
  return cuda_refusal(error, "launching " + plan.name());
}

}  // namespace

std::optional<Refusal> prepare_grouped_on_cuda(const GroupedPlan& plan) {
  if (plan.device.is_model)
    return Refusal{RefusalCode::wrong_device,
                   "the plan was made for the model; plan for this device"};
  if (plan.ctas == 0) return std::nullopt;
  Ready ready;
  return find_ready(plan, ready);
}

std::optional<Refusal> launch_grouped_on_cuda(const GroupedPlan& plan,
                                              const GroupedOperands& operands, void* workspace,
                                              std::int64_t workspace_bytes, void* stream,
                                              const GroupedLaunchOptions& options) {
  if (plan.device.is_model)
    return Refusal{RefusalCode::wrong_device,
                   "the plan was made for the model; plan for this device"};
  if (auto r = mismatch(plan, operands)) return r;
  const bool makes_maps = plan.map_ctas > 0;
  if (options.check_offsets || makes_maps) {
    if (workspace == nullptr || workspace_bytes < plan.workspace_bytes) {
      return Refusal{
          RefusalCode::bad_workspace,
          "the workspace has " + std::to_string(workspace == nullptr ? 0 : workspace_bytes) +
              " bytes; " +
              (makes_maps ? "the maps of the groups need " : "the check of the offsets needs ") +
              std::to_string(plan.workspace_bytes)};
    }
    if (reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0) {
      return Refusal{RefusalCode::bad_workspace,
                     "the address of the workspace must be a multiple of 16 bytes"};
    }
  }
  void* const status = options.check_offsets ? workspace : nullptr;
  auto* const in = static_cast<cudaStream_t>(stream);
  if (plan.ctas == 0) {
    if (status == nullptr) return std::nullopt;
    return cuda_refusal(cudaMemsetAsync(status, 0, sizeof(std::uint32_t), in),
                        "clearing the status of the offsets");
  }
  Ready ready;
  if (auto r = find_ready(plan, ready)) return r;
  try {
    isa::TensorMap* const maps = makes_maps ? group_maps_in(workspace) : nullptr;
    return start(plan, operands, ready, status, maps, in, options.dependent);
  } catch (const EncodeFailure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

}  // namespace warpwright::device
