// Prologue, main loop and epilogue of the tiles of a CTA, read off a timeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

/// What a CTA does for a tile of D.
enum class Phase : std::uint8_t {
  prologue,   ///< from its first load until its first MMA
  main_loop,  ///< from its first MMA until its last
  epilogue,   ///< from its first value that is stored until its end
};
std::string_view name(Phase phase);

/// One of them.
struct PhaseSlice {
  Phase phase = Phase::prologue;
  int cta = 0;
  std::string_view tile;  ///< "tile m 1 n 0", of the trace's texts; empty where tiles have no names
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Those of the first CTA that multiplies, and of those that share its SM with it, in the order of
/// time. A kernel whose timeline names no tiles has one of each, without an epilogue where it
/// neither multiplies nor marks one.
std::vector<PhaseSlice> phases(const model::Trace& trace);

/// How much of a run lies under no main loop of these CTAs: what prologues and epilogues cost.
struct Bare {
  std::int64_t prologue = 0;  ///< ticks in a prologue, in no main loop
  std::int64_t epilogue = 0;  ///< in an epilogue, in no main loop and no prologue
};
Bare bare(const std::vector<PhaseSlice>& slices);

}  // namespace warpwright::pictures
