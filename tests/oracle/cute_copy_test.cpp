// Copies, their partitions, slices of swizzled layouts, fragments and TMA partitions equal CuTe's.
#include <gtest/gtest.h>

#include "tests/oracle/cute.h"

#include <cute/atom/copy_atom.hpp>
#include <cute/atom/copy_traits_sm100_tma.hpp>
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>

#include "warpwright/atom/copy_atoms.h"
#include "warpwright/atom/tiled_mma.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/tma.h"

namespace warpwright::oracle {
namespace {

using layout::kAll;
using layout::parse_layout;
using layout::to_text;
using layout::tuple;

// The same function of (thread, value), whatever the nesting.
template <class Theirs>
void expect_same(const layout::Layout& ours, const Theirs& theirs) {
  ASSERT_EQ(layout::size(ours, 0), int(cute::size<0>(theirs)));
  ASSERT_EQ(layout::size(ours, 1), int(cute::size<1>(theirs)));
  for (int t = 0; t < int(cute::size<0>(theirs)); ++t)
    for (int v = 0; v < int(cute::size<1>(theirs)); ++v)
      ASSERT_EQ(ours(t, v), int(theirs(t, v))) << t << ", " << v;
}

template <class Op, class T>
void compare_atom(const layout::CopyAtom& ours) {
  using Atom = cute::Copy_Atom<Op, T>;
  EXPECT_EQ(to_text(ours.thr_id), layout_text(typename Atom::ThrID{}));
  expect_same(ours.src, typename Atom::ValLayoutSrc{});
  expect_same(ours.dst, typename Atom::ValLayoutDst{});
  expect_same(ours.ref, typename Atom::ValLayoutRef{});
}

TEST(CuteOracle, CopyAtoms) {
  using cute::half_t;
  compare_atom<cute::SM75_U32x1_LDSM_N, half_t>(atom::ldmatrix_atom(1, 16));
  compare_atom<cute::SM75_U32x2_LDSM_N, half_t>(atom::ldmatrix_atom(2, 16));
  compare_atom<cute::SM75_U32x4_LDSM_N, half_t>(atom::ldmatrix_atom(4, 16));
  compare_atom<cute::SM75_U32x4_LDSM_N, std::uint8_t>(atom::ldmatrix_atom(4, 8));
  compare_atom<cute::SM75_U32x4_LDSM_N, std::uint32_t>(atom::ldmatrix_atom(4, 32));
  compare_atom<cute::SM75_U16x2_LDSM_T, half_t>(atom::ldmatrix_atom(1, 16, true));
  compare_atom<cute::SM75_U16x4_LDSM_T, half_t>(atom::ldmatrix_atom(2, 16, true));
  compare_atom<cute::SM75_U16x8_LDSM_T, half_t>(atom::ldmatrix_atom(4, 16, true));
  compare_atom<cute::UniversalCopy<cute::uint128_t>, half_t>(layout::vector_copy(128, 16));
  const layout::CopyAtom four = atom::ldmatrix_atom(4, 16);
  using Four = cute::Copy_Atom<cute::SM75_U32x4_LDSM_N, half_t>;
  EXPECT_EQ(to_text(four.src), layout_text(Four::ValLayoutSrc{}));
  EXPECT_EQ(to_text(four.dst), layout_text(Four::ValLayoutDst{}));
}

TEST(CuteOracle, TiledCopies) {
  using namespace cute;
  const auto theirs = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{},
                                      cute::Layout<cute::Shape<_16, _8>, Stride<_8, _1>>{},
                                      cute::Layout<cute::Shape<_1, _8>>{});
  const layout::TiledCopy ours = layout::make_tiled_copy(
      layout::vector_copy(128, 16), parse_layout("(16,8):(8,1)"), parse_layout("(1,8)"));
  EXPECT_EQ(to_text(ours.layout_tv), layout_text(typename decltype(theirs)::TiledLayout_TV{}));
  half_t* const memory = nullptr;
  const auto tensor =
      cute::make_tensor(memory, cute::Layout<cute::Shape<_128, _64>, Stride<_64, _1>>{});
  const layout::Layout same = parse_layout("(128,64):(64,1)");
  for (const int thread : {0, 9, 127}) {
    const auto part = theirs.get_slice(thread).partition_S(tensor);
    EXPECT_EQ(to_text(ours.partition_s(thread, same).layout), layout_text(part.layout()));
    EXPECT_EQ(ours.partition_s(thread, same).offset, part.data() - memory);
  }

