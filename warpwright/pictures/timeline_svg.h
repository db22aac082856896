// A static picture of the beginning of a timeline.
#pragma once

#include <string>

#include "warpwright/model/report/trace.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// What the picture shows.
struct TimelineView {
  std::string title;  ///< what ran
  int ctas = 2;       ///< how many of the first CTAs
  int tiles = 3;      ///< how many of the first tiles of the first CTA
};

/// An SVG of one lane a track, with a legend and an axis of time: the first tiles of the first
/// CTAs.
std::string timeline_svg(const model::Trace& trace, const TimelineView& view);

/// The view "pipeline" of that picture. The table has a row a slice.
View timeline_view(const model::Trace& trace, const TimelineView& view);

}  // namespace warpwright::pictures
