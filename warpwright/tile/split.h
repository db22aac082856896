// Sharing tiles along K (stream-K): as many tiles as come out even are taken whole, in turn; the K
// blocks of the last ones form one line, cut into equal pieces, one a cluster or fewer. A piece
// that ends inside a tile gives its part of the sum to the cluster that holds the tile's last
// block, which adds the parts up in a fixed order and stores the tile: the result does not depend
// on who comes first.
//
// Clusters walk their pieces backwards. The part that another cluster waits for, at a piece's end,
// is then done first, and the sum that waits for others, at its beginning, last. Who waits has the
// higher index, so a grid whose CTAs start in order of their indices cannot hang. And a piece is no
// longer than a tile, so that all who begin a tile, and all who end one, go along K in step and
// share what they read in L2.
//
// Where tiles are few and K is long, CTAs share them evenly instead (SlicePlan).
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// How the tiles are shared: the first `whole` are not, and the line of the others' k_tiles is cut
/// into `pieces`, of which the first `longer` have `each` + 1 blocks.
struct SplitPlan {
  int clusters = 0;
  int blocks = 0;  ///< k_tiles of a tile
  int whole = 0;   ///< tiles, a multiple of the clusters
  int pieces = 0;  ///< for as many clusters, from the first on
  int each = 0;
  int longer = 0;
  Divisor by_blocks;
  Divisor by_each;
  Divisor by_longer;  ///< divides by each + 1

  constexpr SplitPlan() = default;
  /// `tiles` * `k_tiles` must be below 2^31; no cluster gets more than one piece of a tile's line.
  constexpr SplitPlan(int tiles, int k_tiles, int cluster_count)
      : clusters(cluster_count),
        blocks(k_tiles),
        whole(whole_tiles(tiles, cluster_count)),
        pieces(piece_count(tiles, cluster_count)),
        each((tiles - whole) * k_tiles / pieces),
        longer((tiles - whole) * k_tiles % pieces),
        by_blocks(k_tiles > 0 ? k_tiles : 1),
        by_each(each > 0 ? each : 1),
        by_longer(each + 1) {}

  static constexpr int whole_tiles(int tiles, int clusters) { return tiles - tiles % clusters; }
  /// One for every cluster, unless so few tiles follow whole ones that many clusters would meet in
  /// each: to add up the parts takes longer than they save. (Where there are fewer tiles than
  /// clusters the plan chooses the grid.)
  static constexpr int piece_count(int tiles, int clusters) {
    const int most = most_sharers * (tiles % clusters);
    return tiles > clusters && most > 0 && most < clusters ? most : clusters;
  }
  static constexpr int most_sharers = 4;
};

/// The plan of tiles that all go whole.
constexpr SplitPlan whole_tiles(int tiles, int k_tiles, int clusters) {
  SplitPlan plan(0, k_tiles, clusters);
  plan.whole = tiles;
  return plan;
}

/// The first block of cluster `c`'s piece; for `clusters`: the end of the line.
constexpr int piece_start(const SplitPlan& p, int c) {
  const int piece = c < p.pieces ? c : p.pieces;
  return piece * p.each + (piece < p.longer ? piece : p.longer);
}

/// The cluster whose piece holds `block` of the line.
constexpr int piece_of(const SplitPlan& p, int block) {
  const int in_longer = p.longer * (p.each + 1);
  if (block < in_longer) return p.by_longer.quotient(block);
  return p.longer + p.by_each.quotient(block - in_longer);
}

/// The first of the clusters that share the tile in which `block` lies.
constexpr int first_sharer(const SplitPlan& p, int block) {
  return piece_of(p, p.by_blocks.quotient(block) * p.blocks);
}

/// The scheduler: this cluster's whole tiles, then the pieces of tiles in its part of the line,
/// from its end backwards.
class SplitPersistent {
 public:
  /// Keeps references to its arguments.
  WW_DEVICE SplitPersistent(const PreparedRaster& raster, const SplitPlan& plan)
      : raster_(raster), plan_(plan), at_(isa::cluster_index()) {}

