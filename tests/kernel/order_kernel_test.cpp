// The order checker on the Hopper GEMM: nothing to find, in any cluster, shape and schedule; and
// what the proof costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/table.h"
#include "tests/processor_time.h"
#include "warpwright/device/model.h"

namespace warpwright {
namespace {

struct Case {
  std::int64_t m, n, k;
  atom::ClusterShape cluster;
  DType result = DType::bf16;
  bool reads_c = false;
  int d_offset = 0;  // elements: a D that the copy engine cannot store
  int c_offset = 0;
  kernel::Schedule schedule = kernel::Schedule::pingpong;
};

std::string text(const Case& c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) + " cluster " +
         std::to_string(c.cluster.m) + "x" + std::to_string(c.cluster.n) +
         (c.reads_c ? " with C" : "") + (c.d_offset != 0 ? " D misaligned" : "") +
         (c.c_offset != 0 ? " C misaligned " : " ") + tests::text(c.schedule);
}

model::Report run(const Case& c, const device::ModelOptions& how) {
  const auto pad = [](std::int64_t x) { return (x + 7) / 8 * 8; };
  const int size = numeric::bits(c.result) / 8;
  std::vector<std::uint16_t> a(static_cast<std::size_t>(c.m * pad(c.k)));
  std::vector<std::uint16_t> b(static_cast<std::size_t>(c.n * pad(c.k)));
  std::vector<std::uint64_t> d(static_cast<std::size_t>((c.m * pad(c.n) + 16) * size / 8 + 2));
  std::vector<std::uint64_t> source(d.size());
  const auto aligned = [&](std::vector<std::uint64_t>& v, int offset) {
    auto at = reinterpret_cast<std::uintptr_t>(v.data());
    return reinterpret_cast<void*>((at + 15) / 16 * 16 +
                                   static_cast<std::uintptr_t>(offset * size));
  };
  GemmOperands o;
  o.a = {a.data(), DType::bf16, c.m, c.k, pad(c.k)};
  o.b = {b.data(), DType::bf16, c.n, c.k, pad(c.k)};
  o.d = {aligned(d, c.d_offset), c.result, c.m, c.n, pad(c.n)};
  if (c.reads_c) {
    o.c = {aligned(source, c.c_offset), c.result, c.m, c.n, pad(c.n)};
    o.beta = 0.5F;
  }
  const int sms = std::max(8, atom::cluster_size(c.cluster));
  const auto instance = tests::one_with(text(c), [&](const kernel::GemmConfig& config) {
    return tests::is_basic(config, c.schedule) && stored_a(config) == DType::bf16 &&
           config.result == c.result;
  });
  if (!instance) return {};
  PlanChoices choices = tests::only(*instance);
  choices.cluster = c.cluster;
  const auto made = plan(o, model_facts(sms), choices);
  if (!made.ok()) {
    ADD_FAILURE() << made.reason();
    return {};
  }
  const auto report = device::launch_on_model(*made, o, how);
  if (!report.ok()) {
    ADD_FAILURE() << report.reason();
    return {};
  }
  return *report;
}

void expect_clean(const Case& c, const std::vector<std::uint64_t>& seeds) {
  SCOPED_TRACE(text(c));
  std::vector<device::ModelOptions> schedules(2);
  schedules[0].mode = model::Mode::eager;
  schedules[1].mode = model::Mode::latest;
  for (const std::uint64_t seed : seeds) {
    schedules.emplace_back();
    schedules.back().mode = model::Mode::random;
    schedules.back().seed = seed;
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

constexpr atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}};

TEST(OrderKernel, EveryClusterIsClean) {
  for (const auto cluster : clusters) {
    // More K blocks than stages, so that stages are used again, and more than one tile a CTA.
    expect_clean({256 * cluster.m, 128 * cluster.n, 456, cluster},
                 campaign() ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{1});
  }
}

TEST(OrderKernel, OddShapesAreClean) {
  for (const auto cluster : clusters) expect_clean({300, 270, 200, cluster}, {3});
  expect_clean({1, 1, 8, {1, 1}}, {4, 5});
  expect_clean({130, 520, 72, {2, 1}, DType::bf16, false, 0, 0, kernel::Schedule::cooperative},
               {6});
}

TEST(OrderKernel, EveryEpilogueIsClean) {
  for (const auto result : {DType::bf16, DType::f32}) {
    for (const bool reads_c : {false, true}) {
      for (const int d_offset : {0, 1}) {
        for (const int c_offset : {0, 1}) {
          if (!reads_c && c_offset != 0) continue;
          if (!campaign() && c_offset != d_offset) continue;
          expect_clean(
              {200,
               600,
               136,
               {1, 1},
               result,
               reads_c,
               d_offset,
               c_offset,
               kernel::Schedule::cooperative},
              campaign() ? std::vector<std::uint64_t>{7, 8} : std::vector<std::uint64_t>{7});
        }
      }
    }
  }
  expect_clean({200, 300, 136, {2, 2}, DType::bf16, true, 1, 0}, {9});
}

TEST(OrderKernel, CostsAtMostTwoAndAHalfTimesTheModel) {
  WW_CAMPAIGN_ONLY();
  const auto seconds = [](const Case& c, const device::ModelOptions& how) {
    return tests::least_seconds(5, [&] { EXPECT_TRUE(run(c, how).clean()); });
  };
  for (const auto cluster : clusters) {
    const Case c{512, 512, 512, cluster};
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
