// Grouped kernels with their synchronisation broken: a statement whose loss no check sees would be
// one that does nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

#include "grouped_case.h"
#include "warpwright/device/check.h"

namespace warpwright::grouped {
namespace {

Case mutation_case(const char* kernel) {
  Case c;
  c.kernel = kernel;
  c.offsets = {0, 3, 3, 21, 40};
  c.total = 40;
  c.n = 136;
  c.k = 520;
  c.cluster = {1, 1};
  c.scaling = scalings(config_of(kernel)).back();
  return c;
}

void expect_all_killed(const char* kernel, atom::ClusterShape cluster) {
  Case c = mutation_case(kernel);
  c.cluster = cluster;
  if (numeric::bits(config_of(kernel).a) == 8) c.k = 2 * c.k;
  SCOPED_TRACE(text(c));
  Tensors t(c);
  const auto made =
      plan_grouped(t.operands, model_facts(2), 0, {.cluster = c.cluster, .kernel = c.kernel});
  ASSERT_TRUE(made.ok()) << made.reason();
  device::CheckOptions options;
  options.schedules = 12;
  options.jobs = 2;
  const auto checked = device::check(*made, t.operands, options);
  ASSERT_TRUE(checked.ok()) << checked.reason();
  ASSERT_TRUE(checked->clean()) << checked->findings.front().finding.sentence;
  const auto report = device::mutate(*made, t.operands, options);
  ASSERT_TRUE(report.ok()) << report.reason();
  ASSERT_TRUE(report->unbroken.empty());
  std::printf("%s: %s\n", kernel, report->score().c_str());
  EXPECT_GT(report->count(device::Mutant::Fate::killed), 20);
  for (const device::Mutant& m : report->mutants) {
    EXPECT_NE(m.fate, device::Mutant::Fate::survived)
        << m.site << ": " << m.mutation.how() << " " << m.mutation.barrier;
  }
}

TEST(GroupedMutants, SwappedBallot) {
  expect_all_killed("grouped_e4m3_bf16_128x16_b_sw", {1, 1});
}

TEST(GroupedMutants, SwappedBallotInAClusterOfTwo) {
  expect_all_killed("grouped_e4m3_bf16_128x32_b_sw", {2, 1});
}

// In a cluster: without one, nobody misses the producer's last wait for its readers.
TEST(GroupedMutants, VerticalWithBlockScales) {
  expect_all_killed("grouped_e4m3_bf16_128x128_v_bs", {1, 2});
}

TEST(GroupedMutants, VerticalPingPong) {
  expect_all_killed("grouped_bf16_bf16_128x128_v_pp", {1, 1});
}

}  // namespace
}  // namespace warpwright::grouped
