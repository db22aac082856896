// The choice of a kernel: every instance, cluster and grid that could serve a problem, in the order
// of their predicted times.
#include "warpwright/plan/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "warpwright/kernel/hopper/shared_sums.h"
#include "warpwright/plan/blackwell.h"
#include "warpwright/plan/cost.h"
#include "warpwright/plan/kernels.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using HopperRow = KernelRow<kernel::GemmConfig>;

kernel::Sums sums_of(const GemmProblem& p) {
  if (p.scaling == Scaling::block) return kernel::Sums::block_scaled;
  return p.accumulation == Accumulation::promoted ? kernel::Sums::promoted
                                                  : kernel::Sums::tensor_core;
}

// Whether the instance computes what the problem asks, whatever its extents.
bool serves(const kernel::GemmConfig& c, const GemmProblem& p) {
  if ((c.swapped ? p.b : p.a) != c.a.stored || (c.swapped ? p.a : p.b) != c.b.stored) return false;
  if (c.result != p.d || c.gated != p.epilogue.gated || c.sums != sums_of(p)) return false;
  if (!p.reads_ab || p.m == 0 || p.n == 0) return c.sharing == kernel::Sharing::whole;
  const atom::Major a = major_a(p);
  const atom::Major b = major_b(p);
  return (c.swapped ? b : a) == c.a.major && (c.swapped ? a : b) == c.b.major;
}

bool chosen(const HopperRow& i, const PlanChoices& choices) {
  const kernel::GemmConfig& c = i.config;
  return (!choices.tile_m || *choices.tile_m == c.tile_m) &&
         (!choices.tile_n || *choices.tile_n == c.tile_n) &&
         (!choices.schedule || *choices.schedule == c.schedule) &&
         (!choices.swapped || *choices.swapped == c.swapped) &&
         (!choices.kernel || *choices.kernel == i.name);
}

int tiles(std::int64_t extent, int tile) {
  return static_cast<int>((extent + tile - 1) / tile);
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
  return Refusal{RefusalCode::bad_choice, "cluster_k is " + number(ctas) +
                                              (is_short ? ", and device " + device.name + " has " +
                                                              number(device.sms) + " SMs"
                                                        : std::string()) +
                                              "; the nearest legal value is " + number(nearest)};
}

// All plans by one instance and cluster.
void add_plans(std::vector<Plan>& all, Plan base, const HopperRow& instance,
               const PlanChoices& choices) {
  const GemmProblem& p = base.problem;
  const kernel::GemmConfig& c = instance.config;
  base.config = c;
  base.kernel = instance.name;
  const std::int64_t rows = c.swapped ? result_columns(p) : p.m;
  const std::int64_t columns = c.swapped ? p.m : result_columns(p);
  const int resident = c.ctas_per_sm * resident_ctas(base.device, base.cluster_ctas());
  if (resident == 0) return;
  base.raster = tile::make_raster(tiles(rows, kernel::result_rows(c)),
                                  tiles(columns, kernel::result_columns(c)), base.cluster, resident,
                                  c.tile_m, c.tile_n);
  base.raster.batch = static_cast<int>(p.batch);
  const std::int64_t each = std::int64_t{base.raster.tiles_m} * base.raster.tiles_n;
  if (each > max_extent / p.batch) return;  // a product of the three might not fit 64 bits
  const std::int64_t count = each * p.batch;
  const std::int64_t blocks = p.reads_ab ? (p.k + kernel::tile_k(c) - 1) / kernel::tile_k(c) : 0;
  if (c.sharing == kernel::Sharing::workspace && (blocks == 0 || count * blocks > max_extent))
    return;
  std::vector<int> grids;
  if (c.sharing == kernel::Sharing::cluster) {
    // One tile a cluster, for the memory of the stages serves the exchange; alone, a CTA goes on.
    if (blocks < base.cluster_k) return;
    grids = {static_cast<int>(base.cluster_k > 1 ? count * base.cluster_k
                                                 : std::min<std::int64_t>(count, resident))};
  } else if (c.sharing == kernel::Sharing::workspace) {
    grids = split_grids(base, resident, blocks);
  } else {
    grids = {static_cast<int>(
        std::min<std::int64_t>(count * atom::cluster_size(base.cluster), resident))};
  }
  if (choices.ctas) {
    if (base.cluster_k > 1) {
      if (*choices.ctas != grids.front()) return;
    } else if (*choices.ctas < 1 || *choices.ctas > resident ||
               *choices.ctas % atom::cluster_size(base.cluster) != 0 ||
               (c.sharing == kernel::Sharing::cluster && *choices.ctas > count) ||
               (c.sharing == kernel::Sharing::workspace &&
                *choices.ctas / atom::cluster_size(base.cluster) > count * blocks)) {
      return;
    }
    grids = {*choices.ctas};
  }
  for (const int ctas : grids) {
    Plan plan = base;
    plan.ctas = count == 0 ? 0 : ctas;
    plan.splits_k = c.sharing == kernel::Sharing::workspace;
    if (c.sharing == kernel::Sharing::workspace)
      plan.workspace_bytes = kernel::split_workspace_bytes(c, ctas);
    plan.cost = predicted_cost(plan);
    all.push_back(std::move(plan));
  }
}

