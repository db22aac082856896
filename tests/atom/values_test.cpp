// Values that know instructions: what the seeds print of partitions, fragments and copies.
#include "warpwright/atom/values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cute_text.h"
#include "tests/must.h"
#include "warpwright/atom/copy_atoms.h"
#include "warpwright/atom/descriptor_text.h"
#include "warpwright/atom/ldmatrix.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using layout::parse_layout;
using layout::tuple;
using tests::without_underscores;

std::string answer(const TiledMma& mma, const std::string& expression, int thread = 0) {
  std::vector<layout::Function> functions = mma_functions(mma, thread);
  for (const layout::Function& f : copy_functions()) functions.push_back(f);
  return layout::to_text(layout::evaluate(expression, functions));
}

std::string refusal(const TiledMma& mma, const std::string& expression) {
  try {
    ADD_FAILURE() << expression << " gave " << answer(mma, expression);
    return {};
  } catch (const layout::Error& error) {
    return error.what();
  }
}

TiledMma tiled(const char* kind, const char* shape, const char* copies = "(1,1)") {
  return make_tiled_mma(parse_mma(kind, shape), parse_layout(copies));
}

// Pages 50 to 52: two warpgroups, A of 4 bits in shared memory, multiplied as e4m3 out of
// registers. Its swizzle turns bits 5 and 6 of an element's offset by the row, so K of 4 MMAs is
// (2,2), whose steps are a thread's own.
TiledMma of_the_deck() {
  Mma mma = parse_mma("wgmma_rs", "m64n16k32");
  mma.a = mma.b = DType::e4m3;
  return make_tiled_mma(mma, parse_layout("(2,1)"));
}
constexpr const char* kDeckA =
    "sA = Sw<2,5,3> o 0 o ((8,16),(128,1),1,19):((128,1024),(1,0),0,16384); ";
constexpr const char* kDeckB =
    "sB = Sw<3,4,3>_smem_ptr[8b](0x0) o ((8,2),(128,1),1,19):((128,1024),(1,0),0,2048); ";

TEST(MmaValues, FragmentsOfTheDeck) {
  const TiledMma mma = of_the_deck();
  const std::string sA = kDeckA;
  EXPECT_EQ(
      answer(mma, sA + "partition_A(sA)"),
      without_underscores("((_4,_2,_2),_1,(_2,_2),_1,_19)") + ":((1,1024,16),0,(32,64),0,16384)");
  EXPECT_EQ(answer(mma, sA + "partition_fragment_A(slice(sA, (_,_,0,0)))"),
            without_underscores("((_4,_2,_2),_1,(_2,_2)):((_1,_4,_8),_0,(_16,_32))"));
  // The accumulators of page 54: ((2,2,2),1,1), and page 49's sB by descriptors of 16 bytes.
  EXPECT_EQ(answer(mma, "partition_fragment_C((128,16))"),
            without_underscores("((_2,_2,_2),_1,_1):((_1,_2,_4),_0,_0)"));
  EXPECT_EQ(answer(mma, std::string(kDeckB) + "make_fragment_B(partition_B(sB))"),
            "GMMA::DescriptorIterator o (1,1,4,1,19):(0,0,2,0,128)");
  // Another row goes the other way, and the second warpgroup has the rows behind.
  EXPECT_EQ(answer(mma, sA + "partition_A(sA, 31)"),
            "1004 o ((4,2,2),1,(2,2),1,19):((1,1024,16),0,(-32,-64),0,16384)");
  EXPECT_EQ(answer(mma, sA + "partition_A(sA)", 128),
            "8192 o ((4,2,2),1,(2,2),1,19):((1,1024,16),0,(32,64),0,16384)");
  // As CuTe nests the stages, and without a swizzle.
  EXPECT_EQ(answer(mma, "partition_A(((8,16),(128,1),(1,19)):((128,1024),(1,0),(0,16384)))"),
            "((4,2,2),1,4,(1,19)):((1,1024,16),0,32,(0,16384))");
}

