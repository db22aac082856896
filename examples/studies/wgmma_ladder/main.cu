// The study's kernel on a GPU of sm_90a: one launch, compared with sums in float64. The kernel is
// the header's, the same lines that the unit tests run on the machine model, with tiles of 256
// columns as in the original.
#include "../common/gpu.h"
#include "ladder_gemm.h"
#include "tile_order.h"

namespace ladder = study::ladder;
using Kernel = ladder::LadderGemm<ladder::Shape{}>;

__global__ void __launch_bounds__(Kernel::threads, 1)
    ladder_gemm(const __grid_constant__ ladder::Params params) {
  Kernel::run(params);
}

int main() {
  constexpr unsigned bn = Kernel::shape.bn;
  constexpr int clusters = 7;
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("skipped: no device of compute capability 9.0 here\n");
    return 77;
  }
  constexpr int m = 1024, n = 2048, k = 576;
  const study::DeviceProduct product(m, n, k);
  ladder::Params p;
  p.lists = study::upload(ladder::tile_lists(m / (Kernel::bm * Kernel::shape.cluster_m),
                                             n / (bn * Kernel::shape.cluster_n), clusters));
  p.k = k;
  if (!product.ready() || p.lists == nullptr ||
      !product.encode_operand(p.a, product.a, m, Kernel::bm) ||
      !product.encode_operand(p.b, product.b, n, bn) ||
      !study::encode(
          p.d, {product.d, {64, n, m / 64}, {m * 2, 128}, {Kernel::box_rows, bn, 1}, false}) ||
      !study::launch(ladder_gemm, p, clusters * Kernel::ctas, Kernel::ctas, Kernel::threads,
                     Kernel::shared_bytes)) {
    return 1;
  }
  return product.check(device.name, true);
}
