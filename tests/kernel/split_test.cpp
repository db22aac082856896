// Tiles shared along K: the line of all k_tiles and its pieces, as values and as clusters walk
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/index.h"
#include "warpwright/model/machine.h"
#include "warpwright/tile/split.h"

namespace warpwright::tile {
namespace {

// Two tiles of 3 blocks for 4 clusters: pieces of 2, 2, 1 and 1.
constexpr SplitPlan small(2, 3, 4);
static_assert(piece_start(small, 0) == 0 && piece_start(small, 1) == 2);
static_assert(piece_start(small, 2) == 4 && piece_start(small, 3) == 5);
static_assert(piece_start(small, 4) == 6);
static_assert(first_sharer(small, 2) == 0 && first_sharer(small, 3) == 1);

// Eleven tiles for 4 clusters: eight go whole, the k_tiles of the other three are shared. Eight
// come out even, and three are too few for a whole one each. One tile after 20 whole ones is shared
// by 4 of 20 clusters.
static_assert(SplitPlan(11, 3, 4).whole == 8 && piece_start(SplitPlan(11, 3, 4), 4) == 9);
static_assert(SplitPlan(21, 8, 20).pieces == 4 && piece_start(SplitPlan(21, 8, 20), 1) == 2);
static_assert(piece_start(SplitPlan(21, 8, 20), 4) == 8 &&
              piece_start(SplitPlan(21, 8, 20), 5) == 8);
static_assert(SplitPlan(8, 3, 4).whole == 8 && piece_start(SplitPlan(8, 3, 4), 4) == 0);
static_assert(SplitPlan(3, 3, 4).whole == 0);

struct Line {
  Raster raster;
  int blocks = 1;    // of a tile
  int clusters = 1;  // any number: more than there are blocks, too
};

std::string text(const Line& line) {
  return std::to_string(tile_count(line.raster)) + " tiles of " + std::to_string(line.blocks) +
         " blocks for " + std::to_string(line.clusters) + " clusters";
}

Line draw_line(std::mt19937& random) {
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Line line;
  line.raster = {draw(1, 6), draw(1, 6), draw(1, 3), draw(0, 1) == 1, draw(1, 2)};
  line.blocks = draw(1, draw(0, 1) == 0 ? 6 : 130);
  line.clusters = draw(1, draw(0, 1) == 0 ? 12 : 140);
  return line;
}

TEST(SplitTest, PiecesCoverTheLine) {
  constexpr unsigned seed = 2026;
  std::printf("lines by seed %u\n", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const Line line = draw_line(random);
    SCOPED_TRACE(text(line));
    const int tiles = tile_count(line.raster);
    const SplitPlan plan(tiles, line.blocks, line.clusters);
    ASSERT_EQ(plan.whole % line.clusters, 0);
    ASSERT_LT(tiles - plan.whole, line.clusters);
    ASSERT_LE(plan.pieces, line.clusters);
    ASSERT_LE(plan.each + (plan.longer > 0 ? 1 : 0), line.blocks);
    const int total = (tiles - plan.whole) * line.blocks;
    ASSERT_EQ(piece_start(plan, 0), 0);
    ASSERT_EQ(piece_start(plan, line.clusters), total);
    for (int c = 0; c < line.clusters; ++c) {
      const int begin = piece_start(plan, c);
      const int end = piece_start(plan, c + 1);
      // As equal as can be, the longer ones first.
      if (c < plan.pieces) {
        ASSERT_EQ(end - begin, total / plan.pieces + (c < total % plan.pieces ? 1 : 0));
      } else {
        ASSERT_EQ(begin, end);
      }
      for (int block = begin; block < end; ++block) {
        ASSERT_EQ(piece_of(plan, block), c) << block;
        ASSERT_EQ(first_sharer(plan, block), piece_of(plan, block / line.blocks * line.blocks));
      }
    }
  }
}

// Two tiles of 5 k_tiles for 6 CTAs: of each tile 2, 2 and 1.
constexpr SlicePlan slices(2, 5, 6);
static_assert(slices.sharers == 3 && slice_start(slices, 1) == 2 && slice_start(slices, 2) == 4);
static_assert(slice_start(slices, 3) == 5);
static_assert(sharer_of(slices, 3) == 1 && tile_of(slices, 3) == 1);

TEST(SplitTest, SlicesCoverEveryTile) {
  constexpr unsigned seed = 2027;
  std::printf("slices by seed %u\n", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    Line line = draw_line(random);
    line.clusters = 1 + line.clusters % std::min(line.blocks, SlicePlan::most_sharers);
    SCOPED_TRACE(text(line));
    const int tiles = tile_count(line.raster);
    const SlicePlan plan(tiles, line.blocks, tiles * line.clusters);
    ASSERT_EQ(plan.sharers, line.clusters);
    ASSERT_EQ(slice_start(plan, 0), 0);
    ASSERT_EQ(slice_start(plan, plan.sharers), line.blocks);
    std::vector<int> taken(index(tiles * plan.sharers));
    for (int cta = 0; cta < tiles * plan.sharers; ++cta) {
      ++taken[index(tile_of(plan, cta) * plan.sharers + sharer_of(plan, cta))];
      const int length =
          slice_start(plan, sharer_of(plan, cta) + 1) - slice_start(plan, sharer_of(plan, cta));
      ASSERT_TRUE(length == line.blocks / plan.sharers ||
                  length == (line.blocks + plan.sharers - 1) / plan.sharers);
    }
    for (const int times : taken) ASSERT_EQ(times, 1);
  }
}

// What one CTA was given, in the order of its walk.
struct Given {
  Work work;
  int sharers_from = 0;
};

TEST(SplitTest, ClustersTakeWholeTilesAndThenWalkTheirPiecesBackwards) {
  constexpr unsigned seed = 31;
  std::printf("lines by seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 150; ++round) {
    Line line = draw_line(random);
    line.clusters = std::min(line.clusters, 40);
    SCOPED_TRACE(text(line));
    const int size = round % 3 == 0 ? 2 : 1;
    const PreparedRaster raster(line.raster);
    const SplitPlan plan(raster.count, line.blocks, line.clusters);
    std::vector<std::vector<Given>> given(index(line.clusters * size));
    const model::LaunchShape shape{
        .ctas = line.clusters * size, .cluster_size = size, .threads = 1};
    const model::Report report = model::run(shape, {}, {}, [&] {
      SplitPersistent scheduler(raster, plan);
      auto& mine = given[index(isa::cta_index())];
      Given next;
      while (scheduler.next(next.work)) {
        next.sharers_from =
            next.work.first > 0 || next.work.end < line.blocks ? scheduler.sharers_from() : -1;
        mine.push_back(next);
      }
      EXPECT_FALSE(scheduler.next(next.work));
    });
    ASSERT_TRUE(report.clean()) << report.text();

    std::vector<int> taken(index(raster.count * line.blocks), 0);
    std::vector<std::vector<int>> sharers(index(raster.count));
    const auto tile_of = [&](const Work& w) {
      for (int t = 0; t < raster.count; ++t) {
        if (position(line.raster, t) == w.tile) return t;
      }
      return -1;
    };
    for (int c = 0; c < line.clusters; ++c) {
      const auto& walk = given[index(c * size)];
      int before = raster.count * line.blocks;
      const auto rounds = index(plan.whole / line.clusters);
      ASSERT_GE(walk.size(), rounds);
      for (std::size_t i = 0; i < walk.size(); ++i) {
        const Work& w = walk[i].work;
        const int tile = tile_of(w);
        ASSERT_GE(tile, 0);
        ASSERT_TRUE(0 <= w.first && w.first < w.end && w.end <= line.blocks);
        for (int b = w.first; b < w.end; ++b) ++taken[index(tile * line.blocks + b)];
        sharers[index(tile)].push_back(c);
        // Backwards, without a gap.
        for (int rank = 1; rank < size; ++rank) {
          const Given& peer = given[index(c * size + rank)][i];
          ASSERT_TRUE(peer.work.tile == w.tile && peer.work.first == w.first &&
                      peer.work.end == w.end && peer.sharers_from == walk[i].sharers_from);
        }
        if (i < rounds) {
          ASSERT_EQ(tile, static_cast<int>(i) * line.clusters + c);
          ASSERT_TRUE(w.first == 0 && w.end == line.blocks);
          continue;
        }
        ASSERT_GE(tile, plan.whole);
        ASSERT_TRUE(i == rounds || tile * line.blocks + w.end == before);
        before = tile * line.blocks + w.first;
        // A part that another cluster waits for is done before this one waits for anybody.
        if (w.end != line.blocks) {
          ASSERT_EQ(i, rounds);
        }
        if (w.first != 0) {
          ASSERT_EQ(i + 1, walk.size());
        }
      }
    }
    for (const int count : taken) ASSERT_EQ(count, 1);
    // The sharers of a tile are neighbours, and each knows the first.
    for (int c = 0; c < line.clusters; ++c) {
      for (const Given& g : given[index(c * size)]) {
        const auto& all = sharers[index(tile_of(g.work))];
        ASSERT_EQ(g.sharers_from, all.size() > 1 ? all.front() : -1);
        ASSERT_EQ(all.back() - all.front() + 1, static_cast<int>(all.size()));
        // The last of them holds the last block: it stores the tile.
        ASSERT_EQ(g.work.end == line.blocks, c == all.back());
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::tile
