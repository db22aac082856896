// Both grids on a GPU of sm_90a, the second launched as a dependent of the first, twice with other
// offsets; compared with sums in float64. The kernels are the header's, the same lines that the
// unit tests run on the machine model.
#include <algorithm>

#include "../common/gpu.h"
#include "group_maps.h"

namespace maps = study::maps;
using study::bf16_t;
using Maker = maps::MakeMaps<>;
using Kernel = maps::GroupedGemm<>;

__global__ void __launch_bounds__(Maker::threads)
    make_maps(const __grid_constant__ maps::Params params) {
  Maker::run(params);
}
__global__ void __launch_bounds__(Kernel::threads)
    grouped_gemm(const __grid_constant__ maps::Params params) {
  Kernel::run(params);
}

namespace {

constexpr int groups = 12, tokens = 700, n = 512, k = 776;
using Offsets = std::vector<int>;

// A grid that may start before the one before it has ended.
bool start(void (*kernel)(maps::Params), const maps::Params& params, int ctas, int threads,
           int shared_bytes) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return study::start(kernel, params, attribute, ctas, threads, shared_bytes);
}

bool is_right(const Offsets& offsets, const bf16_t* y) {
  std::vector<bf16_t> got(std::size_t{tokens} * n);
  if (study::failed(cudaMemcpy(got.data(), y, got.size() * 2, cudaMemcpyDeviceToHost), "a grid")) {
    return false;
  }
  for (int g = 0; g < groups; ++g) {
    for (int i = offsets[g]; i < offsets[g + 1]; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) {
          sum += double(study::whole(std::size_t(i) * k + l)) *
                 double(study::whole((std::size_t(g) * n + j) * k + l + 5));
        }
        const auto want = static_cast<float>(bf16_t(static_cast<float>(sum)));
        const auto is = static_cast<float>(got[std::size_t(i) * n + j]);
        if (is == want) continue;
        std::printf("Y(%d, %d) is %g, not %g\n", i, j, is, want);
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int main() {
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("skipped: no device of compute capability 9.0 here\n");
    return 77;
  }
  std::vector<bf16_t> x(std::size_t{tokens} * k), w(std::size_t{groups} * n * k);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_t(study::whole(i));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = bf16_t(study::whole(i + 5));
  bf16_t* const device_x = study::upload(x);
  bf16_t* const device_w = study::upload(w);
  bf16_t* const device_y = study::upload(std::vector<bf16_t>(std::size_t{tokens} * n));
  int* const device_offsets = study::upload(Offsets(groups + 1));
  maps::Params p;
  p.maps = study::upload(std::vector<warpwright::isa::TensorMap>(2 * groups));
  const auto encode = [](warpwright::isa::TensorMap& map, bf16_t* base, int rows, int columns) {
    const auto inner = static_cast<cuuint64_t>(columns);
    return study::encode(map, {base,
                               {inner, static_cast<cuuint64_t>(rows)},
                               {inner * sizeof(bf16_t)},
                               {maps::side, maps::side},
                               true});
  };
  if (p.maps == nullptr || device_y == nullptr || !encode(p.x.map, device_x, tokens, k) ||
      !encode(p.y.map, device_y, tokens, n) || !encode(p.w, device_w, groups * n, k)) {
    return 1;
  }
  p.x.data = reinterpret_cast<const unsigned char*>(device_x);
  p.x.pitch = k * 2;
  p.y.data = reinterpret_cast<const unsigned char*>(device_y);
  p.y.pitch = n * 2;
  p.offsets = {device_offsets, false, groups, tokens};
  p.n = n;
  p.k = k;
  for (const Offsets& offsets :
       {Offsets{0, 5, 5, 45, 61, 190, 255, 319, 320, 400, 600, 650, tokens},
        Offsets{0, 100, 101, 101, 101, 130, 300, 364, 365, 420, 421, 700, tokens}}) {
    if (study::failed(
            cudaMemcpy(device_offsets, offsets.data(), 4 * offsets.size(), cudaMemcpyHostToDevice),
            "cudaMemcpy") ||
        !start(make_maps, p, 4, Maker::threads, Maker::shared_bytes) ||
        !start(grouped_gemm, p, device.multiProcessorCount, Kernel::threads,
               Kernel::shared_bytes) ||
        !is_right(offsets, device_y)) {
      return 1;
    }
  }
  std::printf("all %d elements are right, twice, on %s\n", tokens * n, device.name);
  return 0;
}
