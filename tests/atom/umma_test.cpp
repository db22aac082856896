#include "warpwright/atom/umma.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/cluster_layout.h"
#include "warpwright/atom/tcgen05_layout.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using layout::parse_layout;

// Every atom of the tree with K-major operands.
std::vector<UmmaAtom> legal_atoms() {
  constexpr std::pair<DType, DType> operands[] = {
      {DType::f16, DType::f16},   {DType::bf16, DType::bf16}, {DType::tf32, DType::tf32},
      {DType::e4m3, DType::e4m3}, {DType::e4m3, DType::e5m2}, {DType::e5m2, DType::e4m3},
      {DType::e5m2, DType::e5m2}};
  std::vector<UmmaAtom> atoms;
  for (const auto& [a, b] : operands) {
    for (const DType d : {DType::f16, DType::f32}) {
      for (const bool pair : {false, true}) {
        for (const int m : {64, 128, 256}) {
          for (int n = 8; n <= 256; n += 8) {
            const UmmaAtom atom = umma_atom(a, b, d, m, n, pair);
            if (umma_fault(atom) == nullptr) atoms.push_back(atom);
          }
        }
      }
    }
  }
  return atoms;
}

TEST(UmmaTest, LegalAtoms) {
  static_assert(umma_fault(umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 256, false)) ==
                nullptr);
  static_assert(umma_fault(umma_atom(DType::bf16, DType::bf16, DType::f32, 256, 256, true)) ==
                nullptr);
  // f16 and each fp8 pair have two D, bf16 and tf32 one: 1*2 + 4*2 + 2 = 12 operand sets; one CTA
  // has 2 x 32 shapes, a pair 2 x 16.
  EXPECT_EQ(legal_atoms().size(), 12U * (2 * 32 + 2 * 16));
}

TEST(UmmaTest, RefusedAtoms) {
  const auto refused = [](UmmaAtom atom) { return umma_fault(atom) != nullptr; };
  const auto bf16 = [](int m, int n, bool pair) {
    return umma_atom(DType::bf16, DType::bf16, DType::f32, m, n, pair);
  };
  EXPECT_TRUE(refused(bf16(256, 128, false)));
  EXPECT_TRUE(refused(bf16(64, 128, true)));
  EXPECT_TRUE(refused(bf16(32, 128, false)));
  for (const int n : {-8, 0, 4, 12, 264}) EXPECT_TRUE(refused(bf16(128, n, false)));
  for (const int n : {8, 24, 272}) EXPECT_TRUE(refused(bf16(256, n, true)));
  EXPECT_TRUE(refused(umma_atom(DType::bf16, DType::bf16, DType::f16, 128, 64, false)));
  EXPECT_TRUE(refused(umma_atom(DType::tf32, DType::tf32, DType::f16, 128, 64, false)));
  EXPECT_TRUE(refused(umma_atom(DType::f16, DType::bf16, DType::f32, 128, 64, false)));
  EXPECT_TRUE(refused(umma_atom(DType::f16, DType::e4m3, DType::f32, 128, 64, false)));
  EXPECT_TRUE(refused(umma_atom(DType::f32, DType::f32, DType::f32, 128, 64, false)));
  UmmaAtom atom = bf16(128, 64, false);
  atom.kind = UmmaKind::f8f6f4;
  EXPECT_STREQ(umma_fault(atom),
               "the kind does not multiply these types: f16 takes f16 and bf16, tf32 tf32, f8f6f4 "
               "and mxf8f6f4 e4m3, e5m2, e2m3, e3m2 and e2m1, mxf4 and mxf4nvf4 e2m1");
  atom = bf16(128, 64, false);
  atom.k = 8;
  EXPECT_TRUE(refused(atom));
  atom = umma_atom(DType::e4m3, DType::e5m2, DType::f32, 128, 24, false);
  EXPECT_FALSE(refused(atom));
  atom.b_major = Major::mn;  // steps of 16
  EXPECT_TRUE(refused(atom));
  atom.n = 32;
  EXPECT_FALSE(refused(atom));
}

TEST(UmmaTest, InstructionDescriptors) {
  // 128 x 256 x 16, bf16 into f32: D 1 at 4, A 1 at 7, B 1 at 10, N 32 at 17, M 8 at 24.
  static_assert(encode_instruction(umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 256,
                                             false)) == 0x08400490);
  static_assert(encode_instruction(umma_atom(DType::f16, DType::f16, DType::f16, 64, 8, false)) ==
                0x04020000);
  for (const UmmaAtom& atom : legal_atoms()) {
    for (const auto& [a, b] : {std::pair{Major::k, Major::k}, {Major::mn, Major::k}}) {
      UmmaAtom one = atom;
      one.a_major = a;
      one.b_major = b;
      const std::uint32_t word = encode_instruction(one);
      ASSERT_EQ(decode_instruction(word, one.kind, one.pair), one);
      ASSERT_EQ(instruction_fault(word, one.kind, one.pair), nullptr);
    }
  }
}

TEST(UmmaTest, InstructionDescriptorsRefused) {
  const std::uint32_t word =
      encode_instruction(umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 256, false));
  EXPECT_EQ(instruction_fault(word, UmmaKind::f16, false), nullptr);
  EXPECT_NE(instruction_fault(word, UmmaKind::tf32, false), nullptr) << "type codes";
  for (const int bit : {0, 2, 3, 6, 13, 14, 23, 29, 30}) {
    EXPECT_NE(instruction_fault(word | 1U << bit, UmmaKind::f16, false), nullptr) << bit;
  }
  EXPECT_NE(instruction_fault((word & ~(31U << 24)) | 16U << 24, UmmaKind::f16, false), nullptr);
  EXPECT_EQ(instruction_fault((word & ~(31U << 24)) | 16U << 24, UmmaKind::f16, true), nullptr);
  EXPECT_NE(instruction_fault(word | 2U << 4, UmmaKind::f16, false), nullptr) << "D is s32";
}

