// The order of a grid's walk over the output, as a value; tile/raster.h walks.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "warpwright/atom/cluster.h"

namespace warpwright::tile {

/// The walk over the output in units of cluster tiles (a cluster tile is cluster.m x cluster.n CTA
/// tiles). Cluster tiles are taken in bands of `band` rows (or columns, when `along_m` is false the
/// band lies along N); inside a band the walk goes down the band first.
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

/// What a walk reads, in the same unit: of A for a row of CTA tiles, of B for a column of them, all
/// of K; and what L2 keeps of it, or 0 where that is not known.
struct Traffic {
  double row = 1;
  double column = 1;
  double kept = 0;
};

/// What reaches L2 from memory in `bands` of `band` of `across` tiles, `along` tiles long, of which
/// `columns` are in flight: a band's own operand once, where L2 keeps it beside those columns of
/// the other operand, which each band reads anew where not all of both is kept.
constexpr double band_reads(int band, int bands, int across, int along, int columns, double own,
                            double other, double kept) {
  const double all = own * across + other * along;
  // What must stay for a whole band shares L2 with all that passes meanwhile.
  if (own * band + other * along <= kept / 2) return all;
  const double again =
      own * band + other * columns <= kept ? 1 : static_cast<double>(along) / columns;
  return own * across * again + other * along * bands;
}

/// The band that is tried after one of `band` of `across` tiles, of which there are `bands`; where
/// they are to be even, the narrowest that makes fewer. More than `across`: there is none.
constexpr int wider_band(int band, int bands, int across, bool even) {
  if (band >= across) return across + 1;
  const int wider = even ? (across + bands - 2) / (bands - 1) : band + 1;
  // Bands of some hundred tiles are as good as higher ones, but for all there is.
  return wider < 256 ? wider : across;
}

/// A raster of an output of `tiles_m` x `tiles_n` CTA tiles, `resident` of which run together. For
/// the bands that read least from memory, within two percent, the one whose block of tiles in
/// flight reads least: near square in what its rows and columns read.
constexpr Raster make_raster(int tiles_m, int tiles_n, atom::ClusterShape cluster, int resident,
                             const Traffic& traffic) {
  Raster raster;
  raster.tiles_m = (tiles_m + cluster.m - 1) / cluster.m;
  raster.tiles_n = (tiles_n + cluster.n - 1) / cluster.n;
  const int clusters =
      resident / atom::cluster_size(cluster) > 0 ? resident / atom::cluster_size(cluster) : 1;
  if (traffic.kept > 0 && static_cast<std::int64_t>(raster.tiles_m) * raster.tiles_n <= clusters) {
    // All at once: SMs side by side have CTAs of consecutive numbers, and what they ask for at the
    // same time is fetched once.
    raster.along_m = raster.tiles_m <= raster.tiles_n;
    const int across = raster.along_m ? raster.tiles_m : raster.tiles_n;
    const int bands = (across + 3) / 4;
    raster.band = bands > 0 ? (across + bands - 1) / bands : 1;
    return raster;
  }
  double best_reads = -1;
  double best_block = -1;
  // Along N only where that is less to read.
  for (const bool along_m : {true, false}) {
    const int across = along_m ? raster.tiles_m : raster.tiles_n;
    const int along = along_m ? raster.tiles_n : raster.tiles_m;
    const double own = along_m ? cluster.m * traffic.row : cluster.n * traffic.column;
    const double other = along_m ? cluster.n * traffic.column : cluster.m * traffic.row;
    if (!along_m && traffic.kept <= 0) break;
    // No band reads less than all once.
    if (best_reads >= 0 && own * across + other * along >= 0.98 * best_reads) break;
    const bool even = traffic.kept > 0;
    int bands = 0;
    for (int h = 1; h <= across; h = wider_band(h, bands, across, even)) {
      bands = (across + h - 1) / h;
      // The block must hold all that run together.
      if (std::int64_t{h} * along < clusters && h < across) continue;
      const int w = (clusters + h - 1) / h < along ? (clusters + h - 1) / h : along;
      double reads = 1;
      if (even) {
        reads = band_reads(h, bands, across, along, w, own, other, traffic.kept);
      } else if (h > clusters) {
        break;
      }
      const double block = h * own + w * other;
      if (best_reads < 0 || reads < 0.98 * best_reads ||
          (along_m && reads <= 1.02 * best_reads && block < best_block)) {
        best_reads = reads;
        best_block = block;
        raster.band = h;
        raster.along_m = along_m;
      }
    }
  }
  return raster;
}

}  // namespace warpwright::tile
