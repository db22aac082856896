#include "warpwright/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "warpwright/kernel/instances.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

// What the rules allow and no kernel of this version does.
std::optional<Refusal> missing_kernel(const GemmProblem& p, const PlanChoices& choices) {
  const auto lacks = [](const std::string& what) {
    return Refusal{"no kernel of this version has " + what};
  };
  if (p.batch != 1) return lacks("a batch of " + number(p.batch) + ": the nearest is batch 1");
  if (is_8bit_float(p.a)) {
    return lacks("A and B of " + type_name(p.a) + " and " + type_name(p.b) +
                 ": the nearest is bf16");
  }
  const bool multiplies = p.reads_ab && p.m > 0 && p.n > 0;
  if (multiplies && (major_a(p) != atom::Major::k || major_b(p) != atom::Major::k)) {
    return lacks("an MN-major A or B: the nearest is K-major, column stride 1");
  }
  if (p.epilogue != Epilogue{}) return lacks("an activation, a gate or a bias");
  if (choices.kernel || choices.swapped || choices.ctas) {
    return lacks("a choice by name, of swapped operands or of the grid");
  }
  return std::nullopt;
}

// Predicted time of a candidate, up to a factor: full rounds of tiles, and what was measured on an
// H200 of how well each way keeps the tensor cores busy. It orders candidates and is shown to
// nobody.
double cost(const Plan& p) {
  const double tile_work = static_cast<double>(p.config.tile_m) * p.config.tile_n;
  const double rounds = std::ceil(p.waves());
  // The epilogue of a cooperative tile is not hidden.
  const bool pingpong = p.config.schedule == kernel::Schedule::pingpong;
  const double k = static_cast<double>(p.problem.k) + (pingpong ? 64 : 320);
  double time = rounds * tile_work * k;
  // Sharing loads in a cluster pays, most for the larger operand.
  if (atom::cluster_size(p.cluster) == 1) time *= 1.06;
  const bool shares_larger = p.problem.n >= p.problem.m ? p.cluster.m > 1 : p.cluster.n > 1;
  if (!shares_larger) time *= 1.01;
  return time;
}

}  // namespace

const std::vector<kernel::GemmConfig>& gemm_configs() {
#define WW_CONFIG(tag, ...) kernel::tag::config,
  static const std::vector<kernel::GemmConfig> configs = {WW_HOPPER_GEMM_INSTANCES(WW_CONFIG)};
#undef WW_CONFIG
  return configs;
}

Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices) {
  Plan result;
  result.problem = problem;
  result.device = device;
  const GemmProblem& p = problem;
  if (auto r = problem_fault(problem)) return *r;
  if (auto r = missing_kernel(problem, choices)) return *r;
  if (device.architecture != 90) {
    return Refusal{"device " + device.name + " has architecture sm_" + number(device.architecture) +
                   "; kernels exist for sm_90 (H100, H200)"};
  }
  result.d_path = result_path(p, true);
  result.c_path = result_path(p, false);

  bool found = false;
  double best = 0;
  for (const kernel::GemmConfig& config : gemm_configs()) {
    if (config.operand != p.a || config.result != p.d) continue;
    if (choices.tile_n && *choices.tile_n != config.tile_n) continue;
    if (choices.tile_m && *choices.tile_m != config.tile_m) continue;
    if (choices.schedule && *choices.schedule != config.schedule) continue;
    for (const atom::ClusterShape& cluster : kernel::supported_clusters) {
      if (choices.cluster && !(*choices.cluster == cluster)) continue;
      if (!kernel::supports(config, cluster)) continue;
      const int size = atom::cluster_size(cluster);
      if (!choices.cluster && size > 2) continue;
      if (size > device.sms) {
        if (!choices.cluster) continue;
        return Refusal{"a cluster of " + number(size) + " CTAs needs as many SMs; device " +
                       device.name + " has " + number(device.sms)};
      }
      Plan candidate = result;
      candidate.config = config;
      candidate.cluster = cluster;
      const auto tiles_m = static_cast<int>((p.m + config.tile_m - 1) / config.tile_m);
      const auto tiles_n = static_cast<int>((p.n + config.tile_n - 1) / config.tile_n);
      if (static_cast<std::int64_t>(tiles_m) * tiles_n > max_extent) {
        return Refusal{"D of " + number(p.m) + " x " + number(p.n) +
                       " has more than 2^31 tiles; split it"};
      }
      const int resident = resident_ctas(device, size);
      candidate.raster =
          tile::make_raster(tiles_m, tiles_n, cluster, resident, config.tile_m, config.tile_n);
      candidate.ctas = std::min(tile::tile_count(candidate.raster) * size, resident);
      const double c = p.m == 0 || p.n == 0 ? 0 : cost(candidate);
      if (!found || c < best) {
        result = candidate;
        best = c;
        found = true;
      }
    }
  }
  if (!found) {
    std::string text = "no kernel has";
    if (choices.tile_m) text += " tile_m " + number(*choices.tile_m);
    if (choices.schedule) text += " the schedule asked for";
    if (choices.tile_n) text += " tile_n " + number(*choices.tile_n);
    if (choices.cluster) {
      text += (choices.tile_n ? " with" : "") + std::string(" cluster ") +
              number(choices.cluster->m) + "x" + number(choices.cluster->n);
    }
    return Refusal{text + "; tiles are 128x128 and 128x256, clusters 1x1, 2x1, 1x2, 2x2 and 4x4"};
  }
  return result;
}

Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto problem = describe(operands);
  if (!problem) return Refusal{problem.reason()};
  return plan(*problem, device, choices);
}

}  // namespace warpwright
