#include "warpwright/atom/tiled_mma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cute_text.h"
#include "tests/must.h"
#include "warpwright/atom/cluster_layout.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using layout::parse_layout;
using layout::to_text;
using layout::tuple;

constexpr Mma kVoltaNt{MmaKind::quad_pair, 8,          8,         4,        DType::f16,
                       DType::f16,         DType::f32, Major::mn, Major::mn};
constexpr Mma kAmpere{MmaKind::warp, 16, 8, 16};

// What the Blackwell cluster article prints of its pair MMA.
TEST(TiledMmaTest, PrintOfThePair) {
  const TiledMma pair = make_tiled_mma({MmaKind::tcgen05_pair, 256, 256, 16});
  std::string theirs = tests::without_underscores(
      "TiledMMA\n"
      "  ThrLayoutVMNK:  (_2,_1,_1,_1):(_1,_0,_0,_0)\n"
      "  PermutationMNK: (_,_,_)\n"
      "MMA_Atom\n"
      "  ThrID:      _2:_1\n"
      "  Shape_MNK:  (_256,_256,_16)\n"
      "  LayoutA_TV: (_2,(_128,_16)):(_128,(_1,_256))\n"
      "  LayoutB_TV: (_2,(_128,_16)):(_128,(_1,_256))\n"
      "  LayoutC_TV: (_2,(_128,_256)):(_128,(_1,_256))\n");
  EXPECT_EQ(print(pair), theirs);
  // Its tile of K 64 in four steps, over four tiles: ((128,16),1,4,4).
  const layout::Slice a = pair.get_slice(1).partition_a(parse_layout("(256,64,4)"));
  EXPECT_EQ(to_text(layout::shape(a.layout)), "((128,16),1,4,4)");
  EXPECT_EQ(a.offset, 128);
  const layout::Slice c = pair.get_slice(1).partition_c(parse_layout("(256,256)"));
  EXPECT_EQ(to_text(layout::shape(c.layout)), "((128,256),1,1)");
}

// Volta's 2 x 2 of the article: one warp computes 16 x 16 x 4.
TEST(TiledMmaTest, VoltaTwoByTwo) {
  const TiledMma mma = make_tiled_mma(kVoltaNt, parse_layout("(2,2):(2,1)"));
  EXPECT_EQ(to_text(mma.thr_layout_vmnk()), "((4,2),2,2,1):((1,16),8,4,0)");
  EXPECT_EQ(mma.tile_size(0), 16);
  EXPECT_EQ(mma.tile_size(2), 4);
  const layout::Layout a = parse_layout("(16,4)");
  const layout::Layout c = parse_layout("(16,16)");
  std::vector<int> c_holders(256, 0);
  for (int lane = 0; lane < 32; ++lane) {
    const int quad_pair = lane / 4 % 4;
    const int m = quad_pair / 2;  // quad pairs 0 and 1 hold rows 0 to 7 of A, 2 and 3 the others
    const int n = quad_pair % 2;  // 0 and 2 columns 0 to 7 of B, 1 and 3 the others
    const TiledMma::Slice slice = mma.get_slice(lane);
    const int t = lane % 4 + lane / 16 * 4;
    for (int v = 0; v < 4; ++v) {
      const layout::Slice share_a = slice.partition_a(a);
      const layout::Slice share_b = slice.partition_b(a);
      EXPECT_EQ(share_a.offset + share_a.layout(v), 8 * m + 4 * (t / 4) + v + 16 * (t % 4));
      EXPECT_EQ(share_b.offset + share_b.layout(v), 8 * n + 4 * (t / 4) + v + 16 * (t % 4));
    }
    const layout::Slice share_c = slice.partition_c(c);
    for (int v = 0; v < 8; ++v) {
      const auto element = share_c.offset + share_c.layout(v);
      EXPECT_EQ(element % 16 / 8, m);
      EXPECT_EQ(element / 128, n);
      ++c_holders.at(static_cast<std::size_t>(element));
    }
  }
  // A and B are broadcast, each element to two quad pairs; for C each element has one holder.
  EXPECT_EQ(std::count(c_holders.begin(), c_holders.end(), 1), 256);
}

