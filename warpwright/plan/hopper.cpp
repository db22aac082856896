// The choice of a Hopper kernel: every kernel, cluster and grid that could serve a product, whole
// or in groups.
#include "warpwright/plan/hopper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "warpwright/kernel/hopper/group_maps.h"
#include "warpwright/kernel/hopper/shared_sums.h"
#include "warpwright/plan/first_tiles.h"
#include "warpwright/plan/kernels.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using HopperRow = KernelRow<kernel::GemmConfig>;

kernel::Sums sums_of(const GemmProblem& p) {
  if (p.scaling == Scaling::block) return kernel::Sums::block_scaled;
  if (p.packed) {
    return p.packed->sums == GroupSums::exact ? kernel::Sums::promoted : kernel::Sums::tensor_core;
  }
  return p.accumulation == Accumulation::promoted ? kernel::Sums::promoted
                                                  : kernel::Sums::tensor_core;
}

// How the CTAs of a kernel share tiles along K.
bool splits(const kernel::GemmConfig& c) {
  return c.sharing == kernel::Sharing::workspace;
}
bool in_cluster(const kernel::GemmConfig& c) {
  return c.sharing == kernel::Sharing::cluster;
}

// Whether the kernel computes what the problem asks, whatever its extents.
bool serves(const kernel::GemmConfig& c, const GemmProblem& p) {
  if (kernel::is_grouped(c) != p.is_grouped()) return false;
  if ((c.swapped ? p.b.dtype : p.a.dtype) != c.a.stored ||
      (c.swapped ? p.a.dtype : p.b.dtype) != c.b.stored)
    return false;
  if (c.result != p.d.dtype || c.gated != p.epilogue.gated || c.sums != sums_of(p)) return false;
  if (c.folds != (p.packed && folds(p.packed->sums))) return false;
  if (c.tables != (p.packed && p.packed->sums == GroupSums::table)) return false;
  if (c.zero_points != (p.packed && p.packed->format.zero_points != ZeroPoints::none)) return false;
  // Of nothing there is no k_tile to share; where D is empty the majors of A and B do not matter.
  if (!p.reads_ab()) return c.sharing == kernel::Sharing::whole;
  if (p.m() == 0 || p.n() == 0) return c.sharing == kernel::Sharing::whole || kernel::packed_a(c);
  const atom::Major a = major_a(p);
  const atom::Major b = major_b(p);
  return (c.swapped ? b : a) == c.a.major && (c.swapped ? a : b) == c.b.major;
}

// Rows and columns of D in a tile of a CTA, and CTAs of a cluster along them.
ResultTile result_tile(const kernel::GemmConfig& c) {
  const int rows = kernel::result_rows(c);
  const int columns = kernel::result_columns(c);
  return c.swapped ? ResultTile{columns, rows} : ResultTile{rows, columns};
}
atom::ClusterShape along_d(const kernel::GemmConfig& c, atom::ClusterShape cluster) {
  return c.swapped ? atom::ClusterShape{cluster.n, cluster.m} : cluster;
}

bool chosen(const HopperRow& i, const PlanChoices& choices) {
  const kernel::GemmConfig& c = i.config;
  return (!choices.tile_m || *choices.tile_m == c.tile_m) &&
         (!choices.tile_n || *choices.tile_n == c.tile_n) &&
         (!choices.tile_tokens || *choices.tile_tokens == result_tile(c).rows) &&
         (!choices.schedule || *choices.schedule == c.schedule) &&
         (!choices.swapped || *choices.swapped == c.swapped) &&
         (!choices.search || *choices.search == c.grouped) &&
         (!choices.group_maps || *choices.group_maps == kernel::has_group_maps(c)) &&
         (choices.tiles != kernel::TileSource::drawn || kernel::draws_tiles(c)) &&
         (!choices.kernel || *choices.kernel == i.name);
}

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
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

// How many CTAs of a cluster may share a tile along K.
constexpr std::array kCtasAlongK = {1, 2, 3, 4, 5, 6, 8, 12, 16};

