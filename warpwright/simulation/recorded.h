// Runs of a check once more, with all that happened kept: for pictures.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "warpwright/model/report/barrier_event.h"
#include "warpwright/model/report/trace.h"
#include "warpwright/simulation/check.h"

namespace warpwright::device {

/// A run, and what happened in it.
struct RecordedRun {
  model::Report report;
  model::Trace trace;
  std::vector<model::BarrierEvent> barriers;
};

/// A mutant that was killed, under the schedule that shows it first, and the unbroken subject under
/// the same one. Until the broken statement makes a difference both do the same.
struct RecordedMutant {
  const Mutant& mutant;
  const RecordedRun& whole;
  const RecordedRun& broken;
};

/// Runs the killed mutants of `report`, which `mutate` gave for the same subject and options, once
/// more each and calls `take` with what happened: never from two threads at once, and in any order;
/// `at` is the mutant's place in `report.mutants`. From `options` jobs and progress count.
void record_mutants(
    const Subject& subject, const MutationReport& report, const CheckOptions& options,
    const std::function<void(std::size_t at, const RecordedMutant& recorded)>& take);

}  // namespace warpwright::device
