#include <gtest/gtest.h>

#include "warpwright/atom/tcgen05_layout.h"
#include "warpwright/atom/wgmma_layout.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using layout::parse_layout;
using layout::to_text;

TEST(FragmentLayoutTest, Texts) {
  EXPECT_EQ(to_text(wgmma_layout_c_tv(256)), "((4,8,4),(2,2,32)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_text(wgmma_layout_a_register_tv(16)), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_text(wgmma_layout_a_register_tv(8)), "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))");
  EXPECT_EQ(to_text(wgmma_layout_a_register_tv(32)), "((4,8,4),(2,2)):((64,1,16),(8,256))");
  EXPECT_EQ(to_text(wgmma_layout_shared_tv(64, 16)), "(128,(64,16)):(0,(1,64))");
}

TEST(FragmentLayoutTest, AccumulatorLayoutIsTheFunctions) {
  for (int n = 8; n <= 256; n += 8) {
    const layout::Layout tv = wgmma_layout_c_tv(n);
    ASSERT_EQ(layout::size(tv, 0), kWarpgroupThreads);
    ASSERT_EQ(layout::size(tv, 1), n / 2);
    for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
      for (int value = 0; value < n / 2; ++value) {
        ASSERT_EQ(tv(thread, value), c_row(thread, value) + 64 * c_col(thread, value));
      }
    }
  }
}

template <int bits>
void expect_the_functions() {
  const layout::Layout tv = wgmma_layout_a_register_tv(bits);
  ASSERT_EQ(layout::size(tv, 1), a_values(bits));
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    for (int value = 0; value < a_values(bits); ++value) {
      ASSERT_EQ(tv(thread, value), a_row<bits>(thread, value) + 64 * a_k<bits>(thread, value));
    }
  }
}

TEST(FragmentLayoutTest, RegisterOperandLayoutIsTheFunctions) {
  expect_the_functions<8>();
  expect_the_functions<16>();
  expect_the_functions<32>();
}

TEST(FragmentLayoutTest, EveryThreadSeesASharedOperand) {
  const layout::Layout tv = wgmma_layout_shared_tv(96, 16);
  for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
    for (int value = 0; value < 96 * 16; ++value) ASSERT_EQ(tv(thread, value), value);
  }
}

// The print of a 256 x 256 x 16 TiledMMA on a CTA pair, underscores and all.
TEST(FragmentLayoutTest, PairOfCtas) {
  EXPECT_EQ(tcgen05_thr_id(true), parse_layout("_2:_1"));
  EXPECT_EQ(tcgen05_layout_a_tv(256, 16, true), parse_layout("(_2,(_128,_16)):(_128,(_1,_256))"));
  EXPECT_EQ(tcgen05_layout_b_tv(256, 16, true), parse_layout("(_2,(_128,_16)):(_128,(_1,_256))"));
  EXPECT_EQ(tcgen05_layout_c_tv(256, 256, true), parse_layout("(_2,(_128,_256)):(_128,(_1,_256))"));
  EXPECT_EQ(tcgen05_thr_id(false), parse_layout("_1:_0"));
  EXPECT_EQ(tcgen05_layout_a_tv(128, 16, false), parse_layout("(_1,(_128,_16)):(_0,(_1,_128))"));
  EXPECT_EQ(tcgen05_layout_c_tv(128, 256, false), parse_layout("(_1,(_128,_256)):(_0,(_1,_128))"));
}

TEST(FragmentLayoutTest, PairSplitsRowsOnce) {
  const int rows = 128;
  const int columns = 32;
  const layout::Layout tv = tcgen05_layout_c_tv(rows, columns, true);
  for (int cta = 0; cta < 2; ++cta) {
    for (int col = 0; col < columns; ++col) {
      for (int row = 0; row < rows / 2; ++row) {
        ASSERT_EQ(tv(cta, row + col * rows / 2), cta * rows / 2 + row + col * rows);
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::atom