// The MMA tiles of seed 000's pair, and what a CTA has of them.
TEST(MmaValues, PartitionsOfThePair) {
  const TiledMma pair = tiled("tcgen05_pair", "m256n256k16");
  const std::string setup =
      "mA = ArithTuple(0,0) o (1024,256):(1@1,1@0); mC = (1024,1024):(1024,1);"
      "gA = local_tile(mA, (256,256,64), (0,0,_), (1,X,1));"
      "gC = local_tile(mC, (256,256,64), (0,0,_), (1,1,X));";
  EXPECT_EQ(answer(pair, setup + "gA"), "ArithTuple(0,0) o (256,64,4):(1@1,1@0,64@0)");
  EXPECT_EQ(answer(pair, setup + "partition_A(gA)"),
            "ArithTuple(0,0) o ((128,16),1,4,4):((1@1,1@0),0,16@0,64@0)");
  EXPECT_EQ(answer(pair, setup + "partition_A(gA, 1)"),
            "ArithTuple(0,128) o ((128,16),1,4,4):((1@1,1@0),0,16@0,64@0)");
  EXPECT_EQ(answer(pair, setup + "partition_C(gC)"), "((128,256),1,1):((1024,1),0,0)");
  EXPECT_EQ(answer(pair, setup + "partition_fragment_C(gC)"),
            "tmem_[32b](0x0000.0000) o ((128,256),1,1):((65536,1),0,0)");
  EXPECT_EQ(answer(pair, "make_fragment_A(smem_ptr[16b](0x0) o ((128,16),1,4):((64,1),0,16))"),
            "UMMA::DescriptorIterator o (1,1,4):(0,0,2)");
}

// tma_atom_A of its example 4.
TEST(MmaValues, AtomOfThePair) {
  const TiledMma pair = tiled("tcgen05_pair", "m256n256k16");
  const std::string atom =
      "mA = gmem_ptr[16b](0x0) o (1024,256):(256,1);"
      "sA = Sw<3,4,3> o smem_ptr[16b](unset) o ((128,16),1,4):((64,1),0,16);"
      "tma_atom_A = make_tma_atom_A_sm100(SM100_TMA_2SM_LOAD_MULTICAST, mA, sA, (256,256,64), "
      "tiled_divide((4,4,1), <2:1>)); ";
  EXPECT_EQ("tma_atom_A: " + answer(pair, atom + "tma_atom_A"),
            without_underscores("tma_atom_A: Copy_Atom\n"
                                "  ThrID:        _2:_1\n"
                                "  ValLayoutSrc: (_2,_8192):(_8192,_1)\n"
                                "  ValLayoutDst: (_2,_8192):(_8192,_1)\n"
                                "  ValLayoutRef: (_2,_8192):(_8192,_1)\n"
                                "  ValueType:    16b"));
  // The odd CTA brings its own rows: 128 to 255.
  EXPECT_EQ(answer(pair, atom + "tCgA = partition_A(local_tile(get_tma_tensor(tma_atom_A), "
                                "(256,256,64), (0,0,_), (1,X,1)), 1);"
                                "tma_partition(tma_atom_A, 0, 4, group_modes(sA,0,3), "
                                "group_modes(tCgA,0,3))"),
            "gmem: ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)\n"
            "smem: Sw<3,4,3> o smem_ptr[16b](unset) o ((8192,1)):((1,0))");
}

// tAgA of its example 3 through the MMA's partition, as its listing has it.
TEST(MmaValues, PartitionsOfExample3) {
  const TiledMma mma = tiled("tcgen05", "m128n256k16");
  EXPECT_EQ(answer(mma,
                   "mA = gmem_ptr[16b](0x0) o (512,256):(256,1);"
                   "tCsA = Sw<3,4,3>_smem_ptr[16b](0xfe2600000400) o ((128,16),1,4):((64,1),0,16);"
                   "tma_atom_A = make_tma_atom(SM90_TMA_LOAD_MULTICAST, mA, tCsA, (128,64), 4);"
                   "tCgA = partition_A(local_tile(get_tma_tensor(tma_atom_A), (128,256,64), "
                   "(1,0,_), (1,X,1)));"
                   "tma_partition(tma_atom_A, 0, 4, group_modes(tCsA,0,3), group_modes(tCgA,0,3))"),
            without_underscores(
                "gmem: ArithTuple(0,128) o (((_64,_128),_1),4):(((_1@0,_1@1),_0),_64@0)\n"
                "smem: Sw<3,4,3>_smem_ptr[16b](0xfe2600000400) o ((_8192,_1)):((_1,_0))"));
}