  const auto mma =
      make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{}, cute::Layout<cute::Shape<_2, _2, _1>>{},
                     cute::Tile<_32, _32, _16>{});
  const atom::Mma ampere{atom::MmaKind::warp, 16, 8, 16, DType::bf16, DType::bf16};
  const atom::TiledMma our_mma =
      atom::make_tiled_mma(ampere, parse_layout("(2,2)"), layout::make_tiler(tuple(32, 32, 16)));
  using Four = Copy_Atom<SM75_U32x4_LDSM_N, bfloat16_t>;
  const auto a = make_tiled_copy_A(Four{}, mma);
  const auto b = make_tiled_copy_B(Four{}, mma);
  const layout::TiledCopy our_a = atom::make_tiled_copy_a(atom::ldmatrix_atom(4, 16), our_mma);
  const layout::TiledCopy our_b = atom::make_tiled_copy_b(atom::ldmatrix_atom(4, 16), our_mma);
  expect_same(our_a.layout_tv, typename decltype(a)::TiledLayout_TV{});
  expect_same(our_a.layout_s_tv(), a.get_layoutS_TV());
  expect_same(our_a.layout_d_tv(), a.get_layoutD_TV());
  expect_same(our_b.layout_s_tv(), b.get_layoutS_TV());
  expect_same(our_b.layout_d_tv(), b.get_layoutD_TV());
}

// A thread's part of a swizzled tile, whose steps over bits of the swizzle go its own way.
TEST(CuteOracle, SlicesOfSwizzledLayouts) {
  using namespace cute;
  const auto theirs = composition(Swizzle<2, 5, 3>{}, Int<0>{},
                                  cute::Layout<cute::Shape<cute::Shape<_8, _16>, _128, Int<19>>,
                                               Stride<Stride<_128, _1024>, _1, Int<16384>>>{});
  const layout::ComposedLayout ours{layout::make_swizzle(2, 5, 3), 0,
                                    parse_layout("((8,16),128,19):((128,1024),1,16384)")};
  for (int row = 0; row < 128; ++row) {
    const auto [part, offset] = slice_and_offset(make_coord(row, _, _), theirs);
    const layout::ComposedLayout mine = layout::slice(ours, tuple(row, kAll, kAll));
    EXPECT_EQ(mine.swizzle.bits, 0);
    EXPECT_EQ(mine.offset, int(offset)) << row;
    ASSERT_EQ(layout::size(mine.layout), int(size(part)));
    EXPECT_EQ(to_text(mine.layout), layout_text(part)) << row;
  }
}

TEST(CuteOracle, Fragments) {
  using namespace cute;
  const auto compare = [](const char* ours, const auto& theirs) {
    EXPECT_EQ(to_text(layout::make_fragment_like(parse_layout(ours))),
              layout_text(cute::make_fragment_like(theirs)));
  };
  compare("((4,2,2),1,(2,2)):((1,1024,16),0,(32,64))",
          cute::Layout<cute::Shape<cute::Shape<_4, _2, _2>, _1, cute::Shape<_2, _2>>,
                       Stride<Stride<_1, _1024, _16>, _0, Stride<_32, _64>>>{});
  compare(
      "((2,2),4,8):((8,1),64,16)",
      cute::Layout<cute::Shape<cute::Shape<_2, _2>, _4, _8>, Stride<Stride<_8, _1>, _64, _16>>{});
  compare(
      "((2,2),4,8):((0,1),64,16)",
      cute::Layout<cute::Shape<cute::Shape<_2, _2>, _4, _8>, Stride<Stride<_0, _1>, _64, _16>>{});
}

