// The Blackwell kernel under many schedules and with its synchronisation broken: a sample here, the
// whole set in script/campaign (docs/log/campaign.md, docs/mutation.md).
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernel/check_case.h"
#include "tests/kernel/problem.h"

namespace warpwright::device {
namespace {

using kernel::TileSource;

std::string text(TileSource source) {
  switch (source) {
    case TileSource::one_tile:
      return "one tile";
    case TileSource::static_persistent:
      return "static";
    case TileSource::clc:
      return "CLC";
    case TileSource::dynamic_persistent:
      break;
  }
  return "";
}

// A product small enough for hundreds of runs: its K goes once round the ring of stages and on, in
// one tile or in those that a CTA takes together, and every CTA of a persistent grid takes two
// tiles or more.
struct Form {
  std::string name;
  tests::Instance instance;
  tests::Ask ask;
};

// A cluster of this form on as many SMs as hold one, with 5 cluster tiles where they are taken one
// after the other.
Form form(bool pair, TileSource source, atom::ClusterShape cluster, DType operand = DType::bf16,
          DType result = DType::bf16) {
  const bool persistent = source != TileSource::one_tile;
  const int tile_n = pair ? 256 : 128;
  // 256 rows are one cluster tile where the cluster is two high.
  const int n = tile_n * cluster.n * (persistent ? (cluster.m == 1 ? 3 : 5) : 1);
  const tests::Ask ask{.m = 256,
                       .n = n,
                       .k = (persistent ? 2 : 7) * 1024 / numeric::bits(operand),
                       .cluster = cluster,
                       .clusters = 1};
  const std::string name = (pair ? "pair, " : "one SM, ") + text(source) + ", " +
                           std::to_string(cluster.m) + "x" + std::to_string(cluster.n);
  for (const KernelFacts* f : tests::built_kernels(blackwell_family())) {
    if (!f->micro_scales.empty()) continue;
    if (f->pair == pair && f->tiles == source && f->result == result && f->tile.n == tile_n &&
        numeric::bits(f->a.front()) == numeric::bits(operand)) {
      return {name, {f->name.c_str(), f, operand, operand}, ask};
    }
  }
  throw std::invalid_argument(name);
}

// One with this feature, of which a CTA of a cluster on as many SMs as hold `clusters` has several
// tiles, or several a tile.
Form featured(const std::string& feature, atom::ClusterShape cluster, int clusters, tests::Ask ask,
              bool pair = false) {
  ask.cluster = cluster;
  ask.clusters = clusters;
  for (const KernelFacts* f : tests::built_kernels(blackwell_family())) {
    const tests::Instance instance{f->name.c_str(), f, f->a.front(), f->b.front()};
    if (f->pair == pair && tests::has_feature(instance, feature)) {
      return {feature + (pair ? ", pair" : ", one SM"), instance, ask};
    }
  }
  throw std::invalid_argument(feature);
}

// Scales of blocks, in more k_tiles than there are accumulators and scales on their way; tiles in
// parts, the second of which begins where another's ends; operands whose rows lie side by side.
Form block_scaled(int n = 264) {
  return featured("block scales", {1, 1}, 1, {.m = 128, .n = n, .k = 128 * 9 - 16, .seed = 2});
}
Form in_parts() {
  return featured("stream-K", {1, 1}, 3, {.m = 128, .n = 256, .k = 64 * 13});
}
Form mn_major(atom::ClusterShape cluster) {
  Form f = form(false, TileSource::clc, cluster);
  f.name += ", MN-major";
  f.ask.a_major = f.ask.b_major = atom::Major::mn;
  return f;
}

// Kernels that few builds have.
std::vector<Form> rare() {
  std::vector<Form> found;
  const auto add = [&](const char* name, const char* what, tests::Ask ask) {
    for (const KernelFacts* f : tests::built_kernels(blackwell_family())) {
      if (f->name == name) found.push_back({what, {name, f, f->a.front(), f->b.front()}, ask});
    }
  };
  const tests::Ask of_blocks = {
      .m = 256, .n = 264, .k = 128 * 9 - 16, .cluster = {2, 1}, .clusters = 1, .seed = 2};
  add("blackwell_f8f6f4_bf16_pair_clc_n128_bs", "block scales, pair", of_blocks);
  tests::Ask parts = of_blocks;
  parts.m = 128;
  parts.cluster = {1, 1};
  parts.clusters = 3;
  add("blackwell_f8f6f4_bf16_one_static_bs_sk", "block scales, stream-K", parts);
  add("blackwell_f16_bf16_one_clc_n256", "one SM, CLC, 256 columns",
      {.m = 256, .n = 768, .k = 128, .cluster = {2, 1}, .clusters = 1});
  return found;
}

constexpr TileSource sources[] = {TileSource::one_tile, TileSource::static_persistent,
                                  TileSource::clc};

std::vector<Form> all_forms() {
  std::vector<Form> all;
  for (const TileSource source : sources) {
    for (const atom::ClusterShape cluster :
         {atom::ClusterShape{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
      all.push_back(form(false, source, cluster));
      if (cluster.m > 1) all.push_back(form(true, source, cluster));
    }
  }
  return all;
}

// Other epilogues and types, and edges in both directions; C by TMA, into buffers that
// lanes have read D from.
std::vector<Form> variants() {
  std::vector<Form> all = {
      form(true, TileSource::clc, {2, 1}, DType::e4m3, DType::f32),
      form(false, TileSource::static_persistent, {2, 2}),
      form(false, TileSource::clc, {2, 1}),
  };
  all[0].name += ", e4m3 to f32 with C";
  all[1].name += ", with C, ragged, D by elements";
  all[1].ask.n -= 117;
  all[2].name += ", with C, D by elements";
  for (Form& f : all) f.ask.beta = 1;
  for (Form* f : {&all[1], &all[2]}) {
    f->ask.padding = 1;
    f->ask.packed_c = true;
  }
  for (const Form& f : {block_scaled(), in_parts(), mn_major({2, 1})}) all.push_back(f);
  for (const Form& f : rare()) all.push_back(f);
  return all;
}

constexpr Argued argued_blackwell[] = {no_copy_to_wait_for, flag_goes_back};

TEST(BlackwellCheck, ArgumentsNameLines) {
  expect_lines(argued_blackwell);
}

TEST(BlackwellCheck, CleanUnderManySchedules) {
  std::ofstream table = campaign_table("blackwell_schedules");
  table << "# The unbroken Blackwell kernels under many schedules\n\n"
           "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
           "checks of the model on and D compared with the reference.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  std::vector<Form> all = all_forms();
  for (const Form& c : variants()) all.push_back(c);
  for (const Form& c : sampled(all, 6)) {
    const tests::Problem problem(c.instance, c.ask);
    expect_clean(c.name, problem.planned(), problem.operands(), 2, table);
  }
}

// In the sample two, drawn by the seed: a pair's kernel without and one with CLC, and those whose
// sums pass through registers; no mutant may survive in either set.
TEST(BlackwellCheck, NoMutantSurvives) {
  std::ofstream table = campaign_table("blackwell_mutation");
  table << "# Mutants of the Blackwell GEMM kernel\n\n"
           "Written by `script/campaign`; see docs/mutation.md for what the columns say.\n";
  std::vector<Form> some = {form(true, TileSource::one_tile, {2, 1}),
                            form(false, TileSource::clc, {2, 1}), block_scaled(), in_parts()};
  if (campaign()) {
    some = {form(false, TileSource::one_tile, {2, 2}),
            form(true, TileSource::one_tile, {2, 2}),
            form(false, TileSource::static_persistent, {2, 1}),
            form(true, TileSource::static_persistent, {2, 1}),
            form(false, TileSource::clc, {2, 1}),
            form(true, TileSource::clc, {2, 1})};
    for (const Form& c : variants()) some.push_back(c);
  }
  Mutants mutants(argued_blackwell);
  for (const Form& c : sampled(some, 2)) {
    const tests::Problem problem(c.instance, c.ask);
    mutants.expect_all_killed(c.name, problem.planned(), problem.operands(), 3, table);
  }
  mutants.expect_all_needed();
}

}  // namespace
}  // namespace warpwright::device
