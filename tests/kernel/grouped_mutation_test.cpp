// Grouped kernels with their synchronisation broken: a statement whose loss no check sees would be
// one that does nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/problem.h"
#include "tests/must.h"
#include "warpwright/simulation/check.h"

namespace warpwright::grouped {
namespace {

void expect_all_killed(const char* kernel, atom::ClusterShape cluster,
                       const std::vector<std::int64_t>& offsets = {0, 3, 3, 21, 40}) {
  const tests::Instance instance = tests::named(kernel);
  const int k = kernel::operand_bits(instance.config) == 8 ? 1040 : 520;
  tests::Ask ask = tests::grouped_ask(instance, offsets, 136, k);
  ask.cluster = cluster;
  const tests::Problem problem(instance, ask);
  SCOPED_TRACE(problem.text());
  const GemmOperands operands = problem.operands();
  const auto made = must(plan(operands, model_facts(2), problem.choices()));
  const auto options = tests::in_schedules(12, 2);
  const auto checked = must(device::check(*made, operands, options));
  ASSERT_TRUE(checked->clean()) << checked->findings.front().finding.sentence;
  const auto mutated = must(device::mutate(*made, operands, options));
  ASSERT_TRUE(mutated->unbroken.empty());
  std::printf("%s: %s\n", kernel, mutated->score().c_str());
  EXPECT_GT(mutated->count(device::Mutant::Fate::killed), 20);
  for (const device::Mutant& m : mutated->mutants) {
    EXPECT_NE(m.fate, device::Mutant::Fate::survived)
        << m.site << ": " << m.mutation.how() << " " << m.mutation.barrier;
  }
}

TEST(GroupedMutants, SwappedBallot) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e4m3_bf16_128x16_b_sw", {1, 1});
}

// The mutants of one grouped product in every test run: tests/cli/transcripts/check.txt.
TEST(GroupedMutants, SwappedBallotInAClusterOfTwo) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e4m3_bf16_128x32_b_sw", {2, 1});
}

// In a cluster: without one, nobody misses the producer's last wait for its readers.
TEST(GroupedMutants, VerticalWithBlockScales) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e4m3_bf16_128x128_v_bs", {1, 2});
}

// A copy a row, by all lanes of the producer.
TEST(GroupedMutants, TokensByIndex) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_bf16_bf16_128x32_b_sw_ix", {2, 1});
}

TEST(GroupedMutants, TokensByIndexWithBlockScales) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e4m3_bf16_128x128_v_bs_ix", {1, 2});
}

// Weights in registers: bulk loads of them, and generic reads of a stage.
TEST(GroupedMutants, PackedWeights) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x128_b_pr_sw", {2, 1});
}

TEST(GroupedMutants, PackedWeightsTwoCtasAnSm) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x16_b_pr_sw2_k2", {1, 1});
}

TEST(GroupedMutants, PackedWeightsFolded) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x64_b_sw2_fold", {1, 1});
}

TEST(GroupedMutants, PackedWeightsInPasses) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_256x64_b_pr_sw_p2", {2, 1});
}

TEST(GroupedMutants, PackedWeightsLookedUp) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x64_b_sw2_lut", {1, 1});
}

TEST(GroupedMutants, PackedWeightsWithZeroPoints) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x32_b_pr_sw2_zp", {2, 1});
}

TEST(GroupedMutants, PackedWeightsGated) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x32_b_pr_sw2_gated", {2, 1});
}

TEST(GroupedMutants, PackedWeightsGatedWithBlockScales) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x32_b_bs_sw_gated", {1, 1});
}

TEST(GroupedMutants, PackedWeightsGatedByIndex) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xe4m3_bf16_128x32_b_pr_sw_gated_ix", {2, 1});
}

TEST(GroupedMutants, E2m1Weights) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e2m1xe4m3_bf16_128x16_b_pr_sw2_k2", {1, 1});
  expect_all_killed("grouped_e2m1xe4m3_bf16_128x64_b_sw2_fold", {2, 1});
}

TEST(GroupedMutants, E2m1WeightsAndBf16Tokens) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e2m1xbf16_bf16_128x64_b_sw_fold", {1, 1});
  expect_all_killed("grouped_e2m1xbf16_bf16_128x32_b_sw_fold_gated", {2, 1});
}

TEST(GroupedMutants, PackedWeightsAndF16Tokens) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_e2m1xf16_f16_128x16_b_sw2_fold", {1, 1});
  expect_all_killed("grouped_s4xf16_f16_128x128_b_pr_sw", {2, 1});
}

TEST(GroupedMutants, Int4WeightsAndBf16TokensByIndex) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_s4xbf16_bf16_128x32_b_pr_sw_gated_ix", {2, 1});
}

TEST(GroupedMutants, VerticalPingPong) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_bf16_bf16_128x128_v_pp", {1, 1});
}

// Tiles of several widths, of which a group has two.
TEST(GroupedMutants, CutEvenlyPingPong) {
  WW_CAMPAIGN_ONLY();
  expect_all_killed("grouped_bf16_bf16_128x144_v_pp_sw_w", {1, 1}, {0, 3, 3, 21, 40, 190});
}

}  // namespace
}  // namespace warpwright::grouped
