// The choice of a kernel for a grouped product, by the tokens that a group is expected to have, and
// its words.
#include "warpwright/plan/grouped.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "warpwright/kernel/hopper/group_maps.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/plan/cost.h"
#include "warpwright/plan/explain_parts.h"
#include "warpwright/plan/grouped_rules.h"
#include "warpwright/plan/kernels.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using kernel::GemmConfig;
using kernel::Grouping;

using GroupedRow = KernelRow<GemmConfig>;

kernel::Sums sums_of(const GroupedProblem& p) {
  if (p.scaling == GroupedScaling::block) return kernel::Sums::block_scaled;
  return p.accumulation == Accumulation::promoted ? kernel::Sums::promoted
                                                  : kernel::Sums::tensor_core;
}

bool serves(const GemmConfig& c, const GroupedProblem& p) {
  return (c.swapped ? p.w : p.x) == c.a.stored && (c.swapped ? p.x : p.w) == c.b.stored &&
         c.result == p.y && c.sums == sums_of(p);
}

int tokens_of(const GemmConfig& c) {
  return c.swapped ? c.tile_n : c.tile_m;
}
int weights_of(const GemmConfig& c) {
  return c.swapped ? c.tile_m : c.tile_n;
}

bool chosen(const GroupedRow& i, const GroupedChoices& choices) {
  const GemmConfig& c = i.config;
  return (!choices.tile_tokens || *choices.tile_tokens == tokens_of(c)) &&
         (!choices.swapped || *choices.swapped == c.swapped) &&
         (!choices.search || *choices.search == c.grouped) &&
         (!choices.kernel || *choices.kernel == i.name) &&
         (!choices.group_maps || *choices.group_maps == kernel::has_group_maps(c));
}

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

// CTAs of a cluster along the tokens and along the weights.
int cluster_tokens(const GemmConfig& c, atom::ClusterShape cluster) {
  return c.swapped ? cluster.n : cluster.m;
}
int cluster_weights(const GemmConfig& c, atom::ClusterShape cluster) {
  return c.swapped ? cluster.m : cluster.n;
}

// The groups that are expected to have tokens, and cluster tiles of all of them.
double busy_groups(const GroupedPlan& p) {
  const double tokens = p.expected_tokens();
  if (tokens <= 0) return 0;
  return std::min(static_cast<double>(p.problem.groups),
                  std::ceil(static_cast<double>(p.problem.total) / tokens));
}

double expected_cluster_tiles(const GroupedPlan& p) {
  const double tokens = p.tile_tokens() * cluster_tokens(p.config, p.cluster);
  const double weights = p.tile_weights() * cluster_weights(p.config, p.cluster);
  return busy_groups(p) * std::ceil(p.expected_tokens() / tokens) *
         std::ceil(static_cast<double>(p.problem.n) / weights);
}

double operand_bytes(const GroupedPlan& p) {
  return kernel::operand_bits(p.config) / 8.0;
}

double traffic(const GroupedPlan& p) {
  const auto total = static_cast<double>(p.problem.total);
  const auto n = static_cast<double>(p.problem.n);
  const auto k = static_cast<double>(p.problem.k);
  return (total * k + busy_groups(p) * n * k) * operand_bytes(p) +
         total * n * kernel::result_bytes(p.config);
}

// How long a CTA looks for its tiles: loads of offsets one behind the other, fewest where few
// groups are looked at in turn.
double search_seconds(const GemmConfig& c, double groups) {
  switch (c.grouped) {
    case Grouping::horizontal:
      return 0.3e-6 + 0.027e-6 * groups;
    case Grouping::ballot:
      return 1.1e-6 + 0.1e-6 * std::ceil(groups / 32);
    default:
      return 2e-6 + 0.05e-6 * groups / kernel::threads(c);
  }
}

// How long the kernel that makes the maps takes until the next one may read them.
double map_seconds(const GemmConfig& c) {
  return kernel::has_group_maps(c) ? 3e-6 : 0;
}

