#include "warpwright/plan/moe/moe_prediction.h"

#include "warpwright/facts/machine_numbers.h"

#include <algorithm>

namespace warpwright {
namespace {

// Ways to memory and back, one behind the other, of the steps beside the products: the sort reads
// ids, counts, and writes where each expert begins and its slots; the others read a number, then
// the rows it names; one that sorts and gathers reads ids, then the rows of its tokens.
double round_trips(const MixturePlan& plan, MixtureStep step) {
  return step == MixtureStep::sort && !plan.sorts_with_gather ? 4 : 2;
}

// What a CTA that is launched early need not do any more when the grid before it ends.
double started_seconds(const MachineNumbers& n) {
  return (n.start_clocks + n.cold_start_clocks) / n.clock_hz;
}

}  // namespace

MixturePrediction predict(const MixturePlan& plan, const std::vector<std::int64_t>& lengths,
                          const TilePhases& first, const TilePhases& second) {
  const MachineNumbers& n = numbers_of(plan.device);
  const PredictionMachine m = prediction_machine(plan.device);
  const double memory = m.memory_bytes_per_second * m.fitted.memory_share;
  MixturePrediction out;
  double before = 0;  // what the step before takes
  for (const MixtureStep step : plan.steps()) {
    StepPrediction made{step, 0, Limit::start};
    if (step == MixtureStep::first || step == MixtureStep::second) {
      const bool is_first = step == MixtureStep::first;
      const Prediction product = warpwright::predict(is_first ? plan.first : plan.second,
                                                     is_first ? first : second, m, lengths);
      made.seconds = product.seconds - m.launch_seconds;
      made.limit = product.limit;
      // Until the first weights are there: no more of it than the step before lasts.
      if (plan.asks_early(step)) {
        const double hidden = product.start - m.launch_seconds - started_seconds(n);
        out.early += std::clamp(hidden, 0.0, before);
      }
    } else {
      const double trips = round_trips(plan, step) * n.l2_miss_clocks / n.clock_hz;
      const double moved = plan.step_bytes(step) / memory;
      made.seconds = started_seconds(n) + trips + moved;
      if (moved > trips + started_seconds(n)) made.limit = Limit::memory;
    }
    if (!out.steps.empty()) made.seconds = std::max(0.0, made.seconds - started_seconds(n));
    before = made.seconds;
    out.seconds += made.seconds;
    out.steps.push_back(made);
  }
  if (out.steps.empty()) return out;
  out.launch = n.launch_seconds;
  out.between = (plan.launches() - 1) * std::max(n.dependent_launch_seconds, 0.0);
  out.seconds += out.launch + out.between - out.early;
  return out;
}

}  // namespace warpwright
