// The register family's main loop on a device, by mma.sync as sm_90 has it: integers are exact.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/gpu.h"
#include "tests/kernel/register_product.h"

namespace warpwright::tests {
namespace {

// The loop's cp.async and the MMA.
template <class Tag>
constexpr bool is_for(int target) {
  return target >= 80 && atom::mma_fault(Tag::config.mma, target) == nullptr;
}

// For instructions that the target lacks nothing.
template <class Tag>
__global__ void __launch_bounds__(kernel::threads(Tag::config))
    loop_kernel([[maybe_unused]] const __grid_constant__ LoopParams params) {
#if defined(__CUDA_ARCH__)
  if constexpr (is_for<Tag>(__CUDA_ARCH__ / 10)) multiply_tile<Tag>(params);
#endif
}

/// The tile that the register budget is made for: eight warps of 64 x 64.
struct LargeTag {
  static constexpr kernel::RegisterConfig config{mma_of<DType::bf16>(), 128, 256, 32, 2, 4, 4};
};

template <class T>
T* copied(const std::vector<T>& from) {
  T* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, from.size() * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
            cudaSuccess);
  return memory;
}

template <class Tag>
void check(DType type, int m, int n, int k) {
  constexpr kernel::RegisterConfig c = Tag::config;
  if (!is_for<Tag>(device::cuda_devices().front().architecture)) return;
  RegisterProduct product(type, m, n, k);
  product.clear();
  LoopParams params = product.params;
  std::uint8_t* const a = copied(product.a);
  std::uint8_t* const b = copied(product.b);
  std::uint32_t* const d = copied(product.d);
  params.a = a;
  params.b = b;
  params.d = d;
  ASSERT_EQ(cudaFuncSetAttribute(loop_kernel<Tag>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kernel::shared_bytes(c)),
            cudaSuccess);
  const int ctas = ((m + c.tile_m - 1) / c.tile_m) * ((n + c.tile_n - 1) / c.tile_n);
  loop_kernel<Tag><<<ctas, kernel::threads(c), kernel::shared_bytes(c)>>>(params);
  ASSERT_EQ(cudaMemcpy(product.d.data(), d, product.d.size() * sizeof product.d[0],
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(product.wrong(), "") << numeric::name(type) << " " << m << " x " << n << " x " << k;
  for (void* memory : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(d)}) {
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
}

template <DType T, int RowBytes, int Stages>
void check_type() {
  constexpr int each = 128 / numeric::bits(T);
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    check<LoopTag<T, RowBytes, Stages>>(T, 1 + static_cast<int>(random() % 300),
                                        1 + static_cast<int>(random() % 300),
                                        each * (1 + static_cast<int>(random() % 60)));
  }
}

TEST(RegisterLoopOnGpu, EveryType) {
  WW_NEEDS_GPU();
  check_type<DType::bf16, 64, 3>();
  check_type<DType::bf16, 128, 2>();
  check_type<DType::f16, 128, 3>();
  check_type<DType::tf32, 64, 4>();
  check_type<DType::s8, 64, 4>();
  check_type<DType::e4m3, 128, 3>();
  check<LargeTag>(DType::bf16, 300, 520, 1000);
}

}  // namespace
}  // namespace warpwright::tests
