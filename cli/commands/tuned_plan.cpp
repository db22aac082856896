#include "cli/commands/tuned_plan.h"

#include <cstdio>

#include "cli/files/tensor_file.h"
#include "warpwright/plan/tuning.h"

namespace warpwright::cli {

PlanWithOrigin plan_with_tuning(const GemmProblem& problem, const DeviceFacts& facts,
                                const PlanChoices& choices, bool tuning, std::ostream& err) {
  if (!tuning || facts.is_model) {
    const Result<Plan> made = plan(problem, facts, choices);
    if (!made) throw InputError(made.reason());
    return {*made, std::string("tuning     not used") +
                       (facts.is_model ? ": the model does not predict time\n" : "\n")};
  }
  const TuningCache cache(TuningCache::default_path());
  if (cache.warning()) err << printable(*cache.warning()) << "\n";
  const Result<TunedPlan> made = tuned_plan(problem, facts, cache, choices);
  if (!made) throw InputError(made.reason());
  if (!made->entry) {
    return {made->plan, "tuning     no measurement decided: by rule (see warpwright tune)\n"};
  }
  char text[64];
  std::snprintf(text, sizeof(text), "tuning     measured, %.2f us: from ",
                made->entry->microseconds);
  return {made->plan, text + printable(cache.path()) + "\n"};
}

}  // namespace warpwright::cli
