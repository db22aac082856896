// The study's kernel on a GPU of sm_90a: one launch, compared with sums in float64. The kernel is
// the header's, the same lines that the unit tests run on the machine model, with tiles of 256
// columns as in the original.
#include <algorithm>

#include <warpwright/numeric/scalar.h>

#include "../common/gpu.h"
#include "ladder_gemm.h"
#include "tile_order.h"

using warpwright::numeric::bf16_t;
using Kernel = study::ladder::LadderGemm<study::ladder::Shape{}>;

__global__ void __launch_bounds__(Kernel::threads, 1)
    ladder_gemm(const __grid_constant__ study::ladder::Params params) {
  Kernel::run(params);
}

int main() {
  constexpr int m = 1024, n = 2048, k = 576, clusters = 7;
  constexpr int bn = Kernel::shape.bn;
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("skipped: no device of compute capability 9.0 here\n");
    return 77;
  }
  const auto value = [](std::size_t i) { return static_cast<float>(i * 2654435761U % 7) - 3.0F; };
  std::vector<bf16_t> a(std::size_t{m} * k), b(std::size_t{n} * k), d(std::size_t{m} * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = bf16_t(value(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = bf16_t(value(i + 5));
  bf16_t* const device_a = study::upload(a);
  bf16_t* const device_b = study::upload(b);
  bf16_t* const device_d = study::upload(d);
  const int cluster_rows = Kernel::bm * Kernel::shape.cluster_m;
  study::ladder::Params p;
  p.lists = study::upload(
      study::ladder::tile_lists(m / cluster_rows, n / (bn * Kernel::shape.cluster_n), clusters));
  p.k = k;
  if (device_a == nullptr || device_b == nullptr || device_d == nullptr || p.lists == nullptr ||
      !study::encode(p.a, {device_a, {k, m}, {k * 2}, {64, Kernel::bm}, true}) ||
      !study::encode(p.b, {device_b, {k, n}, {k * 2}, {64, bn}, true}) ||
      !study::encode(p.d,
                     {device_d, {64, n, m / 64}, {m * 2, 128}, {Kernel::box_rows, bn, 1}, false}) ||
      !study::launch(ladder_gemm, p, clusters * Kernel::ctas, Kernel::ctas, Kernel::threads,
                     Kernel::shared_bytes) ||
      study::failed(
          cudaMemcpy(d.data(), device_d, d.size() * sizeof(bf16_t), cudaMemcpyDeviceToHost),
          "cudaMemcpy")) {
    return 1;
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += double(value(std::size_t(i) * k + l)) * double(value(std::size_t(j) * k + l + 5));
      }
      const auto want = static_cast<float>(bf16_t(static_cast<float>(sum)));
      const auto got = static_cast<float>(d[static_cast<std::size_t>(j) * m + i]);
      if (got == want) continue;
      std::printf("D(%d, %d) is %g, not %g\n", i, j, got, want);
      return 1;
    }
  }
  std::printf("all %d elements are right on %s\n", m * n, device.name);
  return 0;
}
