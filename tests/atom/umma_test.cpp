#include "warpwright/atom/umma.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/atom/cluster_layout.h"
#include "warpwright/atom/tcgen05_layout.h"
#include "warpwright/atom/umma_scaled.h"
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
               "and mxf8f6f4 e4m3, e5m2, e2m3, e3m2 and e2m1, i8 s8 and u8, mxf4 and mxf4nvf4 "
               "e2m1");
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

// Integers: 2 x 2 types; N of one CTA 8, 24 and the 16 multiples of 16, of a pair 8 of 32.
TEST(UmmaTest, IntegerAtoms) {
  std::set<std::uint32_t> words;
  for (const DType a : {DType::s8, DType::u8}) {
    for (const DType b : {DType::s8, DType::u8}) {
      for (const bool pair : {false, true}) {
        for (int m = 32; m <= 256; m *= 2) {
          for (int n = 8; n <= 256; n += 8) {
            UmmaAtom atom = umma_atom(a, b, DType::s32, m, n, pair);
            atom.saturates = a == DType::u8;
            if (umma_fault(atom) != nullptr) continue;
            EXPECT_EQ(decode_instruction(encode_instruction(atom), UmmaKind::i8, pair), atom);
            EXPECT_EQ(instruction_fault(encode_instruction(atom), UmmaKind::i8, pair), nullptr);
            words.insert(encode_instruction(atom) << 1 | (pair ? 1U : 0U));
          }
        }
      }
    }
  }
  EXPECT_EQ(words.size(), 4U * (2 * 18 + 2 * 8));
  UmmaAtom atom = umma_atom(DType::s8, DType::u8, DType::s32, 128, 24, false);
  EXPECT_EQ(encode_instruction(atom), 2U << 4 | 1U << 7 | 3U << 17 | 8U << 24);
  EXPECT_EQ(umma_fault(atom), nullptr);
  atom.b_major = Major::mn;
  EXPECT_NE(umma_fault(atom), nullptr);
  atom = umma_atom(DType::s8, DType::s8, DType::f32, 128, 32, false);
  EXPECT_STREQ(umma_fault(atom), "an MMA of kind i8 accumulates in s32");
  atom = umma_atom(DType::f16, DType::f16, DType::f32, 128, 32, false);
  atom.saturates = true;
  EXPECT_STREQ(umma_fault(atom), "only kind i8 saturates");
}

// Where weights stay, parts of N lie in lanes of their own.
TEST(UmmaTest, CellsWhereWeightsStay) {
  for (const int m : {32, 64, 128}) {
    UmmaAtom atom = umma_atom(DType::bf16, DType::bf16, DType::f32, m, 64, false);
    atom.weights_stay = true;
    EXPECT_EQ(umma_fault(atom), nullptr);
    EXPECT_EQ(umma_columns(atom), m / 2);
    std::set<std::pair<int, int>> cells;
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < 64; ++column) {
        const TmemCell cell = umma_cell(atom, row, column);
        EXPECT_EQ(cell.lane % m, row);
        cells.emplace(cell.lane, cell.column);
      }
    }
    EXPECT_EQ(cells.size(), static_cast<std::size_t>(64 * m));
    atom.n = 96;
    EXPECT_STREQ(umma_fault(atom), "N of tcgen05.mma.ws is 64, 128 or 256");
  }
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

// --- block-scaled atoms -------------------------------------------------------------------------

UmmaAtom nv(int m, int n, bool pair) {
  return scaled_umma_atom(UmmaKind::mxf4nvf4, DType::e2m1, DType::e2m1, m, n, pair, 16,
                          DType::ue4m3);
}
UmmaAtom mx8(int m, int n, bool pair) {
  return scaled_umma_atom(UmmaKind::mxf8f6f4, DType::e4m3, DType::e2m1, m, n, pair);
}
UmmaAtom with_k(UmmaAtom atom, int k) {
  atom.k = k;
  return atom;
}

TEST(ScaledUmmaTest, Shapes) {
  const auto legal = [](const UmmaAtom& atom) { return umma_fault(atom) == nullptr; };
  for (const auto& of : {nv, mx8}) {
    for (int n = 8; n <= 256; n += 8) {
      EXPECT_TRUE(legal(of(128, n, false))) << n;
      EXPECT_EQ(legal(of(256, n, true)), n % 16 == 0) << n;
      EXPECT_EQ(legal(of(128, n, true)), n % 16 == 0) << n;
    }
    for (const int n : {0, 4, 12, 264}) EXPECT_FALSE(legal(of(128, n, false))) << n;
    EXPECT_FALSE(legal(of(64, 64, false)));
    EXPECT_FALSE(legal(of(256, 64, false)));
    EXPECT_FALSE(legal(of(64, 64, true)));
  }
  EXPECT_TRUE(legal(with_k(nv(128, 48, false), 96)));
  EXPECT_TRUE(legal(with_k(nv(256, 48, true), 96)));
  EXPECT_FALSE(legal(with_k(nv(128, 48, true), 96))) << "pairs of K 96 have 256 rows";
  EXPECT_FALSE(legal(with_k(nv(128, 24, false), 96))) << "steps of 16";
  EXPECT_FALSE(legal(with_k(nv(128, 48, false), 32)));
  EXPECT_FALSE(legal(with_k(mx8(128, 48, false), 96))) << "only packed kinds";
}

