// Plans of the command line: from the tuning cache where it knows better.
#pragma once

#include <ostream>
#include <string>

#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// A plan, and for `explain` one line that says where it came from.
struct PlanWithOrigin {
  Plan plan;
  std::string origin;
};

/// The plan for `problem`: the cache's, unless `tuning` is off, the caller made choices or the
/// cache has none; see warpwright/plan/tuning.h. Says on `err` what is wrong with the cache's
/// file. Throws InputError with the refusal's sentence.
PlanWithOrigin plan_with_tuning(const GemmProblem& problem, const DeviceFacts& facts,
                                const PlanChoices& choices, bool tuning, std::ostream& err);

}  // namespace warpwright::cli
