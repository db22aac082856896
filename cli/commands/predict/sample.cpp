#include "cli/commands/predict/sample.h"

#include <algorithm>
#include <future>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "warpwright/atom/mask_text.h"
#include "warpwright/model/report/trace.h"

namespace warpwright::cli {
namespace {

// With these many k_tiles: beyond the first filling of any ring that matters, and cheap.
constexpr std::int64_t kShallow = 8;
constexpr std::int64_t kDeep = 24;
// And of CTAs that share a tile along K, which are many.
constexpr std::int64_t kShallowShare = 4;
constexpr std::int64_t kDeepShare = 12;

// A large cluster's CTAs do what those of a small one do, for their SM, and take the model as much
// longer as they are more.
atom::ClusterShape sampled_cluster(const Plan& plan) {
  constexpr int most = 4;
  if (atom::cluster_size(plan.cluster) <= most) return plan.cluster;
  atom::ClusterShape best = plan.cluster;
  for (const atom::ClusterShape& c : plan.facts().clusters) {
    const int size = atom::cluster_size(c);
    const bool within = c.m <= plan.cluster.m && c.n <= plan.cluster.n && size <= 2;
    if (within && (atom::cluster_size(best) > most || size > atom::cluster_size(best))) best = c;
  }
  return best;
}

// The product in so many rounds of tiles and k_tiles, and nothing of files.
GemmOptions shrunk(const GemmOptions& given, const Plan& plan, std::int64_t rounds,
                   std::int64_t k_tiles, std::int64_t groups = 1) {
  const KernelFacts& kernel = plan.facts();
  GemmOptions o = given;
  for (const TensorOption& each : tensor_options) {
    if (each.file != &GemmOptions::bias) (o.*each.file).clear();
  }
  if (plan.problem.reads_c()) o.beta = given.beta.empty() ? "1" : given.beta;
  const atom::ClusterShape c = sampled_cluster(plan);
  const std::int64_t m = std::int64_t{kernel.result_rows} * (kernel.swap_ab ? c.n : c.m);
  const std::int64_t columns =
      std::int64_t{kernel.result_columns} * (kernel.swap_ab ? c.m : c.n) * rounds;
  const std::int64_t n = plan.problem.is_gated() ? 2 * columns : columns;
  const std::int64_t k = kernel.tile.k * k_tiles * plan.cluster_k;
  o.m = o.n = o.k = std::nullopt;
  o.batch = std::nullopt;
  o.pitch = std::nullopt;
  o.in_place = false;
  o.batch_invariant = false;
  o.total = std::nullopt;
  o.offsets.clear();
  o.expected_tokens = std::nullopt;
  o.expected_lengths.clear();
  o.tile_m = o.tile_n = o.tile_tokens = std::nullopt;
  o.schedule.clear();
  o.swap_ab.clear();
  o.search.clear();
  if (o.is_grouped) {
    o.random.clear();
    o.groups = groups;
    o.tokens.clear();
    for (std::int64_t g = 1; g < groups; ++g) o.tokens += "0,";
    o.tokens += std::to_string(m);
    o.n = n;
    o.k = k;
    if (kernel.gathers) o.rows_index = "random:" + std::to_string(m);
  } else {
    o.random = {m, n, k};
  }
  o.device = "model";
  o.kernel = plan.kernel;
  o.cluster = std::to_string(c.m) + "," + std::to_string(c.n);
  o.cluster_k = plan.cluster_k > 1 ? std::optional<int>(plan.cluster_k) : std::nullopt;
  if (plan.cluster_k > 1) o.cluster.clear();
  // One is looked at of kernels that have two CTAs on an SM; others fill their SMs.
  o.ctas = kernel.ctas_per_sm > 1 && plan.cluster_k == 1 ? std::optional<int>(atom::cluster_size(c))
                                                         : std::nullopt;
  o.sms = atom::cluster_size(c) * plan.cluster_k;
  o.no_tuning = true;
  return o;
}

double clocks_of(const GemmOptions& options, const Plan& plan, std::int64_t rounds,
                 std::int64_t k_tiles) {
  return sample_run(options, plan, rounds, k_tiles, plan.device.numbers, nullptr);
}

// K of two runs, from which a k_tile follows: shallow and deep.
std::pair<std::int64_t, std::int64_t> depths(const Plan& plan) {
  if (plan.cluster_k > 1) return {kShallowShare, kDeepShare};
  return {kShallow, kDeep};
}

}  // namespace

std::int64_t least_rounds(const KernelFacts& kernel) {
  return kernel.schedule == kernel::Schedule::pingpong ? 2 : 1;
}

static double run_of(const GemmOptions& o, const Plan& plan,
                     std::shared_ptr<const MachineNumbers> numbers, Work* work) {
  std::ostringstream silent;
  DeviceFacts facts = model_facts(*o.sms, plan.device.architecture);
  facts.numbers = std::move(numbers);
  Product product(o, facts, silent);
  product.load(o.seed, silent);
  model::Trace trace;
  device::ModelOptions how;
  how.mode = model::Mode::timed;
  how.trace = &trace;
  how.check_order = false;
  how.work = work;
  const model::Report report = taken(device::launch_on_model(product.plan, product.operands, how));
  if (!report.clean()) throw RunError(Sentence{"The model found faults:\n" + report.text()});
  return static_cast<double>(trace.end());
}

double sample_run(const GemmOptions& options, const Plan& plan, std::int64_t rounds,
                  std::int64_t k_tiles, std::shared_ptr<const MachineNumbers> numbers, Work* work) {
  return run_of(shrunk(options, plan, rounds, k_tiles), plan, std::move(numbers), work);
}

double search_clocks(const GemmOptions& options, const Plan& plan) {
  const std::int64_t groups = plan.problem.group_count();
  if (groups <= 1 || !options.is_grouped) return 0;
  const auto clocks = [&](std::int64_t among) {
    const std::int64_t rounds = least_rounds(plan.facts());
    return run_of(shrunk(options, plan, rounds, 1, among), plan, plan.device.numbers, nullptr);
  };
  return std::max(0.0, clocks(groups) - clocks(1));
}

TilePhases sample_phases(const GemmOptions& options, const Plan& plan) {
  const std::int64_t all =
      (plan.problem.k() + plan.tile().k - 1) / plan.tile().k / std::max(1, plan.cluster_k);
  const auto both = depths(plan);
  const std::int64_t shallow = both.first;
  const std::int64_t deep = both.second;
  const std::int64_t depth = std::clamp<std::int64_t>(all, 1, deep);
  const std::int64_t few = least_rounds(plan.facts());
  std::vector<std::pair<std::int64_t, std::int64_t>> asked = {
      {2 * few, deep}, {2 * few, shallow}, {few, depth}, {2 * few, depth}};
  std::vector<double> clocks(asked.size());
  const auto from = [&](std::size_t first) {
    for (std::size_t i = first; i < asked.size(); i += 2) {
      clocks[i] =
          i == 3 && depth == deep ? 0 : clocks_of(options, plan, asked[i].first, asked[i].second);
    }
  };
  auto other = std::async(std::launch::async, from, 1);
  from(0);
  other.get();
  if (depth == deep) clocks[3] = clocks[0];
  TilePhases phases;
  const auto tiles = static_cast<double>(few);
  const auto k = static_cast<double>(depth);
  phases.k_tile = (clocks[0] - clocks[1]) / (2 * tiles * static_cast<double>(deep - shallow));
  phases.between = (clocks[3] - clocks[2]) / tiles - k * phases.k_tile;
  phases.first = clocks[2] - tiles * (phases.between + k * phases.k_tile);
  return phases;
}

}  // namespace warpwright::cli
