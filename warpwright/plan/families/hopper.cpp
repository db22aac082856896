// The ways to run a Hopper kernel: its walk over a product, whole or in groups, and its grids.
#include "warpwright/plan/families/hopper.h"

#include <algorithm>
#include <cstdint>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/kernel/cluster_parts.h"
#include "warpwright/plan/families/ask.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/families/split.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

kernel::Sums sums_of(const GemmProblem& p) {
  if (p.scaling == Scaling::blockwise) return kernel::Sums::blockwise;
  return p.accumulation == Accumulation::promoted ? kernel::Sums::promoted
                                                  : kernel::Sums::tensor_core;
}

// Are its blocks of scales the product's? Those that reach over all of it are.
bool serves_blocks(const kernel::GemmConfig& c, const GemmProblem& p) {
  if (p.scaling != Scaling::blockwise) return true;
  const auto same = [&](std::int64_t extent) {
    return ScaleReach::count(extent, kernel::scale_block(c)) ==
           ScaleReach::count(extent, scale_block_of(p));
  };
  return same(p.n()) && same(p.k());
}

// Does the kernel add up as the product wants it?
bool serves_sums(const kernel::GemmConfig& c, const Ask& ask) {
  const GemmProblem& p = ask.problem;
  if (!p.packed) return sums_of(c) == sums_of(p) && serves_blocks(c, p);
  if (!kernel::packed_a(c)) return false;
  if (kernel::is_blockwise(c) != (p.scaling == Scaling::blockwise)) return false;
  const PackedFormat& f = p.packed->format;
  // Products of 4-bit floats with 16 bits are float32 sums in any case.
  if (packed::has_float_codes(f) && packed::is_wide(f)) return true;
  if (folds_alone(c) && !packed::folds(f)) return false;
  const GroupSums has = group_sums(c);
  const GroupSums wanted = packed::sums_for(f, p.packed->sums);
  if (wanted != GroupSums::open) return has == wanted;
  // Which of both must not depend on the number of tokens where bits may not.
  return has == GroupSums::exact || (has == GroupSums::folded && !ask.choices.batch_invariant);
}

// Rows and columns of D in a tile of a CTA, and CTAs of a cluster along them.
ResultTile result_tile(const kernel::GemmConfig& c) {
  const int rows = kernel::result_rows(c);
  const int columns = kernel::result_columns(c);
  return is_swapped(c) ? ResultTile{columns, rows} : ResultTile{rows, columns};
}
atom::ClusterShape along_d(const kernel::GemmConfig& c, atom::ClusterShape cluster) {
  return is_swapped(c) ? atom::ClusterShape{cluster.n, cluster.m} : cluster;
}

// Grids worth trying for an instance that splits K: all CTAs that are resident, and as many as give
// every tile the same number of equal parts.
std::vector<int> split_grids(const Plan& p, int resident, std::int64_t blocks) {
  const int size = atom::cluster_size(p.cluster);
  const std::int64_t clusters = resident / size;
  const std::int64_t count = tile::tile_count(p.raster);
  const std::int64_t all = std::min(clusters, count * blocks);
  std::vector<int> grids = {static_cast<int>(all) * size};
  for (std::int64_t parts = clusters / count; parts >= 1; --parts) {
    if (blocks % parts != 0 || count * parts == all) continue;
    grids.push_back(static_cast<int>(count * parts) * size);
    break;
  }
  return grids;
}

// Grids worth trying for an instance that adds up in slices: all CTAs that are resident, and those
// with a k_tile more each; for both as few as come out with as many k_tiles. Where there are tiles
// for all of them, a CTA a tile, for who names the kernel.
std::vector<int> sliced_grids(int resident, std::int64_t count, std::int64_t blocks,
                              bool is_named) {
  std::vector<int> grids;
  const std::int64_t most = std::min<std::int64_t>(
      {count > 0 ? resident / count : 0, blocks, tile::SlicePlan::most_sharers});
  if (most < 2 && is_named) return {static_cast<int>(count)};
  if (most < 2) return {};
  const std::int64_t least = pieces(blocks, most);  // k_tiles of a CTA
  for (std::int64_t each = least; each < least + 2; ++each) {
    const std::int64_t sharers = pieces(blocks, each);
    if (sharers < 2) break;
    const int ctas = static_cast<int>(count * sharers);
    if (grids.empty() || grids.back() != ctas) grids.push_back(ctas);
  }
  return grids;
}

