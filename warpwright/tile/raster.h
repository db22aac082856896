// Which output tile next: the order in which a persistent grid walks over the output, and the share
// of each cluster.
#pragma once

#include <cstdint>

#include "warpwright/facts/raster.h"
#include "warpwright/isa/config.h"
#include "warpwright/tile/numbers.h"

namespace warpwright::tile {

/// A position in units of tiles: of cluster tiles, where nothing else is said.
struct TilePosition {
  int m = 0;
  int n = 0;
  int batch = 0;  ///< of a grouped product (tile/groups.h): the group

  friend constexpr bool operator==(const TilePosition&, const TilePosition&) = default;
};

/// The cluster tile that comes `index`-th, 0 <= index < tile_count.
constexpr TilePosition position(const Raster& raster, int index) {
  const int each = raster.tiles_m * raster.tiles_n;
  const int batch = index / each;
  index -= batch * each;
  const int across = raster.along_m ? raster.tiles_m : raster.tiles_n;
  const int along = raster.along_m ? raster.tiles_n : raster.tiles_m;
  const int band_tiles = raster.band * along;
  const int start = index / band_tiles * raster.band;
  const int rest = index % band_tiles;
  const int width = across - start < raster.band ? across - start : raster.band;
  const int a = start + rest % width;
  const int b = rest / width;
  return raster.along_m ? TilePosition{a, b, batch} : TilePosition{b, a, batch};
}

/// Division of indices below 2^31 by a number the host knows: a multiplication on the device, where
/// a division takes some thirty instructions.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t multiplier = 1U << 31;
  std::uint32_t shift = 31;

  constexpr Divisor() = default;
  constexpr explicit Divisor(int divisor) : value(static_cast<std::uint32_t>(divisor)) {
    std::uint32_t bits = 0;
    while ((std::uint64_t{1} << bits) < value) ++bits;
    shift = 31 + bits;
    multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + value - 1) / value);
  }

  /// n / value, for 0 <= n < 2^31.
  constexpr int quotient(int n) const {
    return static_cast<int>((static_cast<std::uint64_t>(n) * multiplier) >> shift);
  }
};

/// A raster with its divisors: what a kernel takes.
struct PreparedRaster {
  Raster raster;
  int count = 0;       ///< tile_count(raster)
  Divisor each;        ///< tiles of one output
  Divisor band_tiles;  ///< of a whole band
  Divisor width;       ///< of a whole band
  Divisor last_width;  ///< of the last band, which may be narrower

  constexpr PreparedRaster() = default;
  constexpr explicit PreparedRaster(const Raster& r) : raster(r), count(tile_count(r)) {
    const int across = r.along_m ? r.tiles_m : r.tiles_n;
    const int along = r.along_m ? r.tiles_n : r.tiles_m;
    if (across == 0 || along == 0) return;
    each = Divisor(across * along);
    band_tiles = Divisor(r.band * along);
    width = Divisor(r.band < across ? r.band : across);
    last_width = Divisor(across % r.band == 0 ? static_cast<int>(width.value) : across % r.band);
  }
};

/// As `position(raster, index)`.
constexpr TilePosition position(const PreparedRaster& p, int index) {
  const Raster& r = p.raster;
  const int batch = p.each.quotient(index);
  index -= batch * static_cast<int>(p.each.value);
  const int across = r.along_m ? r.tiles_m : r.tiles_n;
  const int band = p.band_tiles.quotient(index);
  const int start = band * r.band;
  const int rest = index - band * static_cast<int>(p.band_tiles.value);
  const Divisor width = across - start < r.band ? p.last_width : p.width;
  const int b = width.quotient(rest);
  const int a = start + rest - b * static_cast<int>(width.value);
  return r.along_m ? TilePosition{a, b, batch} : TilePosition{b, a, batch};
}

/// A share of one tile: its k_tiles from `first` to before `end`.
struct Work {
  TilePosition tile;  ///< in CTA tiles, when CtaTiles (tile/cta_tiles.h) gives it
  int first = 0;
  int end = 0;
  /// The tokens of its group, in a grouped product.
  int first_token = 0;
  int end_token = 0;
  int tiles_before = 0;  ///< token tiles of the groups before its own
  /// The first row and column of a CTA's tile (of its first half, when gated): set by CtaTiles.
  int row = 0;
  int column = 0;
  /// Which of its kernel's widths the tile has: set by EvenTiles (tile/even_tiles.h), which also
  /// ends `end_token` with the tile.
  int width = 0;

  friend constexpr bool operator==(const Work&, const Work&) = default;
};

/// The persistent scheduler: a cluster takes the tiles of its numbers whole.
template <class Numbers = StaticNumbers>
class Persistent {
 public:
  /// Tiles of `k_tiles` k_tiles. Keeps a reference to `raster`.
  WW_DEVICE Persistent(const PreparedRaster& raster, int k_tiles, const Numbers& numbers = {})
      : raster_(raster), blocks_(k_tiles), numbers_(numbers) {}

  /// The cluster's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    const int number = numbers_.number();
    if (number >= raster_.count) return false;
    work = {position(raster_, number), 0, blocks_};
    numbers_.take();
    return true;
  }

 private:
  const PreparedRaster& raster_;
  int blocks_;
  Numbers numbers_;
};

}  // namespace warpwright::tile
