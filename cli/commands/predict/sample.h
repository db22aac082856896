// What one SM does with a tile, from the kernel's own source on the model.
#pragma once

#include "cli/commands/gemm/product.h"
#include "warpwright/plan/cost/prediction.h"

namespace warpwright::cli {

/// Runs a few tiles of the plan's kernel, of one cluster on SMs of its own, in timed mode: with few
/// and with more k_tiles, with one round of tiles and with two. `options` are the product's.
/// Throws InputError where the kernel does not take such a product, RunError where the model finds
/// a fault.
TilePhases sample_phases(const GemmOptions& options, const Plan& plan);

}  // namespace warpwright::cli