// Seed 003: A by the rows of quad pairs 0, 1 and 2, 3; C over the warp.
TEST(MmaValues, QuadPairs) {
  Mma mma = parse_mma("mma", "m8n8k4");
  mma.a_major = mma.b_major = Major::mn;
  const TiledMma four = make_tiled_mma(mma, parse_layout("(2,2):(2,1)"));
  for (int lane = 0; lane < 32; ++lane) {
    const int quad_pair = lane / 4 % 4;
    const int t = lane % 4 + lane / 16 * 4;
    const int first = quad_pair / 2 * 8 + t / 4 * 4 + t % 4 * 16;
    EXPECT_EQ(answer(four, "partition_A((16,4))", lane),
              (first == 0 ? "" : std::to_string(first) + " o ") + "(4,1,1):(1,0,0)");
  }
  EXPECT_EQ(answer(four, "partition_fragment_C((16,16))"), "((2,2,2),1,1):((1,2,4),0,0)");
}

TEST(CopyAtoms, LdmatrixIsItsRule) {
  for (const int matrices : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const layout::CopyAtom atom = ldmatrix_atom(matrices, 16, transposed);
      for (int lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(atom.src(lane, 0), 8 * (lane % (8 * matrices)));
        for (int matrix = 0; matrix < matrices; ++matrix) {
          for (int half = 0; half < 2; ++half) {
            const int row = matrix_row(lane, half);
            const int column = matrix_col(lane, half);
            EXPECT_EQ(atom.dst(lane, 2 * matrix + half),
                      64 * matrix + (transposed ? 8 * column + row : 8 * row + column));
          }
        }
      }
    }
  }
  EXPECT_EQ(layout::to_text(layout::Value(ldmatrix_atom(4, 16))),
            "Copy_Atom\n"
            "  ThrID:        32:1\n"
            "  ValLayoutSrc: (32,8):(8,1)\n"
            "  ValLayoutDst: (32,(2,4)):(2,(1,64))\n"
            "  ValLayoutRef: (32,(2,4)):(2,(1,64))\n"
            "  ValueType:    16b");
}

// What ldmatrix leaves in a TiledCopy's registers is what the MMA takes.
TEST(CopyAtoms, LdmatrixFillsFragments) {
  for (const char* copies : {"(1,1)", "(2,2)", "(4,2):(1,4)"}) {
    const layout::Layout threads = parse_layout(copies);
    layout::Tiler order;
    order.add(layout::Layout{}, true);
    order.add(layout::make_layout(16 * layout::size(threads, 1)));
    const TiledMma mma = make_tiled_mma(parse_mma("mma", "m16n8k16"), threads, order);
    const layout::TiledCopy a = make_tiled_copy_a(ldmatrix_atom(4, 16), mma);
    const layout::TiledCopy b = make_tiled_copy_b(ldmatrix_atom(4, 16), mma);
    for (int thread = 0; thread < mma.thread_count(); ++thread) {
      for (int v = 0; v < 8; ++v) {
        EXPECT_EQ(a.layout_d_tv()(thread, v), mma.layout_a_tv()(thread, v));
        EXPECT_EQ(b.layout_d_tv()(thread, v), mma.layout_b_tv()(thread, v));
      }
    }
  }
}

TEST(CopyAtoms, Words) {
  const TiledMma mma = tiled("mma", "m16n8k16", "(2,2)");
  EXPECT_EQ(answer(mma, "make_copy_atom(SM80_CP_ASYNC_CACHEGLOBAL, 16)"),
            "Copy_Atom\n"
            "  ThrID:        1:0\n"
            "  ValLayoutSrc: (1,8):(0,1)\n"
            "  ValLayoutDst: (1,8):(0,1)\n"
            "  ValLayoutRef: (1,8):(0,1)\n"
            "  ValueType:    16b");
  EXPECT_EQ(answer(mma,
                   "partition_S(make_tiled_copy_A(make_copy_atom(SM75_U32x4_LDSM_N, 16)), 37, "
                   "(128,32):(32,1))"),
            "672 o ((8,1),4,2):((1,0),1024,16)");
  expect_contains(refusal(mma, "make_copy_atom(SM90_TMA_LOAD, 16)"), "SM75_U32x4_LDSM_N");
  expect_contains(refusal(mma, "make_copy_atom(SM75_U32x4_LDSM_N, 4)"), "8, 16 or 32 bits");
  expect_contains(refusal(mma, "make_copy_atom(SM80_CP_ASYNC_CACHEALWAYS, 16, 96)"), "4, 8 or 16");
  expect_contains(refusal(mma, "make_tma_atom_A_sm100(1,2,3,4,5)"), "there is no function");
  EXPECT_EQ(refusal(mma, "partition_A((128,32), 128)"),
            "partition_A: a thread is 0 to 127, and argument 2 is 128.");
  expect_contains(refusal(mma, "partition_A((100,32))"), "is no multiple of the 32");
}

