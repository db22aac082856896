// The choice among weights that a caller has in two forms.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "tests/must.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/moe/moe_alternatives.h"
#include "warpwright/plan/product/known_devices.h"
#include "warpwright/plan/search/alternatives.h"

namespace warpwright {
namespace {

// Packed mxf4 weights, and fp8 with scales of 128 x 128; tokens of 1 x 128. In groups, where there
// are any.
std::array<GemmProblem, 2> both(std::int64_t tokens, std::int64_t groups) {
  const std::int64_t n = 4096, k = 4096;
  GemmProblem fp8 = groups == 0
                        ? packed_problem(tokens, n, k, DType::e4m3, DType::bf16)
                        : packed_grouped_problem(tokens, n, k, groups, DType::e4m3, DType::bf16);
  fp8.scaling = Scaling::blockwise;
  fp8.accumulation = Accumulation::promoted;
  fp8.scale_a = packed_matrix(DType::f32, tokens, k / 128);
  fp8.scale_b = packed_matrix(DType::f32, n / 128, k / 128);
  fp8.scale_b.batch = fp8.b.batch;
  lie_side_by_side(fp8.scale_b);
  GemmProblem packed = fp8;
  packed.scale_b = {};
  packed.b.dtype = DType::e2m1;
  packed.packed = PackedWeights{.format = {.group = 32,
                                           .scale = DType::ue8m0,
                                           .code = DType::e2m1,
                                           .exponents = Exponents::of_rows}};
  return {packed, fp8};
}

TEST(Alternatives, BytesDecideForFewTokensAndConversionForMany) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto few = must(plan_fastest(both(8 * 16, 8), h200));
  EXPECT_EQ(few->index, 0U) << few->plan.reason;
  EXPECT_TRUE(few->plan.problem.packed);
  expect_contains(few->plan.reason, "packed mxf4 weights in ");
  expect_contains(few->plan.reason, ", predicted to be faster than e4m3 weights in ");
  expect_contains(few->plan.explain(), few->plan.reason);
  const auto many = must(plan_fastest(both(8 * 4096, 8), h200));
  EXPECT_EQ(many->index, 1U) << many->plan.reason;
  EXPECT_FALSE(many->plan.problem.packed);
}

// The plan is that of the product by itself, but for its reason.
TEST(Alternatives, TheChosenPlanIsThatOfItsProduct) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto products = both(8 * 64, 8);
  const auto chosen = must(plan_fastest(products, h200));
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto alone = must(plan(products[i], h200));
    EXPECT_GE(alone->cost, chosen->plan.cost);
    if (i == chosen->index) {
      EXPECT_EQ(alone->name(), chosen->plan.name());
    }
  }
}

TEST(Alternatives, BitsThatMustNotDependOnMTakeTheFirst) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {8 * 16, 8 * 4096}) {
    const auto chosen = must(plan_fastest(both(tokens, 8), h200, {.batch_invariant = true}));
    EXPECT_EQ(chosen->index, 0U);
  }
}

// What no kernel serves is left out; where none is served, the first one's refusal says why.
TEST(Alternatives, WithoutAKernelTheOtherIsTaken) {
  const DeviceFacts h200 = *known_facts("h200");
  auto products = both(16, 0);
  products[0].packed->format.zero_points = ZeroPoints::none;
  for (GemmProblem& p : products) p.d.dtype = DType::f32;
  const auto packed = plan(products[0], h200);
  ASSERT_FALSE(packed);
  ASSERT_EQ(packed.refusal().code, RefusalCode::no_kernel) << packed.reason();
  const auto chosen = plan_fastest(products, h200);
  if (const auto fp8 = plan(products[1], h200)) {
    ASSERT_TRUE(chosen) << chosen.reason();
    EXPECT_EQ(chosen->index, 1U);
  } else {
    EXPECT_EQ(chosen.reason(), packed.reason());
  }
}

// Packed weights have kernels only on Hopper.
TEST(Alternatives, WhatADeviceHasNoKernelsForIsLeftOut) {
  const DeviceFacts b200 = *known_facts("b200");
  const auto chosen = must(plan_fastest(both(256, 0), b200));
  EXPECT_EQ(chosen->index, 1U);
  EXPECT_TRUE(chosen->plan.reason.find("predicted to be faster than") == std::string::npos)
      << chosen->plan.reason;
}

TEST(Alternatives, Refusals) {
  const DeviceFacts h200 = *known_facts("h200");
  auto products = both(128, 8);
  products[1].d.rows = products[1].a.rows = products[1].scale_a.rows = 256;
  expect_contains(why_not(plan_fastest(products, h200)),
                  "plans to choose among are of one product, but for its weights");
  EXPECT_FALSE(fastest(std::span<const Plan>{}));
  const auto good = both(128, 8);
  const std::array plans = {*plan(good[0], h200), *plan(good[1], *known_facts("h100"))};
  EXPECT_EQ(fastest(plans).refusal().code, RefusalCode::wrong_device);
}

// -- Mixtures