// 1 x 1: the eight threads of one quad pair; the other lanes see what those see.
TEST(TiledMmaTest, VoltaOneByOne) {
  const TiledMma mma = make_tiled_mma(kVoltaNt, {}, layout::make_tiler(tuple(8, 8, 4)));
  EXPECT_EQ(to_text(mma.thr_layout_vmnk()), "((4,2),1,1,1):((1,16),0,0,0)");
  const layout::Layout c = parse_layout("(8,8)");
  std::vector<int> holders(64, 0);
  for (const int lane : {0, 1, 2, 3, 16, 17, 18, 19}) {
    const layout::Slice share = mma.get_slice(lane).partition_c(c);
    for (int v = 0; v < 8; ++v)
      ++holders.at(static_cast<std::size_t>(share.offset + share.layout(v)));
  }
  EXPECT_EQ(std::count(holders.begin(), holders.end(), 1), 64);
  EXPECT_EQ(mma.get_slice(4).partition_c(c).offset, mma.get_slice(0).partition_c(c).offset);
}

// CuTe's tutorial permutes M so that a thread's eight values of A lie side by side.
TEST(TiledMmaTest, PermutedRowsAreContiguous) {
  layout::Tiler order;
  order.add(parse_layout("(4,4,2):(1,8,4)"));
  order.add(parse_layout("32:1"));
  order.add(parse_layout("4:1"));
  const TiledMma mma = make_tiled_mma(kVoltaNt, parse_layout("(2,2):(2,1)"), order);
  EXPECT_EQ(mma.tile_size(0), 32);
  expect_contains(print(mma), "PermutationMNK: ((4,4,2):(1,8,4),32,4)");
  for (const int lane : {0, 5, 12, 31}) {
    const layout::Slice share = mma.get_slice(lane).partition_a(parse_layout("(32,4)"));
    ASSERT_EQ(layout::size(share.layout), 8);
    for (int v = 0; v < 8; ++v) EXPECT_EQ(share.layout(v), v);
  }
}

TEST(TiledMmaTest, PartitionsCoverATile) {
  for (const char* threads : {"(1,1)", "(2,2)", "(4,2):(1,4)", "(2,4):(4,1)", "(2,1,2)"}) {
    const TiledMma mma = make_tiled_mma(kAmpere, parse_layout(threads));
    const auto count = static_cast<int>(layout::cosize(mma.thr_layout_vmnk()));
    const auto covers = [&](int rows, int columns, int copies, auto part) {
      std::vector<int> seen(static_cast<std::size_t>(rows * columns), 0);
      for (int thread = 0; thread < count; ++thread) {
        const layout::Slice share =
            part(mma.get_slice(thread), layout::make_layout(tuple(rows, columns)));
        for (std::int64_t i = 0; i < layout::size(share.layout); ++i)
          ++seen.at(static_cast<std::size_t>(share.offset + share.layout(i)));
      }
      for (const int n : seen) ASSERT_EQ(n, copies) << threads;
    };
    const auto m = layout::size(mma.threads, 0);
    const auto n = layout::size(mma.threads, 1);
    const auto k = layout::size(mma.threads, 2);
    using S = TiledMma::Slice;
    using L = layout::Layout;
    covers(128, 64, n, [](const S& s, const L& l) { return s.partition_a(l); });
    covers(128, 64, m, [](const S& s, const L& l) { return s.partition_b(l); });
    covers(128, 64, k, [](const S& s, const L& l) { return s.partition_c(l); });
  }
}

