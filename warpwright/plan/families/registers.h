// The register family's own. Internal to plan/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "warpwright/kernel/registers/config.h"
#include "warpwright/plan/families/ask.h"

namespace warpwright {

/// What other families compute and these kernels do not, or nothing.
std::optional<Refusal> register_fault(const GemmProblem& problem, const DeviceFacts& device);

/// Is it a kernel for that device? Kernels that are fed by plain loads run on later ones too, for
/// who names them.
bool register_runs(const kernel::RegisterConfig& config, const DeviceFacts& device, bool named);

/// Are the types its own, and whether the tensor core multiplies scales?
bool register_multiplies(const kernel::RegisterConfig& config, const GemmProblem& problem);

/// Lays out the walk of `plan` over the product, and what its groups want of the workspace. Returns
/// the tiles that there may be; nothing where they are too many.
std::optional<int> register_walk(Plan& plan, const kernel::RegisterConfig& config, int resident,
                                 const GroupLengths& lengths);

/// Grids worth trying: with CLC a CTA a tile; whole tiles, and as many CTAs as give each tile the
/// same number of parts.
std::vector<int> register_grids(const kernel::RegisterConfig& config, int tiles, int resident,
                                std::int64_t blocks, const PlanChoices& choices);

/// Are tiles split along K? They are where the grid has more CTAs than there are tiles.
bool splits_tiles(const Plan& plan);

/// The floor of a plan whose kernel has this configuration.
Floor register_floor(const Plan& plan, const kernel::RegisterConfig& config,
                     const FloorBasis& basis);

}  // namespace warpwright
