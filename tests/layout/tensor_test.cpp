// Parts of tensors: what a slice of a swizzled layout, a tensor of coordinates or in memory is.
#include "warpwright/layout/tensor.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/draws.h"
#include "tests/layout/answers.h"
#include "tests/must.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

// A swizzled layout of which something is fixed: a plain one where there is one, and the same
// function in any case.
TEST(Tensor, SlicesOfSwizzledLayoutsAreTheSameFunction) {
  int plain = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tests::Draws draw(seed);
    const int bits = draw(1, 3);
    const Swizzle sw = make_swizzle(bits, draw(0, 5), draw(bits, 4));
    // A tile of rows of a power of two, and more of them behind it, cut as partitions cut it.
    const std::int64_t row = std::int64_t{1} << draw(4, 8);
    const std::int64_t inner = std::int64_t{1} << draw(0, 4);
    const Layout l = make_layout(tuple(tuple(2, 8, 4), tuple(inner, row / inner), 3),
                                 tuple(tuple(row, 2 * row, 16 * row), tuple(1, inner), 64 * row));
    const ComposedLayout whole{sw, draw(0, 3) * 64 * row, l};
    const Tuple keeps[] = {
        tuple(tuple(draw(0, 1), draw(0, 7), kAll), kAll, kAll),
        tuple(tuple(kAll, draw(0, 7), draw(0, 3)),
              tuple(draw(0, static_cast<int>(inner) - 1), kAll), kAll),
        tuple(kAll, tuple(kAll, draw(0, static_cast<int>(row / inner) - 1)), draw(0, 2)),
        tuple(kAll, kAll, 1)};
    const Tuple& at = draw.of(keeps);
    const ComposedLayout part = slice(whole, at);
    plain += part.swizzle.bits == 0 ? 1 : 0;
    const Slice expected = slice(l, at);
    ASSERT_EQ(size(part.layout), size(expected.layout));
    for (std::int64_t i = 0; i < size(part.layout); ++i)
      ASSERT_EQ(part(i), sw(whole.offset + expected.offset + expected.layout(i)))
          << to_text(whole) << " at " << to_text(at) << " is " << to_text(part);
  }
  EXPECT_GT(plain, 100);
  EXPECT_LT(plain, 500);
}

// A thread's part of a row goes forwards or backwards by the row's number.
TEST(Tensor, StepsFollowTheRow) {
  EXPECT_EQ(answer("slice(Sw<3,3,3> o 0 o (8,64):(64,1), (5,_))"),
            "360 o ((8,2,2,2)):((1,-8,16,-32))");
  EXPECT_EQ(answer("slice(Sw<3,3,3> o 0 o (8,64):(64,1), (_,3))"), "3 o ((2,2,2)):((72,144,288))");
  // Rows and chunks together: no plain layout.
  EXPECT_EQ(answer("slice(Sw<3,3,3> o 0 o (8,64,4):(64,1,512), (_,_,2))"),
            "Sw<3,3,3> o 1024 o (8,64):(64,1)");
  // The swizzle of a pointer stays: addresses are turned, whatever part is taken.
  EXPECT_EQ(answer("slice(Sw<3,4,3>_smem_ptr[16b](0x400) o (8,64,4):(64,1,512), (5,_,2))"),
            "Sw<3,4,3>_smem_ptr[16b](0xe80) o (64):(1)");
}

// slice_ of seed 002: (M, K, stages) -> (M, K).
TEST(Tensor, SliceOfTheStages) {
  EXPECT_EQ(answer("slice(Sw<3,4,3> o smem_ptr[16b](unset) o "
                   "((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192)), (_,_,0))"),
            "Sw<3,4,3> o smem_ptr[16b](unset) o ((8,16),(64,1)):((64,512),(1,0))");
  EXPECT_EQ(answer("slice((8,16):(16,1), (3,_))"), "48 o (16):(1)");
  EXPECT_EQ(answer("slice((8,16):(16,1), (3,4))"), "52 o 1:0");
  EXPECT_EQ(answer("slice((64,128):(1@0,1@1), (5,_))"), "ArithTuple(5,0) o (128):(1@1)");
}

TEST(Tensor, CoordinatesAndIndices) {
  // get_flat_coord(11) of seed 000.
  EXPECT_EQ(answer("get_flat_coord((1,4,4,1), 11)"), "(0,3,2,0)");
  EXPECT_EQ(answer("get_flat_coord(tiled_divide((4,4,1), <2:1>), 11)"), "(1,1,2,0)");
  EXPECT_EQ(answer("get_hier_coord(((2,4),8), 11)"), "((1,1),1)");
  EXPECT_EQ(answer("idx2crd(11, (1,4,4,1))"), "(0,3,2,0)");
  EXPECT_EQ(answer("crd2idx((0,3,2,0), (1,4,4,1))"), "11");
  EXPECT_EQ(answer("crd2idx((1,2), (8,16):(16,1))"), "18");
  EXPECT_EQ(answer("crd2idx((1,2), (8,16):(1@1,1@0))"), "(2,1)");
  for (int i = 0; i < 64; ++i) {
    const std::string at = answer("idx2crd(" + std::to_string(i) + ", ((2,4),8))");
    EXPECT_EQ(answer("crd2idx(" + at + ", ((2,4),8))"), std::to_string(i));
  }
}

