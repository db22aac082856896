// mma.sync on a device: the products of tests/model, whose sums are exact. What the device's target
// only emulates (m8n8k4, fp8 on sm_90) is right all the same.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/gpu.h"
#include "tests/model/mma_products.h"
#include "warpwright/atom/mma_text.h"

namespace warpwright::tests {
namespace {

// For instructions that the target lacks nothing.
template <int I, int Choice>
__global__ void multiply_kernel([[maybe_unused]] Words memory) {
#if defined(__CUDA_ARCH__)
  if constexpr (atom::mma_fault(kProducts[I], __CUDA_ARCH__ / 10) == nullptr) {
    multiply_once<kProducts[I], Choice>(memory);
  }
#endif
}

constexpr std::size_t kWords = 32 * kRegisters;

void copy(std::uint32_t* to, const std::vector<std::uint32_t>& from) {
  ASSERT_EQ(
      cudaMemcpy(to, from.data(), from.size() * sizeof(std::uint32_t), cudaMemcpyHostToDevice),
      cudaSuccess);
}

template <int I, int Choice>
void check_product(const Words& words) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Product product(kProducts[I], seed, Choice);
    std::vector<std::uint32_t> got(product.sums.size());
    copy(words.a, product.a);
    copy(words.b, product.b);
    copy(words.sums, product.sums);
    copy(words.scales_a, product.scales_a);
    copy(words.scales_b, product.scales_b);
    multiply_kernel<I, Choice><<<1, 32>>>(words);
    ASSERT_EQ(
        cudaMemcpy(got.data(), words.sums, kWords * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
        cudaSuccess);
    EXPECT_EQ(got, product.expected) << atom::to_text(kProducts[I]) << ", seed " << seed;
  }
}

template <int I, int... Choice>
void check_choices(const Words& words, int target,
                   std::integer_sequence<int, Choice...> /*choices*/) {
  if (atom::mma_support(kProducts[I], target) == atom::MmaSupport::absent) return;
  (check_product<I, Choice>(words), ...);
}
template <int... I>
void check_products(const Words& words, int target, std::integer_sequence<int, I...> /*indices*/) {
  (check_choices<I>(words, target, std::make_integer_sequence<int, scale_sources(kProducts[I])>()),
   ...);
}

TEST(MmaSyncOnGpu, ProductsOfSmallIntegersAreExact) {
  WW_NEEDS_GPU();
  std::uint32_t* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 5 * kWords * sizeof(std::uint32_t)), cudaSuccess);
  check_products(
      {memory, memory + kWords, memory + 2 * kWords, memory + 3 * kWords, memory + 4 * kWords},
      device::cuda_devices().front().architecture,
      std::make_integer_sequence<int, kProductCount>());
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
}  // namespace warpwright::tests