TEST(ScaledUmmaTest, TypesScalesAndMajors) {
  const auto faults = [](UmmaKind kind, DType a, int block, DType scale) {
    return umma_fault(scaled_umma_atom(kind, a, a, 128, 64, false, block, scale)) != nullptr;
  };
  using enum DType;
  EXPECT_FALSE(faults(UmmaKind::mxf4nvf4, e2m1, 32, ue8m0));
  EXPECT_FALSE(faults(UmmaKind::mxf4nvf4, e2m1, 16, ue8m0));
  EXPECT_FALSE(faults(UmmaKind::mxf4nvf4, e2m1, 16, ue4m3));
  EXPECT_TRUE(faults(UmmaKind::mxf4nvf4, e2m1, 32, ue4m3));
  EXPECT_TRUE(faults(UmmaKind::mxf4nvf4, e2m1, 8, ue8m0));
  EXPECT_TRUE(faults(UmmaKind::mxf4nvf4, e2m1, 0, ue8m0));
  EXPECT_TRUE(faults(UmmaKind::mxf4, e2m1, 16, ue8m0));
  EXPECT_TRUE(faults(UmmaKind::mxf4, e4m3, 32, ue8m0));
  EXPECT_TRUE(faults(UmmaKind::mxf8f6f4, e4m3, 32, ue4m3));
  EXPECT_TRUE(faults(UmmaKind::mxf8f6f4, f16, 32, ue8m0));
  UmmaAtom atom = mx8(128, 16, false);
  atom.b_major = Major::mn;
  EXPECT_EQ(umma_fault(atom), nullptr);
  atom.n = 24;
  EXPECT_NE(umma_fault(atom), nullptr) << "steps of 16 where B's bytes are MN-major";
  atom = nv(128, 64, false);
  atom.a_major = Major::mn;
  EXPECT_STREQ(umma_fault(atom), "kinds mxf4 and mxf4nvf4 take only K-major A and B");
  atom = umma_atom(e4m3, e2m1, f32, 64, 8, false);
  EXPECT_EQ(umma_fault(atom), nullptr) << "f8f6f4 mixes widths";
  atom.scale_block = 32;
  EXPECT_NE(umma_fault(atom), nullptr);
}

TEST(ScaledUmmaTest, Words) {
  // 128 x 64 x 32, e4m3 x e2m1 (0, 5 at 10), N 8 at 17, ue8m0 at 23, M 1 at 27.
  EXPECT_EQ(encode_instruction(mx8(128, 64, false)), 0x08901400U);
  // e2m1 is 1 of the packed kinds, ue4m3 0; M 2 at 27; K 96 at 31.
  EXPECT_EQ(encode_instruction(with_k(nv(256, 256, true), 96)), 0x90400480U);
  EXPECT_EQ(with_scale_ids(0, 2, 1), 2U << 29 | 1U << 4);
  EXPECT_EQ(with_scale_ids(~0U, 0, 0), ~(3U << 29 | 3U << 4));
  EXPECT_EQ(scale_ids(with_scale_ids(0, 3, 2)), (ScaleIds{3, 2}));
  for (const UmmaAtom& atom :
       {mx8(128, 64, false), mx8(256, 48, true), nv(128, 256, false), with_k(nv(256, 48, true), 96),
        scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128, 8, false)}) {
    const std::uint32_t word = encode_instruction(atom);
    EXPECT_EQ(decode_instruction(word, atom.kind, atom.pair, atom.scale_block), atom);
    EXPECT_EQ(instruction_fault(word, atom.kind, atom.pair, atom.scale_block), nullptr);
    EXPECT_NE(instruction_fault(word, atom.kind, atom.pair, 8), nullptr);
    for (const int bit : {0, 1, 2, 3, 6, 13, 14, 24, 25, 26}) {
      EXPECT_NE(instruction_fault(word | 1U << bit, atom.kind, atom.pair, atom.scale_block),
                nullptr)
          << bit;
    }
  }
  const std::uint32_t word = encode_instruction(mx8(128, 64, false));
  EXPECT_NE(instruction_fault(word ^ 1U << 23, UmmaKind::mxf8f6f4, false, 32), nullptr) << "ue4m3";
  EXPECT_NE(instruction_fault(word | 1U << 31, UmmaKind::mxf8f6f4, false, 32), nullptr) << "K";
  EXPECT_NE(instruction_fault(word | 7U << 7, UmmaKind::mxf8f6f4, false, 32), nullptr) << "type";
}