// (thread, value) -> element says what the slices of all threads do.
TEST(TiledMmaTest, LayoutsOfThreadsAndValues) {
  layout::Tiler order(parse_layout("(2,2,2,2):(1,8,4,2)"), parse_layout("(2,2,2,2):(1,4,8,2)"));
  const TiledMma all[] = {make_tiled_mma(kVoltaNt, parse_layout("(2,2):(2,1)")),
                          make_tiled_mma(kVoltaNt, parse_layout("(2,2):(2,1)"), order),
                          make_tiled_mma(kAmpere, parse_layout("(2,4):(4,1)")),
                          make_tiled_mma(kAmpere, parse_layout("(2,1,2)"))};
  for (const TiledMma& mma : all) {
    const auto same = [&](const layout::Layout& tv, int row, int column, auto part) {
      const layout::Layout tile =
          layout::make_layout(tuple(mma.tile_size(row), mma.tile_size(column)));
      for (int thread = 0; thread < mma.thread_count(); ++thread) {
        const layout::Slice share = part(mma.get_slice(thread), tile);
        ASSERT_EQ(layout::size(share.layout), layout::size(tv, 1));
        for (std::int64_t v = 0; v < layout::size(share.layout); ++v)
          ASSERT_EQ(tv(thread, v), share.offset + share.layout(v)) << thread << ", " << v;
      }
    };
    using S = TiledMma::Slice;
    using L = layout::Layout;
    same(mma.layout_a_tv(), 0, 2, [](const S& s, const L& l) { return s.partition_a(l); });
    same(mma.layout_b_tv(), 1, 2, [](const S& s, const L& l) { return s.partition_b(l); });
    same(mma.layout_c_tv(), 0, 1, [](const S& s, const L& l) { return s.partition_c(l); });
  }
}

// Pages 50 to 54 of the deck: two warpgroups, A of e4m3 in registers out of a tile of 128 x 128.
TEST(TiledMmaTest, PartitionsOfTheDeck) {
  const TiledMma mma = make_tiled_mma(
      {MmaKind::wgmma_registers, 64, 16, 32, DType::e4m3, DType::e4m3}, parse_layout("(2,1)"));
  const layout::Layout smem = parse_layout("(128,128,3):(128,1,16384)");
  const layout::Slice a = mma.get_slice(0).partition_a(smem);
  EXPECT_EQ(to_text(a.layout), "((4,2,2),1,4,3):((1,1024,16),0,32,16384)");
  EXPECT_EQ(to_text(layout::make_layout(layout::shape(a.layout))),
            "((4,2,2),1,4,3):((1,4,8),0,16,64)");
  EXPECT_EQ(mma.get_slice(128).partition_a(smem).offset, 64 * 128);
  // The sums of 64 x 16: ((2,2,2),1,1).
  const layout::Slice c = mma.get_slice(0).partition_c(parse_layout("(128,16)"));
  EXPECT_EQ(to_text(layout::make_layout(layout::shape(c.layout))), "((2,2,2),1,1):((1,2,4),0,0)");
}

TEST(TiledMmaTest, LocalTiles) {
  // gA of the article: tiles of 256 x 64 of A (512 x 256), row 1, all along K.
  const layout::Layout a = parse_layout("(512,256):(256,1)");
  const layout::Slice g =
      layout::local_tile(a, tuple(256, 128, 64), tuple(1, 0, layout::kAll), tuple(1, 0, 1));
  EXPECT_EQ(to_text(g.layout), "(256,64,4):(256,1,64)");
  EXPECT_EQ(g.offset, 256 * 256);
  const layout::Slice one = layout::local_tile(a, tuple(128, 64), tuple(3, 2));
  EXPECT_EQ(to_text(one.layout), "(128,64):(256,1)");
  EXPECT_EQ(one.offset, 3 * 128 * 256 + 2 * 64);
  EXPECT_THROW(layout::local_tile(a, tuple(128, 64), tuple(3, 2, 1)), layout::Error);
  EXPECT_THROW(layout::local_tile(a, tuple(128, 64), tuple(3, 2), tuple(1, 0, 1)), layout::Error);
  EXPECT_THROW(layout::local_tile(a, tuple(128, 64), tuple(4, 0)), layout::Error);
}

