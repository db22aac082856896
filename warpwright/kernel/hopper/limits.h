// What a configuration of the Hopper kernels can be launched with, and the parts that its warps
// play.
#pragma once

#include "warpwright/kernel/hopper/smem_map.h"

namespace warpwright::kernel {

/// The clusters every kernel is launched with, and proved for at compile time.
inline constexpr atom::ClusterShape supported_clusters[] = {
    {1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}, {8, 1}, {1, 8}, {4, 4}};

/// Whether an operand tile can be loaded in `slices` by as many CTAs: in whole boxes of each half.
constexpr bool slices_evenly(const atom::OperandTile& tile, bool gated, int slices) {
  const int unit = tile.major == atom::Major::k ? 8 : atom::span_elements(tile);
  return atom::slices_evenly(gated ? tile.rows / 2 : tile.rows, slices, unit);
}

constexpr bool supports(const GemmConfig& c, atom::ClusterShape cluster) {
  // Each CTA has a piece of its own.
  if (slices_k(c) && atom::cluster_size(cluster) > 1) return false;
  // Packed tiles are not multicast, and CTAs along the tokens would have to agree on a width.
  if ((packed_a(c) || has_widths(c)) && cluster.n > 1) return false;
  for (const int width : tile_widths(c).of) {
    if (width % (8 * cluster.m) != 0) return false;
  }
  for (const atom::ClusterShape& known : supported_clusters) {
    if (known == cluster) {
      return slices_evenly(tile_a(c), gated_rows(c), cluster.n) &&
             slices_evenly(tile_b(c), gated_columns(c), cluster.m);
    }
  }
  return false;
}

/// The part of a cluster whose CTAs write into each other's stages, as the ring counts them. Tokens
/// by index are each CTA's own: who shares no weights with it must not release its stages, or one
/// that is ahead would do it in place of one that still reads.
constexpr atom::ClusterShape ring_cluster(const GemmConfig& c, const atom::ClusterShape& cluster) {
  if (!gathers(c)) return cluster;
  return is_swapped(c) ? atom::ClusterShape{1, cluster.n} : atom::ClusterShape{cluster.m, 1};
}

constexpr bool fits_smem(const GemmConfig& c) {
  return c.ctas_per_sm * (smem_map(c).bytes + reserved_smem_bytes) <= sm_smem_bytes;
}

/// The warp that draws tiles.
inline constexpr int drawing_warp = 3;

/// The part that a warp plays, as reports name it.
constexpr const char* role_of_warp(const GemmConfig& c, int warp) {
  if (warp == 0) return "producer";
  if (warp == 1 && is_blockwise(c)) return "scales";
  if (gathers(c) && warp >= first_row_warp && warp < first_row_warp + row_warps) return "tokens";
  if (is_dynamic_persistent(c) && warp == drawing_warp) return "scheduler";
  if (warp < loading_warps) return "idle";
  constexpr const char* consumers[] = {"consumer 0", "consumer 1", "consumer 2", "consumer 3"};
  return consumers[(warp - loading_warps) / 4 % 4];
}

}  // namespace warpwright::kernel
