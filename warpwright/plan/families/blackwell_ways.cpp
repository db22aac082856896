// The ways to run a Blackwell kernel: its grid and its walk over a product, whole or in groups.
#include <algorithm>

#include "warpwright/plan/families/blackwell.h"
#include "warpwright/plan/families/blackwell_scales.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/split.h"
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

// Those of a kernel that splits `count` tiles of `blocks` k_tiles: all clusters where tiles are
// more than half as many, else as many as give every tile the same number of parts, few of them.
std::vector<int> split_grids_of_umma(int clusters, int size, std::int64_t count,
                                     std::int64_t blocks) {
  constexpr int most_parts = 16;
  if (clusters == 0 || count * blocks > max_extent) return {};
  if (2 * count > clusters) return {clusters * size};
  std::vector<int> grids;
  for (std::int64_t parts = 2; parts <= std::min<std::int64_t>(most_parts, blocks); ++parts) {
    if (parts * count <= clusters) grids.push_back(static_cast<int>(parts * count) * size);
  }
  return grids;
}

// Grids worth trying for so many cluster tiles; none where the caller's does not fit them.
std::vector<int> umma_grids(const Plan& plan, const BlackwellConfig& c, const PlanChoices& choices,
                            int resident, std::int64_t tiles) {
  const int size = atom::cluster_size(plan.cluster);
  const bool is_static = c.tiles == TileSource::static_persistent;
  const std::int64_t blocks = pieces(plan.problem.k(), kernel::tile_k(c));
  const auto all =
      static_cast<int>(is_static ? std::min<std::int64_t>(tiles * size, resident) : tiles * size);
  std::vector<int> grids =
      c.splits_k ? split_grids_of_umma(resident / size, size, tiles, blocks) : std::vector{all};
  if (!choices.ctas) return grids;
  const int wanted = *choices.ctas;
  if (c.splits_k && wanted / size > tiles * blocks) return {};
  const bool fits =
      is_static ? wanted >= 1 && wanted <= resident && wanted % size == 0 : wanted == all;
  if (!fits) return {};
  return all > 0 ? std::vector{wanted} : grids;
}

}  // namespace

kernel::BlackwellConfig with_majors(kernel::BlackwellConfig c, const GemmProblem& p) {
  if (!p.multiplies() || !kernel::takes_any_major(c)) return c;
  c.a_major = major_a(p);
  c.b_major = major_b(p);
  return c;
}

bool blackwell_serves(const BlackwellConfig& c, const Ask& ask) {
  const GemmProblem& p = ask.problem;
  const bool adds_k_tiles =
      p.scaling == Scaling::blockwise || p.accumulation == Accumulation::promoted;
  if (c.blockwise != adds_k_tiles || scale_block_of(p) != scale_block) return false;
  if (c.long_k && ask.start.device.architecture != 103) return false;
  // An empty product has no k_tile to share. Where tiles are cut depends on how many there are.
  if (c.splits_k && (!p.multiplies() || p.k() == 0 || ask.choices.batch_invariant)) return false;
  const bool k_major = ask.a == atom::Major::k && ask.b == atom::Major::k;
  if (!k_major && !kernel::takes_any_major(c)) return false;
  return blackwell_multiplies(c, p) && c.result == p.d.dtype &&
         blackwell_quantises(c, p.epilogue.quantise) && c.grouped == p.is_grouped() &&
         (takes_index(c) || !p.is_by_index()) && c.gated == p.is_gated();
}

void blackwell_ways(Plan& plan, const KernelFacts& kernel, const BlackwellConfig& c, const Ask& ask,
                    std::vector<Candidate>& all) {
  if (!kernel::supports(with_majors(c, ask.problem), plan.cluster)) return;
  const int size = atom::cluster_size(plan.cluster);
  const int resident = resident_ctas(plan.device, size);
  const auto tiles = c.grouped ? walk_groups(plan, umma_cluster_tile(c, plan.cluster),
                                             resident / size, ask.basis.lengths)
                               : walk_whole_by_umma(plan, c, resident);
  if (!tiles) return;
  plan.tile_source = c.tiles;
  if (c.grouped) plan.workspace_bytes = 16;  // for the check of the offsets
  // Loads of C would not end with the tile.
  if (kernel::has_widths(c) && plan.problem.reads_c()) plan.c_path = EpiloguePath::elements;
  for (const int ctas : umma_grids(plan, c, ask.choices, resident, *tiles)) {
    plan.ctas = ctas;
    if (c.splits_k) take_split_memory(plan, c, ctas);
    plan.cost = ctas == 0 ? 0 : uncorrected_seconds(blackwell_floor(plan, c, ask.basis));
    all.push_back(candidate_of(plan, kernel));
  }
}

}  // namespace warpwright