std::string wishes(const PlanChoices& choices) {
  std::string text;
  const auto wish = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (choices.kernel) wish("kernel " + *choices.kernel);
  if (choices.tile_m) wish("tile_m " + number(*choices.tile_m));
  if (choices.tile_n) wish("tile_n " + number(*choices.tile_n));
  if (choices.schedule) {
    constexpr const char* names[] = {"cooperative", "pingpong", "multistage"};
    wish(std::string("the schedule ") + names[static_cast<std::size_t>(*choices.schedule)]);
  }
  if (choices.swapped) wish(*choices.swapped ? "swapped operands" : "operands not swapped");
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
    const kernel::GemmConfig& c = i.config;
    if (!serves(c, p)) continue;
    const int rows = kernel::result_rows(c);
    const int columns = kernel::result_columns(c);
    all.push_back(c.swapped ? ResultTile{columns, rows} : ResultTile{rows, columns});
  }
  return all;
}

// Every plan by these choices that begins like `base`; may be none.
Result<std::vector<Plan>> search(Plan base, const PlanChoices& choices) {
  std::vector<Plan> all;
  for (const HopperRow& instance : hopper_kernels()) {
    if (!serves(instance.config, base.problem) || !chosen(instance, choices)) continue;
    for (const atom::ClusterShape& cluster : kernel::supported_clusters) {
      const int size = atom::cluster_size(cluster);
      if (choices.cluster ? !(*choices.cluster == cluster) : size > 2) continue;
      if (!kernel::supports(instance.config, cluster)) continue;
      if (size > base.device.sms) {
        if (!choices.cluster) continue;
        return cluster_too_large(size, base.device);
      }
      base.cluster = cluster;
      base.cluster_k = 1;
      if (instance.config.sharing != kernel::Sharing::cluster) {
        if (choices.cluster_k.value_or(1) == 1) add_plans(all, base, instance, choices);
      } else if (size == 1) {
        for (const int ctas : kCtasAlongK) {
          base.cluster_k = ctas;
          if (choices.cluster_k && *choices.cluster_k != ctas) continue;
          if (ctas <= base.device.sms) add_plans(all, base, instance, choices);
        }
      }
    }
  }
  return all;
}

// The grid nearest to the one that nobody has, where another one would do.
std::string nearest_grid(const Plan& base, PlanChoices choices) {
  const int asked = *std::exchange(choices.ctas, std::nullopt);
  const auto free = search(base, choices);
  if (!free || free->empty() || free->front().ctas == 0) return {};
  const Plan& one = free->front();
  const int size = one.cluster_ctas();
  const int most = one.config.ctas_per_sm * resident_ctas(base.device, size);
  choices.ctas = std::clamp(asked / size * size, size, std::max(size, most));
  const auto near = search(base, choices);
  const int nearest = near && !near->empty() ? *choices.ctas : one.ctas;
  return "; the nearest legal grid has " + number(nearest) + " CTAs";
}

Refusal none_found(const Plan& base, const PlanChoices& choices) {
  const GemmProblem& p = base.problem;
  if (auto r = kernel_fault(choices.kernel)) return *r;
  const std::string there = offers(p);
  if (there.empty()) {
    return Refusal{RefusalCode::no_kernel,
                   "no kernel in this build multiplies " + type_name(p.a) + " by " +
                       type_name(p.b) + " into " + type_name(p.d) +
                       " with these layouts, scales and epilogue; a build of all kernels may"};
  }
  if (auto r = tiles_fault(p, result_tiles(p))) return *r;
  const std::string wanted = wishes(choices);
  return Refusal{RefusalCode::no_kernel, "no kernel " +
                                             (wanted.empty() ? "runs" : "has " + wanted + " for") +
                                             " this problem; there are " + there +
                                             ", and clusters 1x1, 2x1, 1x2, 2x2 and 4x4" +
                                             (choices.ctas ? nearest_grid(base, choices) : "")};
}

}  // namespace

Result<std::vector<Plan>> candidates(const GemmProblem& problem, const DeviceFacts& device,
                                     const PlanChoices& choices) {
  if (auto r = problem_fault(problem)) return *r;
  if (device.architecture != 90 && !is_blackwell(device)) {
    return Refusal{RefusalCode::no_device,
                   "device " + device.name + " has architecture sm_" + number(device.architecture) +
                       "; kernels exist for sm_90 (H100, H200), sm_100 (B200) and sm_103 (B300)"};
  }
  if (device.sms < 1) return no_sms(device);
  Plan base;
  base.problem = problem;
  if (problem.scaling == Scaling::block) base.problem.accumulation = Accumulation::promoted;
  base.device = device;
  base.d_path = result_path(problem, true);
  base.c_path = result_path(problem, false);
  if (is_blackwell(device)) return blackwell_candidates(base, choices);
  if (choices.pair.value_or(false) || choices.tiles || choices.accumulators) {
    return Refusal{RefusalCode::bad_choice,
                   "pairs, tile sources and accumulators in tensor memory are of sm_100; device " +
                       device.name + " is sm_" + number(device.architecture)};
  }
  if (choices.cluster_k) {
    if (auto r = along_k_fault(*choices.cluster_k, device)) return *r;
  }
  auto found = search(base, choices);
  if (!found) return found;
  std::vector<Plan> all = *found;
  if (all.empty()) return none_found(base, choices);
  std::stable_sort(all.begin(), all.end(),
                   [](const Plan& x, const Plan& y) { return x.cost < y.cost; });
  return all;
}

Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto all = candidates(problem, device, choices);
  if (!all) return all.refusal();
  return all->front();
}

Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto problem = describe(operands);
  if (!problem) return problem.refusal();
  return plan(*problem, device, choices);
}

}  // namespace warpwright
