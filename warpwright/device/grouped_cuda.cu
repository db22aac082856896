// Grouped products on CUDA devices.
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/grouped.h"
#include "warpwright/device/grouped_params.h"

namespace warpwright::device {

namespace {

using kernel::GroupMapsKernel;

__global__ void __launch_bounds__(GroupMapsKernel::threads)
    make_group_maps(const __grid_constant__ kernel::GroupMapsParams params) {
  GroupMapsKernel::run(params);
}

// The kernel of `plan`, and the one that makes its maps where it has such, loaded on the current
// device.
std::optional<Refusal> load(const GroupedPlan& plan, const CudaKernel*& ready) {
  if (auto r = load_kernel(plan.kernel, 9, ready)) return r;
  thread_local int maps_are_on = -1;
  int device = 0;
  cudaGetDevice(&device);
  if (!kernel::has_group_maps(plan.config) || maps_are_on == device) return std::nullopt;
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, make_group_maps);
  if (error != cudaSuccess) return cuda_refusal(error, "loading the kernel that makes maps");
  maps_are_on = device;
  return std::nullopt;
}

// Starts the kernel of the plan, behind the one that makes its maps where it has such.
std::optional<Refusal> start(const GroupedPlan& plan, const GroupedOperands& operands,
                             const CudaKernel& ready, void* status, isa::TensorMap* maps,
                             cudaStream_t stream, bool dependent) {
  kernel::HopperGemmParams params =
      make_grouped_params(plan, operands, status, maps, encode_for_cuda);
  if (maps != nullptr) {
    kernel::GroupMapsParams making =
        make_group_maps_params(plan, operands, params, maps, encode_for_cuda);
    const cudaError_t error =
        start_grid({reinterpret_cast<const void*>(&make_group_maps), plan.map_ctas,
                    GroupMapsKernel::threads, GroupMapsKernel::shared_bytes, 1, dependent, stream},
                   &making);
    if (error != cudaSuccess) return cuda_refusal(error, "launching the kernel that makes maps");
    // It ends behind what it waits for, so the product waits for that too. Only its end tells the
    // product that the maps are there; the start of the product hides behind it.
    dependent = true;
  }
  note_launch(plan.config);
  const cudaError_t error = start_grid(
      {ready.function, plan.ctas, kernel::threads(plan.config), kernel::smem_map(plan.config).bytes,
       atom::cluster_size(plan.cluster), dependent, stream},
      &params);
  if (error == cudaSuccess) return std::nullopt;
  return cuda_refusal(error, "launching " + plan.name());
}

}  // namespace

std::optional<Refusal> prepare_grouped_on_cuda(const GroupedPlan& plan) {
  if (plan.device.is_model)
    return Refusal{RefusalCode::wrong_device,
                   "the plan was made for the model; plan for this device"};
  if (plan.ctas == 0) return std::nullopt;
  const CudaKernel* ready = nullptr;
  return load(plan, ready);
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
  const CudaKernel* ready = nullptr;
  if (auto r = load(plan, ready)) return r;
  try {
    isa::TensorMap* const maps = makes_maps ? group_maps_in(workspace) : nullptr;
    return start(plan, operands, *ready, status, maps, in, options.dependent);
  } catch (const EncodeFailure& failure) {
    return Refusal{RefusalCode::device_error, failure.sentence};
  }
}

}  // namespace warpwright::device
