// MMAs held in registers, TiledMMAs, their partitions and prints equal CuTe's.
#include <gtest/gtest.h>

#include <vector>

#include "tests/oracle/cute.h"
#include "warpwright/atom/cluster_layout.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/layout/text.h"

namespace warpwright::oracle {
namespace {

using atom::Major;
using atom::Mma;
using atom::MmaKind;

template <class Op>
void compare_atom(const Mma& mma) {
  SCOPED_TRACE(atom::to_text(mma));
  using Traits = cute::MMA_Traits<Op>;
  EXPECT_EQ(atom::mma_fault(mma), nullptr);
  EXPECT_EQ(layout::to_text(atom::mma_thr_id(mma)), layout_text(typename Traits::ThrID{}));
  EXPECT_EQ(layout::to_text(layout::tuple(mma.m, mma.n, mma.k)),
            tuple_text(typename Traits::Shape_MNK{}));
  EXPECT_EQ(layout::to_text(atom::mma_layout_a(mma)), layout_text(typename Traits::ALayout{}));
  EXPECT_EQ(layout::to_text(atom::mma_layout_b(mma)), layout_text(typename Traits::BLayout{}));
  EXPECT_EQ(layout::to_text(atom::mma_layout_c(mma)), layout_text(typename Traits::CLayout{}));
}

Mma warp(int m, int k, DType type, DType sums) {
  return {MmaKind::warp, m, 8, k, type, type, sums};
}

Mma volta(DType sums, Major a, Major b) {
  return {MmaKind::quad_pair, 8, 8, 4, DType::f16, DType::f16, sums, a, b};
}

TEST(CuteOracle, RegisterMmas) {
  using enum DType;
  using namespace cute;
  compare_atom<SM70_8x8x4_F32F16F16F32_TN>(volta(f32, Major::k, Major::k));
  compare_atom<SM70_8x8x4_F32F16F16F32_NT>(volta(f32, Major::mn, Major::mn));
  compare_atom<SM70_8x8x4_F32F16F16F32_NN>(volta(f32, Major::mn, Major::k));
  compare_atom<SM70_8x8x4_F32F16F16F32_TT>(volta(f32, Major::k, Major::mn));
  compare_atom<SM70_8x8x4_F16F16F16F16_TN>(volta(f16, Major::k, Major::k));
  compare_atom<SM70_8x8x4_F16F16F16F16_NT>(volta(f16, Major::mn, Major::mn));
  compare_atom<SM70_8x8x4_F16F16F16F16_NN>(volta(f16, Major::mn, Major::k));
  compare_atom<SM70_8x8x4_F16F16F16F16_TT>(volta(f16, Major::k, Major::mn));
  compare_atom<SM80_16x8x8_F16F16F16F16_TN>(warp(16, 8, f16, f16));
  compare_atom<SM80_16x8x8_F32F16F16F32_TN>(warp(16, 8, f16, f32));
  compare_atom<SM80_16x8x16_F16F16F16F16_TN>(warp(16, 16, f16, f16));
  compare_atom<SM80_16x8x16_F32F16F16F32_TN>(warp(16, 16, f16, f32));
  compare_atom<SM80_16x8x8_F32BF16BF16F32_TN>(warp(16, 8, bf16, f32));
  compare_atom<SM80_16x8x16_F32BF16BF16F32_TN>(warp(16, 16, bf16, f32));
  compare_atom<SM80_16x8x4_F32TF32TF32F32_TN>(warp(16, 4, tf32, f32));
  compare_atom<SM80_16x8x8_F32TF32TF32F32_TN>(warp(16, 8, tf32, f32));
  compare_atom<SM80_8x8x16_S32S8S8S32_TN>(warp(8, 16, s8, s32));
  compare_atom<SM80_16x8x16_S32S8S8S32_TN>(warp(16, 16, s8, s32));
  compare_atom<SM80_16x8x32_S32S8S8S32_TN>(warp(16, 32, s8, s32));
  compare_atom<SM80_16x8x64_S32S4S4S32_TN>(warp(16, 64, s4, s32));
  compare_atom<SM89_16x8x32_F32E4M3E4M3F32_TN>(warp(16, 32, e4m3, f32));
  compare_atom<SM89_16x8x32_F16E5M2E5M2F16_TN>(warp(16, 32, e5m2, f16));
  compare_atom<SM120_16x8x32_TN<float_e2m1_t, float_e2m1_t, float>>(
      {MmaKind::f8f6f4, 16, 8, 32, e2m1, e2m1});
}

template <class Op>
void compare_scaled(const Mma& mma) {
  compare_atom<Op>(mma);
  using Traits = cute::MMA_Traits<Op>;
  EXPECT_EQ(layout::to_text(atom::mma_layout_scales_a(mma)),
            layout_text(typename Traits::SFALayout{}));
  EXPECT_EQ(layout::to_text(atom::mma_layout_scales_b(mma)),
            layout_text(typename Traits::SFBLayout{}));
}

TEST(CuteOracle, BlockScaledMmas) {
  using enum DType;
  namespace S = cute::SM120::BLOCKSCALED;
  compare_scaled<S::SM120_16x8x32_TN_VS<cute::float_e4m3_t, cute::float_e4m3_t, float,
                                        cute::float_ue8m0_t, 32>>(
      {MmaKind::mxf8f6f4, 16, 8, 32, e4m3, e4m3, f32, Major::k, Major::k, 32, ue8m0});
  compare_scaled<S::SM120_16x8x64_TN_VS<cute::float_e2m1_t, cute::float_e2m1_t, float,
                                        cute::float_ue4m3_t, 16>>(
      {MmaKind::mxf4nvf4, 16, 8, 64, e2m1, e2m1, f32, Major::k, Major::k, 16, ue4m3});
}

// A TiledMMA: threads, and for threads here and there the partitions of a tensor.
template <class Tiled, class Order>
void compare_tiled(const atom::TiledMma& ours, const Tiled& theirs, const Order& threads) {
  EXPECT_EQ(layout::to_text(ours.thr_layout_vmnk()), layout_text(theirs.get_thr_layout_vmnk()));
  EXPECT_EQ(ours.tile_size(0), int{cute::tile_size<0>(theirs)});
  EXPECT_EQ(ours.tile_size(1), int{cute::tile_size<1>(theirs)});
  EXPECT_EQ(ours.tile_size(2), int{cute::tile_size<2>(theirs)});
  const auto tensor = cute::make_layout(cute::Shape<cute::_128, cute::_64, cute::_3>{});
  const layout::Layout ours_tensor = layout::make_layout(layout::tuple(128, 64, 3));
  std::vector<float> memory(128 * 64 * 3);
  const auto view = cute::make_tensor(memory.data(), tensor);
  const auto same = [&](const layout::Slice& mine, const auto& part, const char* name, int thread) {
    EXPECT_EQ(layout::to_text(layout::shape(mine.layout)), tuple_text(part.layout().shape()))
        << name;
    ASSERT_EQ(layout::size(mine.layout), static_cast<std::int64_t>(cute::size(part)));
    for (int i = 0; i < static_cast<int>(cute::size(part)); ++i) {
      ASSERT_EQ(mine.offset + mine.layout(i), &part(i) - memory.data())
          << name << " of thread " << thread << " at " << i;
    }
  };
  for (const int thread : threads) {
    const auto slice = theirs.get_slice(thread);
    const atom::TiledMma::Slice mine = ours.get_slice(thread);
    same(mine.partition_a(ours_tensor), slice.partition_A(view), "A", thread);
    same(mine.partition_b(ours_tensor), slice.partition_B(view), "B", thread);
    same(mine.partition_c(ours_tensor), slice.partition_C(view), "C", thread);
  }
}

TEST(CuteOracle, TiledMmas) {
  using namespace cute;
  const std::vector<int> lanes = {0, 1, 4, 9, 15, 16, 21, 31};
  const std::vector<int> warps = {0, 5, 31, 32, 77, 127};
  compare_tiled(atom::make_tiled_mma(volta(DType::f32, Major::mn, Major::mn)),
                make_tiled_mma(SM70_8x8x4_F32F16F16F32_NT{}), lanes);
  compare_tiled(
      atom::make_tiled_mma(volta(DType::f32, Major::mn, Major::mn),
                           layout::parse_layout("(2,2):(2,1)")),
      make_tiled_mma(SM70_8x8x4_F32F16F16F32_NT{}, Layout<Shape<_2, _2>, Stride<_2, _1>>{}), lanes);
  layout::Tiler order;
  order.add(layout::parse_layout("(4,4,2):(1,8,4)"));
  order.add(layout::parse_layout("32:1"));
  order.add(layout::parse_layout("4:1"));
  compare_tiled(
      atom::make_tiled_mma(volta(DType::f32, Major::mn, Major::mn),
                           layout::parse_layout("(2,2):(2,1)"), order),
      make_tiled_mma(SM70_8x8x4_F32F16F16F32_NT{}, Layout<Shape<_2, _2>, Stride<_2, _1>>{},
                     Tile<Layout<Shape<_4, _4, _2>, Stride<_1, _8, _4>>, _32, _4>{}),
      lanes);
  compare_tiled(
      atom::make_tiled_mma(warp(16, 16, DType::f16, DType::f32), layout::parse_layout("(2,2,1)")),
      make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2, _1>>{}), warps);
  layout::Tiler wide;
  wide.add(layout::Layout{}, true);
  wide.add(layout::parse_layout("(8,2,2):(1,16,8)"));
  compare_tiled(atom::make_tiled_mma(warp(16, 32, DType::s8, DType::s32),
                                     layout::parse_layout("(4,1)"), wide),
                make_tiled_mma(SM80_16x8x32_S32S8S8S32_TN{}, Layout<Shape<_4, _1>>{},
                               Tile<Underscore, Layout<Shape<_8, _2, _2>, Stride<_1, _16, _8>>>{}),
                warps);
}

// Masks of a cluster over any of its modes.
TEST(CuteOracle, MasksOfAnyModes) {
  const auto theirs = cute::make_layout(cute::make_shape(2, 2, 4, 1));
  const layout::Layout ours = layout::parse_layout("(2,2,4,1)");
  for (int rank = 0; rank < 16; ++rank) {
    const auto at = theirs.get_flat_coord(rank);
    const layout::Tuple mine = layout::to_coordinate(rank, layout::shape(ours));
    EXPECT_EQ(atom::layout_image_mask(ours, mine, 2),
              (cute::create_tma_multicast_mask<2>(theirs, at)));
    EXPECT_EQ(atom::layout_image_mask(ours, mine, 1),
              (cute::create_tma_multicast_mask<1>(theirs, at)));
    EXPECT_EQ(atom::layout_image_mask(ours, mine, 0, 2),
              (cute::create_tma_multicast_mask<0, 2>(theirs, at)));
    EXPECT_EQ(atom::layout_image_mask(ours, mine, 0, 1),
              (cute::create_tma_multicast_mask<0, 1>(theirs, at)));
  }
}

}  // namespace
}  // namespace warpwright::oracle
