// The life of mbarriers, event by event: phase, outstanding arrivals and bytes, who waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/report/barrier_event.h"

namespace warpwright::pictures {

/// Events of one kind that follow each other at one barrier and source line, as one.
struct BarrierStep {
  model::BarrierEvent event;  ///< the last of them: how the barrier stands behind it
  int times = 1;
  std::int64_t amount = 0;  ///< of all
  std::string who;          ///< "TC warps", without warp and lane
};

/// The steps of one CTA.
std::vector<BarrierStep> barrier_steps(const std::vector<model::BarrierEvent>& events, int cta = 0);

/// "expects 16384 bytes", "128 arrive", "phase 0 is complete".
std::string step_text(const BarrierStep& step);

/// A table with a line a step, at most `most`, and how many there are beyond.
std::string barrier_text(const std::vector<BarrierStep>& steps, int most = 64);

/// Where the lanes of barriers are drawn: names to the left of `left`, cycle 0 at `left`.
struct LanePlace {
  double left = 0;
  double top = 0;
  double width = 0;
  std::int64_t end = 1;  ///< the last cycle
};

/// The barriers of a CTA, in the order in which they were made, below each other: phases, and over
/// time the outstanding arrivals, the outstanding bytes and the waiting threads.
std::string barrier_lanes(const std::vector<model::BarrierEvent>& events, const LanePlace& place,
                          int cta = 0);
/// How high they are.
double barrier_lanes_height(const std::vector<model::BarrierEvent>& events, int cta = 0);

/// An SVG: for each barrier its phases, and over time the outstanding arrivals, the outstanding
/// bytes and the waiting threads.
std::string barrier_svg(const std::string& title, const std::vector<model::BarrierEvent>& events,
                        int cta = 0);

}  // namespace warpwright::pictures
