// `run_moe`: plans that are kept, ids that are checked, a given plan, what is refused.
#include <gmock/gmock.h>

#include "tests/device/mixture.h"
#include "tests/must.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/run_moe.h"

namespace warpwright {
namespace {

using testing::HasSubstr;
using tests::MixtureAsk;
using tests::SomeMixture;

void expect_right(const SomeMixture& some) {
  EXPECT_EQ(reference::check_mixture(some.o).failures, 0);
}

TEST(RunMoe, AMixtureThatWasSeenIsCheckedAsAnyOther) {
  SomeMixture first({.seed = 3});
  std::shared_ptr<const MixturePlan> made;
  must_do(run_moe(first.o, {}, &made));
  ASSERT_NE(made, nullptr);
  const std::shared_ptr<const MixturePlan> plan = made;
  expect_right(first);
  SomeMixture again({.seed = 4});
  ASSERT_FALSE(run_moe(again.o, {}, &made));
  EXPECT_EQ(made, nullptr);
  expect_right(again);
  // Beside what the plan was made for, the memory of this call.
  MixtureOperands bad = again.o;
  bad.d.data = bad.w2.data;
  EXPECT_EQ(run_moe(bad, {})->code, RefusalCode::overlap);
  bad.d.data = nullptr;
  EXPECT_EQ(run_moe(bad, {})->code, RefusalCode::bad_pointer);
  // Any field makes it another mixture.
  again.o.activation = Activation::swiglu_oai;
  ASSERT_FALSE(run_moe(again.o, {}, &made));
  EXPECT_NE(made, nullptr);
  expect_right(again);
  // So do choices.
  MixtureRunOptions how;
  how.choices.batch_invariant = true;
  ASSERT_FALSE(run_moe(again.o, how, &made));
  EXPECT_NE(made, nullptr);
  ASSERT_FALSE(run_moe(again.o, how, &made));
  EXPECT_EQ(made, nullptr);
}

TEST(RunMoe, AGivenPlanIsHeldAgainstOperandsAndChoices) {
  SomeMixture some({});
  const auto plan = must(run_moe_plan(some.o, model_facts()));
  must_do(run_moe(*plan, some.o, {}));
  expect_right(some);
  SomeMixture skewed({});
  skewed.o.expected_zipf = 2;  // a hint
  EXPECT_FALSE(run_moe(*plan, skewed.o, {}));
  const SomeMixture longer({.tokens = 12});
  EXPECT_EQ(run_moe(*plan, longer.o, {})->code, RefusalCode::plan_mismatch);
  const auto asked = [&](const MixtureChoices& choices) {
    const auto r = run_moe(*plan, some.o, {.choices = choices});
    return r ? r->reason : "";
  };
  EXPECT_EQ(asked({.by_index = plan->way.by_index}), "");
  EXPECT_EQ(asked({.batch_invariant = true}), "");
  EXPECT_EQ(asked({.first_kernel = plan->first.kernel, .second_kernel = plan->second.kernel}), "");
  EXPECT_THAT(asked({.by_index = !plan->way.by_index}),
              HasSubstr("leave it out, or make the plan with it"));
  EXPECT_EQ(
      asked({.quantises_in_epilogue = true}),
      "quantises_in_epilogue is true, and the plan's is false; leave it out, or make the plan "
      "with it");
  EXPECT_THAT(asked({.gates_in_epilogue = false}),
              HasSubstr("gates_in_epilogue is false, and the plan's is true"));
  EXPECT_EQ(asked({.second_kernel = "other"}),
            "the product with w2: kernel is other, and the plan runs " + plan->second.kernel +
                "; leave it out, or make the plan with it");
}

TEST(RunMoe, PlansBeforeThereIsMemory) {
  SomeMixture some({.biases = true});
  const auto with = run_moe_plan(some.o, model_facts());
  MixtureOperands shapes = with_matrices(some.o, [](MatrixView v) {
    v.data = nullptr;
    return v;
  });
  EXPECT_TRUE(has_memory(some.o));
  EXPECT_FALSE(has_memory(shapes));
  const auto without = run_moe_plan(shapes, model_facts());
  ASSERT_TRUE(with && without) << without.reason();
  EXPECT_EQ(with->name(), without->name());
  EXPECT_EQ(with->workspace_bytes(), without->workspace_bytes());
  EXPECT_EQ(without->problem.bias13.rows, 256);
  EXPECT_EQ(run_moe(shapes, {})->code, RefusalCode::bad_pointer);
}

TEST(RunMoe, IdsAreCheckedWhereThatIsAskedFor) {
  SomeMixture some({});
  MixtureRunOptions how;
  how.check_ids = true;
  EXPECT_FALSE(run_moe(some.o, how));
  some.ids[5] = 8;
  some.put_ids();
  const auto refused = must(run_moe(some.o, how));
  EXPECT_EQ(refused->code, RefusalCode::bad_value);
  EXPECT_EQ(refused->reason, *ids_fault(1));
  expect_right(some);  // the slot is left out
  how.check_ids = false;
  EXPECT_FALSE(run_moe(some.o, how));
}

TEST(RunMoe, TakesTheCallersMemory) {
  SomeMixture some({});
  const auto plan = must(run_moe_plan(some.o, model_facts()));
  auto workspace = must(make_workspace(*plan));
  MixtureRunOptions how;
  how.workspace = &*workspace;
  EXPECT_FALSE(run_moe(some.o, how));
  expect_right(some);
  Workspace small(workspace->data(), plan->workspace_bytes() - 1);
  how.workspace = &small;
  EXPECT_EQ(run_moe(some.o, how)->code, RefusalCode::bad_workspace);
}

TEST(RunMoe, NoTokensAreNoLaunch) {
  SomeMixture some({.tokens = 0});
  must_do(run_moe(some.o, {.check_ids = true}));
}

// An engine's list of graph sizes: a plan is made once for each, and the workspace of the largest
// serves all. Tokens that only fill a size up have ids of -1, and rows of zeros.
TEST(RunMoe, AListOfSizesHasAPlanEach) {
  MixtureAsk ask{.experts = 3, .top_k = 1, .hidden = 16, .inner = 16};
  std::vector<std::shared_ptr<const MixturePlan>> plans;
  for (const bool again : {false, true}) {
    for (int tokens = 1; tokens <= 512; tokens *= 2) {
      ask.tokens = tokens;
      ask.seed = static_cast<unsigned>(tokens) + (again ? 1 : 0);
      SomeMixture some(ask);
      const int filled = tokens - tokens / 3;
      std::fill(some.ids.begin() + filled, some.ids.end(), -1);
      some.put_ids();
      std::shared_ptr<const MixturePlan> made;
      must_do(run_moe(some.o, {.check_ids = true}, &made));
      EXPECT_EQ(made == nullptr, again) << tokens;
      if (made) plans.push_back(made);
      expect_right(some);
      for (int t = filled; t < tokens; ++t) {
        ASSERT_EQ(some.bits_of_row(t), std::vector<std::uint16_t>(16, 0));
      }
    }
  }
  ASSERT_EQ(plans.size(), 10U);
  for (const auto& plan : plans) {
    EXPECT_LE(plan->workspace_bytes(), plans.back()->workspace_bytes());
  }
}

TEST(RunMoe, ADeviceThatIsNotThereIsRefused) {
  SomeMixture some({});
  EXPECT_TRUE(run_moe(some.o, {.device = 99}));
}

}  // namespace
}  // namespace warpwright
