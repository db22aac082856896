// The study's kernel on a GPU of sm_100a: one launch, compared with sums in float64. The kernel is
// the header's, the same lines that the unit tests run on the machine model, with tiles of 256
// columns as in the original.
#include "../common/gpu.h"
#include "pair_gemm.h"

namespace pairs = study::pairs;
using Kernel = pairs::PairGemm<pairs::Shape{}>;

__global__ void __launch_bounds__(Kernel::threads, 1)
    pair_gemm(const __grid_constant__ pairs::Params params) {
  Kernel::run(params);
}

int main() {
  constexpr int clusters = 7;
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 10) {
    std::printf("skipped: no device of compute capability 10 here\n");
    return 77;
  }
  constexpr int m = 1024, n = 2560, k = 576;
  const study::DeviceProduct product(m, n, k);
  pairs::Params p;
  p.d = reinterpret_cast<std::uint16_t*>(product.d);
  p.m = m;
  p.n = n;
  p.k = k;
  if (!product.ready() || !product.encode_operand(p.a, product.a, m, Kernel::bm) ||
      !product.encode_operand(p.b, product.b, n, Kernel::rows_b) ||
      !study::launch(pair_gemm, p, clusters * Kernel::shape.ctas, Kernel::shape.ctas,
                     Kernel::threads, Kernel::shared_bytes)) {
    return 1;
  }
  return product.check(device.name, false);
}
