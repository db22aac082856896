// batch_invariant on the model: the bits of a row by itself and in batches, by every kernel that a
// plan may take, and that the tests would see it if it were not kept.
#include "tests/run/batch_invariance.h"
#include "tests/must.h"

#include <set>

namespace warpwright::batch_invariance {
namespace {

class BatchInvariance : public testing::TestWithParam<Kind> {};

TEST_P(BatchInvariance, RowsHaveTheirBitsInAnyBatch) {
  expect_invariant(GetParam(), run_on_model, campaign() ? 1 : 127);
}

// Every kernel that could serve has the same bits, so that any plan may be taken for any M.
TEST_P(BatchInvariance, AllKernelsAgree) {
  const Kind& kind = GetParam();
  constexpr std::uint32_t seed = 7;
  constexpr std::int64_t rows = 24;
  Tensors tensors(kind, run_on_model, seed);
  std::mt19937 random(seed);
  const auto offsets = draw_offsets(random, rows);
  PlanChoices choices;
  choices.batch_invariant = true;
  const auto first = tensors.product(0, rows, offsets, choices);
  GemmOperands o = tensors.operands(0, rows, std::aligned_alloc(256, 1 << 20));
  const std::unique_ptr<void, void (*)(void*)> owned(o.d.data, std::free);
  if (kind.grouped) o.groups = Groups{offsets.data(), OffsetType::int32, 0};
  const auto all = must(candidates(*describe(o), model_facts(), choices));
  std::set<std::string> kernels;
  for (const Plan& each : *all) {
    if (!kernels.insert(each.kernel).second) continue;
    choices.kernel = each.kernel;
    EXPECT_EQ(tensors.product(0, rows, offsets, choices), first) << each.kernel;
  }
  std::printf("%zu kernels\n", kernels.size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatchInvariance, testing::ValuesIn(sampled(kinds, 3)),
                         [](const auto& of) { return std::string(of.param.name); });

// Kernels that split K are not offered; and where one runs, the same comparison finds other bits.
TEST(BatchInvariant, LeavesOutWhatSplitsK) {
  const GemmProblem p = packed_problem(16, 4096, 8192, DType::bf16, DType::bf16);
  const DeviceFacts h200 = *known_facts("h200");
  const auto shares_k = [](const Plan& plan) {
    return plan.workspace_bytes > 0 || plan.cluster_k > 1;
  };
  const auto usual = candidates(p, h200);
  EXPECT_TRUE(std::any_of((*usual).begin(), (*usual).end(), shares_k));
  PlanChoices choices;
  choices.batch_invariant = true;
  for (const Plan& each : *candidates(p, h200, choices)) {
    EXPECT_FALSE(shares_k(each)) << each.name();
  }
  expect_contains(plan(p, h200, choices)->explain(), "batch_invariant");
  choices.cluster_k = 4;
  expect_contains(why_not(plan(p, h200, choices)), "do not depend on the batch");
}

// Sums of e4m3 in the tensor core keep 13 bits, so that their order shows in the result.
TEST(BatchInvariant, TheComparisonSeesAnotherOrder) {
  Kind kind{"e4m3", DType::e4m3};
  kind.depth = 6144;
  Tensors tensors(kind, run_on_model, 7);
  PlanChoices choices;
  choices.batch_invariant = true;
  const auto first = tensors.product(0, 40, {}, choices);
  choices = {};
  choices.kernel = "hopper_e4m3_bf16_128x64_sw_sk";
  EXPECT_NE(tensors.product(0, 40, {}, choices), first);
}

}  // namespace
}  // namespace warpwright::batch_invariance