// Rounds that the clusters of the grid take. Lengths differ: C CTAs of a cluster along the tokens
// go together to a group's end, where on average (C - 1) / 2 of them find no tokens. How much of
// the last CTA's tile is empty is the same for all clusters, and left out.
double expected_rounds(const GroupedPlan& p) {
  const double clusters = static_cast<double>(p.ctas) / atom::cluster_size(p.cluster);
  const double along = cluster_tokens(p.config, p.cluster);
  const double weights = std::ceil(static_cast<double>(p.problem.n) /
                                   (p.tile_weights() * cluster_weights(p.config, p.cluster)));
  return std::ceil(expected_cluster_tiles(p) / clusters) +
         busy_groups(p) * weights * (along - 1) / (2 * along) / clusters;
}

// Seconds on an H200-like device; on the model with an H200's rates. The constants are fitted to
// what `bench grouped` measured on an H200 (the choices: tests/plan/grouped_test.cpp).
double predicted_cost(const GroupedPlan& p) {
  constexpr double clock_hz = 1.58e9;          // under load, waits between tiles and all
  constexpr double launch_seconds = 2.4e-6;    // up to the first load of an offset
  constexpr double epilogue_seconds = 2.4e-6;  // of a 128 x 256 tile that nothing hides
  constexpr double pingpong_share = 0.91;      // of the clocks: waits of one group are the other's
  constexpr double wide_scaled_share = 1.07;   // scales of a wide tile are fetched less far ahead
  constexpr double l2_bytes_per_second = 10.5e12;
  constexpr double hbm_bytes_per_second = 4.4e12;
  const GemmConfig& c = p.config;
  if (p.ctas == 0) return 0;
  const bool pingpong = c.schedule == kernel::Schedule::pingpong;
  const int size = atom::cluster_size(p.cluster);
  const double rounds = expected_rounds(p);
  const double blocks = std::ceil(static_cast<double>(p.problem.k) / kernel::tile_k(c));
  const double wide =
      c.sums == kernel::Sums::block_scaled && c.tile_n > 160 ? wide_scaled_share : 1;
  const double products =
      rounds * blocks * block_clocks(c) / clock_hz * (pingpong ? pingpong_share : 1) * wide;
  const double epilogue = epilogue_seconds * c.tile_m * c.tile_n / 32768;
  double serial = pingpong ? std::max(products, rounds * epilogue / 2) + epilogue
                           : products + rounds * epilogue;
  // The CTAs of a cluster wait for each other.
  if (size > 1) serial *= 1.002;
  const double rate = p.device.memory_bytes_per_second > 0 ? p.device.memory_bytes_per_second
                                                           : hbm_bytes_per_second;
  // What HBM sends waits now and then for what L2 sends, which a cluster makes less; and it stops
  // where an epilogue is so long that the ring of stages is full.
  const double loaded =
      expected_cluster_tiles(p) * size * blocks * 128 *
      (static_cast<double>(c.tile_m) / p.cluster.n + static_cast<double>(c.tile_n) / p.cluster.m);
  const double memory = wide * wide * traffic(p) / rate + 0.12 * loaded / l2_bytes_per_second +
                        (pingpong ? 0 : 0.2 * rounds * epilogue);
  // The lesser of the two is not quite hidden.
  return launch_seconds + map_seconds(c) +
         search_seconds(c, static_cast<double>(p.problem.groups)) + std::max(serial, memory) +
         0.06 * std::min(serial, memory);
}

// Y is written 16 bytes a lane where its rows start at multiples of 16 bytes.
bool by_vectors(const GroupedProblem& p) {
  return p.y_alignment % 16 == 0 && p.y_row_stride * numeric::bits(p.y) / 8 % 16 == 0;
}

