#include "warpwright/atom/wgmma.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpwright/atom/ldmatrix.h"

namespace warpwright::atom {
namespace {

TEST(WgmmaTest, LegalAtoms) {
  static_assert(wgmma_atom(DType::bf16, DType::bf16, DType::f32, 256).k == 16);
  static_assert(wgmma_atom(DType::e4m3, DType::e5m2, DType::f32, 128).k == 32);
  for (int n = 8; n <= 256; n += 8) {
    EXPECT_EQ(wgmma_fault(wgmma_atom(DType::bf16, DType::bf16, DType::f32, n)), nullptr);
    EXPECT_EQ(wgmma_fault(wgmma_atom(DType::f16, DType::f16, DType::f16, n)), nullptr);
    EXPECT_EQ(wgmma_fault(wgmma_atom(DType::e4m3, DType::e5m2, DType::f32, n)), nullptr);
    EXPECT_EQ(wgmma_fault(wgmma_atom(DType::e5m2, DType::e5m2, DType::f16, n)), nullptr);
  }
  EXPECT_EQ(wgmma_fault(wgmma_atom(DType::f16, DType::f16, DType::f32, 64), Major::mn, Major::mn),
            nullptr);
  // A's major means nothing when A comes from registers.
  EXPECT_EQ(
      wgmma_fault(wgmma_atom(DType::e4m3, DType::e4m3, DType::f32, 64), Major::mn, Major::k, true),
      nullptr);
}

TEST(WgmmaTest, RefusedAtoms) {
  const auto refused = [](WgmmaAtom atom, Major a = Major::k, Major b = Major::k) {
    return wgmma_fault(atom, a, b) != nullptr;
  };
  EXPECT_TRUE(refused(wgmma_atom(DType::f32, DType::f32, DType::f32, 64)));
  EXPECT_TRUE(refused(wgmma_atom(DType::f16, DType::bf16, DType::f32, 64)));
  EXPECT_TRUE(refused(wgmma_atom(DType::e4m3, DType::f16, DType::f32, 64)));
  EXPECT_TRUE(refused(wgmma_atom(DType::bf16, DType::bf16, DType::f16, 64)));
  EXPECT_TRUE(refused(wgmma_atom(DType::bf16, DType::bf16, DType::bf16, 64)));
  EXPECT_TRUE(refused({128, 64, 16, DType::f16, DType::f16, DType::f32}));
  EXPECT_TRUE(refused({64, 64, 32, DType::f16, DType::f16, DType::f32}));
  for (const int n : {-8, 0, 4, 12, 264}) {
    EXPECT_TRUE(refused(wgmma_atom(DType::f16, DType::f16, DType::f32, n)));
  }
  const WgmmaAtom fp8 = wgmma_atom(DType::e4m3, DType::e4m3, DType::f32, 64);
  EXPECT_TRUE(refused(fp8, Major::mn, Major::k));
  EXPECT_TRUE(refused(fp8, Major::k, Major::mn));
}

TEST(WgmmaTest, AccumulatorCoversTheTileOnce) {
  for (int n = 8; n <= 256; n += 8) {
    const int values = n / 2;
    std::vector<int> seen(64 * n, 0);
    for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
      for (int value = 0; value < values; ++value) {
        const int row = c_row(thread, value);
        const int col = c_col(thread, value);
        ASSERT_TRUE(row >= 0 && row < 64 && col >= 0 && col < n);
        ++seen[row * n + col];
        ASSERT_EQ(row, 16 * (thread / 32) + thread % 32 / 4 + 8 * (value / 2 % 2));
        ASSERT_EQ(col, 8 * (value / 4) + 2 * (thread % 4) + value % 2);
      }
    }
    for (const int count : seen) ASSERT_EQ(count, 1);
  }
}

TEST(WgmmaTest, AccumulatorPlaces) {
  // PTX ISA, "Register Fragments", wgmma .m64nNk16 matrix D.
  static_assert(c_row(0, 0) == 0 && c_col(0, 0) == 0);
  static_assert(c_row(0, 1) == 0 && c_col(0, 1) == 1);
  static_assert(c_row(0, 2) == 8 && c_col(0, 2) == 0);
  static_assert(c_row(0, 4) == 0 && c_col(0, 4) == 8);
  static_assert(c_row(35, 0) == 16 && c_col(35, 0) == 6);
  static_assert(c_row(127, 127) == 63 && c_col(127, 127) == 255);
}

template <int bits>
void expect_covered_once() {
  constexpr int k_extent = k_block_bytes * 8 / bits;
  std::vector<int> seen(64 * k_extent, 0);
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    for (int value = 0; value < a_values(bits); ++value) {
      const int row = a_row<bits>(thread, value);
      const int k = a_k<bits>(thread, value);
      ASSERT_TRUE(row >= 0 && row < 64 && k >= 0 && k < k_extent);
      ++seen[row * k_extent + k];
    }
  }
  for (const int count : seen) ASSERT_EQ(count, 1);
}

