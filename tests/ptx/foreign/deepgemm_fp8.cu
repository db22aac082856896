// DeepGEMM's product of fp8 with scales of blocks on Hopper: its headers stay where they are, and
// only a kernel of them is asked for.
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

const void* asked_for() {
  using namespace deep_gemm;
  return reinterpret_cast<const void*>(
      &sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, 0, 0, 1, 64, 64, 128, 128, 128, 128, 3, 128,
                               128, 1, false, 2, GemmType::Normal, cutlass::bfloat16_t,
                               epilogue::transform::EpilogueIdentity>);
}
