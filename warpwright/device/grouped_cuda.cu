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
    return Refusal{
        "this build has no kernels for sm_90; configure it with -DWARPWRIGHT_CUDA_ARCHS=90a"};
  }
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (major != 9) {
    return Refusal{"the kernel is for sm_90 (H100, H200); CUDA device " + std::to_string(device) +
                   " is sm_" + std::to_string(major * 10)};
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

std::optional<Refusal> start(const GroupedPlan& plan, const Ready& ready,
                             kernel::HopperGemmParams& params, cudaStream_t stream,
                             bool dependent) {
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  const auto size = static_cast<unsigned>(atom::cluster_size(plan.cluster));
  if (size > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = size;
    attributes[count].val.clusterDim.y = 1;
    attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(plan.ctas));
  config.blockDim = dim3(static_cast<unsigned>(kernel::threads(plan.config)));
  config.dynamicSmemBytes = static_cast<std::size_t>(kernel::smem_map(plan.config).bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  note_launch(plan.config);
  void* arguments[] = {&params};
  const cudaError_t error = cudaLaunchKernelExC(&config, ready.function, arguments);
  if (error == cudaSuccess) return std::nullopt;
  return cuda_refusal(error, "launching " + plan.name());
}

}  // namespace

std::optional<Refusal> prepare_grouped_on_cuda(const GroupedPlan& plan) {
  if (plan.device.is_model) return Refusal{"the plan was made for the model; plan for this device"};
  if (plan.ctas == 0) return std::nullopt;
  Ready ready;
  return find_ready(plan, ready);
}

std::optional<Refusal> launch_grouped_on_cuda(const GroupedPlan& plan,
                                              const GroupedOperands& operands, void* workspace,
                                              std::int64_t workspace_bytes, void* stream,
                                              const GroupedLaunchOptions& options) {
  if (plan.device.is_model) return Refusal{"the plan was made for the model; plan for this device"};
  if (auto r = mismatch(plan, operands)) return r;
  if (options.check_offsets && (workspace == nullptr || workspace_bytes < plan.workspace_bytes)) {
    return Refusal{
        "the workspace has " + std::to_string(workspace == nullptr ? 0 : workspace_bytes) +
        " bytes; the check of the offsets needs " + std::to_string(plan.workspace_bytes)};
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
    kernel::HopperGemmParams params = make_grouped_params(plan, operands, status, encode_for_cuda);
    return start(plan, ready, params, in, options.dependent);
  } catch (const EncodeFailure& failure) {
    return Refusal{failure.sentence};
  }
}

}  // namespace warpwright::device