// Why so many cannot.
std::optional<Refusal> along_k_fault(int ctas, const DeviceFacts& device) {
  int nearest = kCtasAlongK.front();
  for (const int each : kCtasAlongK) {
    if (each <= device.sms && std::abs(each - ctas) < std::abs(nearest - ctas)) nearest = each;
  }
  if (nearest == ctas) return std::nullopt;
  const bool is_short =
      std::find(kCtasAlongK.begin(), kCtasAlongK.end(), ctas) != kCtasAlongK.end();
  return refuse(RefusalCode::bad_choice, "cluster_k is ", ctas,
                (is_short ? ", and device " + device.name + " has " + number(device.sms) + " SMs"
                          : std::string()),
                "; the nearest legal value is ", nearest);
}

// What the caller fixed of the grid, against what is `resident` for `count` cluster tiles.
bool grid_fits(int ctas, const Plan& p, const kernel::GemmConfig& c, int resident,
               std::int64_t count, std::int64_t blocks) {
  const int size = atom::cluster_size(p.cluster);
  return ctas >= 1 && ctas <= resident && ctas % size == 0 && (!in_cluster(c) || ctas <= count) &&
         (!splits(c) || ctas / size <= count * blocks);
}

// The walk over a whole product, and its number of cluster tiles; none where they are too many.
std::optional<std::int64_t> walk_whole(Plan& plan, const kernel::GemmConfig& c, int resident) {
  const GemmProblem& p = plan.problem;
  const std::int64_t rows = c.swapped ? result_columns(p) : p.m();
  const std::int64_t columns = c.swapped ? p.m() : result_columns(p);
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

// The walk over groups of the expected length, and the cluster tiles that groups of any length may
// have. As many token tiles are taken at a time as make what the grid holds near square in bytes.
std::optional<std::int64_t> walk_groups(Plan& plan, const kernel::GemmConfig& c, int resident) {
  const GemmProblem& p = plan.problem;
  const ResultTile tile = result_tile(c);
  const atom::ClusterShape along = along_d(c, plan.cluster);
  const std::int64_t tokens = tile.rows * along.m;
  const std::int64_t weights = pieces(result_columns(p), tile.columns * along.n);
  const std::int64_t most =
      tile::GroupedTiles::most_token_tiles(p.m(), p.group_count(), tokens) * weights;
  if (most > max_extent) return std::nullopt;
  const double expected = std::ceil(expected_tokens(p) / static_cast<double>(tokens));
  plan.raster = {};
  if (most > 0) {
    plan.raster = tile::make_raster(static_cast<int>(std::clamp(expected, 1.0, 1024.0)),
                                    static_cast<int>(weights), {1, 1},
                                    resident / atom::cluster_size(plan.cluster),
                                    {.row = static_cast<double>(tokens),
                                     .column = static_cast<double>(tile.columns * along.n)});
    plan.raster.tiles_m = static_cast<int>(expected);
    const double each = std::max(1.0, expected * static_cast<double>(weights));
    plan.raster.batch = static_cast<int>(
        std::min(busy_groups(p), std::floor(static_cast<double>(max_extent) / each)));
  }
  return most;
}

// Where the tiles come from; nothing where a kernel that draws is of no use. With one wave, or
// where static shares are wanted, the static kernel of the same tile is chosen instead.
std::optional<kernel::TileSource> source(const kernel::GemmConfig& c, bool more_than_a_wave,
                                         const PlanChoices& choices) {
  using kernel::TileSource;
  if (!kernel::draws_tiles(c)) return TileSource::static_persistent;
  const TileSource wanted =
      choices.tiles.value_or(more_than_a_wave ? TileSource::drawn : TileSource::static_persistent);
  if (wanted != TileSource::drawn && !choices.kernel) return std::nullopt;
  return wanted;
}

// With which tiles the clusters begin, where it is known in which groups of SMs they land.
std::vector<std::uint8_t> placed_tiles(const Plan& plan, const kernel::GemmConfig& c) {
  if (!kernel::draws_tiles(c) || !plan.device.sm_groups) return {};
  const auto& landed = plan.device.sm_groups->of_clusters;
  const auto found = landed.find(plan.cluster_ctas());
  const auto clusters = static_cast<std::size_t>(plan.ctas / plan.cluster_ctas());
  if (found == landed.end() || found->second.size() < clusters) return {};
  const std::span groups(found->second.data(), clusters);
  // The tiles of groups of rows are one line: nobody here knows which lie side by side.
  const int line = static_cast<int>(clusters);
  const tile::Raster raster = plan.problem.groups ? tile::Raster{line, 1, line} : plan.raster;
  const double row = plan.cluster.m * c.tile_m;
  const double column = plan.cluster.n * c.tile_n;
  return first_tiles(raster, groups, raster.along_m ? row : column, raster.along_m ? column : row);
}

// All plans by one kernel and cluster.
void add_plans(std::vector<Plan>& all, Plan base, const HopperRow& row,
               const PlanChoices& choices) {
  const GemmProblem& p = base.problem;
  const kernel::GemmConfig& c = row.config;
  // Where along K a tile is cut depends on how many tiles there are.
  if (choices.batch_invariant && (splits(c) || base.cluster_k > 1)) return;
  base.kernel = row.name;
  const int size = atom::cluster_size(base.cluster);
  const int resident = c.ctas_per_sm * resident_ctas(base.device, base.cluster_ctas());
  if (resident == 0) return;
  const auto counted = p.groups ? walk_groups(base, c, resident) : walk_whole(base, c, resident);
  if (!counted) return;
  const std::int64_t count = *counted;
  const std::int64_t blocks = p.reads_ab() ? pieces(p.k(), kernel::tile_k(c)) : 0;
  if (splits(c) && (blocks == 0 || count * blocks > max_extent)) return;
  std::vector<int> grids;
  if (in_cluster(c)) {
    // One tile a cluster, for the memory of the stages serves the exchange; alone, a CTA goes on.
    if (blocks < base.cluster_k) return;
    grids = {static_cast<int>(base.cluster_k > 1 ? count * base.cluster_k
                                                 : std::min<std::int64_t>(count, resident))};
  } else if (splits(c)) {
    grids = split_grids(base, resident, blocks);
  } else {
    grids = {static_cast<int>(std::min<std::int64_t>(count * size, resident))};
  }
  if (choices.ctas) {
    if (base.cluster_k > 1 ? *choices.ctas != grids.front()
                           : !grid_fits(*choices.ctas, base, c, resident, count, blocks)) {
      return;
    }
    grids = {*choices.ctas};
  }
  for (const int ctas : grids) {
    const auto tiles = source(c, tile::tile_count(base.raster) > ctas / size, choices);
    if (!tiles) continue;
    Plan plan = base;
    plan.ctas = count == 0 ? 0 : ctas;
    plan.tile_source = *tiles;
    const int counter = kernel::draws_tiles(c) ? kernel::counter_bytes : 0;
    if (splits(c)) {
      plan.workspace_bytes = kernel::split_workspace_bytes(c, ctas);
      plan.flag_bytes = kernel::split_flag_bytes(c, ctas);
    } else if (kernel::has_group_maps(c)) {
      // Small CTAs, many of which an SM holds: mostly each has one group.
      if (plan.ctas > 0) {
        plan.map_ctas =
            static_cast<int>(std::min(p.group_count(), std::int64_t{8} * plan.device.sms));
      }
      plan.workspace_bytes = counter + kernel::group_maps_workspace(p.group_count());
    } else if (p.groups) {
      plan.workspace_bytes = counter + 16;  // for the check of the offsets
    }
    if (tiles == kernel::TileSource::drawn) {
      plan.flag_bytes = counter;
      plan.workspace_bytes = std::max<std::int64_t>(plan.workspace_bytes, counter);
    }
    plan.first_tiles = placed_tiles(plan, c);
    plan.cost = predicted_cost(plan);
    all.push_back(std::move(plan));
  }
}

std::string wishes(const PlanChoices& choices) {
  std::string text;
  const auto wish = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (choices.batch_invariant) wish("sums that do not depend on the batch");
  if (choices.kernel) wish("the name " + *choices.kernel);
  if (choices.tile_m) wish("tile_m " + number(*choices.tile_m));
  if (choices.tile_n) wish("tile_n " + number(*choices.tile_n));
  if (choices.tile_tokens) wish("tiles of " + number(*choices.tile_tokens) + " tokens");
  if (choices.schedule) {
    constexpr const char* names[] = {"cooperative", "pingpong", "multistage"};
    wish(std::string("the schedule ") + names[static_cast<std::size_t>(*choices.schedule)]);
  }
  if (choices.swapped) wish(*choices.swapped ? "swapped operands" : "operands not swapped");
  if (choices.tiles) {
    wish(choices.tiles == kernel::TileSource::drawn ? "tiles that are drawn" : "static tiles");
  }
  if (choices.search) wish("the search " + std::string(search_name(*choices.search)));
  // One map is what a plan takes unasked.
  if (choices.group_maps.value_or(false)) wish("a map a group");
  if (choices.ctas) wish("a grid of " + number(*choices.ctas) + " CTAs");
  if (choices.cluster_k) wish(number(*choices.cluster_k) + " CTAs that share a tile along K");
  if (choices.cluster) {
    wish("cluster " + number(choices.cluster->m) + "x" + number(choices.cluster->n));
  }
  return text;
}

// What there is for the problem, for a refusal.
std::string offers(const GemmProblem& p) {
  std::string text;
  int shown = 0;
  for (const HopperRow& i : hopper_kernels()) {
    if (!serves(i.config, p)) continue;
    if (++shown > 8) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::string(i.name);
  }
  return text;
}

// What a tile of each kernel for the problem gives of D.
std::vector<ResultTile> result_tiles(const GemmProblem& p) {
  std::vector<ResultTile> all;
  for (const HopperRow& i : hopper_kernels()) {
    if (serves(i.config, p)) all.push_back(result_tile(i.config));
  }
  return all;
}

// A tensor store through a map clips rows by whole pieces of 16 bytes, and a map's rows begin at
// multiples of as many.
bool takes_group_maps(const GemmProblem& p) {
  return result_path(p, true) == EpiloguePath::copy_engine &&
         result_columns(p) * element_bytes(p.d.dtype) % 16 == 0;
}

Refusal no_maps(const GemmProblem& p) {
  const int element = element_bytes(p.d.dtype);
  return refuse(RefusalCode::unsupported,
                "a kernel with a map a group stores D by the copy engine, so the rows of D must ",
                "begin and end at multiples of 16 bytes; a row has ", result_columns(p) * element,
                " bytes, rows are ", p.d.row_stride * element,
                " bytes apart, and the address is a multiple of ", p.d.alignment,
                ": the nearest is a kernel with one map over all tokens");
}

// CTAs of a cluster that nobody asked for. L2 is asked up to four times as often for a row that
// begins within a line, and a cluster asks once for all of its CTAs.
int most_unasked(const GemmProblem& p) {
  if (p.groups || p.packed) return 2;
  return pitch_of_a(p) % 128 != 0 || pitch_of_b(p) % 128 != 0 ? 8 : 2;
}

// Every plan by these choices that begins like `base`; may be none.
Result<std::vector<Plan>> search(Plan base, const PlanChoices& choices, Rows rows) {
  std::vector<Plan> all;
  bool wants_maps = false;
  for (const HopperRow& row : hopper_kernels(rows)) {
    if (!serves(row.config, base.problem) || !chosen(row, choices)) continue;
    if (kernel::has_group_maps(row.config) && !takes_group_maps(base.problem)) {
      wants_maps = choices.kernel || choices.group_maps.value_or(false);
      continue;
    }
    const auto clusters = usable_clusters(row.config, kernel::supported_clusters, base.device,
                                          choices, most_unasked(base.problem));
    if (!clusters) return clusters.refusal();
    for (const atom::ClusterShape& cluster : *clusters) {
      base.cluster = cluster;
      base.cluster_k = 1;
      if (!in_cluster(row.config)) {
        if (choices.cluster_k.value_or(1) == 1) add_plans(all, base, row, choices);
      } else if (atom::cluster_size(cluster) == 1) {
        for (const int ctas : kCtasAlongK) {
          base.cluster_k = ctas;
          if (choices.cluster_k && *choices.cluster_k != ctas) continue;
          if (ctas <= base.device.sms) add_plans(all, base, row, choices);
        }
      }
    }
  }
  if (all.empty() && wants_maps) return no_maps(base.problem);
  return all;
}

// The grid nearest to the one that nobody has, where another one would do.
std::string nearest_grid(const Plan& base, PlanChoices choices) {
  const int asked = *std::exchange(choices.ctas, std::nullopt);
  const auto free = search(base, choices, Rows::built);
  if (!free || free->empty() || free->front().ctas == 0) return {};
  const Plan& one = free->front();
  const int size = one.cluster_ctas();
  const int most = one.facts().ctas_per_sm * resident_ctas(base.device, size);
  choices.ctas = std::clamp(asked / size * size, size, std::max(size, most));
  const auto near = search(base, choices, Rows::built);
  const int nearest = near && !near->empty() ? *choices.ctas : one.ctas;
  return "; the nearest legal grid has " + number(nearest) + " CTAs";
}

std::string names_of(std::span<const atom::ClusterShape> clusters) {
  std::string text;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == clusters.size() ? " and " : ", ");
    text += number(clusters[i].m) + "x" + number(clusters[i].n);
  }
  return text;
}

