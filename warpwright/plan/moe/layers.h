// A layer in one launch: which mixtures it serves, and how they are cut. Internal to plan/moe/.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

/// The kernel of a way that is one launch: `layer` is its number in kernel::hopper::layer_rows.
const kernel::LayerConfig& layer_config(int layer);

/// How both products of a layer are cut.
struct LayerTiles {
  std::int64_t first = 0;        ///< along w13: gates and ups
  std::int64_t second = 0;       ///< along w2
  std::int64_t most_tokens = 0;  ///< tiles of tokens, of all experts
};
LayerTiles layer_tiles(const MixtureProblem& problem, MixtureWay way);

/// Bytes of the flags of a way that is one launch.
std::int64_t layer_flag_bytes(const MixtureProblem& problem, MixtureWay way);

/// Is one launch expected to take less than steps, where it is left open? By what an H200 said of
/// six models (docs/log/moe.md).
bool pays_in_one_launch(const MixtureProblem& problem, const DeviceFacts& device,
                        const MixtureChoices& choices);

/// The way that is one launch of that kernel: into how many parts along K tiles of the second
/// product are cut, so that those of few experts keep all SMs busy.
MixtureWay layer_way(const MixtureProblem& problem, const DeviceFacts& device,
                     const MixtureChoices& choices, int layer);

/// The kernel that a mixture takes in one launch, as a number in kernel::hopper::layer_rows; or why
/// there is none.
Result<int> layer_of(const MixtureProblem& problem, const DeviceFacts& device,
                     const MixtureChoices& choices);

}  // namespace warpwright
