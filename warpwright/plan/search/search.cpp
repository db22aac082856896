#include "warpwright/plan/search/search.h"

#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

bool chosen(const Family& family, const KernelFacts& f, const Ask& ask) {
  const PlanChoices& c = ask.choices;
  const auto usual = family.usual_tiles(f);
  const auto is = [](const auto& wanted, const auto& has) { return !wanted || *wanted == has; };
  // Left to the plan, tiles come from where the family's do; where it has no rule, `complete` says.
  const auto tiles = c.tiles ? c.tiles : c.kernel ? std::optional(f.tiles) : usual;
  const bool right_tiles =
      !tiles || f.tiles == *tiles || (!usual && *tiles != kernel::TileSource::dynamic_persistent);
  return is(c.kernel, f.name) && is(c.tile_m, f.tile.m) && is(c.tile_n, f.tile.n) &&
         is(c.tile_tokens, f.result_rows) && is(c.schedule, f.schedule) &&
         is(c.swap_ab, f.swap_ab) && is(c.search, f.search) && is(c.pair, f.pair) &&
         is(c.accumulators, f.accumulators) && right_tiles;
}

// The clusters in which a kernel may run: the one that the caller fixed, else those of up to
// `most_cluster_ctas` or, left open, as many as the family takes unasked. Refuses a fixed one that
// needs more SMs than the device has.
Result<std::vector<atom::ClusterShape>> usable_clusters(const Family& family, const KernelFacts& f,
                                                        const Ask& ask) {
  std::vector<atom::ClusterShape> usable;
  const PlanChoices& choices = ask.choices;
  const int most = choices.most_cluster_ctas.value_or(family.most_cluster_ctas(ask.problem));
  for (const atom::ClusterShape& cluster : f.clusters) {
    const int size = atom::cluster_size(cluster);
    if (choices.cluster ? !(*choices.cluster == cluster) : size > most) continue;
    if (size <= ask.start.device.sms) {
      usable.push_back(cluster);
    } else if (choices.cluster) {
      return cluster_too_large(size, ask.start.device, family.clusters());
    }
  }
  return usable;
}

// CTAs that share a tile along K, of a kernel in that cluster.
std::vector<int> along_k(const KernelFacts& f, atom::ClusterShape cluster, const Ask& ask) {
  const int wanted = ask.choices.cluster_k.value_or(0);
  if (!f.shares_cluster_k) return wanted > 1 ? std::vector<int>{} : std::vector<int>{1};
  std::vector<int> all;
  if (atom::cluster_size(cluster) > 1) return all;
  for (const int ctas : ctas_along_k) {
    if ((wanted == 0 || wanted == ctas) && ctas <= ask.start.device.sms) all.push_back(ctas);
  }
  return all;
}

}  // namespace

Result<std::vector<Candidate>> ways_of(const Family& family, const Ask& ask, Rows rows) {
  const PlanChoices& choices = ask.choices;
  std::vector<Candidate> all;
  all.reserve(256);
  Plan plan = ask.start;  // of each way in turn
  for (const KernelFacts& f : family.kernels()) {
    if (f.built != (rows == Rows::built)) continue;
    if (!chosen(family, f, ask) || !family.serves(f, ask, choices.kernel.has_value())) continue;
    const auto clusters = usable_clusters(family, f, ask);
    if (!clusters) return clusters.refusal();
    plan.kernel = f.name;
    for (const atom::ClusterShape& cluster : *clusters) {
      for (const int ctas : along_k(f, cluster, ask)) {
        plan.cluster = cluster;
        plan.cluster_k = ctas;
        plan.workspace_bytes = plan.flag_bytes = 0;
        plan.c_path = ask.start.c_path;
        family.complete(plan, f, ask, all);
      }
    }
  }
  return all;
}

Result<std::vector<Candidate>> search(const Family& family, const Plan& start,
                                      const PlanChoices& choices, Rows rows) {
  if (auto r = family.fault(start)) return *r;
  if (auto r = choices_fault(family, start, choices)) return *r;
  const Ask ask(start, choices);
  auto all = ways_of(family, ask, rows);
  if (all && all->empty()) return none_found(family, ask);
  return all;
}

}  // namespace warpwright