// gA of seed 000, and the tile of the second CTA along M, as coordinates.
TEST(Tensor, LocalTiles) {
  EXPECT_EQ(answer("local_tile((512,256):(256,1), (256,256,64), (0,0,_), (1,X,1))"),
            "(256,64,4):(256,1,64)");
  EXPECT_EQ(answer("local_tile((512,256):(256,1), (256,256,64), (1,0,_), (1,X,1))"),
            "65536 o (256,64,4):(256,1,64)");
  EXPECT_EQ(
      answer("local_tile(ArithTuple(0,0) o (512,256):(1@1,1@0), (128,256,64), (1,0,_), (1,X,1))"),
      "ArithTuple(0,128) o (128,64,4):(1@1,1@0,64@0)");
  EXPECT_EQ(answer("local_tile(gmem_ptr[16b](0x0) o (512,256):(256,1), (128,64), (3,2))"),
            "gmem_ptr[16b](0x30100) o (128,64):(256,1)");
  EXPECT_EQ(answer("local_tile(64:2, 16, 3)"), "96 o (16):(2)");
}

TEST(Tensor, GroupsAndFragments) {
  EXPECT_EQ(answer("group_modes(((128,16),1,4,4), 0, 3)"),
            "(((128,16),1,4),4):(((1,128),0,2048),8192)");
  EXPECT_EQ(answer("select((128,256,64):(1,2,3), 0, 2)"), "(128,64):(1,3)");
  // tCrA of the deck's page 52, from tCsA of one stage.
  EXPECT_EQ(answer("make_fragment_like(((4,2,2),1,(2,2)):((1,1024,16),0,(32,64)))"),
            "((4,2,2),1,(2,2)):((1,4,8),0,(16,32))");
  // The order of the rest follows its strides, the first mode does not.
  EXPECT_EQ(answer("make_fragment_like(((2,2),4,8):((8,1),64,16))"), "((2,2),4,8):((1,2),32,4)");
}

TEST(Tensor, Addresses) {
  EXPECT_EQ(answer("at(Sw<3,4,3>_smem_ptr[16b](0x400) o (8,64):(64,1), (1,0))"), "1168");
  EXPECT_EQ(answer("slice(smem_ptr[4b](0x40) o (4,8):(8,1), (0,3))"), "smem_ptr[4b](0x41.4) o 1:0");
  // What is printed is read back.
  for (const char* text :
       {"Sw<3,4,3>_smem_ptr[16b](0xfe2600000400) o ((8192,1)):((1,0))",
        "Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)", "smem_ptr[4b](0x41.4) o 1:0",
        "gmem_ptr[32b](0x0) o (4,8):(8,1)", "48 o (16):(1)"})
    EXPECT_EQ(answer(text), text);
}

TEST(Tensor, Names) {
  EXPECT_EQ(answer("a = (8,16):(16,1); b = logical_divide(a, <2,4>); size(b)"), "128");
  EXPECT_EQ(answer("a = 4:2; a"), "4:2");
  EXPECT_EQ(answer("a = 4:2; a;"), "4:2");
  EXPECT_EQ(refusal("size = 4:2; size"), "'size' is taken: call the value by another name.");
  EXPECT_EQ(refusal("[a, b] = 4:2; a"),
            "two names in brackets are of what tma_partition gives, and this is one layout.");
  expect_contains(refusal("a = 4:2; b"), "there is no function 'b'");
}

TEST(Tensor, Refusals) {
  EXPECT_EQ(refusal("slice((8,16):(16,1), (8,_))"), "the coordinate 8 lies outside [0, 8).");
  EXPECT_EQ(refusal("slice((8,16):(16,1), (_,_,1))"),
            "a coordinate of rank 3 does not fit (8,16):(1,8).");
  EXPECT_EQ(refusal("(8,_)"),
            "a _ by itself keeps a mode of a coordinate whole: it is no extent and no stride.");
  EXPECT_EQ(refusal("get_flat_coord((1,4,4,1), 16)"),
            "the index 16 lies outside of (1,4,4,1):(0,1,4,0), which has 16 elements.");
  EXPECT_EQ(refusal("group_modes((2,3,4), 1, 4)"),
            "group_modes: the end of the modes is 2 to 3, and argument 3 is 4.");
  EXPECT_EQ(refusal("local_tile((512,256):(256,1), (128,64), (4,0))"),
            "local_tile: there are 4 tiles along mode 0 of (512,256):(256,1), and tile 4 is asked "
            "for.");
  expect_contains(refusal("local_tile((512,256):(256,1), (128,256,64), (1,0,_))"), "(1,X,1)");
  EXPECT_EQ(refusal("smem_ptr[16](0x0) o 4:1"),
            "a pointer is written smem_ptr[16b](0x400), with its elements' bits, 1 to 128.");
  EXPECT_EQ(refusal("smem_ptr[16b](400) o 4:1"),
            "a pointer's address is written 0x400, or unset where it has none.");
  EXPECT_EQ(refusal("SM90_TMA_LOAD"),
            "SM90_TMA_LOAD is an instruction: make_tma_atom and make_copy_atom take it.");
}

}  // namespace
}  // namespace warpwright::layout
