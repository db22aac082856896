#include "warpwright/plan/moe/moe_prediction.h"

#include <algorithm>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/moe/layers.h"
#include "warpwright/plan/moe/steps.h"

namespace warpwright {
namespace {

// What a CTA that is launched early need not do any more when the grid before it ends.
double started_seconds(const MachineNumbers& n) {
  return (n.start_clocks + n.cold_start_clocks) / n.clock_hz;
}

// A launch that moves rows takes so long beside its bytes: until the first rows come, and until the
// last ones are there for the next launch. With its round trips 2.3 us on an H200, where 2.5 were
// measured (docs/log/moe.md).
double row_launch_seconds(const MachineNumbers& n) {
  return (n.first_operand_clocks + n.tma_store_done_clocks + n.exit_clocks) / n.clock_hz;
}

// What a layer by warps takes beside its weights, and a unit of a block (kernel/hopper/
// layer_units.h) on an SM where it is decoded: on an H200, by five models (docs/log/moe.md).
constexpr double warp_layer_clocks = 18000;
double unit_clocks(const kernel::LayerConfig& c) {
  if (kernel::packed_a(c.first)) return 122;
  return kernel::quantises_rows(c) ? 89 : 0;
}

double warp_layer_seconds(const MixturePlan& plan, const StepRow& row, const MachineNumbers& n) {
  const kernel::LayerConfig& c = layer_config(plan.way.layer);
  const double bytes = bytes_of(plan, row);
  const double decoded =
      bytes / kernel::unit_bytes(c) * unit_clocks(c) / std::max(plan.device.sms, 1);
  return warp_layer_clocks / n.clock_hz - n.launch_seconds +
         std::max(bytes / std::max(plan.device.memory_bytes_per_second, 1.0), decoded / n.clock_hz);
}

}  // namespace

MixturePrediction step_times(const MixturePlan& plan,
                             const std::function<ProductTime(const Plan&)>& product_time) {
  const MachineNumbers& n = numbers_of(plan.device);
  const double rate = n.copy_share * std::max(plan.device.memory_bytes_per_second, 1.0);
  MixturePrediction out;
  double before = 0;  // what the step before takes
  for (const StepRow& row : rows_of(plan)) {
    StepPrediction made{.step = row.step, .name = row.name, .kernel = std::string(row.kernel)};
    if (row.product != nullptr) {
      const Plan& by = plan.*row.product->plan;
      made.kernel = by.name();
      const ProductTime product = product_time(by);
      made.seconds = product.seconds - n.launch_seconds;
      made.limit = product.limit;
      // Until the first weights are there: no more of it than the step before lasts.
      if (asks_early(plan, row)) {
        out.early += std::clamp(n.first_operand_clocks / n.clock_hz, 0.0, before);
      }
    } else if (row.whole && kernel::by_warps(layer_config(plan.way.layer))) {
      made.seconds = warp_layer_seconds(plan, row, n);
      made.limit = Limit::memory;
    } else if (row.whole) {
      // As its products, of which the second has started by then.
      const ProductTime second = product_time(plan.second);
      made.seconds = product_time(plan.first).seconds + second.seconds - 2 * n.launch_seconds -
                     started_seconds(n);
      made.limit = second.limit;
    } else {
      const double waits = row_launch_seconds(n) + row.trips * n.l2_miss_clocks / n.clock_hz;
      const double moved = bytes_of(plan, row) / rate;
      made.seconds = started_seconds(n) + waits + moved;
      if (moved > waits + started_seconds(n)) made.limit = Limit::memory;
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

MixturePrediction predict(const MixturePlan& plan, const std::vector<std::int64_t>& lengths,
                          const std::function<TilePhases(const Plan&)>& phases) {
  const PredictionMachine machine = prediction_machine(plan.device);
  return step_times(plan, [&](const Plan& product) {
    const Prediction made = warpwright::predict(product, phases(product), machine, lengths);
    return ProductTime{made.seconds, made.limit};
  });
}

}  // namespace warpwright