TEST(WgmmaTest, RegisterOperandCoversTheTileOnce) {
  expect_covered_once<8>();
  expect_covered_once<16>();
  expect_covered_once<32>();
}

TEST(WgmmaTest, RegisterOperandFormulas) {
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    const int w = thread / 32;
    const int l = thread % 32;
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(a_row<16>(thread, i), 16 * w + (l >> 2) + 8 * ((i >> 1) & 1));
      EXPECT_EQ(a_k<16>(thread, i), 2 * (l & 3) + (i & 1) + 8 * (i >> 2));
    }
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(a_row<8>(thread, i), 16 * w + (l >> 2) + 8 * ((i >> 2) & 1));
      EXPECT_EQ(a_k<8>(thread, i), 4 * (l & 3) + (i & 3) + 16 * (i >> 3));
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(a_row<32>(thread, i), 16 * w + (l >> 2) + 8 * (i & 1));
      EXPECT_EQ(a_k<32>(thread, i), (l & 3) + 4 * (i >> 1));
    }
  }
}

TEST(LdmatrixTest, EveryElementHasOneHolder) {
  std::vector<int> seen(64, 0);
  for (int lane = 0; lane < 32; ++lane) {
    for (const int half : {0, 1}) ++seen[matrix_row(lane, half) * 8 + matrix_col(lane, half)];
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
  static_assert(matrix_row(5, 1) == 1 && matrix_col(5, 1) == 3);
}

// Four 8 x 8 blocks in the order (top left, bottom left, top right, bottom right) are a warp's 16
// rows of a wgmma fragment, of a register operand as of an accumulator.
TEST(LdmatrixTest, FourMatricesMakeAFragment) {
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    for (int value = 0; value < 8; ++value) {
      const int matrix = value / 2;
      const int row = 16 * (thread / 32) + 8 * (matrix % 2) + matrix_row(thread % 32, value % 2);
      const int col = 8 * (matrix / 2) + matrix_col(thread % 32, value % 2);
      EXPECT_EQ(a_row<16>(thread, value), row);
      EXPECT_EQ(a_k<16>(thread, value), col);
      EXPECT_EQ(c_row(thread, value), row);
      EXPECT_EQ(c_col(thread, value), col);
    }
  }
}

TEST(LdmatrixTest, LanesPointToTheRowsOfMatrices) {
  for (const bool transposed : {false, true}) {
    const layout::Layout lanes = fragment_lanes(transposed);
    for (int lane = 0; lane < 32; ++lane) {
      const int matrix = lane / 8;
      const int row = 8 * (matrix % 2) + (transposed ? 0 : lane % 8);
      const int col = 8 * (matrix / 2) + (transposed ? lane % 8 : 0);
      EXPECT_EQ(layout::coordinate(lanes, lane), layout::tuple(row, col));
    }
  }
}

}  // namespace
}  // namespace warpwright::atom
