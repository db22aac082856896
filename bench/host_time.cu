#include "bench/host_time.h"

#include <chrono>
#include <vector>

#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/kernel/params.h"

namespace warpwright::bench {
namespace {

// Far fewer than a stream holds, so that no launch waits for room.
constexpr int kInFlight = 100;
constexpr int kRounds = 20;

template <class Params>
__global__ void empty_kernel(const __grid_constant__ Params /*params*/) {}

double microseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace

HostTimes host_times(const Plan& plan, const LaunchOnSet& launch, std::size_t sets, bool dependent,
                     cudaStream_t stream) {
  kernel::HopperGemmParams hopper{};
  kernel::BlackwellGemmParams blackwell{};
  const bool is_hopper = !plan.blackwell;
  const void* const function =
      is_hopper ? reinterpret_cast<const void*>(&empty_kernel<kernel::HopperGemmParams>)
                : reinterpret_cast<const void*>(&empty_kernel<kernel::BlackwellGemmParams>);
  void* arguments[] = {is_hopper ? static_cast<void*>(&hopper) : &blackwell};
  require(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               plan.shared_bytes()),
          "preparing an empty kernel");
  require(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "preparing an empty kernel");
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (plan.cluster_ctas() > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = static_cast<unsigned>(plan.cluster_ctas());
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
  config.blockDim = dim3(static_cast<unsigned>(plan.threads()));
  config.dynamicSmemBytes = static_cast<std::size_t>(plan.shared_bytes());
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;

  std::vector<double> ours;
  std::vector<double> empty;
  for (int round = -1; round < kRounds; ++round) {  // the first to get warm
    for (int i = 0; i < kInFlight; ++i) {
      const auto before = std::chrono::steady_clock::now();
      require(cudaLaunchKernelExC(&config, function, arguments), "launching an empty kernel");
      const auto start = std::chrono::steady_clock::now();
      require(launch(static_cast<std::size_t>(i) % sets, stream));
      const auto end = std::chrono::steady_clock::now();
      if (round < 0) continue;
      empty.push_back(microseconds(start - before));
      ours.push_back(microseconds(end - start));
    }
    require(cudaStreamSynchronize(stream), "timing");
  }
  return {summarise(std::move(ours)), summarise(std::move(empty))};
}

}  // namespace warpwright::bench