// A tensor store through a map clips rows by whole pieces of 16 bytes, and a map's rows begin at
// multiples of as many.
bool takes_group_maps(const GroupedProblem& p) {
  return by_vectors(p) && p.n * numeric::bits(p.y) / 8 % 16 == 0;
}

void add_plan(std::vector<GroupedPlan>& all, GroupedPlan plan, const GroupedRow& instance) {
  const GroupedProblem& p = plan.problem;
  const GemmConfig& c = instance.config;
  plan.config = c;
  plan.kernel = instance.name;
  const int size = atom::cluster_size(plan.cluster);
  const int resident = resident_ctas(plan.device, size);
  if (resident == 0) return;
  const std::int64_t tokens = std::int64_t{tokens_of(c)} * cluster_tokens(c, plan.cluster);
  const std::int64_t weights =
      pieces(p.n, std::int64_t{weights_of(c)} * cluster_weights(c, plan.cluster));
  // Indices of tiles have 31 bits.
  const std::int64_t most =
      tile::GroupedTiles::most_token_tiles(p.total, p.groups, tokens) * weights;
  if (most > max_extent) return;
  plan.ctas = static_cast<int>(std::min<std::int64_t>(most * size, resident));
  plan.map_ctas = 0;
  plan.workspace_bytes = 16;
  if (kernel::has_group_maps(c)) {
    // Small CTAs, many of which an SM holds: mostly each has one group.
    if (plan.ctas > 0) {
      plan.map_ctas = static_cast<int>(std::min(p.groups, std::int64_t{8} * plan.device.sms));
    }
    plan.workspace_bytes = kernel::group_maps_workspace(p.groups);
  }
  // As many token tiles at a time as make what the grid holds near square in bytes.
  const auto expected = static_cast<int>(
      std::clamp(std::ceil(plan.expected_tokens() / static_cast<double>(tokens)), 1.0, 1024.0));
  plan.band = 1;
  if (most > 0) {
    plan.band = tile::make_raster(expected, static_cast<int>(weights), {1, 1}, resident / size,
                                  tokens_of(c) * cluster_tokens(c, plan.cluster),
                                  weights_of(c) * cluster_weights(c, plan.cluster))
                    .band;
  }
  plan.cost = predicted_cost(plan);
  all.push_back(std::move(plan));
}

std::string why(const std::vector<GroupedPlan>& all) {
  const GroupedPlan& p = all.front();
  std::string text = format("%.6g tokens %s a group: ", p.expected_tokens(),
                            p.problem.expected_tokens > 0 ? "expected in" : "on average in");
  text += p.config.swapped
              ? format("few, so the weights lie on wgmma's M and tiles have %d tokens on its N",
                       p.tile_tokens())
              : format("enough to fill wgmma's M with them, in tiles of %d", p.tile_tokens());
  text += format("; predicted %.1f us", p.cost * 1e6);
  if (all.size() > 1) {
    text += format(", next best %s %.1f us", all[1].name().c_str(), all[1].cost * 1e6);
  }
  return text;
}

// Cluster tiles that a kernel without a cluster may have to number.
std::int64_t most_tiles(const GemmConfig& c, const GroupedProblem& p) {
  return tile::GroupedTiles::most_token_tiles(p.total, p.groups, tokens_of(c)) *
         pieces(p.n, weights_of(c));
}

// Why the problem has too many tiles for every kernel that serves it, or nothing.
std::optional<Refusal> tiles_fault(const GroupedProblem& p) {
  std::int64_t most_n = 0;  // of the tokens and groups as they are
  for (const GroupedRow& i : grouped_kernels()) {
    const GemmConfig& c = i.config;
    if (!serves(c, p)) continue;
    if (most_tiles(c, p) <= max_extent) return std::nullopt;
    const std::int64_t along =
        tile::GroupedTiles::most_token_tiles(p.total, p.groups, tokens_of(c));
    most_n = std::max(most_n, max_extent / along * weights_of(c));
  }
  const std::string nearest =
      most_n > 0 ? "N is " + number(most_n)
                 : "number of groups is " + number(std::max<std::int64_t>(1, p.groups / 2));
  return Refusal{RefusalCode::bad_shape,
                 number(p.groups) + " groups of " + number(p.total) + " tokens in all with N " +
                     number(p.n) + " may have more tiles than the " + number(max_extent) +
                     " that can be numbered; split them: the nearest legal " + nearest};
}