std::array<MixtureProblem, 2> both_mixtures(std::int64_t tokens) {
  const std::int64_t experts = 8, hidden = 4096, inner = 2048;
  const auto of_experts = [](DType type, std::int64_t rows, std::int64_t columns) {
    PlannedMatrix m = packed_matrix(type, rows, columns);
    m.batch = experts;
    lie_side_by_side(m);
    return m;
  };
  MixtureProblem fp8;
  fp8.x = fp8.d = packed_matrix(DType::bf16, tokens, hidden);
  fp8.topk_ids = packed_matrix(DType::s32, tokens, 2);
  fp8.topk_weights = packed_matrix(DType::f32, tokens, 2);
  fp8.w13 = of_experts(DType::e4m3, 2 * inner, hidden);
  fp8.w2 = of_experts(DType::e4m3, hidden, inner);
  fp8.scale_w13 = of_experts(DType::f32, 2 * inner / 128, hidden / 128);
  fp8.scale_w2 = of_experts(DType::f32, hidden / 128, inner / 128);
  fp8.scaling = Scaling::blockwise;
  MixtureProblem packed = fp8;
  packed.scale_w13 = packed.scale_w2 = {};
  packed.w13.dtype = packed.w2.dtype = DType::e2m1;
  packed.packed13 = packed.packed2 = both(1, 0)[0].packed;
  return {packed, fp8};
}

TEST(MixtureAlternatives, BytesDecideForFewTokensAndConversionForMany) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto few = must(plan_fastest(both_mixtures(64), h200));
  EXPECT_EQ(few->index, 0U) << few->plan.reason;
  EXPECT_TRUE(few->plan.problem.is_packed());
  EXPECT_TRUE(few->plan.reason.starts_with("packed mxf4 weights in ")) << few->plan.reason;
  expect_contains(few->plan.reason, ", predicted to be faster than e4m3 weights in ");
  expect_contains(few->plan.explain(), "\nchoice: " + few->plan.reason + "\n");
  const auto many = must(plan_fastest(both_mixtures(16384), h200));
  EXPECT_EQ(many->index, 1U) << many->plan.reason;
  EXPECT_FALSE(many->plan.problem.is_packed());
}

// A launch takes what the device's description says, and an H200's is what was measured there.
TEST(MixturePlans, LaunchesOfTheDescription) {
  const auto cost = [](double more) {
    MachineNumbers numbers = *known_machine("h200");
    numbers.dependent_launch_seconds += more;
    const auto made = must(plan_moe(both_mixtures(64)[1], machine_facts(numbers)));
    return std::pair(made->cost - made->first.cost - made->second.cost, made->launches());
  };
  const auto [usual, launches] = cost(0);
  const auto known = must(plan_moe(both_mixtures(64)[1], *known_facts("h200")));
  EXPECT_DOUBLE_EQ(usual, known->cost - known->first.cost - known->second.cost);
  const auto [slow, fewer] = cost(5e-6);
  EXPECT_LE(fewer, launches);
  EXPECT_GT(std::abs(slow - usual), 1e-6);
}

// The plan is that of the mixture by itself, but for its reason; the other's is predicted to take
// longer.
TEST(MixtureAlternatives, TheChosenPlanIsThatOfItsMixture) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {1, 64, 1024}) {
    const auto mixtures = both_mixtures(tokens);
    const auto chosen = must(plan_fastest(mixtures, h200));
    for (std::size_t i = 0; i < mixtures.size(); ++i) {
      const auto alone = must(plan_moe(mixtures[i], h200));
      // Launches beside them, of which products that ask for weights early save some.
      double saved = 0;
      for (const PlannedStep& step : alone->steps()) saved += step.asks_early ? 3e-6 : 0;
      if (alone->launches() > 1) {
        EXPECT_GT(alone->cost + saved, alone->first.cost + alone->second.cost);
      }
      EXPECT_GE(alone->cost, chosen->plan.cost);
      EXPECT_TRUE(alone->reason.empty());
      if (i == chosen->index) {
        EXPECT_EQ(alone->name(), chosen->plan.name());
      }
    }
  }
}

TEST(MixtureAlternatives, BitsThatMustNotDependOnTokensTakeTheFirst) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {8, 16384}) {
    const auto chosen = must(plan_fastest(both_mixtures(tokens), h200, {.batch_invariant = true}));
    EXPECT_EQ(chosen->index, 0U);
  }
}

TEST(MixtureAlternatives, Refusals) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto good = both_mixtures(64);
  auto other = good;
  other[1] = both_mixtures(65)[1];
  const auto refused = plan_fastest(other, h200);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason().find("plan 1 is of 65 tokens x 4096, top-2 of 8 experts"), 0U)
      << refused.reason();
  expect_contains(refused.reason(),
                  "plans to choose among are of one mixture, but for its weights");
  EXPECT_FALSE(fastest(std::span<const MixturePlan>{}));
  const std::array plans = {*plan_moe(good[0], h200), *plan_moe(good[1], *known_facts("h100"))};
  EXPECT_EQ(fastest(plans).refusal().code, RefusalCode::wrong_device);
  // What is no mixture is refused, and not left out.
  other = good;
  other[1].scale_w2.columns += 1;
  const auto no_mixture = plan_fastest(other, h200);
  ASSERT_FALSE(no_mixture);
  EXPECT_EQ(no_mixture.refusal().code, RefusalCode::bad_shape) << no_mixture.reason();
}

}  // namespace
}  // namespace warpwright
