// The ways to run a Blackwell kernel: its grid and its walk over a product, whole or in groups.
#include <algorithm>
#include <cmath>

#include "warpwright/plan/families/blackwell.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;
using kernel::TileSource;

// Cluster tiles of a whole product; none where they are more than a grid has CTAs.
std::optional<std::int64_t> walk_whole_by_umma(Plan& plan, const BlackwellConfig& c, int resident) {
  const GemmProblem& p = plan.problem;
  const int size = atom::cluster_size(plan.cluster);
  const std::int64_t rows = c.swap_ab ? result_columns(p) : p.m();
  const std::int64_t columns = c.swap_ab ? p.m() : result_columns(p);
  plan.raster = tile::make_raster(
      static_cast<int>(pieces(rows, kernel::result_rows(c))),
      static_cast<int>(pieces(columns, kernel::result_columns(c))), plan.cluster, resident,
      {.row = static_cast<double>(c.tile_m), .column = static_cast<double>(c.tile_n)});
  plan.raster.batch = static_cast<int>(p.batch());
  const std::int64_t each = std::int64_t{plan.raster.tiles_m} * plan.raster.tiles_n;
  if (each > max_extent / size / p.batch()) return std::nullopt;
  return tile::tile_count(plan.raster);
}

// The tile of a cluster; groups have the tokens along N.
ResultTile umma_cluster_tile(const BlackwellConfig& c, atom::ClusterShape cluster) {
  return {std::int64_t{kernel::result_columns(c)} * cluster.n,
          std::int64_t{kernel::result_rows(c)} * cluster.m};
}

}  // namespace

bool blackwell_serves(const BlackwellConfig& c, const Ask& ask) {
  const GemmProblem& p = ask.problem;
  return c.kind == atom::umma_kind(p.a.dtype) && c.result == p.d.dtype &&
         c.grouped == p.is_grouped() && c.by_index == p.is_by_index() && c.gated == p.is_gated();
}

void blackwell_ways(Plan& plan, const KernelFacts& kernel, const BlackwellConfig& c, const Ask& ask,
                    std::vector<Candidate>& all) {
  const std::optional<int>& wanted = ask.choices.ctas;
  const int size = atom::cluster_size(plan.cluster);
  const int resident = resident_ctas(plan.device, size);
  const auto tiles = c.grouped ? walk_groups(plan, umma_cluster_tile(c, plan.cluster),
                                             resident / size, ask.lengths)
                               : walk_whole_by_umma(plan, c, resident);
  if (!tiles) return;
  plan.tile_source = c.tiles;
  const bool is_static = c.tiles == TileSource::static_persistent;
  const auto ctas = is_static ? std::min<std::int64_t>(*tiles * size, resident) : *tiles * size;
  if (wanted) {
    const bool fits =
        is_static ? *wanted >= 1 && *wanted <= resident && *wanted % size == 0 : *wanted == ctas;
    if (!fits) return;
  }
  plan.ctas = wanted && ctas > 0 ? *wanted : static_cast<int>(ctas);
  if (c.grouped) plan.workspace_bytes = 16;  // for the check of the offsets
  // Loads of C would not end with the tile.
  if (kernel::has_widths(c) && plan.problem.reads_c()) plan.c_path = EpiloguePath::elements;
  plan.cost = blackwell_cost(plan, c, ask.lengths);
  all.push_back(candidate_of(plan, kernel));
}

double blackwell_cost(const Plan& plan, const BlackwellConfig& c, const GroupLengths& lengths) {
  constexpr double clock_hz = 1.9e9;
  constexpr double sm_bytes_per_clock = 64;  // that L2 sends to one SM
  constexpr double start_clocks = 4000;      // of a kernel
  constexpr double tile_clocks = 600;        // beside its k_tiles
  if (plan.ctas == 0) return 0;
  const GemmProblem& p = plan.problem;
  const double blocks =
      p.reads_ab() ? std::ceil(static_cast<double>(p.k()) / kernel::tile_k(c)) : 0;
  // Columns that a tile multiplies. Tiles of a whole product are cut evenly too.
  const bool has_widths = kernel::has_widths(c);
  double columns = c.tile_n;
  if (has_widths && p.groups) {
    columns = lengths.even_tokens(c.widths) / std::max(lengths.tiles(c.tile_n).mean, 1e-6);
  } else if (has_widths && p.m() > 0) {
    columns = tile::even_step(c.widths, tile::count(c.widths), static_cast<int>(p.m()));
  }
  // An MMA of 32 bytes of K takes as many clocks as half its columns, but not less than for 64.
  const double mma = std::max(58.0, columns / 2 + (c.pair ? 6 : 14));
  const double loaded = 128.0 * (c.tile_m / plan.cluster.n + columns / plan.cluster.m);
  const double k_tile = std::max(4 * mma, loaded / sm_bytes_per_clock);
  const double rounds = std::ceil(plan.waves() - 1e-9);
  const double products = rounds * (blocks * k_tile + tile_clocks);
  const double moved = p.groups ? moved_bytes(p, lengths.busy) : moved_bytes(p);
  const double rate =
      plan.device.memory_bytes_per_second > 0 ? plan.device.memory_bytes_per_second : 8e12;
  const double memory = moved / rate * clock_hz;
  // Of two that are as fast, the one that loads less.
  const double loads = 0.01 * static_cast<double>(plan.tiles()) * blocks * loaded /
                       (sm_bytes_per_clock * std::max(plan.device.sms, 1));
  return (start_clocks + std::max(products, memory) + 0.1 * std::min(products, memory) + loads) /
         clock_hz;
}

}  // namespace warpwright
