// Looks where clusters land on a CUDA device: which SMs stand together.
#include "warpwright/plan/cost/sm_groups.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "warpwright/device/cuda.h"
#include "warpwright/device/cuda_parts.h"

namespace warpwright::device {
namespace {

// A grid as those of the products: as many threads, and one CTA an SM.
constexpr int kThreads = 384;
// Where a size lands otherwise now and then is not known of it.
constexpr int kRepeats = 3;

struct WhereParams {
  std::uint32_t* sms;  // of each CTA
};

__global__ void where_kernel(const __grid_constant__ WhereParams params) {
  if (threadIdx.x > 0) return;
  std::uint32_t sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  params.sms[blockIdx.x] = sm;
  // Until all the others have their SMs.
  constexpr unsigned long long stay = 20'000;  // ns
  unsigned long long begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  unsigned long long now = begin;
  while (now - begin < stay) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
}

// The grids that are looked at, one after the other on the default stream of the current device.
Result<std::vector<SeenGrid>> look(const DeviceFacts& facts) {
  const void* function = reinterpret_cast<const void*>(where_kernel);
  const int bytes = static_cast<int>(facts.shared_bytes_per_cta);
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaFuncGetAttributes(&attributes, function);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  }
  if (error != cudaSuccess) return *cuda_refusal(error, "looking for the groups of SMs");
  // Sizes beyond 8 are not portable: where they are refused, smaller ones tell what they can.
  cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaGetLastError();
  auto buffer = CudaBuffer::make(std::int64_t{4} * facts.sms);
  if (!buffer) return buffer.refusal();
  std::vector<SeenGrid> seen;
  for (int size = 1; size < static_cast<int>(facts.resident_clusters.size()); ++size) {
    const int ctas = resident_ctas(facts, size);
    for (int i = 0; i < kRepeats && ctas > 0; ++i) {
      WhereParams params{static_cast<std::uint32_t*>((*buffer)->data())};
      if (start_grid({function, ctas, kThreads, bytes, size, false, nullptr}, &params) !=
          cudaSuccess) {
        cudaGetLastError();
        break;
      }
      SeenGrid grid{size, std::vector<int>(static_cast<std::size_t>(ctas))};
      if (auto r = synchronise_cuda()) return *r;
      if (auto r = (*buffer)->to_host(grid.sms.data(), std::int64_t{4} * ctas)) return *r;
      seen.push_back(std::move(grid));
    }
  }
  return seen;
}

}  // namespace

Result<std::shared_ptr<const SmGroups>> find_sm_groups(int index) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<const SmGroups>> found;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const SmGroups>& groups = found[index];
  if (groups) return groups;
  const auto facts = cuda_device(index);
  if (!facts) return facts.refusal();
  const int before = current_cuda_device();
  if (auto r = use_cuda_device(index)) return *r;
  const auto seen = look(*facts);
  if (before >= 0) static_cast<void>(use_cuda_device(before));
  if (!seen) return seen.refusal();
  groups = std::make_shared<const SmGroups>(sm_groups(*seen));
  return groups;
}

}  // namespace warpwright::device
