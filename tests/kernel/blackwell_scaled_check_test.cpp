// Blackwell kernels with scales under many schedules and with their synchronisation broken: a
// sample here, the whole set in script/campaign, as of those without (blackwell_check_test.cpp).
#include <string>
#include <vector>

#include "tests/kernel/check_case.h"
#include "tests/kernel/scaled.h"

namespace warpwright::device {
namespace {

struct ScaledForm {
  std::string name;
  tests::Instance instance;
  tests::Ask ask;
};

// A row of cluster tiles, more than the cluster takes at once and, where they are narrow, an odd
// number: K goes round the ring of stages over some of them.
ScaledForm scaled_form(tests::Instance instance, atom::ClusterShape cluster, DType b) {
  const KernelFacts& f = *instance.facts;
  instance.b = b;
  const bool persistent = f.tiles != kernel::TileSource::one_tile;
  const tests::Ask ask{.m = 128 * cluster.m,
                       .n = f.tile.n * cluster.n * 3 - 8,
                       .k = f.tile.k * (persistent ? 2 : f.stages + 1) + 96,
                       .cluster = cluster,
                       .clusters = 1};
  return {f.name + ", " + std::to_string(cluster.m) + "x" + std::to_string(cluster.n) + ", " +
              tests::types(instance),
          instance, tests::scaled_ask(instance, ask)};
}

// Every kernel in the least cluster, and in others in a campaign; padded elements beside bytes.
std::vector<ScaledForm> scaled_forms() {
  std::vector<ScaledForm> all;
  for (const tests::Instance& i : tests::scaled_instances()) {
    const bool mixed = i.facts->a.size() > 1;
    all.push_back(scaled_form(i, tests::smallest_cluster(i), mixed ? DType::e2m1 : i.b));
  }
  for (const tests::Instance& i : tests::scaled_instances()) {
    for (const atom::ClusterShape cluster : {atom::ClusterShape{2, 1}, {2, 2}, {4, 2}}) {
      if (!campaign() || !tests::takes(i, cluster)) continue;
      if (cluster == tests::smallest_cluster(i)) continue;
      all.push_back(scaled_form(i, cluster, i.b));
    }
  }
  return all;
}

TEST(BlackwellScaledCheck, CleanUnderManySchedules) {
  std::ofstream table = campaign_table("blackwell_scaled_schedules");
  table << "# The unbroken Blackwell kernels with scales under many schedules\n\n"
           "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
           "checks of the model on and D compared with the reference.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  for (const ScaledForm& c : sampled(scaled_forms(), 5)) {
    const tests::Problem problem(c.instance, c.ask);
    expect_clean(c.name, problem.planned(), problem.operands(), 2, table);
  }
}

// In the sample one of a pair, with tiles from CLC.
TEST(BlackwellScaledCheck, NoMutantSurvives) {
  std::ofstream table = campaign_table("blackwell_scaled_mutation");
  table << "# Mutants of the Blackwell GEMM kernel with scales\n\n"
           "Written by `script/campaign`; see docs/mutation.md for what the columns say.\n";
  std::vector<ScaledForm> some;
  for (const ScaledForm& c : scaled_forms()) {
    const bool sample =
        some.empty() && c.instance.facts->pair && c.instance.facts->d_scales.empty();
    if (campaign() || sample) some.push_back(c);
  }
  ASSERT_FALSE(some.empty());
  Mutants mutants({});
  for (const ScaledForm& c : part_of(some)) {
    const tests::Problem problem(c.instance, c.ask);
    mutants.expect_all_killed(c.name, problem.planned(), problem.operands(), 3, table);
  }
  mutants.expect_all_needed();
}

}  // namespace
}  // namespace warpwright::device
