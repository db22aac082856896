#include "warpwright/plan/moe/moe_prediction.h"

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/moe/steps.h"

#include <algorithm>

namespace warpwright {
namespace {

// What a CTA that is launched early need not do any more when the grid before it ends.
double started_seconds(const MachineNumbers& n) {
  return (n.start_clocks + n.cold_start_clocks) / n.clock_hz;
}

}  // namespace

MixturePrediction predict(const MixturePlan& plan, const std::vector<std::int64_t>& lengths,
                          const std::function<TilePhases(const Plan&)>& phases) {
  const MachineNumbers& n = numbers_of(plan.device);
  const PredictionMachine m = prediction_machine(plan.device);
  const double memory = m.memory_bytes_per_second * m.fitted.memory_share;
  MixturePrediction out;
  double before = 0;  // what the step before takes
  for (const StepRow& row : rows_of(plan)) {
    StepPrediction made{.step = row.step, .name = row.name, .kernel = std::string(row.kernel)};
    if (row.product != nullptr) {
      const Plan& by = plan.*row.product->plan;
      made.kernel = by.name();
      const Prediction product = warpwright::predict(by, phases(by), m, lengths);
      made.seconds = product.seconds - m.launch_seconds;
      made.limit = product.limit;
      // Until the first weights are there: no more of it than the step before lasts.
      if (asks_early(plan, row)) {
        const double hidden = product.start - m.launch_seconds - started_seconds(n);
        out.early += std::clamp(hidden, 0.0, before);
      }
    } else if (row.whole) {
      // As its products, of which the second has started by then.
      double products = 0;
      for (const MixtureProduct& each : mixture_products) {
        const Plan& by = plan.*each.plan;
        const Prediction product = warpwright::predict(by, phases(by), m, lengths);
        products += product.seconds - m.launch_seconds;
        made.limit = product.limit;
      }
      made.seconds = products - started_seconds(n);
    } else {
      const double trips = row.trips * n.l2_miss_clocks / n.clock_hz;
      const double moved = bytes_of(plan, row) / memory;
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
