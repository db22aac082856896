// Every plan that could serve a problem, by asking `plan` for each tile and cluster there is.
#include "warpwright/plan/plan.h"

namespace warpwright {
namespace {

bool same_way(const Plan& x, const Plan& y) {
  return x.config == y.config && x.cluster == y.cluster && x.ctas == y.ctas;
}

}  // namespace

Result<std::vector<Plan>> candidates(const GemmProblem& problem, const DeviceFacts& device,
                                     const PlanChoices& choices) {
  const Result<Plan> first = plan(problem, device, choices);
  if (!first) return Refusal{first.reason()};
  std::vector<Plan> all = {*first};
  for (const kernel::GemmConfig& config : gemm_configs()) {
    for (const atom::ClusterShape& cluster : kernel::supported_clusters) {
      PlanChoices one = choices;
      if (!one.tile_n) one.tile_n = config.tile_n;
      if (!one.cluster) one.cluster = cluster;
      const Result<Plan> found = plan(problem, device, one);
      if (!found) continue;
      bool known = false;
      for (const Plan& other : all) known = known || same_way(other, *found);
      if (!known) all.push_back(*found);
    }
  }
  return all;
}

}  // namespace warpwright
