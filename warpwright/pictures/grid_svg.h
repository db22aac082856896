// A static picture of a whole run: which SM worked on which tile, when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/report/trace.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// A tile that a CTA worked on, of roles that share one from the first one's start to the last
/// one's end.
struct TileRun {
  int sm = 0;
  int cta = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;  ///< "tile m 1 n 0", of the trace's texts
};
/// The tiles of a run, those of an SM together in the order of time.
std::vector<TileRun> tile_runs(const model::Trace& trace);

/// What the picture shows.
struct GridView {
  std::string title;     ///< what ran
  int sms = 8;           ///< of the machine
  int occupied_sm = -1;  ///< held by another grid; -1 for none
  int ctas_per_sm = 1;   ///< that the plan counts with
};

/// An SVG of one lane an SM: the tiles of the role that multiplies, on the SM its CTA ran on. The
/// time of the last tile's end is written beside the title.
std::string grid_svg(const model::Trace& trace, const GridView& view);

/// The view "time" of that picture. The table has a row a tile.
View grid_view(const model::Trace& trace, const GridView& view);

}  // namespace warpwright::pictures
