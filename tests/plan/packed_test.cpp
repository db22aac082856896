// What is refused of packed weights, each in a sentence that names what would be legal.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/must.h"
#include "tests/plan/refused.h"

namespace warpwright {
namespace {

alignas(128) std::byte packed_arena[1 << 20];

GemmOperands packed_operands() {
  GemmOperands o;
  o.a = matrix(packed_arena, DType::e4m3, 16, 256);
  o.b = matrix(packed_arena + (1 << 18), DType::s4, 192, 256);
  o.packed = PackedWeights{};
  o.d = matrix(packed_arena + (1 << 19), DType::bf16, 16, 192);
  return o;
}

std::string packed_refusal(const std::function<void(GemmOperands&)>& change) {
  GemmOperands o = packed_operands();
  change(o);
  return tests::refusal(o);
}

// A step of a server without tokens, by whatever kernel of the type there is.
TEST(PackedPlanTest, NoTokensHaveAPlan) {
  for (const DType result : {DType::bf16, DType::f16}) {
    GemmOperands o = packed_operands();
    o.d.dtype = result;
    o.a.rows = o.d.rows = 0;
    const auto none = must(plan(*describe(o), model_facts()));
    EXPECT_EQ(none->ctas, 0);
  }
}

TEST(PackedPlanTest, Refusals) {
  const auto expect = [](const std::string& words,
                         const std::function<void(GemmOperands&)>& change) {
    const std::string said = packed_refusal(change);
    expect_contains(said, words);
  };
  EXPECT_EQ(packed_refusal([](GemmOperands&) {}), "");
  expect("nothing says how it is packed", [](GemmOperands& o) { o.packed.reset(); });
  expect("B is e4m3, and packed weights are given",
         [](GemmOperands& o) { o.b.dtype = DType::e4m3; });
  expect("groups of 32, 64 or 128", [](GemmOperands& o) { o.packed->format.group = 48; });
  EXPECT_EQ(
      packed_refusal([](GemmOperands& o) { o.packed->format.zero_points = ZeroPoints::groups; }),
      "");
  expect("folded and the product has no groups, which no kernel has together: the nearest is exact",
         [](GemmOperands& o) { o.packed->sums = GroupSums::folded; });
  expect("the nearest A is e4m3",
         [](GemmOperands& o) { o.a = matrix(packed_arena, DType::bf16, 16, 256); });
  const auto in_blocks = [](GemmOperands& o) {
    o.scaling = Scaling::blockwise;
    o.scale_a = matrix(packed_arena + 8192, DType::f32, 16, 2);
  };
  const auto is_gated = [](GemmOperands& o) {
    o.b.rows = 256;
    o.epilogue = {.activation = Activation::silu, .gated = true};
    o.d = matrix(packed_arena + (1 << 19), DType::bf16, 16, 128);
  };
  EXPECT_EQ(packed_refusal(is_gated), "");
  // Pairs that have no kernel, by name.
  for (const GroupSums sums : {GroupSums::chained, GroupSums::folded, GroupSums::table}) {
    const std::string are = std::string("sums of packed weights are ") + name(sums) + " and ";
    expect(are + "A has block scales", [&](GemmOperands& o) {
      o.packed->sums = sums;
      in_blocks(o);
    });
    expect(are + "B has zero points", [&](GemmOperands& o) {
      o.packed->sums = sums;
      o.packed->format.zero_points = ZeroPoints::groups;
    });
    expect(are + "the epilogue is gated", [&](GemmOperands& o) {
      o.packed->sums = sums;
      is_gated(o);
    });
  }
  expect("zero points and A has block scales", [&](GemmOperands& o) {
    o.packed->format.zero_points = ZeroPoints::groups;
    in_blocks(o);
  });
  expect("zero points and the epilogue is gated", [&](GemmOperands& o) {
    o.packed->format.zero_points = ZeroPoints::groups;
    is_gated(o);
  });
  const auto by_table = [](GemmOperands& o) { o.packed->sums = GroupSums::table; };
  expect("are table, and their encoding is ex", by_table);
  expect("table and the product has no groups", [&](GemmOperands& o) {
    by_table(o);
    o.packed->format.encoding = Int4Encoding::sm;
  });
  expect("their encoding is ex", [](GemmOperands& o) {
    o.packed->format = {.encoding = Int4Encoding::sm, .zero_points = ZeroPoints::groups};
  });
  expect("leave it out", [](GemmOperands& o) {
    o.scaling = Scaling::blockwise;
    o.scale_a = matrix(packed_arena + 8192, DType::f32, 16, 2);
    o.scale_b = matrix(packed_arena + 12288, DType::f32, 2, 2);
  });
  expect("the nearest legal N is 256", [](GemmOperands& o) {
    o.epilogue = {.activation = Activation::silu, .gated = true};
    o.d = matrix(packed_arena + (1 << 19), DType::bf16, 16, 96);
  });
  expect("their columns are both K", [](GemmOperands& o) { o.b.columns = 128; });
  // Its 3 x 2 tiles of 4224 bytes are B's packed_arena, not 192 x 256 elements.
  expect("D overlaps B",
         [](GemmOperands& o) { o.d.data = static_cast<std::byte*>(o.b.data) + 6 * 4224 - 16; });
  EXPECT_EQ(packed_refusal(
                [](GemmOperands& o) { o.d.data = static_cast<std::byte*>(o.b.data) + 6 * 4224; }),
            "");
}

// For devices whose kernels would read them as something else.
TEST(PackedPlanTest, OnlyHopperTakesThem) {
  const auto problem = must(describe(packed_operands()));
  EXPECT_TRUE(plan(*problem, model_facts(8, 90)).ok());
  for (const int architecture : {75, 80, 86, 89, 100, 103, 120}) {
    const auto made = plan(*problem, model_facts(8, architecture));
    ASSERT_FALSE(made.ok()) << architecture;
    expect_contains(made.reason(), "packed int4 weights");
  }
}

// A launch of weights in another form is not that of the plan.
TEST(PackedPlanTest, TheFormBelongsToThePlan) {
  Plan plan;
  plan.problem = *describe(packed_operands());
  EXPECT_FALSE(mismatch(plan, packed_operands()));
  GemmOperands other = packed_operands();
  other.packed->format.group = 64;
  EXPECT_TRUE(mismatch(plan, other));
}

TEST(PackedPlanTest, BytesAreThoseOfTheTiles) {
  const auto p = must(describe(packed_operands()));
  EXPECT_EQ(moved_bytes(*p), 16 * 256 + 6 * 4224 + 16 * 192 * 2);
  expect_contains(formula(*p), "B packed in groups of 128 with bf16 scales, exact sums");
}

}  // namespace
}  // namespace warpwright
