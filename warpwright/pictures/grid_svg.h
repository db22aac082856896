// A static picture of a whole run: which SM worked on which tile, when.
#pragma once

#include <string>

#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

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

}  // namespace warpwright::pictures
