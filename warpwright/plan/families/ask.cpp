#include "warpwright/plan/families/ask.h"

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

bool is_aligned(const PlannedMatrix& v) {
  return piece_of(v, v.alignment) == 16;
}

}  // namespace

Ask::Ask(const Plan& start_, const PlanChoices& choices_)
    : start(start_),
      choices(choices_),
      problem(start_.problem),
      basis(start_.problem, start_.device) {
  if (!problem.reads_ab()) return;
  aligned = is_aligned(problem.a) && is_aligned(problem.b);
  by_copies = !problem_fault(problem);
  if (!problem.multiplies()) return;
  a = major_a(problem);
  b = major_b(problem);
}

Plan plan_of(const Plan& start, const Candidate& way) {
  Plan plan = start;
  plan.kernel = way.kernel->name;
  plan.cluster = way.cluster;
  plan.cluster_k = way.cluster_k;
  plan.raster = way.raster;
  plan.ctas = way.ctas;
  plan.tile_source = way.tile_source;
  plan.c_path = way.c_path;
  plan.workspace_bytes = way.workspace_bytes;
  plan.flag_bytes = way.flag_bytes;
  plan.cost = way.cost;
  return plan;
}

Candidate candidate_of(const Plan& plan, const KernelFacts& kernel) {
  return {.kernel = &kernel,
          .cluster = plan.cluster,
          .cluster_k = plan.cluster_k,
          .raster = plan.raster,
          .ctas = plan.ctas,
          .tile_source = plan.tile_source,
          .c_path = plan.c_path,
          .workspace_bytes = plan.workspace_bytes,
          .flag_bytes = plan.flag_bytes,
          .cost = plan.cost};
}

std::string cluster_line(const Plan& plan, int sharing_b, const std::string& more) {
  const atom::ClusterShape cluster = plan.cluster;
  const TileShape tile = plan.tile();
  std::string line = format("cluster    %d x %d", cluster.m, cluster.n) + more;
  if (cluster.n > 1) {
    line += format(", A multicast to %d CTAs in slices of %d rows", cluster.n, tile.m / cluster.n);
  }
  if (sharing_b > 1) {
    line += format(", B multicast to %d CTAs in slices of %d rows", sharing_b, tile.n / cluster.m);
  }
  return line + "\n";
}

}  // namespace warpwright
