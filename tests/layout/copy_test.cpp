// TiledCopy and the atoms of TMA copies.
#include "warpwright/layout/copy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cute_text.h"
#include "tests/draws.h"
#include "tests/layout/answers.h"
#include "tests/must.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

using tests::without_underscores;

// Each element of a tile belongs to one value of one thread, on both sides.
TEST(TiledCopy, PartsCoverATensorOnce) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tests::Draws draw(seed);
    const int rows = 1 << draw(0, 4);
    const int columns = 1 << draw(0, 3);
    const int values = 1 << draw(0, 3);
    const Layout threads = draw.rarely(2) ? make_layout(tuple(rows, columns))
                                          : make_layout(tuple(rows, columns), tuple(columns, 1));
    const bool along_rows = draw.rarely(2);
    const Layout block = along_rows ? make_layout(tuple(values, 1)) : make_layout(tuple(1, values));
    const TiledCopy copy = make_tiled_copy(vector_copy(values * 16, 16), threads, block);
    const std::int64_t m = draw(1, 3) * rows * (along_rows ? values : 1);
    const std::int64_t n = draw(1, 3) * columns * (along_rows ? 1 : values);
    const Layout tensor = make_layout(tuple(m, n), tuple(n, 1));
    for (const bool written : {false, true}) {
      std::vector<int> seen(static_cast<std::size_t>(m * n), 0);
      for (int t = 0; t < rows * columns; ++t) {
        const Slice part = written ? copy.partition_d(t, tensor) : copy.partition_s(t, tensor);
        for (std::int64_t i = 0; i < size(part.layout); ++i)
          ++seen.at(static_cast<std::size_t>(part.offset + part.layout(i)));
      }
      for (const int count : seen) ASSERT_EQ(count, 1) << to_text(copy.layout_tv);
    }
  }
}

TEST(TiledCopy, PrintsAsCuTe) {
  const TiledCopy copy = make_tiled_copy(
      vector_copy(128, 16), make_layout(tuple(16, 8), tuple(8, 1)), make_layout(tuple(1, 8)));
  EXPECT_EQ(to_text(Value(copy)),
            "TiledCopy\n"
            "  Tiler_MN:       (16,64)\n"
            "  TiledLayout_TV: ((8,16),8):((128,1),16)\n"
            "Copy_Atom\n"
            "  ThrID:        1:0\n"
            "  ValLayoutSrc: (1,8):(0,1)\n"
            "  ValLayoutDst: (1,8):(0,1)\n"
            "  ValLayoutRef: (1,8):(0,1)\n"
            "  ValueType:    16b");
  const Slice part = copy.partition_s(9, make_layout(tuple(128, 64), tuple(64, 1)));
  EXPECT_EQ(to_text(part.layout), "((8,1),8,1):((1,0),1024,0)");
  EXPECT_EQ(part.offset, 64 + 8);
}

// Example 3 of seed 000: A of 512 x 256 in tiles of 128 x 64, B in tiles of 256 x 64, shared by
// four CTAs. The addresses are those that it prints.
constexpr const char* kExample3 =
    "mA = gmem_ptr[16b](0x0) o (512,256):(256,1);"
    "mB = gmem_ptr[16b](0x0) o (1024,256):(256,1);"
    "sA = Sw<3,4,3>_smem_ptr[16b](0xfe2600000400) o ((128,16),1,4):((64,1),0,16);"
    "sB = Sw<3,4,3>_smem_ptr[16b](0xfe2600004400) o ((256,16),1,4):((64,1),0,16);"
    "atomA = make_tma_atom(SM90_TMA_LOAD_MULTICAST, mA, sA, (128,64), 4);"
    "atomB = make_tma_atom(SM90_TMA_LOAD_MULTICAST, mB, sB, (256,64), 4);"
    "mA = get_tma_tensor(atomA, (512,256));"
    "mB = get_tma_tensor(atomB, (1024,256));";

std::string example_3(const std::string& last) {
  return answer(kExample3 + last);
}

TEST(TmaAtom, PrintsOfSeed000) {
  const std::string a_of_cta = "gA = local_tile(mA, (128,256,64), (";
  const std::string rest =
      ",0,_), (1,X,1)); [tAgA, tAsA] = tma_partition(atomA, 0, 4, "
      "group_modes(sA,0,3), group_modes(gA,0,2)); ";
  EXPECT_EQ(example_3(a_of_cta + "0" + rest + "tAgA"),
            without_underscores("ArithTuple(0,0) o (((_64,_128),_1),4):(((_1@0,_1@1),_0),_64@0)"));
  EXPECT_EQ(
      example_3(a_of_cta + "0" + rest + "tAsA"),
      without_underscores("Sw<3,4,3>_smem_ptr[16b](0xfe2600000400) o ((_8192,_1)):((_1,_0))"));
  // CTA 1 has the tile of rows below, and the same slice of it.
  EXPECT_EQ(
      example_3(a_of_cta + "1" + rest + "tAgA"),
      without_underscores("ArithTuple(0,128) o (((_64,_128),_1),4):(((_1@0,_1@1),_0),_64@0)"));
  EXPECT_EQ(example_3("gB = local_tile(mB, (128,256,64), (0,0,_), (X,1,1)); "
                      "tma_partition(atomB, 0, 4, group_modes(sB,0,3), group_modes(gB,0,2))"),
            without_underscores(
                "gmem: ArithTuple(0,0) o (((_64,_256),_1),4):(((_1@0,_1@1),_0),_64@0)\n"
                "smem: Sw<3,4,3>_smem_ptr[16b](0xfe2600004400) o ((_16384,_1)):((_1,_0))"));
}

