// Blackwell kernels with the tokens on N: few of them, groups, gates, tokens by index. Under many
// schedules and with their synchronisation broken: a sample here, the whole set in script/campaign.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/draws.h"
#include "tests/kernel/check_case.h"
#include "tests/kernel/problems.h"
#include "tests/kernel/scaled.h"
#include "tests/must.h"
#include "tests/problem_changes.h"

namespace warpwright::device {
namespace {

// Those of this build, each with one pair of types.
std::vector<tests::Instance> token_instances() {
  std::vector<tests::Instance> found;
  for (const tests::Instance& i : tests::blackwell_instances()) {
    const bool is_new = found.empty() || std::string(found.back().name) != i.name ||
                        found.back().by_index != i.by_index;
    if (i.facts->swap_ab && is_new) found.push_back(i);
  }
  for (const tests::Instance& i :
       tests::scaled_instances([](const KernelFacts& f) { return f.swap_ab; })) {
    found.push_back(i);
  }
  return found;
}

// K goes once round the ring of stages and on, and every CTA of two clusters' SMs takes two tiles
// or more, of different widths. `longest`: where the last group ends, or all tokens.
tests::Ask token_ask(const tests::Instance& i, atom::ClusterShape cluster, int longest) {
  const int columns = 3 * i.facts->result_columns * cluster.m - 40;
  const int k = (i.facts->stages + 1) * i.facts->tile.k - 8;
  tests::Ask ask;
  if (i.facts->grouped) {
    ask = tests::grouped_ask(i, {0, 3, 3, 21, longest}, columns, k);
  } else {
    ask.m = longest;
    ask.n = i.config.gated ? (2 * columns + 15) / 16 * 16 : columns;
    ask.k = k;
    ask.clusters = tests::has_feature(i, "stream-K") ? 4 : 1;  // four share tiles
  }
  ask.cluster = cluster;
  return tests::has_block_scales(i) ? tests::scaled_ask(i, ask) : ask;
}

struct TokenForm {
  std::string name;
  tests::Instance instance;
  tests::Ask ask;
};

std::vector<TokenForm> token_forms(int longest) {
  std::vector<TokenForm> all;
  for (const tests::Instance& i : token_instances()) {
    for (const atom::ClusterShape cluster : {atom::ClusterShape{1, 1}, {2, 1}}) {
      if (!tests::takes(i, cluster)) continue;
      std::string name = i.name;
      if (tests::has_block_scales(i)) name += ", " + tests::types(i);
      if (i.by_index) name += ", by index";
      all.push_back({name + (cluster.m == 1 ? ", by itself" : ", in a cluster"), i,
                     token_ask(i, cluster, longest)});
      if (!i.facts->grouped) {
        all.push_back(all.back());
        const bool gated = i.config.gated;  // which takes no C
        all.back().name += gated ? ", with a bias" : ", with C and a bias";
        all.back().ask.beta = gated ? 0 : 1;
        all.back().ask.bias = Bias::columns;
      }
    }
  }
  return all;
}

TEST(BlackwellTokens, CleanUnderManySchedules) {
  std::ofstream table = campaign_table("blackwell_tokens_schedules");
  table << "# Blackwell kernels with the tokens on N under many schedules\n\n"
           "Written by `script/campaign`.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  for (const TokenForm& f : sampled(token_forms(160), 20)) {
    const tests::Problem problem(f.instance, f.ask);
    expect_clean(f.name, problem.planned(), problem.operands(), 3, table);
  }
}

// In a cluster: without one nobody misses the last wait of who loads.
TEST(BlackwellTokens, NoMutantSurvives) {
  std::ofstream table = campaign_table("blackwell_tokens_mutation");
  table << "# Mutants of Blackwell kernels with the tokens on N\n\n"
           "Written by `script/campaign`; see docs/mutation.md for what the columns say.\n";
  Mutants mutants({});
  std::vector<TokenForm> all = token_forms(campaign() ? 160 : 60);
  // In the usual run the first that gathers behind a gate.
  if (!campaign()) {
    std::erase_if(all, [](const TokenForm& f) {
      return !f.instance.by_index || !f.instance.config.gated || f.ask.cluster.m == 1;
    });
    ASSERT_FALSE(all.empty());
    all.erase(all.begin() + 1, all.end());
  }
  for (const TokenForm& f : part_of(all)) {
    const tests::Problem problem(f.instance, f.ask);
    mutants.expect_all_killed(f.name, problem.planned(), problem.operands(), 3, table);
  }
  mutants.expect_all_needed();
}

// Few tokens of a long K: every width, by itself and with C, bias and row scales, in parts of tiles
// that two CTAs, or pairs of them, and more give each other.
TEST(BlackwellTokens, FewTokensInParts) {
  std::vector<std::pair<tests::Instance, tests::Ask>> all;
  unsigned seed = 0;
  for (const tests::Instance& i : token_instances()) {
    if (!tests::has_feature(i, "stream-K")) continue;
    for (const int m : {1, 7, 8, 9, 16, 33, 96, 128, 136}) {
      for (const atom::ClusterShape cluster : {atom::ClusterShape{1, 1}, {2, 1}}) {
        tests::Ask ask = tests::scaled_ask(i, {.m = m,
                                               .n = 2 * i.facts->result_columns * cluster.m - 24,
                                               .k = 11 * i.facts->tile.k + 96,
                                               .cluster = cluster,
                                               .clusters = 5,
                                               .seed = ++seed});
        if (m % 2 == 0) {
          ask.beta = 1;
          ask.bias = Bias::rows;
        }
        all.emplace_back(i, ask);
      }
    }
  }
  ASSERT_FALSE(all.empty()) << "every usual build has some";
  for (const auto& [i, ask] : sampled(all, 9)) {
    tests::Problem problem(i, ask);
    EXPECT_EQ(problem.run(problem.planned()), "") << problem.text();
  }
}

// A tile of a group ends with it, and the next one's tokens are never in its rows of D: the widths
// of the tiles of groups of one token more and less than each.
TEST(BlackwellTokens, GroupsAroundEveryWidth) {
  std::vector<tests::Instance> all = token_instances();
  std::erase_if(all, [](const tests::Instance& i) { return !i.facts->grouped; });
  for (const tests::Instance& i : sampled(all, 7)) {
    std::vector<std::int64_t> offsets = {0};
    for (const int width : {8, 16, 32, 64, 96, 128, 192, 256}) {
      for (const int tokens : {width - 1, width, width + 1}) {
        offsets.push_back(offsets.back() + tokens);
      }
    }
    tests::Ask ask = tests::grouped_ask(i, offsets, i.facts->result_columns, i.facts->tile.k + 16);
    ask.cluster = tests::smallest_cluster(i);
    if (tests::has_block_scales(i)) ask = tests::scaled_ask(i, ask);
    tests::Problem problem(i, ask);
    EXPECT_EQ(problem.run(problem.planned()), "") << problem.text();
  }
}

// Eight tokens with scales are 8 columns, and long K is cut; more tiles than SMs are whole.
TEST(BlackwellTokens, FewTokensWithScalesAreCutAlongK) {
  const auto nvf4 = [](int m, int n, int k) {
    GemmProblem p = packed_problem(m, n, k, DType::e2m1, DType::bf16);
    p.scaling = Scaling::block_scaled;
    p.scale_a = packed_matrix(DType::ue4m3, (m + 127) / 128 * 128, k / 16);
    p.scale_b = packed_matrix(DType::ue4m3, n, k / 16);
    return p;
  };
  const auto made = must(plan(nvf4(8, 4096, 16384), *known_facts("b200")));
  EXPECT_TRUE(tests::has(made->facts(), "stream-K")) << made->kernel;
  EXPECT_TRUE(made->facts().swap_ab) << made->kernel;
  EXPECT_GT(made->ctas, made->tiles());
  expect_contains(made->explain(), "widths     8 16 32 64 96 128 tokens");
  const auto invariant =
      must(plan(nvf4(8, 4096, 16384), *known_facts("b200"), {.batch_invariant = true}));
  EXPECT_FALSE(tests::has(invariant->facts(), "stream-K")) << invariant->kernel;
  const auto whole = must(plan(nvf4(4096, 4096, 16384), *known_facts("b200")));
  EXPECT_FALSE(tests::has(whole->facts(), "stream-K")) << whole->kernel;
}

TEST(BlackwellTokens, FewTokensAreOnN) {
  for (const int m : {1, 8, 16, 17, 96}) {
    const auto made =
        must(plan(packed_problem(m, 4096, 512, DType::bf16, DType::bf16), *known_facts("b200")));
    EXPECT_TRUE(made->facts().swap_ab) << m << ": " << made->kernel;
  }
  const auto many =
      must(plan(packed_problem(4096, 4096, 512, DType::bf16, DType::bf16), *known_facts("b200")));
  EXPECT_FALSE(many->facts().swap_ab) << many->kernel;
}

}  // namespace
}  // namespace warpwright::device
