// The Blackwell kernel under many schedules and with its synchronisation broken: a sample here, the
// whole set in script/campaign (docs/log/campaign.md, docs/mutation.md).
#include "tests/kernel/check_case.h"

namespace warpwright::device {
namespace {

using kernel::TileSource;

std::string text(TileSource source) {
  switch (source) {
    case TileSource::one_tile:
      return "one tile";
    case TileSource::static_persistent:
      return "static";
    case TileSource::launch_control:
      return "launch control";
    case TileSource::drawn:
      break;
  }
  return "";
}

// A cluster of this form on as many SMs as hold one, with 5 cluster tiles where they are taken one
// after the other.
CheckCase form(bool pair, TileSource source, atom::ClusterShape cluster) {
  CheckCase c;
  c.name = (pair ? "pair, " : "one SM, ") + text(source) + ", " + std::to_string(cluster.m) + "x" +
           std::to_string(cluster.n);
  c.cluster = cluster;
  c.sms = atom::cluster_size(cluster);
  c.result = DType::bf16;
  c.tile_n = pair ? 256 : 128;
  c.architecture = 100;
  c.choices.pair = pair;
  c.choices.tiles = source;
  const bool persistent = source != TileSource::one_tile;
  // 256 rows are one cluster tile where the cluster is two high.
  c.n = c.tile_n * cluster.n * (persistent ? (cluster.m == 1 ? 3 : 5) : 1);
  c.k = persistent ? 2 * 64 : 7 * 64;
  return c;
}

constexpr TileSource sources[] = {TileSource::one_tile, TileSource::static_persistent,
                                  TileSource::launch_control};

std::vector<CheckCase> all_forms() {
  std::vector<CheckCase> all;
  for (const TileSource source : sources) {
    for (const atom::ClusterShape cluster :
         {atom::ClusterShape{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
      all.push_back(form(false, source, cluster));
      if (cluster.m > 1) all.push_back(form(true, source, cluster));
    }
  }
  return all;
}

// Other epilogues and types, and edges in both directions.
std::vector<CheckCase> variants() {
  std::vector<CheckCase> all;
  CheckCase c = form(true, TileSource::launch_control, {2, 1});
  c.name += ", e4m3 to f32 with C";
  c.operand = DType::e4m3;
  c.k = 2 * 128;
  c.result = DType::f32;
  c.beta = 1;
  all.push_back(c);
  c = form(false, TileSource::static_persistent, {2, 2});
  c.name += ", with C, ragged, D by elements";
  c.n -= 117;
  c.d_padding = 1;
  c.beta = 1;
  all.push_back(c);
  // C by the copy engine, into buffers that lanes have read D from.
  c = form(false, TileSource::launch_control, {2, 1});
  c.name += ", with C, D by elements";
  c.d_padding = 1;
  c.beta = 1;
  all.push_back(c);
  return all;
}

constexpr Argued argued_blackwell[] = {no_copy_to_wait_for};

TEST(BlackwellCheck, ArgumentsNameLines) {
  expect_lines(argued_blackwell);
}

TEST(BlackwellCheck, CleanUnderManySchedules) {
  std::ofstream table = campaign_table("blackwell_schedules");
  table << "# The unbroken Blackwell kernels under many schedules\n\n"
           "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
           "checks of the model on and D compared with the reference.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  std::vector<CheckCase> all = all_forms();
  for (const CheckCase& c : variants()) all.push_back(c);
  for (const CheckCase& c : sampled(all, 3)) {
    const CheckProblem problem(c);
    expect_clean(c.name, problem.plan(), problem.operands(), 2, table);
  }
}

// In the sample a pair's kernel without and one with launch control; no mutant may survive in
// either set.
TEST(BlackwellCheck, NoMutantSurvives) {
  std::ofstream table = campaign_table("blackwell_mutation");
  table << "# Mutants of the Blackwell GEMM kernel\n\n"
           "Written by `script/campaign`; see docs/mutation.md for what the columns say.\n";
  std::vector<CheckCase> some = {form(true, TileSource::one_tile, {2, 1}),
                                 form(false, TileSource::launch_control, {2, 1})};
  if (campaign()) {
    some = {form(false, TileSource::one_tile, {2, 2}),
            form(true, TileSource::one_tile, {2, 2}),
            form(false, TileSource::static_persistent, {2, 1}),
            form(true, TileSource::static_persistent, {2, 1}),
            form(false, TileSource::launch_control, {2, 1}),
            form(true, TileSource::launch_control, {2, 1})};
    for (const CheckCase& c : variants()) some.push_back(c);
  }
  Mutants mutants(argued_blackwell);
  for (const CheckCase& c : part_of(some)) {
    const CheckProblem problem(c);
    mutants.expect_all_killed(c.name, problem.plan(), problem.operands(), 3, table);
  }
  mutants.expect_all_needed();
}

}  // namespace
}  // namespace warpwright::device