std::string wishes(const GroupedChoices& choices) {
  std::string text;
  const auto wish = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (choices.kernel) wish("the name " + *choices.kernel);
  if (choices.tile_tokens) wish("tiles of " + number(*choices.tile_tokens) + " tokens");
  if (choices.swapped) wish(*choices.swapped ? "swapped operands" : "operands not swapped");
  if (choices.search) wish("the search " + std::string(search_name(*choices.search)));
  // One map is what a plan takes unasked.
  if (choices.group_maps == true) wish("a map a group");
  if (choices.cluster) {
    wish("cluster " + number(choices.cluster->m) + "x" + number(choices.cluster->n));
  }
  return text;
}

Refusal none_found(const GroupedProblem& p, const DeviceFacts& device,
                   const GroupedChoices& choices) {
  if (auto r = kernel_fault(choices.kernel)) return *r;
  std::string there;
  for (const GroupedRow& i : grouped_kernels()) {
    if (serves(i.config, p)) there += (there.empty() ? "" : ", ") + std::string(i.name);
  }
  if (there.empty()) {
    return Refusal{RefusalCode::no_kernel,
                   "no grouped kernel in this build multiplies " + type_name(p.x) + " by " +
                       type_name(p.w) + " into " + type_name(p.y) + " with " +
                       scaling_name(p.scaling) + " scaling and " +
                       (p.accumulation == Accumulation::fast ? "fast" : "promoted") +
                       " accumulation; a build of all kernels may"};
  }
  if (auto r = tiles_fault(p)) return *r;
  if (choices.cluster && atom::cluster_size(*choices.cluster) > device.sms) {
    return cluster_too_large(atom::cluster_size(*choices.cluster), device);
  }
  const std::string wanted = wishes(choices);
  return Refusal{RefusalCode::no_kernel, "no grouped kernel " +
                                             (wanted.empty() ? "runs" : "has " + wanted + " for") +
                                             " this problem; there are " + there +
                                             ", and clusters 1x1, 2x1, 1x2, 2x2 and 4x4"};
}

Refusal no_maps(const GroupedProblem& p) {
  const int element = numeric::bits(p.y) / 8;
  return Refusal{RefusalCode::unsupported,
                 "a kernel with a map a group stores Y by the copy engine, so the rows of Y must " +
                     std::string("begin and end at multiples of 16 bytes; N is ") +
                     number(p.n * element) + " bytes, rows are " +
                     number(p.y_row_stride * element) +
                     " bytes apart, and the address is a multiple of " + number(p.y_alignment) +
                     ": the nearest is a kernel with one map over all tokens"};
}

}  // namespace

const char* search_name(Grouping search) {
  constexpr const char* names[] = {"none", "horizontal", "vertical", "ballot"};
  return names[static_cast<std::size_t>(search)];
}