static_assert(std::ranges::max(ctas_along_k) <= kernel::ClusterParts::most_ctas,
              "kernels keep room for the parts of so many CTAs");

// What the caller fixed of the grid, against what is `resident` for `count` cluster tiles.
bool grid_fits(int ctas, const Plan& p, const kernel::GemmConfig& c, int resident,
               std::int64_t count, std::int64_t blocks) {
  const int size = atom::cluster_size(p.cluster);
  if (slices_k(c)) {
    return ctas >= 1 && (ctas <= resident || ctas == count) && ctas % count == 0 &&
           ctas / count <= std::min<std::int64_t>(blocks, tile::SlicePlan::most_sharers);
  }
  return ctas >= 1 && ctas <= resident && ctas % size == 0 &&
         (!shares_cluster_k(c) || ctas <= count) && (!splits_k(c) || ctas / size <= count * blocks);
}

// The walk over a whole product, and its number of cluster tiles; none where they are too many.
std::optional<std::int64_t> walk_whole(Plan& plan, const kernel::GemmConfig& c, int resident) {
  const GemmProblem& p = plan.problem;
  const std::int64_t rows = is_swapped(c) ? result_columns(p) : p.m();
  const std::int64_t columns = is_swapped(c) ? p.m() : result_columns(p);
  // Half of L2 keeps operands: the other half keeps copies of them for its own SMs, and D passes
  // through both.
  const double deep = 128.0 * static_cast<double>(pieces(p.k(), kernel::span_k(c)));
  plan.raster = tile::make_raster(static_cast<int>(pieces(rows, kernel::result_rows(c))),
                                  static_cast<int>(pieces(columns, kernel::result_columns(c))),
                                  plan.cluster, resident,
                                  {.row = deep * c.tile_m,
                                   .column = deep * c.tile_n,
                                   .kept = 0.5 * static_cast<double>(plan.device.l2_bytes)});
  plan.raster.batch = static_cast<int>(p.batch());
  const std::int64_t each = std::int64_t{plan.raster.tiles_m} * plan.raster.tiles_n;
  if (each > max_extent / p.batch()) return std::nullopt;  // a product of the three may not fit
  return each * p.batch();
}

// The tile of a cluster.
ResultTile cluster_tile(const kernel::GemmConfig& c, atom::ClusterShape cluster) {
  const ResultTile tile = result_tile(c);
  const atom::ClusterShape along = along_d(c, cluster);
  return {tile.rows * along.m, tile.columns * along.n};
}

// Where the tiles come from; nothing where a kernel that draws is of no use. With one wave, or
// where static persistent tiles are wanted, the static kernel of the same tile is chosen instead.
std::optional<kernel::TileSource> source(const kernel::GemmConfig& c, bool more_than_a_wave,
                                         const PlanChoices& choices) {
  using kernel::TileSource;
  if (!kernel::is_dynamic_persistent(c)) return TileSource::static_persistent;
  const TileSource wanted = choices.tiles.value_or(
      more_than_a_wave ? TileSource::dynamic_persistent : TileSource::static_persistent);
  if (wanted != TileSource::dynamic_persistent && !choices.kernel) return std::nullopt;
  return wanted;
}

// Grids worth trying; none where the caller's does not fit `count` cluster tiles of so many blocks.
std::vector<int> grids_of(const Plan& plan, const kernel::GemmConfig& c, const PlanChoices& choices,
                          int resident, std::int64_t count, std::int64_t blocks) {
  const int size = atom::cluster_size(plan.cluster);
  if ((splits_k(c) || slices_k(c)) && (count * blocks == 0 || count * blocks > max_extent)) {
    return {};
  }
  std::vector<int> grids;
  if (shares_cluster_k(c)) {
    // One tile a cluster, for the memory of the stages serves the exchange; else a CTA goes on.
    if (blocks < plan.cluster_k) return {};
    grids = {static_cast<int>(plan.cluster_k > 1 ? count * plan.cluster_k
                                                 : std::min<std::int64_t>(count, resident))};
  } else if (splits_k(c)) {
    grids = split_grids(plan, resident, blocks);
  } else if (slices_k(c)) {
    grids = sliced_grids(resident, count, blocks, choices.kernel.has_value());
  } else {
    grids = {static_cast<int>(std::min<std::int64_t>(count * size, resident))};
  }
  if (!choices.ctas) return grids;
  const bool fits = plan.cluster_k > 1 ? *choices.ctas == grids.front()
                                       : grid_fits(*choices.ctas, plan, c, resident, count, blocks);
  return fits ? std::vector<int>{*choices.ctas} : std::vector<int>{};
}

