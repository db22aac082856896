// Several runs on one axis of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/report/trace.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// A run, and what it is called.
struct ComparedRun {
  std::string name;
  const model::Trace* trace = nullptr;  ///< null: only how long it took is known
  double units = 1;                     ///< of the axis, in a tick of the trace
  double took = 0;                      ///< without a trace: units of the axis
};

/// What is drawn of each run, and what the axis counts.
struct CompareHow {
  bool roles = true;         ///< lanes of roles, beside those of phases and engines
  bool nanoseconds = false;  ///< the axis; else nominal cycles
};

/// How long the tensor core of the first CTA's SM was at work: times at which it had an MMA.
std::int64_t tensor_core_time(const model::Trace& trace);

/// An SVG, without a title where that is empty: for each run the prologues, main loops and
/// epilogues of its first CTA and those on its SM (pictures/phases.h), and what their TMA,
/// cp.async, ldmatrix, tensor core and roles did.
std::string compare_svg(const std::string& title, const std::vector<ComparedRun>& runs,
                        const CompareHow& how = {});

/// Slices that are drawn at most: what a page has room for.
inline constexpr std::size_t most_compared_slices = 5000;
/// Those of a run as compare_svg draws it.
std::size_t compared_slices(const model::Trace& trace, bool roles);

/// The view "compare" of that picture. The table has a row a run: how long it took, the share of
/// time in which the tensor core worked, and how long prologues and epilogues lay bare.
View compare_view(const std::vector<ComparedRun>& runs, const CompareHow& how = {});

}  // namespace warpwright::pictures
