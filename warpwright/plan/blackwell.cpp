#include "warpwright/plan/blackwell.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "warpwright/atom/mask_text.h"
#include "warpwright/kernel/blackwell_instances.h"

namespace warpwright {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::string type(DType t) {
  return std::string(numeric::name(t));
}

// The rule of the choices that needs no configuration: nothing when they may be had together.
std::optional<Refusal> check_choices(const PlanChoices& choices) {
  if (choices.cluster) {
    const std::string refusal =
        atom::cluster_refusal(*choices.cluster, choices.pair.value_or(false));
    if (!refusal.empty()) return Refusal{refusal.substr(0, refusal.size() - 1)};
  }
  if (choices.accumulators) {
    const int tile_n = choices.tile_n.value_or(128);
    const std::int64_t wanted = std::int64_t{*choices.accumulators} * tile_n;
    if (*choices.accumulators < 1 || wanted > atom::kTmemColumns) {
      return Refusal{number(*choices.accumulators) + " accumulators of " + number(tile_n) +
                     " columns need " + number(std::max<std::int64_t>(0, wanted)) +
                     " columns of tensor memory, which has 512; the nearest legal number is " +
                     number(*choices.accumulators < 1 ? 1 : atom::kTmemColumns / tile_n)};
    }
  }
  return std::nullopt;
}

// Does the configuration suit the problem and what the caller fixed?
bool suits(const kernel::BlackwellConfig& config, const GemmProblem& p,
           const PlanChoices& choices) {
  // Left to the plan, tiles come from launch control: it balances what static shares cannot.
  return config.kind == atom::umma_kind(p.a) && config.result == p.d &&
         config.tile_n == choices.tile_n.value_or(config.tile_n) &&
         config.pair == choices.pair.value_or(config.pair) &&
         config.tiles == choices.tiles.value_or(kernel::TileSource::launch_control) &&
         config.accumulators == choices.accumulators.value_or(config.accumulators);
}

// Predicted time of a candidate, up to a factor. No Blackwell was at hand to measure: rounds of
// tiles, and that a pair, and a cluster, read less of their operands. It orders candidates and is
// shown to nobody.
double cost(const Plan& p) {
  const auto [m, n, k] = p.tile();
  double time = std::ceil(p.waves()) * m * n * (static_cast<double>(p.problem.k) + 64);
  if (!p.blackwell->pair) time *= 1.05;
  if (atom::cluster_size(p.cluster) == 1) time *= 1.06;
  return time;
}

// `start` with this configuration and cluster.
Plan candidate_of(const Plan& start, const kernel::BlackwellConfig& config,
                  atom::ClusterShape cluster) {
  Plan plan = start;
  plan.blackwell = config;
  plan.cluster = cluster;
  const int size = atom::cluster_size(cluster);
  const auto tiles_m = static_cast<int>((plan.problem.m + config.tile_m - 1) / config.tile_m);
  const auto tiles_n = static_cast<int>((plan.problem.n + config.tile_n - 1) / config.tile_n);
  const int resident = resident_ctas(plan.device, size);
  plan.raster =
      tile::make_raster(tiles_m, tiles_n, cluster, resident, config.tile_m, config.tile_n);
  const int all = tile::tile_count(plan.raster) * size;
  plan.ctas = config.tiles == kernel::TileSource::static_persistent ? std::min(all, resident) : all;
  return plan;
}

Refusal nothing_found(const PlanChoices& choices) {
  std::string text = "no kernel has";
  const char* between = " ";
  const auto add = [&](const std::string& what) {
    text += between + what;
    between = " with ";
  };
  if (choices.pair) add(*choices.pair ? "pairs" : "MMAs of one SM");
  if (choices.tile_n) add("tile_n " + number(*choices.tile_n));
  if (choices.accumulators) {
    add(number(*choices.accumulators) +
        (*choices.accumulators == 1 ? " accumulator" : " accumulators"));
  }
  if (choices.cluster) {
    add("cluster " + number(choices.cluster->m) + "x" + number(choices.cluster->n));
  }
  return {text +
          "; tiles are 128x128 for one SM and 128x256 a CTA with pairs, accumulators 2 (1 for one "
          "tile a cluster), clusters 1x1 (without pairs), 2x1, 1x2 (without pairs), 2x2, 4x2 and "
          "4x4"};
}

}  // namespace

const std::vector<kernel::BlackwellConfig>& blackwell_configs() {
#define WW_CONFIG(tag, ...) kernel::tag::config,
  static const std::vector<kernel::BlackwellConfig> configs = {
      WW_BLACKWELL_GEMM_INSTANCES(WW_CONFIG)};
#undef WW_CONFIG
  return configs;
}

std::optional<Refusal> check_blackwell_types(DType a, DType b) {
  const auto known = [](DType t) {
    return t == DType::f16 || t == DType::bf16 || t == DType::e4m3 || t == DType::e5m2;
  };
  if (!known(a) || !known(b)) {
    return Refusal{"A is " + type(a) + " and B is " + type(b) +
                   "; kernels exist for bf16, f16, e4m3 and e5m2: the nearest is bf16"};
  }
  const atom::UmmaKind kind = atom::umma_kind(a);
  if (!atom::multiplies(kind, b) || (kind == atom::UmmaKind::f16 && a != b)) {
    return Refusal{
        "A is " + type(a) + " and B is " + type(b) + "; an MMA of kind " + atom::name(kind) +
        " multiplies " +
        (kind == atom::UmmaKind::f16 ? "two bf16 or two f16" : "e4m3 and e5m2 in any combination") +
        ": the nearest B is " + type(a)};
  }
  return std::nullopt;
}

Result<Plan> choose_blackwell(const Plan& start, const PlanChoices& choices) {
  if (auto r = check_choices(choices)) return *r;
  const GemmProblem& p = start.problem;
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() - 4096;
  if (((p.m + 127) / 128) * ((p.n + 127) / 128) > limit / atom::kMaxClusterSize) {
    return Refusal{"D of " + number(p.m) + " x " + number(p.n) +
                   " has more tiles than a grid has CTAs; split it"};
  }
  std::optional<Plan> best;
  double best_cost = 0;
  for (const kernel::BlackwellConfig& config : blackwell_configs()) {
    if (!suits(config, p, choices)) continue;
    for (const atom::ClusterShape& cluster : kernel::blackwell_clusters) {
      if (choices.cluster && !(*choices.cluster == cluster)) continue;
      if (!kernel::supports(config, cluster)) continue;
      const int size = atom::cluster_size(cluster);
      if (!choices.cluster && size > 2) continue;
      if (size > start.device.sms) {
        if (!choices.cluster) continue;
        return Refusal{"a cluster of " + number(size) + " CTAs needs as many SMs; device " +
                       start.device.name + " has " + number(start.device.sms)};
      }
      const Plan candidate = candidate_of(start, config, cluster);
      const double c = p.m == 0 || p.n == 0 ? 0 : cost(candidate);
      if (best && c >= best_cost) continue;
      best = candidate;
      best_cost = c;
    }
  }
  if (!best) return nothing_found(choices);
  return *best;
}

}  // namespace warpwright
