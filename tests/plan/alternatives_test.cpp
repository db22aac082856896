// The choice among weights that a caller has in two forms.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "warpwright/plan/cost/known_devices.h"
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
  const auto few = plan_fastest(both(8 * 16, 8), h200);
  ASSERT_TRUE(few) << few.reason();
  EXPECT_EQ(few->index, 0U) << few->plan.reason;
  EXPECT_TRUE(few->plan.problem.packed);
  EXPECT_NE(few->plan.reason.find("packed mxf4 weights in "), std::string::npos);
  EXPECT_NE(few->plan.reason.find(", predicted to be faster than e4m3 weights in "),
            std::string::npos)
      << few->plan.reason;
  EXPECT_NE(few->plan.explain().find(few->plan.reason), std::string::npos);
  const auto many = plan_fastest(both(8 * 4096, 8), h200);
  ASSERT_TRUE(many) << many.reason();
  EXPECT_EQ(many->index, 1U) << many->plan.reason;
  EXPECT_FALSE(many->plan.problem.packed);
}

// The plan is that of the product alone, but for its reason.
TEST(Alternatives, TheChosenPlanIsThatOfItsProduct) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto products = both(8 * 64, 8);
  const auto chosen = plan_fastest(products, h200);
  ASSERT_TRUE(chosen) << chosen.reason();
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto alone = plan(products[i], h200);
    ASSERT_TRUE(alone) << alone.reason();
    EXPECT_GE(alone->cost, chosen->plan.cost);
    if (i == chosen->index) {
      EXPECT_EQ(alone->name(), chosen->plan.name());
    }
  }
}

TEST(Alternatives, BitsThatMustNotDependOnMTakeTheFirst) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {8 * 16, 8 * 4096}) {
    const auto chosen = plan_fastest(both(tokens, 8), h200, {.batch_invariant = true});
    ASSERT_TRUE(chosen) << chosen.reason();
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

TEST(Alternatives, Refusals) {
  const DeviceFacts h200 = *known_facts("h200");
  auto products = both(128, 8);
  products[1].d.rows = products[1].a.rows = products[1].scale_a.rows = 256;
  const auto other = plan_fastest(products, h200);
  ASSERT_FALSE(other);
  EXPECT_NE(other.reason().find("plans to choose among are of one product, but for its weights"),
            std::string::npos)
      << other.reason();
  EXPECT_FALSE(fastest({}));
  const auto good = both(128, 8);
  const std::array plans = {*plan(good[0], h200), *plan(good[1], *known_facts("h100"))};
  EXPECT_EQ(fastest(plans).refusal().code, RefusalCode::wrong_device);
}

}  // namespace
}  // namespace warpwright
