#include "bench/host_time.h"

#include <chrono>
#include <cstddef>
#include <vector>

namespace warpwright::bench {
namespace {

// Far fewer than a stream holds, so that no launch waits for room.
constexpr int kInFlight = 100;
constexpr int kRounds = 20;

// Parameters of as many bytes as those of the kernels, or nearly.
struct alignas(64) Parameters {
  std::byte bytes[1472];
};

__global__ void empty_kernel(const __grid_constant__ Parameters /*parameters*/) {}

double microseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace

HostTimes host_times(const Plan& plan, const Launch& launch, bool dependent, cudaStream_t stream) {
  const KernelFacts& facts = plan.facts();
  const auto* const function = reinterpret_cast<const void*>(&empty_kernel);
  Parameters parameters{};
  void* arguments[] = {&parameters};
  require(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               facts.shared_bytes),
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
  config.blockDim = dim3(static_cast<unsigned>(facts.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(facts.shared_bytes);
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
      require(launch(static_cast<std::size_t>(i), stream));
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