  /// The next piece; false when there is none.
  WW_DEVICE bool next(Work& work) {
    if (at_ >= 0) {
      if (at_ < plan_.whole) {
        work = {position(raster_, at_), 0, plan_.blocks};
        at_ += plan_.clusters;
        return true;
      }
      at_ = ~piece_start(plan_, isa::cluster_index() + 1);
    }
    const int begin = piece_start(plan_, isa::cluster_index());
    const int end = ~at_;
    if (end <= begin) return false;
    const int tile = plan_.by_blocks.quotient(end - 1);
    const int start = tile * plan_.blocks;
    const int first = begin > start ? begin : start;
    work = {position(raster_, plan_.whole + tile), first - start, end - start};
    at_ = ~first;
    return true;
  }

  /// Makes the compiler forget where the walk stands (isa::forgotten).
  WW_DEVICE void forget() { at_ = isa::forgotten(at_); }

  /// The first cluster that shares the tile of the piece which `next` gave last.
  WW_DEVICE int sharers_from() const { return first_sharer(plan_, ~at_); }

 private:
  const PreparedRaster& raster_;
  const SplitPlan& plan_;
  int at_;  // the next whole tile; or, below 0, ~ the end of what is left of the piece
};

/// The scheduler of clusters whose CTAs share every tile along K: cluster c of C takes the tiles c,
/// c + C, ..., and its CTA of rank r of R the r-th of R parts of their k_tiles.
class ClusterSplit {
 public:
  /// Keeps a reference to `raster`.
  WW_DEVICE ClusterSplit(const PreparedRaster& raster, int k_tiles, int ctas)
      : raster_(raster),
        first_(k_tiles * isa::cluster_rank() / ctas),
        end_(k_tiles * (isa::cluster_rank() + 1) / ctas),
        next_(isa::cluster_index()),
        step_(isa::cluster_count()) {}

  WW_DEVICE bool next(Work& work) {
    if (next_ >= raster_.count) return false;
    work = {position(raster_, next_), first_, end_};
    next_ += step_;
    return true;
  }

 private:
  const PreparedRaster& raster_;
  int first_;
  int end_;
  int next_;
  int step_;
};

/// How the CTAs of a grid share its tiles evenly along K, one piece each: CTA c is sharer
/// c / `tiles` of tile c % `tiles`, so that neighbours go along the same K. The first `longer`
/// sharers have `each` + 1 k_tiles.
struct SlicePlan {
  int tiles = 0;
  int sharers = 1;  ///< CTAs of a tile, each with a k_tile at least
  int each = 0;
  int longer = 0;
  Divisor by_tiles;

  constexpr SlicePlan() = default;
  constexpr SlicePlan(int tile_count, int k_tiles, int ctas)
      : tiles(tile_count),
        sharers(ctas / tile_count),
        each(k_tiles / sharers),
        longer(k_tiles % sharers),
        by_tiles(tile_count) {}
  static constexpr int most_sharers = 255;  ///< as counts of a byte hold
};

/// The sharer and the tile that CTA `cta` is and has.
constexpr int sharer_of(const SlicePlan& p, int cta) {
  return p.by_tiles.quotient(cta);
}
constexpr int tile_of(const SlicePlan& p, int cta) {
  return cta - sharer_of(p, cta) * p.tiles;
}
/// The first k_tile of a sharer; for `sharers` the end.
constexpr int slice_start(const SlicePlan& p, int sharer) {
  return sharer * p.each + (sharer < p.longer ? sharer : p.longer);
}

/// The scheduler: every CTA has one piece of one tile.
class SlicedTiles {
 public:
  /// Keeps references to its arguments.
  WW_DEVICE SlicedTiles(const PreparedRaster& raster, const SlicePlan& plan)
      : raster_(raster), plan_(plan) {}

  WW_DEVICE bool next(Work& work) {
    if (given_) return false;
    given_ = true;
    const int sharer = sharer_of(plan_, isa::cta_index());
    work = {position(raster_, tile_of(plan_, isa::cta_index())), slice_start(plan_, sharer),
            slice_start(plan_, sharer + 1)};
    return true;
  }

 private:
  const PreparedRaster& raster_;
  const SlicePlan& plan_;
  bool given_ = false;
};

}  // namespace warpwright::tile
