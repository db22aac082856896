// Two runs under one schedule, of which one has a statement broken: where they part, and what each
// does from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/model/report/barrier_event.h"
#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

/// What is kept of a run.
struct KeptRun {
  const model::Trace& trace;
  const std::vector<model::BarrierEvent>& barriers;
};

/// Something that happened in a run, as a line of text.
struct Happening {
  std::int64_t time = 0;
  int grid = 0;  ///< of several launches
  int cta = 0;
  std::string where;  ///< the role, or the barrier
  std::string what;
  friend bool operator==(const Happening&, const Happening&) = default;
};

/// All of a run, in the order of time: what roles begin, and the steps of mbarriers.
std::vector<Happening> happenings(const KeptRun& run);

/// A wait at an mbarrier that never returns.
struct EndlessWait {
  std::int64_t since = 0;
  int grid = 0;
  int cta = 0;
  std::string role;
  std::string barrier;
};
std::vector<EndlessWait> endless_waits(const KeptRun& run);

/// The first thing that one of the runs does and the other does not, at that time.
struct Parting {
  std::int64_t time = 0;
  int grid = 0;
  int cta = 0;
  std::string where;                ///< the role, or the barrier
  std::optional<Happening> whole;   ///< what happens there in the unbroken run
  std::optional<Happening> broken;  ///< and in the broken one; nothing where it never comes
};

/// Where the runs part: nothing where the broken one does the same until it ends.
std::optional<Parting> parting(const KeptRun& whole, const KeptRun& broken);

}  // namespace warpwright::pictures