Result<std::vector<GroupedPlan>> candidates_grouped(const GroupedProblem& problem,
                                                    const DeviceFacts& device,
                                                    const GroupedChoices& choices) {
  if (auto r = grouped_fault(problem)) return *r;
  if (device.architecture != 90) {
    return Refusal{RefusalCode::no_device, "device " + device.name + " has architecture sm_" +
                                               number(device.architecture) +
                                               "; kernels exist for sm_90 (H100, H200)"};
  }
  if (device.sms < 1) return no_sms(device);
  GroupedPlan base;
  base.problem = problem;
  base.device = device;
  base.by_vectors = by_vectors(problem);
  std::vector<GroupedPlan> all;
  bool wants_maps = false;
  for (const GroupedRow& instance : grouped_kernels()) {
    if (!serves(instance.config, problem) || !chosen(instance, choices)) continue;
    if (kernel::has_group_maps(instance.config) && !takes_group_maps(problem)) {
      wants_maps = choices.kernel || choices.group_maps == true;
      continue;
    }
    for (const atom::ClusterShape& cluster : kernel::supported_clusters) {
      const int size = atom::cluster_size(cluster);
      if (choices.cluster ? !(*choices.cluster == cluster) : size > 2) continue;
      if (!kernel::supports(instance.config, cluster)) continue;
      if (size > device.sms) {
        if (!choices.cluster) continue;
        return cluster_too_large(size, device);
      }
      base.cluster = cluster;
      add_plan(all, base, instance);
    }
  }
  if (all.empty()) return wants_maps ? no_maps(problem) : none_found(problem, device, choices);
  std::stable_sort(all.begin(), all.end(),
                   [](const GroupedPlan& x, const GroupedPlan& y) { return x.cost < y.cost; });
  all.front().reason = why(all);
  return all;
}

Result<GroupedPlan> plan_grouped(const GroupedProblem& problem, const DeviceFacts& device,
                                 const GroupedChoices& choices) {
  // A map a group only for who asks for it.
  GroupedChoices wanted = choices;
  if (!choices.kernel && !choices.group_maps) wanted.group_maps = false;
  auto all = candidates_grouped(problem, device, wanted);
  if (!all) return all.refusal();
  return all->front();
}

Result<GroupedPlan> plan_grouped(const GroupedOperands& operands, const DeviceFacts& device,
                                 double expected_tokens, const GroupedChoices& choices) {
  auto problem = describe_grouped(operands);
  if (!problem) return problem.refusal();
  GroupedProblem p = *problem;
  p.expected_tokens = expected_tokens;
  return plan_grouped(p, device, choices);
}

tile::GroupedTiles GroupedPlan::tiles(const void* offsets) const {
  const tile::GroupOffsets o(offsets, problem.offsets == OffsetType::int64,
                             static_cast<int>(problem.groups), static_cast<int>(problem.total));
  const int along_tokens = tile_tokens() * cluster_tokens(config, cluster);
  const std::int64_t along_weights =
      std::int64_t{tile_weights()} * cluster_weights(config, cluster);
  return {o, along_tokens, static_cast<int>(pieces(problem.n, along_weights)), band,
          config.swapped};
}

int GroupedPlan::tile_tokens() const {
  return tokens_of(config);
}

int GroupedPlan::tile_weights() const {
  return weights_of(config);
}

double GroupedPlan::expected_tokens() const {
  const auto total = static_cast<double>(problem.total);
  if (problem.expected_tokens > 0) return std::min(problem.expected_tokens, total);
  return total / static_cast<double>(problem.groups);
}

std::int64_t GroupedPlan::expected_tiles() const {
  return static_cast<std::int64_t>(expected_cluster_tiles(*this)) * atom::cluster_size(cluster);
}

double GroupedPlan::compute_seconds() const {
  if (device.flops_16bit == 0) return 0;
  const double rate = device.flops_16bit * 16 / kernel::operand_bits(config);
  return 2.0 * static_cast<double>(problem.total) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k) / rate;
}

double GroupedPlan::memory_seconds() const {
  if (device.memory_bytes_per_second == 0) return 0;
  return traffic(*this) / device.memory_bytes_per_second;
}

Bound GroupedPlan::bound() const {
  return compute_seconds() >= memory_seconds() ? Bound::tensor_cores : Bound::memory;
}

std::string GroupedPlan::name() const {
  return format("%s_c%dx%d", kernel.empty() ? "none" : kernel.c_str(), cluster.m, cluster.n);
}

