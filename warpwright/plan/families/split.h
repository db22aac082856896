// Tiles split along K through the workspace: the grids worth trying, and what a launch is given.
// The same for all families. Internal to them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpwright/kernel/params.h"
#include "warpwright/kernel/sliced_fixup.h"
#include "warpwright/kernel/stream_k_fixup.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/tile/split.h"

namespace warpwright {

/// What a plan that splits K on a grid of so many CTAs needs of the workspace.
inline void take_split_memory(Plan& plan, const kernel::EpilogueShape& shape, int ctas) {
  plan.workspace_bytes = kernel::split_workspace_bytes(shape, ctas);
  plan.flag_bytes = kernel::split_flag_bytes(shape, ctas);
}

/// The walk of such a launch, whose raster and k_tiles are there, and the parts of the workspace
/// that its grid touches.
inline void bind_split(kernel::WalkParams& p, Grid& grid, const Plan& plan, void* memory) {
  auto* const workspace = static_cast<std::byte*>(memory);
  p.split =
      tile::SplitPlan(p.raster.count, p.k_tiles, plan.ctas / atom::cluster_size(plan.cluster));
  p.flags = reinterpret_cast<std::uint32_t*>(workspace);
  p.partials = reinterpret_cast<float*>(workspace + plan.flag_bytes);
  grid.workspace[0] = {"flags", 0, plan.flag_bytes};
  grid.workspace[1] = {"workspace", plan.flag_bytes, plan.workspace_bytes};
}

/// The same of a plan whose CTAs add up their tiles in slices.
inline void take_slice_memory(Plan& plan, const kernel::EpilogueShape& shape, int ctas) {
  const int tiles = tile::tile_count(plan.raster);
  plan.workspace_bytes = kernel::sliced_workspace_bytes(shape, tiles, ctas);
  plan.flag_bytes = kernel::sliced_flag_bytes(tiles);
}
inline void bind_slices(kernel::WalkParams& p, Grid& grid, const Plan& plan, void* memory) {
  auto* const workspace = static_cast<std::byte*>(memory);
  p.slices = tile::SlicePlan(p.raster.count, p.k_tiles, plan.ctas);
  p.flags = reinterpret_cast<std::uint32_t*>(workspace);
  p.partials = reinterpret_cast<float*>(workspace + plan.flag_bytes);
  grid.workspace[0] = {"flags", 0, plan.flag_bytes};
  grid.workspace[1] = {"workspace", plan.flag_bytes, plan.workspace_bytes};
}

}  // namespace warpwright
