// The model's nominal time of whole kernels: the deck's pages come out as they are drawn, results
// and findings are those of other modes, and the clock costs little.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/gemm/product.h"
#include "tests/processor_time.h"
#include "tests/scheduled.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

struct Asked {
  std::vector<std::int64_t> extents;  // M, N, K
  std::string as;
  std::string schedule = {};
  std::string scheduler = {};
  int sms = 1;
  std::optional<int> ctas = {};
  std::optional<int> tile_n = {};
  bool one_sm = false;
};

GemmOptions options_of(const Asked& asked) {
  GemmOptions o;
  o.random = asked.extents;
  o.as = asked.as;
  o.schedule = asked.schedule;
  o.scheduler = asked.scheduler;
  o.sms = asked.sms;
  o.ctas = asked.ctas;
  o.tile_n = asked.tile_n;
  if (asked.one_sm) {
    o.pair = false;
    o.swap_ab = "no";
    o.cluster = "1,1";
  }
  return o;
}

// Runs it; returns D's bytes.
std::vector<std::byte> run_in(const Asked& asked, device::ModelOptions how) {
  const GemmOptions o = options_of(asked);
  std::ostringstream silent;
  Product product(o, facts_of(o), silent);
  product.load(7, silent);
  const auto report = device::launch_on_model(product.plan, product.operands, how);
  EXPECT_TRUE(report && report->clean()) << product.plan.name();
  const auto* const d = static_cast<const std::byte*>(product.operands.d.data);
  return {d, d + extent_bytes(product.operands.d)};
}

double clocks_of(const Asked& asked, int occupied_sm = -1) {
  model::Trace trace;
  auto how = tests::scheduled(model::Mode::timed);
  how.trace = &trace;
  how.check_order = false;
  how.occupied_sm = occupied_sm;
  run_in(asked, how);
  return static_cast<double>(trace.end());
}

// Two CTAs an SM: one multiplies while the other fills its stages or stores.
TEST(DeckTime, Page7TwoCtasOfAnAmpereSmOverlap) {
  const double one = clocks_of({{128, 768, 512}, "a100", {}, {}, 1, 1});
  const double two = clocks_of({{128, 768, 512}, "a100", {}, {}, 1, 2});
  EXPECT_LT(two, 0.8 * one);
  // Hopper's tensor cores, at the same tile, are more than twice as fast of a clock.
  EXPECT_LT(clocks_of({{128, 768, 512}, "h200", "pingpong", {}, 1, {}, 128}), 0.6 * two);
}

// Pages 35 and 36, SM 2 held by another grid: static tiles of the CTA that cannot start come last;
// by launch control the other two SMs take a half more each.
TEST(DeckTime, Pages35And36LaunchControlHasNoTail) {
  const Asked fixed{
      .extents = {768, 768, 128}, .as = "b200", .scheduler = "static", .sms = 3, .one_sm = true};
  Asked control = fixed;
  control.scheduler = "clc";
  const double free_fixed = clocks_of(fixed);
  const double free_control = clocks_of(control);
  EXPECT_NEAR(free_control / free_fixed, 1, 0.06);
  EXPECT_NEAR(clocks_of(fixed, 2) / free_fixed, 2, 0.15);
  EXPECT_NEAR(clocks_of(control, 2) / free_control, 1.5, 0.15);
}

// Page 37: at the same tile two warpgroups in turn hide an epilogue that one tile after the other
// shows.
TEST(DeckTime, Page37PingPongHidesEpilogues) {
  const Asked turns{
      .extents = {256, 1024, 256}, .as = "h200", .schedule = "pingpong", .tile_n = 128};
  Asked together = turns;
  together.schedule = "cooperative";
  EXPECT_LT(clocks_of(turns), 0.98 * clocks_of(together));
}

// Page 38: a persistent CTA multiplies a tile while warps of their own store the one before; with a
// tile a CTA nothing of a start or an epilogue lies under multiplications.
TEST(DeckTime, Page38PersistentCtasOverlapEpilogues) {
  Asked asked{.extents = {256, 1024, 128}, .as = "b200", .scheduler = "one", .one_sm = true};
  const double single = clocks_of(asked);
  for (const char* scheduler : {"static", "clc"}) {
    asked.scheduler = scheduler;
    EXPECT_LT(clocks_of(asked), 0.5 * single) << scheduler;
  }
}

// Page 39, on one SM of sm_120 with tiles of little K, where prologue and epilogue weigh: Ampere's
// way is the slowest, then comes a producer with cooperative consumers, then ping-pong.
TEST(DeckTime, Page39AmpereThenCooperativeThenPingPong) {
  const std::vector<std::int64_t> extents = {128, 1024, 64};
  const double ampere = clocks_of({extents, "rtx5090", "multistage"});
  const double cooperative = clocks_of({extents, "rtx5090", "cooperative", "clc"});
  const double turns = clocks_of({extents, "rtx5090", "pingpong", "clc"});
  EXPECT_LT(cooperative, 0.95 * ampere);
  EXPECT_LT(turns, cooperative);
}

TEST(NominalTime, BitsAreThoseOfOtherModes) {
  const std::vector<Asked> all = {{{192, 320, 448}, "h200", "pingpong"},
                                  {{192, 320, 448}, "h200", "cooperative"},
                                  {{192, 320, 448}, "a100"},
                                  {{192, 320, 448}, "rtx5090", "cooperative", "clc"},
                                  {{192, 320, 448}, "b200"}};
  for (const Asked& asked : all) {
    SCOPED_TRACE(asked.as + " " + asked.schedule);
    device::ModelOptions how;
    const std::vector<std::byte> latest = run_in(asked, how);
    how.mode = model::Mode::timed;
    EXPECT_EQ(run_in(asked, how), latest);
  }
}

TEST(NominalTime, TheClockCostsLittle) {
  const Asked asked{.extents = {256, 512, 512}, .as = "h200", .sms = 2};
  const auto seconds = [&](model::Mode mode) {
    const GemmOptions o = options_of(asked);
    std::ostringstream silent;
    Product product(o, facts_of(o), silent);
    product.load(7, silent);
    return tests::least_seconds(5, [&] {
      EXPECT_TRUE(device::launch_on_model(product.plan, product.operands, tests::scheduled(mode)));
    });
  };
  const double latest = seconds(model::Mode::latest), timed = seconds(model::Mode::timed);
  RecordProperty("times_as_long", std::to_string(timed / latest));
  EXPECT_LT(timed, 2 * latest);
}

}  // namespace
}  // namespace warpwright::cli
