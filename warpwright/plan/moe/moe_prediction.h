// What a layer of experts takes on a device: its products as `predict` composes them, the launches
// beside these by their bytes and round trips, and what lies between launches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "warpwright/plan/families/prediction.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

/// A step's own time, from the end of the step before to its own.
struct StepPrediction {
  MixtureStep step = MixtureStep::sort;
  const char* name = "";
  std::string kernel;
  double seconds = 0;
  Limit limit = Limit::start;  ///< what bounds it; start: latencies
};

/// A mixture's time and its steps', seconds.
struct MixturePrediction {
  double seconds = 0;
  double launch = 0;   ///< of the first grid
  double between = 0;  ///< of the others, which start while the one before ends
  double early = 0;    ///< saved by weights that are asked for before the step before has ended
  std::vector<StepPrediction> steps;
};

/// What a product takes by itself, with its launch.
struct ProductTime {
  double seconds = 0;
  Limit limit = Limit::start;
};

/// Composes, of the times of its products.
MixturePrediction step_times(const MixturePlan& plan,
                             const std::function<ProductTime(const Plan&)>& product_time);

/// The same of products as `predict` composes them: `lengths` are the rows of each expert that is
/// here; `phases` says what one SM takes for a tile of a product.
MixturePrediction predict(const MixturePlan& plan, const std::vector<std::int64_t>& lengths,
                          const std::function<TilePhases(const Plan&)>& phases);

}  // namespace warpwright
