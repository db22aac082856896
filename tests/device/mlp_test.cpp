// Layers without a router on the model: the MLP of a dense model, as two products.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/campaign.h"
#include "tests/device/mixture_run.h"
#include "tests/draws.h"
#include "tests/must.h"
#include "warpwright/device/moe.h"
#include "warpwright/model.h"

namespace warpwright {
namespace {

using tests::MixtureAsk;
using tests::run_and_check;
using tests::SomeMixture;
using tests::unrouted;

// Any by seed; three of eight have packed weights.
MixtureAsk drawn(unsigned seed) {
  tests::Draws draw(seed);
  const int kind = draw(0, 7);
  MixtureAsk ask = kind < 2    ? tests::int4_ask(seed)
                   : kind == 2 ? tests::wide_int4_ask(seed)
                               : MixtureAsk{.seed = seed};
  // Which only groups have.
  if (kind < 2 && ask.packed2->sums == GroupSums::chained) ask.packed2->sums = GroupSums::exact;
  ask.tokens = draw(1, draw(0, 3) == 0 ? 150 : 9);
  if (!ask.packed13) {
    constexpr Scaling scalings[] = {Scaling::none, Scaling::row_column, Scaling::blockwise};
    ask.scaling = scalings[draw(0, 2)];
    ask.gated = draw(0, 3) > 0;
    ask.codes = ask.scaling != Scaling::none && draw(0, 2) == 0;
    ask.hidden = 8 * draw(1, 30);
    ask.inner = 64 * draw(1, 4);
    ask.biases = draw(0, 1) == 1;
    ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
  }
  return unrouted(ask);
}

// Runs it and compares; false where only builds of all have its kernels.
bool runs(SomeMixture& some, const MixtureChoices& choices = {}, std::uint64_t seed = 1) {
  const auto plan = plan_moe(some.o, model_facts(), choices);
  if (!plan && plan.refusal().code == RefusalCode::no_kernel) return false;
  run_and_check(some, choices, tests::scheduled(model::Mode::random, seed));
  return true;
}

TEST(Mlp, AgreesWithFloat64BySeed) {
  int packed = 0;
  for (const unsigned seed : sampled_seeds(300, 12)) {
    SCOPED_TRACE(seed);
    SomeMixture some(drawn(seed));
    some.o.interleaved = seed % 5 == 0 && some.o.is_gated && !some.o.is_packed();
    if (!some.o.is_gated) some.o.activation = Activation::relu2;
    if (runs(some, {}, seed) && some.o.is_packed()) ++packed;
  }
  EXPECT_GT(packed, 0);
}

TEST(Mlp, EveryWayAgreesWithFloat64) {
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    SCOPED_TRACE(name(scaling));
    SomeMixture some(unrouted({.tokens = 5, .hidden = 256, .inner = 128, .scaling = scaling}));
    for (const bool gates : {true, false}) {
      const bool is_served =
          runs(some, {.quantises_in_epilogue = false, .gates_in_epilogue = gates});
      EXPECT_TRUE(is_served || (gates && scaling != Scaling::none));
    }
    EXPECT_TRUE(scaling != Scaling::blockwise || runs(some, {.quantises_in_epilogue = true}));
    EXPECT_TRUE(runs(some, {.batch_invariant = true}));
    EXPECT_TRUE(runs(some));
  }
}

TEST(Mlp, IsTwoLaunchesAndOneToQuantise) {
  SomeMixture plain(unrouted({.hidden = 256, .inner = 128}));
  const auto two = must(plan_moe(plain.o, model_facts()));
  EXPECT_EQ(two->launches(), 2) << two->explain();
  EXPECT_FALSE(two->takes(MixtureStep::sort) || two->takes(MixtureStep::sum));
  expect_contains(two->explain(), "no router");
  SomeMixture codes(unrouted({.hidden = 256, .inner = 128, .scaling = Scaling::blockwise}));
  const auto fused = must(plan_moe(codes.o, model_facts(), {.quantises_in_epilogue = true}));
  EXPECT_EQ(fused->launches(), 3) << fused->explain();
  SomeMixture none(unrouted({.tokens = 0}));
  const auto no_tokens = must(plan_moe(none.o, model_facts()));
  EXPECT_EQ(no_tokens->launches(), 0);
}

TEST(Mlp, ResultMayBeX) {
  SomeMixture some(unrouted({.tokens = 6, .hidden = 256, .inner = 64}));
  run_and_check(some);
  const std::vector<std::uint16_t> want = some.bits_of_row(3);
  some.o.d = some.o.x;
  const auto plan = must(plan_moe(some.o, model_facts()));
  const auto report = device::launch_on_model(*plan, some.o, {});
  ASSERT_TRUE(report && report->clean()) << report->text();
  EXPECT_EQ(some.bits_of_row(3), want);
}

TEST(Mlp, WhatOnlyARouterGivesSenseToIsRefused) {
  const MixtureAsk plain = unrouted({.tokens = 5});
  const std::pair<std::function<void(MixtureOperands&)>, const char*> changes[] = {
      {[](auto& o) { o.combine = Combine::none; }, "combine is given, and topk_ids is left out"},
      {[](auto& o) { o.routed_scaling_factor = 2; }, "routed_scaling_factor is 2, and topk_ids"},
      {[](auto& o) { o.shared_output = o.x; }, "shared_output is given, and topk_ids"},
      {[](auto& o) { o.apply_router_weight_on_input = true; }, "apply_router_weight_on_input is"},
      {[](auto& o) { o.experts_total = 4; }, "there are 4 experts; a layer without a router"},
      {[](auto& o) { o.topk_weights = o.x; }, "topk_weights is given, and topk_ids"},
      {[](auto& o) { o.topk_ids.data = o.x.data; }, "topk_ids has an address and is 0 x 0"},
  };
  for (const auto& [change, says] : changes) {
    SomeMixture some(plain);
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts());
    ASSERT_FALSE(plan) << says;
    expect_contains(plan.reason(), says);
  }
  SomeMixture some(plain);
  for (const MixtureChoices& choices :
       {MixtureChoices{.by_index = false}, {.sort_with_gather = true}, {.sort_parts = 2}}) {
    expect_contains(why_not(plan_moe(some.o, model_facts(), choices)), "router");
  }
}

TEST(Mlp, HasNoIdsThatCouldBeWrong) {
  SomeMixture some(unrouted({.tokens = 3, .hidden = 128, .inner = 64}));
  const auto plan = must(plan_moe(some.o, model_facts()));
  auto workspace = must(make_workspace(*plan));
  ASSERT_FALSE(launch(*plan, some.o, *workspace, nullptr));
  EXPECT_EQ(*ids_status(*plan, *workspace, nullptr), 0U);
}

}  // namespace
}  // namespace warpwright
