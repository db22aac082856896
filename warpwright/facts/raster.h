// The order of a grid's walk over the output, as a value; tile/raster.h walks.
#pragma once

#include "warpwright/atom/cluster.h"

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
  int batch = 1;  ///< outputs, one after the other

  friend constexpr bool operator==(const Raster&, const Raster&) = default;
};

constexpr int tile_count(const Raster& raster) {
  return raster.tiles_m * raster.tiles_n * raster.batch;
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

}  // namespace warpwright::tile