TEST(ScaledUmmaTest, IdsOfScales) {
  const auto ids = [](const UmmaAtom& atom) {
    std::vector<int> legal;
    for (int id = 0; id < 4; ++id) {
      if (scale_ids_fault(atom, {id, id}) == nullptr) legal.push_back(id);
      EXPECT_EQ(scale_ids_fault(atom, {0, id}), scale_ids_fault(atom, {id, 0}));
    }
    return legal;
  };
  const UmmaAtom mx4 = scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128, 64, false);
  EXPECT_EQ(ids(mx8(128, 64, false)), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(ids(mx4), (std::vector{0, 2}));
  EXPECT_EQ(ids(nv(128, 64, false)), (std::vector{0}));
  EXPECT_EQ(ids(with_k(mx4, 96)), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(ids(with_k(nv(128, 64, false), 96)), (std::vector{0, 2}));
  // What `scale_step` gives is legal, and all scales follow each other.
  for (const UmmaAtom& atom : {mx8(128, 64, false), mx4, nv(256, 192, true), with_k(mx4, 96),
                               with_k(nv(256, 192, true), 96)}) {
    int next = 0;
    for (int step = 0; step < 8; ++step) {
      const ScaleStep at = scale_step(atom, step);
      EXPECT_EQ(scale_ids_fault(atom, {at.id, at.id}), nullptr);
      for (int s = 0; s < umma_scales(atom); ++s, ++next) {
        const ScaleCell a = scale_cell_a(atom, at.id, 77, s);
        const ScaleCell b = scale_cell_b(atom, at.id, atom.n - 1, s);
        EXPECT_EQ(a.byte, next % 4);
        EXPECT_EQ(a.lane, 77 % 32);
        EXPECT_EQ(at.column_a + a.column, next / 4 * 4 + 77 / 32);
        EXPECT_EQ(at.column_b + b.column, next / 4 * scale_columns(atom.n) + (atom.n - 1) / 32);
      }
    }
  }
}

TEST(ScaledUmmaTest, Columns) {
  EXPECT_EQ(scale_columns(128), 4);
  EXPECT_EQ(scale_columns(64), 4);
  EXPECT_EQ(scale_columns(192), 8);
  EXPECT_EQ(scale_columns(256, 16), 32);
  EXPECT_EQ(umma_a_columns(nv(128, 64, false)), 8);
  EXPECT_EQ(umma_a_columns(with_k(nv(128, 64, false), 96)), 12);
  EXPECT_EQ(umma_a_columns(mx8(128, 64, false)), 8);
}

// Eight steps of 48 bytes are three boxes of 128; one may begin in a box and end in the next.
TEST(ScaledUmmaTest, LongDescriptors) {
  const OperandTile tile{128, 384, 8, Major::k, SmemSwizzle::b128};
  for (int step = 0; step < 8; ++step) {
    const Descriptor d = long_descriptor(tile, 0x2000, step, 0x20000);
    const std::uint64_t word = encode_umma(d);
    EXPECT_EQ(decode_umma(word), d);
    EXPECT_EQ(umma_descriptor_fault(word, kUmmaLongK), nullptr);
    EXPECT_NE(umma_descriptor_fault(word), nullptr) << "bit 52 is of K 96";
    for (const int row : {0, 7, 8, 127}) {
      for (int byte = 0; byte < 48; byte += 16) {
        std::uint32_t at = 0x2000 + tile_offset(tile, row, step * 48 + byte);
        at ^= (at >> 7 & 7) << 4;
        EXPECT_EQ(element_address(d, row, byte, 8, Major::k), at) << step << ", " << byte;
      }
    }
  }
  EXPECT_NE(umma_descriptor_fault(encode_umma(descriptor(tile, 0x2000)), kUmmaLongK), nullptr);
}

TEST(ScaledUmmaTest, WithAInTensorMemory) {
  const auto bf16 = [](int m, int n, bool pair) {
    return umma_tmem_fault(umma_atom(DType::bf16, DType::bf16, DType::f32, m, n, pair)) == nullptr;
  };
  EXPECT_TRUE(bf16(64, 8, false));
  EXPECT_FALSE(bf16(128, 8, false));
  EXPECT_TRUE(bf16(128, 16, false));
  EXPECT_FALSE(bf16(256, 16, true));
  EXPECT_TRUE(bf16(256, 32, true));
  UmmaAtom atom = umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 64, false);
  atom.a_major = Major::mn;
  EXPECT_EQ(umma_fault(atom), nullptr);
  EXPECT_NE(umma_tmem_fault(atom), nullptr);
}

}  // namespace
}  // namespace warpwright::atom
