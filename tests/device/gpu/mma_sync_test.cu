// mma.sync on a device: the products of tests/model, whose sums are exact. What the device's target
// only emulates (m8n8k4, fp8 on sm_90) is right all the same.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/model/mma_products.h"
#include "warpwright/atom/mma_text.h"

namespace warpwright::tests {
namespace {

template <int I>
__global__ void multiply_kernel(Words memory) {
  multiply_once<kProducts[I]>(memory);
}

constexpr std::size_t kBytes = 32 * kRegisters * sizeof(std::uint32_t);

template <int I>
void check_product(const Words& words) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Product product(kProducts[I], seed);
    std::vector<std::uint32_t> got(product.sums.size());
    ASSERT_EQ(cudaMemcpy(words.a, product.a.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(words.b, product.b.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(words.sums, product.sums.data(), kBytes, cudaMemcpyHostToDevice),
              cudaSuccess);
    multiply_kernel<I><<<1, 32>>>(words);
    ASSERT_EQ(cudaMemcpy(got.data(), words.sums, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(got, product.expected) << atom::to_text(kProducts[I]) << ", seed " << seed;
  }
}

template <int... I>
void check_products(const Words& words, std::integer_sequence<int, I...> /*indices*/) {
  (check_product<I>(words), ...);
}

TEST(MmaSyncOnGpu, ProductsOfSmallIntegersAreExact) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    GTEST_SKIP() << "did not run: no CUDA device here";
  }
  std::uint32_t* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 3 * kBytes), cudaSuccess);
  check_products({memory, memory + 32 * kRegisters, memory + 64 * kRegisters},
                 std::make_integer_sequence<int, kProductCount>());
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
}  // namespace warpwright::tests
