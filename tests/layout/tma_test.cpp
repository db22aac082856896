// The TMA partitions that CuTe prints for Colfax's Blackwell cluster examples.
#include <gtest/gtest.h>

#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/tma.h"

namespace warpwright::layout {
namespace {

/// One stage of a K-major tile in shared memory, before the 128-byte swizzle.
constexpr Layout stage(int mn, int k) {
  return make_layout(make_layout(tuple(mn, k), tuple(k, 1)));
}

static_assert(tma_partition(stage(128, 64), tma_coordinates(128, 64, 4), 8192).smem ==
              "((8192,1)):((1,0))"_layout);

TEST(TmaPartition, PrintsOfTheSeeds) {
  const TmaPartition a =
      tma_partition(stage(128, 64), tma_coordinates(128, 64, 4), 8192, 0, make_layout(4));
  EXPECT_EQ(to_text(a.gmem), "ArithTuple(0,0) o (((64,128),1),4):(((1@0,1@1),0),64@0)");
  EXPECT_EQ(to_text(a.smem), "((8192,1)):((1,0))");
  const TmaPartition b =
      tma_partition(stage(256, 64), tma_coordinates(256, 64, 4), 16384, 0, make_layout(4));
  EXPECT_EQ(to_text(b.gmem), "ArithTuple(0,0) o (((64,256),1),4):(((1@0,1@1),0),64@0)");
  EXPECT_EQ(to_text(b.smem), "((16384,1)):((1,0))");
  // CTA 1 of the cluster has the next 128 rows of A.
  const TmaPartition a1 =
      tma_partition(stage(128, 64), tma_coordinates(128, 64, 4, 128), 8192, 0, make_layout(4));
  EXPECT_EQ(to_text(a1.gmem), "ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)");
}

TEST(TmaPartition, AnyNestingOfTheTile) {
  // The same operand as partition_A gives it: ((128,16),1,4) with modes 0 to 2 as the tile.
  const Layout smem = make_layout(parse_layout("((128,16),1,4):((64,1),0,16)"));
  const CoordinateTensor gmem =
      parse_coordinate_tensor("ArithTuple(0,128) o (((128,16),1,4),4):(((1@1,1@0),0,16@0),64@0)");
  const TmaPartition p = tma_partition(smem, gmem, 8192);
  EXPECT_EQ(to_text(p.gmem), "ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)");
  EXPECT_EQ(to_text(p.smem), "((8192,1)):((1,0))");
}

TEST(TmaPartition, MulticastSlicesAreOffsets) {
  for (int cta = 0; cta < 4; ++cta) {
    const TmaPartition p =
        tma_partition(stage(128, 64), tma_coordinates(128, 64, 4, 256), 8192, cta, make_layout(4));
    EXPECT_EQ(p.gmem.origin, tuple(0, 256 + 32 * cta));
    EXPECT_EQ(p.smem_offset, 2048 * cta);
    EXPECT_EQ(to_text(p.gmem.layout), "(((64,128),1),4):(((1@0,1@1),0),64@0)");
  }
}

TEST(TmaPartition, SmallBoxesIterate) {
  // Two boxes of 64 along K fill a tile of 128: shared memory holds them one after the other.
  const Layout smem = make_layout(parse_layout("(128,(64,2)):(64,(1,8192))"));
  const TmaPartition p = tma_partition(smem, tma_coordinates(128, 128, 3), 8192);
  EXPECT_EQ(to_text(p.gmem), "ArithTuple(0,0) o (((64,128),2),3):(((1@0,1@1),64@0),128@0)");
  EXPECT_EQ(to_text(p.smem), "((8192,2)):((1,8192))");
}

TEST(TmaPartition, Refusals) {
  const Layout smem = stage(128, 64);
  const CoordinateTensor gmem = tma_coordinates(128, 64, 4);
  EXPECT_THROW(tma_partition(smem, tma_coordinates(256, 64, 4), 8192), Error);
  EXPECT_THROW(tma_partition(smem, gmem, 5000), Error);
  EXPECT_THROW(tma_partition(smem, gmem, 0), Error);
  EXPECT_THROW(tma_partition(smem, gmem, 8192, 0, make_layout(3)), Error);
  EXPECT_THROW(tma_partition(smem, gmem, 8192, 4, make_layout(4)), Error);
}

}  // namespace
}  // namespace warpwright::layout