// Atoms of TMA copies (what makes their tensor maps needs a driver, so their size is given), and
// the partitions that follow.
TEST(CuteOracle, TmaPartitions) {
  using namespace cute;
  struct Aux {};
  using Bits = cute::C<8192 * 16>;
  using Pair = Copy_Atom<Copy_Traits<SM100_TMA_2SM_LOAD_MULTICAST, Bits, Aux>, half_t>;
  using One = Copy_Atom<Copy_Traits<SM90_TMA_LOAD_MULTICAST, Bits, Aux>, half_t>;
  const layout::Tensor gmem{{layout::Space::global, 16}, parse_layout("(512,256):(256,1)")};
  const layout::Layout tile =
      layout::composition(layout::identity(tuple(512, 256)), tuple(128, 64));
  const layout::Layout smem = parse_layout("((128,16),1,4):((64,1),0,16)");
  const layout::CopyAtom pair = layout::make_tma_atom(gmem, smem, tile, 4, 2);
  EXPECT_EQ(to_text(pair.thr_id), layout_text(Pair::ThrID{}));
  EXPECT_EQ(to_text(pair.src), layout_text(Pair::ValLayoutSrc{}));
  EXPECT_EQ(to_text(pair.dst), layout_text(Pair::ValLayoutDst{}));
  const layout::CopyAtom one = layout::make_tma_atom(gmem, smem, tile, 4, 1);
  EXPECT_EQ(to_text(one.thr_id), layout_text(One::ThrID{}));
  EXPECT_EQ(to_text(one.src), layout_text(One::ValLayoutSrc{}));

  half_t* const memory = nullptr;
  const auto their_smem = cute::make_tensor(
      memory, cute::Layout<cute::Shape<cute::Shape<cute::Shape<_128, _16>, _1, _4>>,
                           Stride<Stride<Stride<_64, _1>, _0, _16>>>{});
  const auto their_gmem = cute::make_tensor(
      cute::make_inttuple_iter(cute::make_coord(0, 0)),
      cute::make_layout(
          cute::make_shape(cute::make_shape(make_shape(_128{}, _16{}), _1{}, _4{}), 4),
          cute::make_stride(
              cute::make_stride(cute::make_stride(E<1>{}, E<0>{}), _0{}, _16{} * E<0>{}),
              _64{} * E<0>{})));
  const layout::CoordinateTensor our_gmem{
      tuple(0, 0), parse_layout("(((128,16),1,4),4):(((1@1,1@0),0,16@0),64@0)")};
  for (const int cta : {0, 1, 3}) {
    const auto [theirs_g, theirs_s] =
        tma_partition(One{}, cta, cute::Layout<_4>{}, their_smem, their_gmem);
    const layout::TmaPartition ours =
        layout::tma_partition(layout::group_modes(smem, 0, 3), our_gmem, layout::box_of(one), cta,
                              layout::make_layout(4));
    EXPECT_EQ(to_text(layout::shape(ours.gmem.layout)), tuple_text(theirs_g.shape()));
    EXPECT_EQ(to_text(ours.smem), layout_text(theirs_s.layout()));
    EXPECT_EQ(ours.smem_offset, theirs_s.data() - memory);
    for (int i = 0; i < int(size(theirs_g)); ++i) {
      const auto at = theirs_g(i);
      const layout::Tuple mine = ours.gmem(layout::Tuple(i));
      ASSERT_EQ(mine, tuple(int(get<0>(at)), int(get<1>(at)))) << cta << ", " << i;
    }
  }
}

}  // namespace
}  // namespace warpwright::oracle
