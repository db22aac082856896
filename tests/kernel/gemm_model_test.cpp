// The whole kernel on the model: every type, cluster, edge and path against a float64 product.
#include <gtest/gtest.h>

#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/gemm_case.h"
#include "tests/kernel/table.h"

namespace warpwright {
namespace {

constexpr kernel::Schedule basic_schedules[] = {kernel::Schedule::pingpong,
                                                kernel::Schedule::cooperative};

// Runs the case by the basic kernel of that schedule.
std::vector<unsigned char> expect_right_by(kernel::Schedule schedule, Case c,
                                           const device::ModelOptions& how) {
  SCOPED_TRACE(tests::text(schedule));
  const auto instance = tests::one_with(text(c), [&](const kernel::GemmConfig& config) {
    return tests::is_basic(config, schedule) && stored_a(config) == c.operand &&
           config.result == c.result;
  });
  if (!instance) return {};
  c.choices = tests::only(*instance);
  c.tile_n = instance->config.tile_n;
  return expect_right(c, how);
}

// The 16-bit operands and results for which there are both basic kernels.
std::vector<kernel::GemmConfig> types_of_the_build() {
  std::vector<kernel::GemmConfig> types;
  for (const auto& i : tests::all_with([](const kernel::GemmConfig& c) {
         return tests::is_basic(c, kernel::Schedule::pingpong) && numeric::bits(stored_a(c)) == 16;
       })) {
    types.push_back(i.config);
    std::printf("%s of %s; ", std::string(numeric::name(i.config.result)).c_str(),
                std::string(numeric::name(stored_a(i.config))).c_str());
  }
  std::printf("in this build\n");
  return types;
}

TEST(GemmOnTheModel, EveryTypeInTurnsAndShared) {
  for (const kernel::GemmConfig& types : types_of_the_build()) {
    for (const auto schedule : basic_schedules) {
      Case c;
      c.m = 130;
      c.n = 136;
      c.k = 72;
      c.operand = stored_a(types);
      c.result = types.result;
      c.beta = 0.5F;
      expect_right_by(schedule, c, mode(model::Mode::random, 7));
    }
  }
}

TEST(GemmOnTheModel, EveryClusterInEveryMode) {
  for (const atom::ClusterShape cluster : kernel::supported_clusters) {
    if (cluster == atom::ClusterShape{4, 4}) continue;
    for (const auto schedule : basic_schedules) {
      Case c;
      c.m = 257;
      c.n = 300;
      c.k = 200;
      c.d_pad = 4;
      c.c_pad = 4;
      c.cluster = cluster;
      c.beta = -1.0F;
      const auto first = expect_right_by(schedule, c, mode(model::Mode::eager));
      // However things fall, the bytes are the same.
      if (campaign()) {
        EXPECT_EQ(expect_right_by(schedule, c, mode(model::Mode::latest)), first);
      }
      EXPECT_EQ(expect_right_by(schedule, c, mode(model::Mode::random, 11)), first);
    }
  }
}

TEST(GemmOnTheModel, SixteenCtas) {
  Case c;
  c.m = 515;
  c.n = 515;
  c.k = 200;
  c.d_pad = 5;
  c.cluster = {4, 4};
  expect_right_by(kernel::Schedule::pingpong, c, mode(model::Mode::latest));
  c.m = 90;
  expect_right_by(kernel::Schedule::pingpong, c, mode(model::Mode::random, 5));
}

TEST(GemmOnTheModel, Degenerate) {
  for (const auto schedule : basic_schedules) {
    for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {1, 300, 8}, {300, 1, 8}, {5, 7, 0}}) {
      for (const float beta : {0.0F, 2.0F}) {
        Case c;
        c.m = m;
        c.n = n;
        c.k = k;
        c.beta = beta;
        expect_right_by(schedule, c, mode(model::Mode::random, 3));
      }
    }
    // alpha 0 reads neither A nor B; beta 0 does not read what D holds (NaN).
    Case c;
    c.m = 140;
    c.n = 40;
    c.k = 64;
    c.alpha = 0;
    expect_right_by(schedule, c, mode(model::Mode::latest));
    c.beta = 1.0F;
    expect_right_by(schedule, c, mode(model::Mode::latest));
  }
  for (const auto& [m, n] : {std::pair{0, 8}, {8, 0}}) {
    Case c;
    c.m = m;
    c.n = n;
    c.k = 16;
    expect_right_by(kernel::Schedule::pingpong, c, mode(model::Mode::latest));
  }
}

// Without a K block no wgmma brings the lanes of a warp together: those that wait for their turn
// must not fall behind the one that gives it. Found by problems by seed.
TEST(GemmOnTheModel, TurnsWithoutAKBlock) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Case c;
    c.m = 200;
    c.n = 300;
    c.k = 0;
    c.beta = 1.0F;
    c.sms = 1;
    expect_right_by(kernel::Schedule::pingpong, c, mode(model::Mode::starve, seed));
  }
}

TEST(GemmOnTheModel, AlphaZeroIgnoresNaNOperands) {
  Tensor a(DType::bf16, 16, 16, 16);  // all NaN
  Tensor b(DType::bf16, 16, 16, 16);
  Tensor d(DType::bf16, 16, 16, 16);
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  o.alpha = 0;
  const auto made = plan(o, model_facts());
  ASSERT_TRUE(made.ok()) << made.reason();
  const auto report = device::launch_on_model(*made, o);
  ASSERT_TRUE(report.ok()) << report.reason();
  EXPECT_TRUE(report->clean()) << report->text();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(d.get(0, i, 15 - i), 0.0);
}

TEST(GemmOnTheModel, OneSeedOneRun) {
  Case c;
  c.m = 140;
  c.n = 200;
  c.k = 150;
  Tensor a(c.operand, c.m, c.k, 152);
  Tensor b(c.operand, c.n, c.k, 152);
  Tensor d(c.result, c.m, c.n, c.n);
  a.fill_sixteenths(1);
  b.fill_sixteenths(2);
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  const auto made = plan(o, model_facts());
  ASSERT_TRUE(made.ok()) << made.reason();
  std::vector<std::int64_t> switches;
  for (const std::uint64_t seed : {5, 5, 6}) {
    const auto report = device::launch_on_model(*made, o, mode(model::Mode::random, seed));
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->text(), "");
    EXPECT_EQ(report->statistics.tiles, made->tiles());
    switches.push_back(report->statistics.fiber_switches);
  }
  EXPECT_EQ(switches[0], switches[1]);
  EXPECT_NE(switches[0], switches[2]);
}

}  // namespace
}  // namespace warpwright