Refusal none_found(const Plan& base, const PlanChoices& choices) {
  const GemmProblem& p = base.problem;
  const std::string there = offers(p);
  const std::string kind = p.groups ? "no grouped kernel" : "no kernel";
  if (there.empty()) {
    return refuse(RefusalCode::no_kernel, kind, " in this build multiplies ", type_name(p.a.dtype),
                  " by ", type_name(p.b.dtype), " into ", type_name(p.d.dtype), " with ",
                  (p.groups ? scaling_words(p.scaling) + ", " +
                                  (p.accumulation == Accumulation::fast ? "fast" : "promoted") +
                                  " accumulation and this epilogue"
                            : std::string("these layouts, scales and epilogue")));
  }
  if (auto r = tiles_fault(p, result_tiles(p))) return *r;
  if (choices.cluster && atom::cluster_size(*choices.cluster) > base.device.sms) {
    return cluster_too_large(atom::cluster_size(*choices.cluster), base.device,
                             kernel::supported_clusters);
  }
  const std::string wanted = wishes(choices);
  return refuse(RefusalCode::no_kernel, kind, " ",
                (wanted.empty() ? "runs" : "has " + wanted + " for"), " this problem; there are ",
                there, ", and clusters ", names_of(kernel::supported_clusters),
                (choices.ctas ? nearest_grid(base, choices) : ""));
}

// A single row may have any stride, of which no address is made: cut to what does not overflow.
std::int64_t pitch(const MatrixShape& v) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  return std::min(std::max(v.row_stride, v.column_stride), most) * numeric::bits(v.dtype) / 8;
}

}  // namespace

std::int64_t pitch_of_a(const GemmProblem& p) {
  return pitch(p.a);
}
std::int64_t pitch_of_b(const GemmProblem& p) {
  return pitch(p.b);
}

Result<std::vector<Plan>> hopper_candidates(const Plan& start, const PlanChoices& choices,
                                            Rows rows) {
  if (choices.pair.value_or(false) || choices.accumulators ||
      choices.tiles == kernel::TileSource::one_tile ||
      choices.tiles == kernel::TileSource::launch_control) {
    return refuse(RefusalCode::bad_choice,
                  "pairs, one tile a cluster, launch control and accumulators in tensor memory are "
                  "of sm_100; device ",
                  start.device.name, " is sm_", start.device.architecture);
  }
  if (choices.cluster_k) {
    if (auto r = along_k_fault(*choices.cluster_k, start.device)) return *r;
  }
  auto all = search(start, choices, rows);
  if (all && all->empty()) return none_found(start, choices);
  return all;
}

}  // namespace warpwright
