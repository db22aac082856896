// What one SM does with a tile, from the kernel's own source on the model.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/commands/gemm/product.h"
#include "warpwright/facts/costs.h"
#include "warpwright/plan/families/prediction.h"

namespace warpwright::cli {

/// Tiles of a CTA in the shortest run: consumers that take tiles in turn have one each.
std::int64_t least_rounds(const KernelFacts& kernel);

/// Clocks of one run of the plan's kernel in timed mode on that machine: one cluster on SMs of its
/// own, so many tiles a CTA of so many k_tiles. `options` are the product's. `work`, where it is
/// not null, gets what the time is made of. Throws InputError where the kernel does not take such a
/// product, RunError where the model finds a fault.
double sample_run(const GemmOptions& options, const Plan& plan, std::int64_t rounds,
                  std::int64_t k_tiles, std::shared_ptr<const MachineNumbers> numbers, Work* work);

/// Clocks that a CTA looks for its first tile where it lies in the last of the product's groups,
/// beyond those in a single group: the kernel's own search, of the plan's device.
double search_clocks(const GemmOptions& options, const Plan& plan);

/// From such runs on the plan's device, with few and with more k_tiles, with one round of tiles and
/// with two.
TilePhases sample_phases(const GemmOptions& options, const Plan& plan);

}  // namespace warpwright::cli