std::vector<pipeline::BarrierRow> GroupedPlan::barriers() const {
  const pipeline::TmaPipelineShape shape = kernel::mainloop_shape(config);
  std::vector<pipeline::BarrierRow> rows = {pipeline::full_row(shape),
                                            pipeline::empty_row(shape, cluster)};
  if (config.schedule == kernel::Schedule::pingpong) rows.push_back(pipeline::turn_row());
  return rows;
}

std::string GroupedPlan::explain() const {
  const GemmConfig& c = config;
  const kernel::SmemMap map = kernel::smem_map(c);
  constexpr const char* schedules[] = {"cooperative", "ping-pong", "multistage"};
  constexpr const char* searches[] = {
      "", "horizontal: one group after the other",
      "vertical: binary search over the tiles of all groups, added up in shared memory",
      "ballot: a warp looks at 32 groups at a step"};
  std::string out = format(
      "problem    Y[g] = X[g] W[g]^T, %lld groups, %lld tokens in all, N %lld, K %lld, %s x %s -> "
      "%s, %s scaling, offsets int%d\n",
      static_cast<long long>(problem.groups), static_cast<long long>(problem.total),
      static_cast<long long>(problem.n), static_cast<long long>(problem.k),
      type_name(problem.x).c_str(), type_name(problem.w).c_str(), type_name(problem.y).c_str(),
      scaling_name(problem.scaling), problem.offsets == OffsetType::int64 ? 64 : 32);
  out += format("device     %s, sm_%d, %d SMs\n", device.name.c_str(), device.architecture,
                device.sms);
  out += format("kernel     hopper_gemm, %s: persistent, warp-specialised, %s%s\n", name().c_str(),
                schedules[static_cast<int>(c.schedule)],
                c.swapped ? ", operands swapped (rows are columns of Y)" : "");
  if (!reason.empty()) out += "choice     " + reason + "\n";
  out += format("tiles      found on the device, %s\n", searches[static_cast<int>(c.grouped)]);
  out += format("tile       %d tokens x %d weights x %d, wgmma m64n%dk%d, %d consumer warpgroups\n",
                tile_tokens(), tile_weights(), kernel::tile_k(c), c.tile_n,
                atom::wgmma_k(c.a.multiplied), c.consumer_warpgroups);
  out += format("cluster    %d x %d\n", cluster.m, cluster.n);
  const auto shape = kernel::mainloop_shape(c);
  out += format("stages     %d of %d bytes\n", c.stages, shape.stage_bytes);
  if (kernel::has_group_maps(c)) {
    out += format("maps       of X and Y one a group, made on the device by a kernel of %d CTAs\n",
                  map_ctas);
    out += "Y          TMA store from shared memory, which ends with the group\n";
  } else {
    out += "maps       one over all tokens; rows loaded past a group's end are not stored\n";
    out += format("Y          %s\n",
                  by_vectors ? "16 bytes a lane, whole lines, up to the group's end"
                             : "element by element (base or pitch is no multiple of 16 bytes)");
  }
  out += format("shared     %d of %d bytes\n", map.bytes, kernel::max_smem_bytes);
  out += barrier_table(barriers());
  out += format("\nexpected   %lld tiles, bands of %d token tiles\n",
                static_cast<long long>(expected_tiles()), band);
  out += format("grid       %d persistent CTAs, whatever the lengths\n", ctas);
  if (device.flops_16bit > 0 && device.memory_bytes_per_second > 0) {
    out += format("bound      %s: tensor cores %.2f us, HBM %.2f us\n",
                  bound() == Bound::tensor_cores ? "tensor cores" : "HBM", compute_seconds() * 1e6,
                  memory_seconds() * 1e6);
  } else {
    out += "bound      none: the model has no rates\n";
  }
  out += format("workspace  %lld bytes, used by the %scheck of the offsets%s\n",
                static_cast<long long>(workspace_bytes),
                kernel::has_group_maps(c) ? "maps and the " : "",
                kernel::has_group_maps(c) ? "" : " alone");
  return out;
}

}  // namespace warpwright