TEST(UmmaTest, SharedMemoryDescriptors) {
  const OperandTile tile{128, 64, 16, Major::k, SmemSwizzle::b128};
  const Descriptor d = descriptor(tile, 0x1400);
  // start 0x140, LBO 1, SBO 64 (1024 bytes), version 1 at 46, swizzle 2 at 61.
  EXPECT_EQ(encode_umma(d), 0x4000404000010140U);
  for (const SmemSwizzle swizzle :
       {SmemSwizzle::none, SmemSwizzle::b32, SmemSwizzle::b64, SmemSwizzle::b128}) {
    Descriptor one = d;
    one.swizzle = swizzle;
    EXPECT_EQ(decode_umma(encode_umma(one)), one);
    EXPECT_EQ(umma_descriptor_fault(encode_umma(one)), nullptr);
  }
  EXPECT_EQ(decode_umma(advance(encode_umma(d), 32)).start, d.start + 32);
  EXPECT_NE(umma_descriptor_fault(encode(d)), nullptr) << "a wgmma word is no tcgen05 word";
  const std::uint64_t word = encode_umma(d);
  for (const int bit : {14, 30, 47, 49, 52, 53, 60, 61}) {
    EXPECT_NE(umma_descriptor_fault(word | std::uint64_t{1} << bit), nullptr) << bit;
  }
}

TEST(UmmaTest, AccumulatorCellsAreDistinct) {
  for (const UmmaAtom& atom : legal_atoms()) {
    if (atom.a != DType::f16 || atom.d != DType::f32) continue;
    std::set<std::pair<int, int>> seen;
    for (int row = 0; row < umma_cta_rows(atom); ++row) {
      for (int col = 0; col < atom.n; ++col) {
        const TmemCell cell = umma_cell(atom, row, col);
        ASSERT_TRUE(cell.lane >= 0 && cell.lane < kTmemLanes);
        ASSERT_TRUE(cell.column >= 0 && cell.column < umma_columns(atom));
        ASSERT_TRUE(seen.insert({cell.lane, cell.column}).second);
      }
    }
  }
}

TEST(UmmaTest, AccumulatorCells) {
  const auto atom = [](int m, bool pair) {
    return umma_atom(DType::bf16, DType::bf16, DType::f32, m, 64, pair);
  };
  EXPECT_EQ(umma_cell(atom(128, false), 77, 5), (TmemCell{77, 5}));
  EXPECT_EQ(umma_cell(atom(256, true), 77, 5), (TmemCell{77, 5}));
  EXPECT_EQ(umma_cell(atom(64, false), 17, 5), (TmemCell{33, 5}));
  EXPECT_EQ(umma_cell(atom(64, false), 63, 63), (TmemCell{111, 63}));
  EXPECT_EQ(umma_cell(atom(128, true), 3, 31), (TmemCell{3, 31}));
  EXPECT_EQ(umma_cell(atom(128, true), 3, 33), (TmemCell{67, 1}));
  EXPECT_EQ(tmem_address(33, 5), 0x210005U);
  EXPECT_EQ(tmem_lane(0x210005U), 33);
  EXPECT_EQ(tmem_column(0x210005U), 5);
}

TEST(UmmaTest, Allocations) {
  static_assert(tmem_allocation(1) == 32 && tmem_allocation(32) == 32);
  static_assert(tmem_allocation(33) == 64 && tmem_allocation(257) == 512);
  static_assert(tmem_allocation(512) == 512 && tmem_allocation(513) == 0);
}

// What the first seed prints of a pair's TiledMMA of 256 x 256 x 16 and its 4 x 4 cluster.
TEST(UmmaTest, PairAsTheSeedPrintsIt) {
  EXPECT_EQ(tcgen05_thr_id(true), parse_layout("_2:_1"));
  EXPECT_EQ(tcgen05_layout_c_tv(256, 256, true), parse_layout("(_2,(_128,_256)):(_128,(_1,_256))"));
  const layout::Layout cluster = cluster_layout_vmnk({4, 4}, true);
  EXPECT_EQ(layout::to_text(cluster), "((2),2,4,1):((1),2,4,0)");
  EXPECT_EQ(masks({4, 4}, 0, true), (Masks{0x1111, 0x0005, 0x333f, 5}));
}

TEST(UmmaTest, OneSmAsTheSeedPrintsIt) {
  EXPECT_EQ(tcgen05_thr_id(false), parse_layout("_1:_0"));
  EXPECT_EQ(masks({4, 4}, 0, false), (Masks{0x1111, 0x000f, 0x111f, 7}));
}

// The pair atom gives each CTA half of B's columns, all of them once (CUTLASS PR 3314 is about an
// atom that gave both CTAs all of N).
TEST(UmmaTest, PairSplitsBOnce) {
  const int n = 256;
  const int k = 16;
  const layout::Layout tv = tcgen05_layout_b_tv(n, k, true);
  std::vector<int> holders(n * k, 0);
  for (int cta = 0; cta < 2; ++cta) {
    for (int value = 0; value < n / 2 * k; ++value) {
      const int element = tv(cta, value);
      EXPECT_EQ(element % n / (n / 2), cta);
      ++holders[static_cast<std::size_t>(element)];
    }
  }
  EXPECT_EQ(holders, std::vector<int>(n * k, 1));
}

}  // namespace
}  // namespace warpwright::atom
