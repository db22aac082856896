// The order checker on the Hopper GEMM: nothing to find, in any cluster, shape and schedule; and
// what the proof costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/problem.h"
#include "tests/must.h"
#include "tests/processor_time.h"

namespace warpwright {
namespace {

using kernel::Schedule;

// By the basic kernel of a schedule.
struct Case {
  tests::Ask ask;
  DType result = DType::bf16;
  Schedule schedule = Schedule::pingpong;
};

std::string text(const Case& c) {
  return tests::text(c.ask) + " " + tests::text(c.schedule);
}

// On 8 SMs or more. D is right elsewhere.
model::Report run(const Case& c, const device::ModelOptions& how) {
  const auto instance = tests::one_with(text(c), [&](const kernel::GemmConfig& config) {
    return tests::is_basic(config, c.schedule) && stored_a(config) == DType::bf16 &&
           config.result == c.result;
  });
  if (!instance) return {};
  tests::Ask ask = c.ask;
  ask.clusters = std::max(1, 8 / atom::cluster_size(ask.cluster));
  const tests::Problem problem(*instance, ask);
  const auto made = problem.planned();
  const auto report = must(made ? device::launch_on_model(*made, problem.operands(), how)
                                : Result<model::Report>(made.refusal()));
  return report.ok() ? *report : model::Report();
}

void expect_clean(const Case& c, const std::vector<std::uint64_t>& seeds) {
  SCOPED_TRACE(text(c));
  std::vector schedules = {tests::scheduled(model::Mode::eager),
                           tests::scheduled(model::Mode::latest)};
  for (const std::uint64_t seed : seeds) {
    schedules.push_back(tests::scheduled(model::Mode::random, seed));
    // The kernel satisfies the disputed rule as well.
    schedules.back().fence_after_reads = seed % 2 == 0;
  }
  for (const auto& how : schedules) {
    const model::Report report = run(c, how);
    EXPECT_TRUE(report.clean()) << "mode " << static_cast<int>(how.mode) << " seed " << how.seed
                                << "\n"
                                << report.text();
  }
}

const std::vector<atom::ClusterShape> clusters = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}};

TEST(OrderKernel, EveryClusterIsClean) {
  for (const auto cluster : sampled(clusters, 3)) {
    // More k_tiles than stages, so that stages are used again, and more than one tile a CTA.
    expect_clean({{.m = 256 * cluster.m, .n = 128 * cluster.n, .k = 456, .cluster = cluster}},
                 campaign() ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{1});
  }
}

TEST(OrderKernel, OddShapesAreClean) {
  for (const auto cluster : sampled(clusters, 3)) {
    expect_clean({{.m = 300, .n = 270, .k = 200, .cluster = cluster}}, {3});
  }
  expect_clean({{.m = 1, .n = 1, .k = 8}}, {4, 5});
  expect_clean(
      {{.m = 130, .n = 520, .k = 72, .cluster = {2, 1}}, DType::bf16, Schedule::cooperative}, {6});
}

// Padded rows are stored, and read, by elements.
TEST(OrderKernel, EveryEpilogueIsClean) {
  using Seeds = std::vector<std::uint64_t>;
  std::vector<Case> all;
  tests::Ask ask{.m = 200, .n = 600, .k = 136};
  for (const auto result : {DType::bf16, DType::f32}) {
    for (const float beta : {0.0F, 0.5F}) {
      ask.beta = beta;
      for (const int padding : {0, 1}) {
        ask.padding = padding;
        all.push_back({ask, result, Schedule::cooperative});
      }
    }
  }
  ask = {.m = 200, .n = 300, .k = 136, .cluster = {2, 2}, .beta = 0.5F, .padding = 1};
  ask.packed_c = true;  // by copies
  all.push_back({ask});
  for (const Case& c : sampled(all, 4)) expect_clean(c, campaign() ? Seeds{7, 8, 9} : Seeds{7});
}

TEST(OrderKernel, CostsAtMostTwoAndAHalfTimesTheModel) {
  WW_CAMPAIGN_ONLY();
  const auto seconds = [](const Case& c, const device::ModelOptions& how) {
    return tests::least_seconds(5, [&] { EXPECT_TRUE(run(c, how).clean()); });
  };
  for (const auto cluster : clusters) {
    const Case c{{.m = 512, .n = 512, .k = 512, .cluster = cluster}};
    device::ModelOptions how;
    how.check_order = false;
    const double without = seconds(c, how);
    how.check_order = true;
    const double with = seconds(c, how);
    how.fence_after_reads = how.count_sites = how.hash_order = true;
    how.launches = 2;
    const double all = seconds(c, how);
    std::printf(
        "%s: %.3f s without, %.3f s with the order checker (%.2f times), %.3f s with all "
        "options, launched twice\n",
        text(c).c_str(), without, with, with / without, all);
    EXPECT_LT(with, 2.5 * without);
    EXPECT_LT(with, 0.5);
    EXPECT_LT(all, 1.0);
  }
}

}  // namespace
}  // namespace warpwright
