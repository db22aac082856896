// D as its tiles: which comes when, and who computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/raster.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// A matrix of D: the product itself, one of a batch, or the rows of a group.
struct TileOutput {
  std::string name;  ///< "group 1, 40 rows"; empty of a product with one
  int rows = 0;      ///< in tiles
  int columns = 0;
};

/// A tile.
struct TilePlace {
  int output = 0;
  int row = 0;
  int column = 0;
  int number = 0;           ///< in the order of the walk; CTAs of a cluster share one
  int wave = 0;             ///< the round of the grid that takes it
  int cta = -1;             ///< who computes it, -1 where nobody ran
  int sm = -1;              ///< and where
  std::int64_t begin = -1;  ///< from its first wait or load
  std::int64_t end = -1;    ///< until its last store
};

struct TileMap {
  std::vector<TileOutput> outputs;
  std::vector<TilePlace> tiles;
};

/// Tiles that are drawn at most.
inline constexpr std::size_t most_tiles = 2048;

/// How a plan cuts a dense D.
struct TilePlan {
  tile::Raster raster;
  atom::ClusterShape cluster;
  int rows = 0;  ///< of D, in tiles; the raster's clusters may reach beyond
  int columns = 0;
  bool swapped = false;       ///< the kernel's M are columns of D
  int resident_clusters = 1;  ///< that run at once
};

/// The walk of a plan over a dense D.
TileMap planned_tiles(const TilePlan& plan);

/// The view "d": D with its tiles, numbered in their order, coloured by their wave, with a line
/// from each to the next.
View raster_view(const std::string& caption, const TileMap& map);

/// The view "sms": the same coloured by the SM that computed a tile, with its number. Tiles of
/// `map` have their SMs.
View placement_view(const std::string& caption, const TileMap& map);

}  // namespace warpwright::pictures
