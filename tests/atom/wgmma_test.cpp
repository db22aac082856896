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

TEST(WgmmaTest, NearestN) {
  static_assert(nearest_wgmma_n(-5) == 8 && nearest_wgmma_n(3) == 8 && nearest_wgmma_n(8) == 8);
  static_assert(nearest_wgmma_n(12) == 16 && nearest_wgmma_n(11) == 8);
  static_assert(nearest_wgmma_n(252) == 256 && nearest_wgmma_n(2147483647) == 256);
}

TEST(WgmmaTest, AccumulatorCoversTheTileOnce) {
  for (int n = 8; n <= 256; n += 8) {
    const int values = accumulator_values(wgmma_atom(DType::bf16, DType::bf16, DType::f32, n));
    EXPECT_EQ(values, n / 2);
    std::vector<int> seen(64 * n, 0);
    for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
      for (int value = 0; value < values; ++value) {
        const int row = c_row(thread, value);
        const int col = c_col(thread, value);
        ASSERT_TRUE(row >= 0 && row < 64 && col >= 0 && col < n);
        ++seen[row * n + col];
        ASSERT_EQ(c_slot(row, col), (FragmentSlot{thread, value}));
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

TEST(WgmmaTest, RegisterOperandCoversTheTileOnce) {
  for (const int bits : {8, 16, 32}) {
    const int k_extent = kStepBytes * 8 / bits;
    std::vector<int> seen(64 * k_extent, 0);
    for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
      for (int value = 0; value < a_values(bits); ++value) {
        const int row = a_row(thread, value, bits);
        const int k = a_k(thread, value, bits);
        ASSERT_TRUE(row >= 0 && row < 64 && k >= 0 && k < k_extent);
        ++seen[row * k_extent + k];
        ASSERT_EQ(a_slot(row, k, bits), (FragmentSlot{thread, value}));
      }
    }
    for (const int count : seen) ASSERT_EQ(count, 1);
  }
}

TEST(WgmmaTest, RegisterOperandFormulas) {
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    const int w = thread / 32;
    const int l = thread % 32;
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(a_row(thread, i, 16), 16 * w + (l >> 2) + 8 * ((i >> 1) & 1));
      EXPECT_EQ(a_k(thread, i, 16), 2 * (l & 3) + (i & 1) + 8 * (i >> 2));
    }
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(a_row(thread, i, 8), 16 * w + (l >> 2) + 8 * ((i >> 2) & 1));
      EXPECT_EQ(a_k(thread, i, 8), 4 * (l & 3) + (i & 3) + 16 * (i >> 3));
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(a_row(thread, i, 32), 16 * w + (l >> 2) + 8 * (i & 1));
      EXPECT_EQ(a_k(thread, i, 32), (l & 3) + 4 * (i >> 1));
    }
  }
}

TEST(LdmatrixTest, EveryElementHasOneHolder) {
  for (const bool transposed : {false, true}) {
    std::vector<int> seen(64, 0);
    for (int lane = 0; lane < 32; ++lane) {
      for (const int half : {0, 1}) {
        const MatrixElement at = ldmatrix_element(lane, half, transposed);
        ++seen[at.row * 8 + at.col];
        EXPECT_EQ(ldmatrix_holder(at, transposed), (LaneHalf{lane, half}));
        const MatrixElement other = ldmatrix_element(lane, half, !transposed);
        EXPECT_EQ(at, (MatrixElement{other.col, other.row}));
      }
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
  static_assert(ldmatrix_element(5, 1) == MatrixElement{1, 3});
  static_assert(ldmatrix_element(5, 1, true) == MatrixElement{3, 1});
}

TEST(LdmatrixTest, LanesPointToRows) {
  static_assert(ldmatrix_address_lanes(1) == 8 && ldmatrix_address_lanes(4) == 32);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(ldmatrix_address_lane(ldmatrix_matrix(lane), ldmatrix_row(lane)), lane);
  }
  static_assert(ldmatrix_matrix(17) == 2 && ldmatrix_row(17) == 1);
}

// An x4 load of four 8 x 8 blocks in the order (top left, bottom left, top right, bottom right)
// gives a warp exactly its 16 rows of a wgmma register operand.
TEST(LdmatrixTest, FourMatricesMakeARegisterOperand) {
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    for (int value = 0; value < 8; ++value) {
      const int matrix = value / 2;
      const MatrixElement at = ldmatrix_element(thread % 32, value % 2);
      EXPECT_EQ(a_row(thread, value, 16), 16 * (thread / 32) + 8 * (matrix % 2) + at.row);
      EXPECT_EQ(a_k(thread, value, 16), 8 * (matrix / 2) + at.col);
    }
  }
}

}  // namespace
}  // namespace warpwright::atom