// What the kernel needs of the workspace on a grid of so many CTAs.
void take_memory(Plan& plan, const kernel::GemmConfig& c, int ctas) {
  const std::int64_t groups = plan.problem.group_count();
  const int counter = kernel::is_dynamic_persistent(c) ? kernel::counter_bytes : 0;
  plan.workspace_bytes = plan.flag_bytes = 0;
  if (splits_k(c)) {
    take_split_memory(plan, c, ctas);
  } else if (slices_k(c)) {
    take_slice_memory(plan, c, ctas);
  } else if (groups > 0) {
    plan.workspace_bytes = counter + 16;  // for the check of the offsets
  }
  if (plan.tile_source == kernel::TileSource::dynamic_persistent) {
    plan.flag_bytes = counter;
    plan.workspace_bytes = std::max<std::int64_t>(plan.workspace_bytes, counter);
  }
}

// A single row may have any stride, of which no address is made: cut to what does not overflow.
std::int64_t pitch(const MatrixShape& v) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  return std::min(std::max(v.row_stride, v.column_stride), most) * numeric::bits(v.dtype) / 8;
}

}  // namespace

bool hopper_serves(const kernel::GemmConfig& c, const Ask& ask) {
  const GemmProblem& p = ask.problem;
  if (kernel::is_grouped(c) != p.is_grouped() || kernel::gathers(c) != p.is_by_index())
    return false;
  const DType a = is_swapped(c) ? operand_b(c).type : stored_a(c);
  const DType b = is_swapped(c) ? stored_a(c) : operand_b(c).type;
  if (p.a.dtype != a || p.b.dtype != b || c.result != p.d.dtype) return false;
  if (c.gated != p.is_gated() || !serves_sums(c, ask)) return false;
  if (c.quantises != p.is_quantised()) return false;
  if (has_zero_points(c) != (p.packed && p.packed->format.zero_points != ZeroPoints::none))
    return false;
  // An empty product has no k_tile to share; where D is empty the majors of A and B do not matter.
  if (!p.reads_ab()) return takes_whole_tiles(c);
  if (!p.multiplies()) return takes_whole_tiles(c) || kernel::packed_a(c);
  return (is_swapped(c) ? ask.b : ask.a) == operand_a(c).major &&
         (is_swapped(c) ? ask.a : ask.b) == operand_b(c).major;
}

void hopper_ways(Plan& plan, const KernelFacts& kernel, const kernel::GemmConfig& c, const Ask& ask,
                 std::vector<Candidate>& all) {
  const GemmProblem& p = plan.problem;
  const PlanChoices& choices = ask.choices;
  // Where along K a tile is cut depends on how many tiles there are.
  if (choices.batch_invariant && (splits_k(c) || slices_k(c) || plan.cluster_k > 1)) return;
  // Only some columns of C are a CTA's own.
  if (slices_k(c) && plan.c_path == EpiloguePath::tma) plan.c_path = EpiloguePath::elements;
  const int size = atom::cluster_size(plan.cluster);
  const int resident = c.ctas_per_sm * resident_ctas(plan.device, plan.cluster_ctas());
  if (resident == 0) return;
  const auto counted = p.groups ? walk_groups(plan, cluster_tile(c, plan.cluster), resident / size,
                                              ask.basis.lengths)
                                : walk_whole(plan, c, resident);
  if (!counted) return;
  const std::int64_t count = *counted;
  const std::int64_t blocks = p.reads_ab() ? pieces(p.k(), kernel::tile_k(c)) : 0;
  for (const int ctas : grids_of(plan, c, choices, resident, count, blocks)) {
    const auto tiles = source(c, tile::tile_count(plan.raster) > ctas / size, choices);
    if (!tiles) continue;
    plan.ctas = count == 0 ? 0 : ctas;
    plan.tile_source = *tiles;
    take_memory(plan, c, ctas);
    plan.cost = plan.ctas == 0 ? 0 : hopper_floor(plan, c, ask.basis, false).seconds;
    all.push_back(candidate_of(plan, kernel));
  }
}

std::int64_t pitch_of_a(const GemmProblem& p) {
  return pitch(p.a);
}
std::int64_t pitch_of_b(const GemmProblem& p) {
  return pitch(p.b);
}

}  // namespace warpwright