// The second of the four CTAs brings rows 32 to 63 of the tile, to their place.
TEST(TmaAtom, SlicesAreOffsets) {
  EXPECT_EQ(example_3("gA = local_tile(mA, (128,256,64), (1,0,_), (1,X,1)); tma_partition(atomA, "
                      "1, 4, group_modes(sA,0,3), group_modes(gA,0,2))"),
            "gmem: ArithTuple(0,160) o (((64,128),1),4):(((1@0,1@1),0),64@0)\n"
            "smem: Sw<3,4,3>_smem_ptr[16b](0xfe2600001400) o ((8192,1)):((1,0))");
}

// Seed 002: the tile of A of all stages, cut to one, and its atom and tensor.
TEST(TmaAtom, InterfaceOfSeed002) {
  const std::string setup =
      "mA = gmem_ptr[16b](0x0) o (1024,512,1):(512,1,0);"
      "staged = Sw<3,4,3> o smem_ptr[16b](unset) o ((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192));"
      "atom = make_tma_atom(SM90_TMA_LOAD_MULTICAST, slice(mA, (_,_,0)), slice(staged, (_,_,0)), "
      "(128,64), 2);"
      "gA = local_tile(get_tma_tensor(atom), (128,128,64), (1,0,_), (1,X,1));";
  EXPECT_EQ(answer(setup + "get_tma_tensor(atom)"), "ArithTuple(0,0) o (1024,512):(1@1,1@0)");
  EXPECT_EQ(answer(setup + "tma_partition(atom, 0, 2, group_modes(staged,0,2), "
                           "group_modes(gA,0,2))"),
            "gmem: ArithTuple(0,128) o (((64,128),1),8):(((1@0,1@1),0),64@0)\n"
            "smem: Sw<3,4,3> o smem_ptr[16b](unset) o ((8192,1),(1,4)):((1,0),(0,8192))");
}

// Wider tiles take several instructions: of 128 of K, two boxes of 64.
TEST(TmaAtom, BoxesOfASpan) {
  EXPECT_EQ(answer("mA = gmem_ptr[16b](0x0) o (512,256):(256,1); sA = "
                   "Sw<3,4,3>_smem_ptr[16b](0x0) o (128,(64,2)):(64,(1,8192)); atom = "
                   "make_tma_atom(SM90_TMA_LOAD, mA, sA, (128,128)); tma_partition(atom, 0, 1, "
                   "group_modes(sA,0,2), group_modes(local_tile(get_tma_tensor(atom), (128,128), "
                   "(0,_)), 0, 2))"),
            "gmem: ArithTuple(0,0) o (((64,128),2),2):(((1@0,1@1),64@0),128@0)\n"
            "smem: Sw<3,4,3>_smem_ptr[16b](0x0) o ((8192,2)):((1,8192))");
  // MN-major: the rows are the first component.
  EXPECT_EQ(answer("get_tma_tensor(make_tma_atom(SM90_TMA_LOAD, gmem_ptr[16b](0x0) o (512,256), "
                   "smem_ptr[16b](unset) o (64,32), (64,32)))"),
            "ArithTuple(0,0) o (512,256):(1@0,1@1)");
}

TEST(TmaAtom, Refusals) {
  EXPECT_EQ(
      refusal("make_tma_atom(SM90_TMA_LOAD, gmem_ptr[16b](0x0) o (512,256):(256,1), (128,64), "
              "(128,64))"),
      "make_tma_atom: shared memory and global memory are contiguous along different modes of "
      "(512,256):(256,1), and TMA transposes nothing.");
  EXPECT_EQ(refusal("make_tma_atom(SM90_TMA_LOAD, gmem_ptr[16b](0x0) o (512,256):(256,1), "
                    "(128,64):(64,1), (128,64), 4)"),
            "make_tma_atom: SM90_TMA_LOAD does not multicast: SM90_TMA_LOAD_MULTICAST copies to "
            "more CTAs than one.");
  EXPECT_EQ(refusal("make_tma_atom(SM90_TMA_LOAD, gmem_ptr[16b](0x0) o (512,256):(256,1), "
                    "(512,64):(64,1), (512,64))"),
            "make_tma_atom: a box has at most 256 elements along a mode, and here 512.");
  EXPECT_EQ(refusal("make_tma_atom(SM90_TMA_LOAD, (512,256):(256,1), (128,64):(64,1), (128,64))"),
            "make_tma_atom: argument 2 must be a tensor in memory, such as gmem_ptr[16b](0x0) o "
            "(512,256):(256,1), and it is a layout.");
  expect_contains(refusal("make_tma_atom(tma, 4, 4, 4)"), "there is no function 'tma'");
  expect_contains(
      refusal("make_tma_atom(SM100_TMA_2SM_LOAD, gmem_ptr[16b](0x0) o (512,256):(256,1), "
              "(128,64):(64,1), (128,64))"),
      "make_tma_atom_A_sm100");
  EXPECT_THROW(vector_copy(128, 24), Error);
  EXPECT_THROW(
      make_tiled_copy(vector_copy(128, 16), make_layout(tuple(8, 4)), make_layout(tuple(1, 4))),
      Error);
  const TiledCopy copy =
      make_tiled_copy(vector_copy(128, 16), make_layout(tuple(8, 4)), make_layout(tuple(1, 8)));
  EXPECT_THROW(copy.partition_s(32, make_layout(tuple(8, 32))), Error);
  EXPECT_THROW(copy.partition_s(0, make_layout(tuple(9, 32))), Error);
  EXPECT_THROW(copy.partition_s(0, make_layout(32)), Error);
}

}  // namespace
}  // namespace warpwright::layout
