// A layer in one launch: which mixtures it serves, and how they are cut. Internal to plan/moe/.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

/// How both products of a layer are cut.
struct LayerTiles {
  std::int64_t first = 0;        ///< along w13: gates and ups
  std::int64_t second = 0;       ///< along w2
  std::int64_t most_tokens = 0;  ///< tiles of tokens, of all experts
};
LayerTiles layer_tiles(const MixtureProblem& problem, MixtureWay way);

/// Bytes of the flags of a way that is one launch.
std::int64_t layer_flag_bytes(const MixtureProblem& problem, MixtureWay way);

/// The kernel that a mixture takes in one launch, as a number in kernel::hopper::layer_rows; or why
/// there is none.
Result<int> layer_of(const MixtureProblem& problem, const DeviceFacts& device,
                     const MixtureChoices& choices);

}  // namespace warpwright
