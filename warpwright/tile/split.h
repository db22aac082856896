// Sharing tiles along K (stream-K): the K blocks of all tiles form one line, and every cluster
// takes an equal piece of it. A piece that ends inside a tile gives its part of the sum to the
// cluster that holds the tile's last block, which adds the parts up in a fixed order and stores the
// tile: the result does not depend on who comes first.
//
// Clusters walk their pieces backwards. The part that another cluster waits for, at a piece's end,
// is then done first, and the sum that waits for others, at its beginning, last. Who waits has the
// higher index, so a grid whose CTAs start in order of their indices cannot hang.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/thread.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// How the line of all K blocks is cut: the first `longer` clusters take `each` + 1 blocks.
struct SplitPlan {
  int clusters = 0;
  int blocks = 0;  ///< K blocks of a tile
  int each = 0;
  int longer = 0;
  Divisor by_blocks;
  Divisor by_each;
  Divisor by_longer;  ///< divides by each + 1

  constexpr SplitPlan() = default;
  /// `tiles` * `k_blocks` must be below 2^31; no cluster gets more than one piece of a tile's line.
  constexpr SplitPlan(int tiles, int k_blocks, int cluster_count)
      : clusters(cluster_count),
        blocks(k_blocks),
        each(tiles * k_blocks / cluster_count),
        longer(tiles * k_blocks % cluster_count),
        by_blocks(k_blocks > 0 ? k_blocks : 1),
        by_each(each > 0 ? each : 1),
        by_longer(each + 1) {}
};

/// The first block of cluster `c`'s piece; of `clusters`: the end of the line.
constexpr int piece_start(const SplitPlan& p, int c) {
  return c * p.each + (c < p.longer ? c : p.longer);
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

/// The scheduler: the pieces of tiles in this cluster's part of the line, from its end backwards.
class SplitPersistent {
 public:
  /// Keeps references to its arguments.
  WW_DEVICE SplitPersistent(const PreparedRaster& raster, const SplitPlan& plan)
      : raster_(raster),
        plan_(plan),
        begin_(piece_start(plan, isa::cluster_index())),
        end_(piece_start(plan, isa::cluster_index() + 1)) {}

  /// The next piece; false when there is none.
  WW_DEVICE bool next(Work& work) {
    if (end_ <= begin_) return false;
    const int tile = plan_.by_blocks.quotient(end_ - 1);
    const int start = tile * plan_.blocks;
    const int first = begin_ > start ? begin_ : start;
    work = {position(raster_, tile), first - start, end_ - start};
    end_ = first;
    return true;
  }

  /// The first cluster that shares the tile of the piece which `next` gave last.
  WW_DEVICE int sharers_from() const { return first_sharer(plan_, end_); }

 private:
  const PreparedRaster& raster_;
  const SplitPlan& plan_;
  int begin_;
  int end_;
};

/// The scheduler of clusters whose CTAs share every tile along K: cluster c of C takes the tiles c,
/// c + C, ..., and its CTA of rank r of R the r-th of R parts of their K blocks.
class ClusterSplit {
 public:
  /// Keeps a reference to `raster`.
  WW_DEVICE ClusterSplit(const PreparedRaster& raster, int k_blocks, int ctas)
      : raster_(raster),
        first_(k_blocks * isa::cluster_rank() / ctas),
        end_(k_blocks * (isa::cluster_rank() + 1) / ctas),
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

}  // namespace warpwright::tile
