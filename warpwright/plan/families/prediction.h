// What a product takes on a device, from first principles: what one SM does with a tile (phases,
// from the model's timed mode), times the tiles that the true raster gives each wave, beside what
// L2 and memory send meanwhile, at the clock that the power allows.
#pragma once

#include <string>

#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/cost/kernel_work.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// Is this one of the words that a kernel says of itself?
bool has_word(const KernelFacts& kernel, const char* feature);

/// What bounds a wave, or a product.
enum class Limit : std::uint8_t { start, tensor_cores, l2, memory, epilogue };
const char* limit_name(Limit limit);

/// A product's time and its parts, seconds.
struct Prediction {
  double seconds = 0;
  double start = 0;         ///< launch, and until the first operands are there
  double multiply = 0;      ///< k_tiles at the SM's own pace
  double loads = 0;         ///< what waiting for L2 or memory adds
  double epilogue = 0;      ///< that nothing hides
  double tail = 0;          ///< of `multiply`: SMs without work in the last wave, on average
  double exchange = 0;      ///< of sums
  double clock_hz = 0;      ///< that the power allows
  double memory_bytes = 0;  ///< that memory sends or takes
  double l2_lines = 0;
  double waves = 0;
  Limit limit = Limit::start;
  double within = 0;  ///< the mean error of measured products that are bounded alike
};

/// Composes. `lengths` are the rows of each group; one entry, M, of a product without groups.
Prediction predict(const Plan& plan, const TilePhases& phases, const PredictionMachine& machine,
                   const std::vector<std::int64_t>& lengths);

}  // namespace warpwright