// Cells of tensor memory, by the rule that kernels use.
TEST(MmaValues, TensorMemory) {
  for (const auto& [kind, shape] :
       {std::pair("tcgen05", "m64n96k16"), std::pair("tcgen05", "m128n64k16"),
        std::pair("tcgen05_pair", "m128n128k16"), std::pair("tcgen05_pair", "m256n64k16")}) {
    const TiledMma mma = tiled(kind, shape);
    const UmmaAtom atom = umma_of(mma.atom);
    const layout::Value part =
        partition(mma, 'C', layout::make_layout(tuple(2 * atom.m, atom.n)), 0);
    const layout::Tensor cells = std::get<layout::Tensor>(fragment(mma, 'C', part));
    for (int m = 0; m < 2; ++m) {
      for (int row = 0; row < umma_cta_rows(atom); ++row) {
        for (int column = 0; column < atom.n; ++column) {
          const TmemCell cell = umma_cell(atom, row, column);
          ASSERT_EQ(cells.layout(tuple(tuple(row, column), m, 0)),
                    tmem_address(cell.lane, cell.column + m * umma_columns(atom)))
              << shape;
        }
      }
    }
  }
  expect_contains(refusal(tiled("tcgen05", "m128n256k16"), "partition_fragment_C((128,1024))"),
                  "tensor memory has 512 columns, and these sums take 1024");
}

// Page 24: what the fields of a descriptor are, and where the swizzle leaves 16 bytes.
TEST(DescriptorText, FieldsAndSwizzle) {
  const std::string text =
      print(operand_descriptor(parse_mma("wgmma", "m64n128k16"), 'B', SmemSwizzle::b128, 0));
  EXPECT_EQ(text,
            "Descriptor of B: 128 x 64 f16, K-major, swizzle 128B (Sw<3,4,3> of byte addresses), "
            "16384 bytes\n"
            "  field                 bits    value\n"
            "  start address         13-0    0       address / 16\n"
            "  leading byte offset   29-16   1       16 bytes, not read\n"
            "  stride byte offset    45-32   64      1024 bytes, to the next 8 rows\n"
            "  base offset           51-49   0       the tile begins where its swizzle repeats\n"
            "  swizzle               63-62   1       128B\n"
            "k_blocks: bytes to where each begins, and its word\n"
            "  k_block   K       start   descriptor\n"
            "  0         0-15    +0      0x4000004000010000\n"
            "  1         16-31   +32     0x4000004000010002\n"
            "  2         32-47   +64     0x4000004000010004\n"
            "  3         48-63   +96     0x4000004000010006\n"
            "Chunks of 16 bytes: where each of a span's lies, of 8 rows\n"
            "  row   0   1   2   3   4   5   6   7\n"
            "  0     0   1   2   3   4   5   6   7\n"
            "  1     1   0   3   2   5   4   7   6\n"
            "  2     2   3   0   1   6   7   4   5\n"
            "  3     3   2   1   0   7   6   5   4\n"
            "  4     4   5   6   7   0   1   2   3\n"
            "  5     5   4   7   6   1   0   3   2\n"
            "  6     6   7   4   5   2   3   0   1\n"
            "  7     7   6   5   4   3   2   1   0\n");
  const OperandDescriptor pair =
      operand_descriptor(parse_mma("tcgen05_pair", "m256n256k16"), 'A', SmemSwizzle::b64, 64);
  EXPECT_EQ(pair.tile.rows, 128);
  EXPECT_EQ(pair.starts, (std::vector<std::uint32_t>{0, 32, 8192, 8224}));
  EXPECT_EQ(decode_umma(pair.words[2]).start, 8192U);
  EXPECT_THROW(operand_descriptor(parse_mma("wgmma_rs", "m64n8k16"), 'A', SmemSwizzle::b128, 0),
               layout::Error);
  EXPECT_THROW(operand_descriptor(parse_mma("wgmma", "m64n8k16"), 'A', SmemSwizzle::b128, 48),
               layout::Error);
  EXPECT_THROW(operand_descriptor(parse_mma("wgmma", "m64n8k16"), 'C', SmemSwizzle::b128, 0),
               layout::Error);
  EXPECT_THROW(parse_swizzle("128"), layout::Error);
}

}  // namespace
}  // namespace warpwright::atom