TEST(TiledMmaTest, Refusals) {
  const TiledMma mma = make_tiled_mma(kAmpere, parse_layout("(2,2)"));
  EXPECT_THROW(mma.get_slice(128), layout::Error);
  EXPECT_THROW(mma.get_slice(-1), layout::Error);
  EXPECT_THROW(mma.thrfrg_a(parse_layout("(100,64)")), layout::Error);
  EXPECT_THROW(mma.thrfrg_a(parse_layout("(128,24)")), layout::Error);
  EXPECT_THROW(mma.thrfrg_c(parse_layout("128:1")), layout::Error);
  EXPECT_THROW(make_tiled_mma(kAmpere, parse_layout("(2,2):(1,1)")), layout::Error);
  EXPECT_THROW(make_tiled_mma(kAmpere, parse_layout("(2,2):(4,1)")), layout::Error);
  EXPECT_THROW(make_tiled_mma(kAmpere, parse_layout("(2,2,1,1)")), layout::Error);
  layout::Tiler order;
  order.add(parse_layout("24:1"));
  EXPECT_THROW(make_tiled_mma(kAmpere, parse_layout("(2,2)"), order), layout::Error);
  try {
    mma.thrfrg_a(parse_layout("(100,64)"));
  } catch (const layout::Error& refusal) {
    EXPECT_STREQ(
        refusal.what(),
        "mode 0 of (100,64):(1,100) is no multiple of the 32 that the tile of the MMAs has "
        "there.");
  }
}

// The masks of a cluster are images of its layout, whatever the modes.
TEST(TiledMmaTest, MasksAreImages) {
  for (int m = 1; m <= 16; ++m) {
    for (int n = 1; m * n <= 16; ++n) {
      for (const bool pair : {false, true}) {
        const ClusterShape shape{m, n};
        if (cluster_fault(shape, pair) != ClusterFault::none) continue;
        const layout::Layout ranks = cluster_layout_vmnk(shape, pair);
        for (int rank = 0; rank < m * n; ++rank) {
          const layout::Tuple at = cluster_coordinate_vmnk(shape, pair, rank);
          ASSERT_EQ(ranks(at), rank);
          const Masks set = masks(shape, rank, pair);
          EXPECT_EQ(layout_image_mask(ranks, at, 2), set.a);
          EXPECT_EQ(layout_image_mask(ranks, at, 1), set.b);
          EXPECT_EQ(layout_image_mask(ranks, at, 0, 2) | layout_image_mask(ranks, at, 0, 1),
                    set.commit);
        }
      }
    }
  }
  // CTA 11 of 4 x 4, and the pairs of CTA 0, as the article prints them.
  const layout::Layout ranks = cluster_layout_vmnk({4, 4}, false);
  EXPECT_EQ(layout_image_mask(ranks, tuple(0, 3, 2, 0), 2), 0x8888);
  EXPECT_EQ(layout_image_mask(ranks, tuple(0, 3, 2, 0), 1), 0x0f00);
  const layout::Layout pairs = cluster_layout_vmnk({4, 4}, true);
  EXPECT_EQ(layout_image_mask(pairs, tuple(0, 0, 0, 0), 0, 2), 0x3333);
  EXPECT_EQ(layout_image_mask(pairs, tuple(0, 0, 0, 0), 0, 1), 0x000f);
  // The DSL's cta_layout_mnk, whose mode 1 is N.
  EXPECT_EQ(layout_image_mask(parse_layout("(2,2,1)"), tuple(1, 0, 0), 1), 0b1010);
  EXPECT_THROW(layout_image_mask(ranks, tuple(0, 0, 0, 0), 4), layout::Error);
  EXPECT_THROW(layout_image_mask(ranks, tuple(0, 0), 1), layout::Error);
  EXPECT_THROW(layout_image_mask(parse_layout("(8,4)"), tuple(0, 0), 1), layout::Error);
}

TEST(TiledMmaTest, TableOfRegisters) {
  const std::string table = register_table(make_tiled_mma(kAmpere));
  expect_contains(table,
                  "A: row,k of each register\n  lane   r0      r1       r2        r3\n"
                  "  0      0,0-1   8,0-1    0,8-9     8,8-9\n");
  // Two warps: warp.lane, the second 16 rows below.
  const std::string two = register_table(make_tiled_mma(kAmpere, parse_layout("(2,1)")));
  expect_contains(two, "  1.31   23,6-7");
  expect_contains(register_table(make_tiled_mma(kVoltaNt)), "  1      0-1,1   2-3,1\n");
  expect_contains(register_table(make_tiled_mma({MmaKind::wgmma, 64, 8, 16})),
                  "A: in shared memory\n");
}

}  // namespace
}  // namespace warpwright::atom
