// Which output tile next: the order in which a persistent grid walks over the output, and the share
// of each cluster.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/isa/config.h"
#include "warpwright/isa/thread.h"

namespace warpwright::tile {

/// The walk over the output in units of cluster tiles (a cluster tile is cluster.m x cluster.n CTA
/// tiles). Cluster tiles are taken in bands of `band` rows (or columns, when `along_m` is false the
/// band lies along N); inside a band the walk goes down the band first. Tiles in flight together
/// then form a block that is near square, and their operands are read once into the L2 cache.
struct Raster {
  int tiles_m = 0;  ///< cluster tiles along M
  int tiles_n = 0;  ///< cluster tiles along N
  int band = 1;     ///< width of a band in cluster tiles
  bool along_m = true;

  friend constexpr bool operator==(const Raster&, const Raster&) = default;
};

constexpr int tile_count(const Raster& raster) {
  return raster.tiles_m * raster.tiles_n;
}

/// A position in units of cluster tiles.
struct TilePosition {
  int m = 0;
  int n = 0;

  friend constexpr bool operator==(const TilePosition&, const TilePosition&) = default;
};

/// The cluster tile that comes `index`-th, 0 <= index < tile_count.
constexpr TilePosition position(const Raster& raster, int index) {
  const int across = raster.along_m ? raster.tiles_m : raster.tiles_n;
  const int along = raster.along_m ? raster.tiles_n : raster.tiles_m;
  const int band_tiles = raster.band * along;
  const int start = index / band_tiles * raster.band;
  const int rest = index % band_tiles;
  const int width = across - start < raster.band ? across - start : raster.band;
  const int a = start + rest % width;
  const int b = rest / width;
  return raster.along_m ? TilePosition{a, b} : TilePosition{b, a};
}

/// A raster of an output of `tiles_m` x `tiles_n` CTA tiles. The band is as wide as makes the block
/// of `resident` CTA tiles that run together near square in bytes of operands: `bytes_m` of A per
/// tile row, `bytes_n` of B per tile column.
constexpr Raster make_raster(int tiles_m, int tiles_n, atom::ClusterShape cluster, int resident,
                             int bytes_m, int bytes_n) {
  Raster raster;
  raster.tiles_m = (tiles_m + cluster.m - 1) / cluster.m;
  raster.tiles_n = (tiles_n + cluster.n - 1) / cluster.n;
  const int clusters =
      resident / atom::cluster_size(cluster) > 0 ? resident / atom::cluster_size(cluster) : 1;
  // What a block of h x (clusters / h) cluster tiles reads of A and B, for the best h.
  int best = 1;
  long long best_bytes = -1;
  for (int h = 1; h <= raster.tiles_m && h <= clusters; ++h) {
    const int w = (clusters + h - 1) / h < raster.tiles_n ? (clusters + h - 1) / h : raster.tiles_n;
    const long long bytes = static_cast<long long>(h) * cluster.m * bytes_m +
                            static_cast<long long>(w) * cluster.n * bytes_n;
    if (h * w < clusters && h < raster.tiles_m) continue;  // the block must hold them all
    if (best_bytes < 0 || bytes < best_bytes) {
      best = h;
      best_bytes = bytes;
    }
  }
  raster.band = best;
  raster.along_m = true;
  return raster;
}

/// The static persistent scheduler: cluster c of C takes the tiles c, c + C, c + 2C, ...
class StaticPersistent {
 public:
  WW_DEVICE
  StaticPersistent(const Raster& raster, int cluster_size)
      : raster_(raster),
        next_(isa::cta_index() / cluster_size),
        step_(isa::cta_count() / cluster_size) {}

  /// The cluster's next tile; false when there is none.
  WW_DEVICE
  bool next(TilePosition& at) {
    if (next_ >= tile_count(raster_)) return false;
    at = position(raster_, next_);
    next_ += step_;
    return true;
  }

 private:
  Raster raster_;
  int next_;
  int step_;
};

}  // namespace warpwright::tile
