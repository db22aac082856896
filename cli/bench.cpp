#include "cli/bench.h"

#include "cli/tensor_file.h"
#include "warpwright/device/cuda.h"

#if WARPWRIGHT_HAS_CUDA
#include "bench/gemm_bench.h"
#endif

namespace warpwright::cli {

#if WARPWRIGHT_HAS_CUDA

void bench_gemm(const Plan& plan, const GemmOperands& operands, int index, std::ostream& out) {
  if (const auto refusal = device::use_cuda_device(index)) throw InputError(refusal->reason);
  const Result<bench::GemmTimes> times = bench::time_gemm(plan, operands);
  if (!times) throw InputError(times.reason());
  out << bench::line(*times) << "\n";
}

#else

void bench_gemm(const Plan& /*plan*/, const GemmOperands& /*operands*/, int index,
                std::ostream& /*out*/) {
  throw InputError(device::cuda_device(index).reason());
}

#endif

}  // namespace warpwright::cli
