// Mixtures whose sort and gather are one launch, on the model: results, and what the sort leaves,
// have the bits of two launches; what is refused.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/campaign.h"
#include "tests/device/micro_mixture.h"
#include "tests/device/mixture.h"
#include "tests/draws.h"
#include "tests/must.h"
#include "tests/scheduled.h"
#include "warpwright/device/moe.h"
#include "warpwright/model.h"
#include "warpwright/simulation/moe.h"

namespace warpwright {
namespace {

using tests::MicroMixture;
using tests::MixtureAsk;
using tests::SomeMixture;

// What a run leaves: d, the status, and where the rows of experts and of slots are.
struct Left {
  std::vector<std::byte> d, sorted;
  std::uint32_t status = 0;
};

Left left_by(const MixturePlan& plan, const MixtureOperands& o, const device::ModelOptions& how) {
  Left left;
  auto workspace = must(make_workspace(plan));
  if (!workspace) return left;
  auto* const base = static_cast<std::byte*>(workspace->data());
  std::memset(base, 0x5a, static_cast<std::size_t>(plan.workspace_bytes()));
  const auto report = must(device::launch_on_model(plan, o, how, base));
  EXPECT_TRUE(report && report->clean()) << report->text();
  const auto take = [&](std::vector<std::byte>& to, const void* from, std::int64_t bytes) {
    const auto* const at = static_cast<const std::byte*>(from);
    to.insert(to.end(), at, at + bytes);
  };
  take(left.d, o.d.data, o.d.rows * o.d.columns * element_bytes(o.d.dtype));
  using enum MixturePart;
  for (const MixturePart part : {offsets, slots, rows}) {
    take(left.sorted, base + plan.layout[part].at, plan.layout[part].bytes);
  }
  std::memcpy(&left.status, base + plan.layout[status].at, sizeof left.status);
  return left;
}

// Runs it both ways; false where the build has no kernel for it.
bool is_the_same(const MixtureOperands& o, const DeviceFacts& facts, MixtureChoices choices,
                 unsigned seed) {
  choices.sort_with_gather = false;
  const auto two = plan_moe(o, facts, choices);
  if (!two && two.refusal().code == RefusalCode::no_kernel) return false;
  EXPECT_TRUE(two) << two.reason();
  if (!two) return false;
  choices.sort_with_gather = true;
  choices.first_kernel = two->first.kernel;
  choices.second_kernel = two->second.kernel;
  const auto one = must(plan_moe(o, facts, choices));
  if (!one) return false;
  SCOPED_TRACE(one->explain());
  EXPECT_TRUE(one->way.sorts_rows && !two->way.sorts_rows);
  EXPECT_EQ(one->launches() + 1, two->launches());
  EXPECT_FALSE(one->takes(MixtureStep::gather));
  EXPECT_TRUE(two->takes(MixtureStep::gather));
  EXPECT_EQ(one->asks_early(MixtureStep::first), two->asks_early(MixtureStep::first));
  const auto how = tests::scheduled(model::Mode::random, seed);
  const Left of_two = left_by(*two, o, how);
  const Left of_one = left_by(*one, o, how);
  EXPECT_EQ(of_one.d, of_two.d);
  EXPECT_EQ(of_one.sorted, of_two.sorted);
  EXPECT_EQ(of_one.status, of_two.status);
  return true;
}

// Any mixture by seed: types of weights take turns, ranks have some of the experts, ids are wrong.
MixtureAsk ask_of(unsigned seed) {
  constexpr unsigned kinds = 6;
  if (seed % kinds == 3) return tests::int4_ask(seed);
  if (seed % kinds == 4) return tests::wide_int4_ask(seed);
  if (seed % kinds == 5) return tests::e2m1_ask(seed);
  tests::Draws draw(seed);
  constexpr Scaling scalings[] = {Scaling::none, Scaling::row_column, Scaling::blockwise};
  MixtureAsk ask;
  ask.seed = seed;
  ask.scaling = scalings[seed % kinds];
  ask.tokens = draw(1, 40);
  ask.experts = draw(1, 12);
  ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 3));
  if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
  ask.top_k = draw(1, 5);
  ask.hidden = 16 * draw(1, 40);
  ask.inner = 64 * draw(1, 3);
  ask.wide_ids = draw(0, 1) == 1;
  ask.biases = draw(0, 1) == 1;
  return ask;
}

TEST(SortWithGather, HasTheBitsOfTwoLaunches) {
  int strange = 0;
  const int ran = count_ran(1200, 199, [&](unsigned seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(ask_of(seed));
    // Ids out of range, and a token without a slot.
    std::mt19937 random(seed);
    if (random() % 3 == 0) {
      some.ids[random() % some.ids.size()] = some.o.total() + 3;
      ++strange;
    }
    if (random() % 3 == 0) {
      for (std::int64_t j = 0; j < some.o.top_k(); ++j) some.ids[static_cast<std::size_t>(j)] = -1;
    }
    some.put_ids();
    MixtureChoices choices{.batch_invariant = random() % 4 == 0, .by_index = false};
    if (random() % 4 == 0) choices.early_weights = false;
    DeviceFacts facts = model_facts();
    facts.sms = 1 + static_cast<int>(random() % 9);
    return is_the_same(some.o, facts, choices, seed);
  });
  EXPECT_GE(ran, campaign() ? 800 : 1);
  if (campaign()) {
    EXPECT_GE(strange, 300);
  }
}

TEST(SortWithGather, OfScalesInTilesHasTheBitsOfTwoLaunches) {
  const int ran = count_ran(600, 199, [](unsigned seed) {
    const tests::MicroAsk ask = tests::micro_ask(seed);
    SCOPED_TRACE(ask.text());
    MicroMixture some(ask);
    MixtureChoices choices;
    if (seed % 3 == 0) choices.by_index = false;
    return is_the_same(some.o, model_facts(4, 100), choices, seed);
  });
  EXPECT_GE(ran, campaign() ? 250 : 1);
}

// Whoever asks for nothing has what takes less: the launch that gathers sorts up to 256 slots.
TEST(SortWithGather, IsOneLaunchOfFewSlotsWhereItIsLeftOpen) {
  const auto plan_of = [](int tokens, MixtureChoices choices) {
    SomeMixture some({.tokens = tokens, .top_k = 2});
    return plan_moe(some.o, *known_facts("h200"), choices);
  };
  const auto few = must(plan_of(128, {.by_index = false}));
  EXPECT_TRUE(few->way.sorts_rows);
  EXPECT_TRUE(few->asks_early(MixtureStep::first));
  EXPECT_FALSE(few->takes(MixtureStep::gather));
  EXPECT_FALSE(mismatch(*few, MixtureChoices{.sort_with_gather = true}));
  const auto open = must(plan_of(129, {.by_index = false}));
  EXPECT_FALSE(open->way.sorts_rows);
  EXPECT_TRUE(open->takes(MixtureStep::gather));
  EXPECT_FALSE(mismatch(*open, MixtureChoices{.sort_with_gather = false}));
  const auto number = plan_of(1, {.by_index = true});
  EXPECT_TRUE(number && !number->way.sorts_rows);
  const auto empty = plan_of(0, {.by_index = false});
  EXPECT_TRUE(empty && !empty->way.sorts_rows);
  const auto other = must(mismatch(*open, MixtureChoices{.sort_with_gather = true}));
  EXPECT_EQ(other->reason,
            "sort_with_gather is true, and the plan's is false; leave it out, or make the plan "
            "with it");
}

// More slots than one warp counts: the first product waits for their offsets.
TEST(SortWithGather, ManySlotsAreNotCountedByTheProduct) {
  const auto early = [](int tokens) {
    SomeMixture some({.tokens = tokens, .top_k = 2});
    const auto plan =
        must(plan_moe(some.o, *known_facts("h200"), {.by_index = false, .sort_with_gather = true}));
    return plan && plan->asks_early(MixtureStep::first);
  };
  EXPECT_TRUE(early(512));
  EXPECT_FALSE(early(513));
}

TEST(SortWithGather, IsRefusedWhereOneLaunchCannot) {
  const auto why = [](const MixtureAsk& ask, MixtureChoices choices) {
    SomeMixture some(ask);
    choices.sort_with_gather = true;
    const auto plan = plan_moe(some.o, model_facts(), choices);
    return plan ? std::string() : plan.reason();
  };
  EXPECT_EQ(why({.tokens = 9}, {.by_index = true}),
            "sort_with_gather is asked for, and by_index; tokens that are read by number are not "
            "gathered: the nearest is false");
  EXPECT_EQ(why({.tokens = 2049}, {}),
            "sort_with_gather is asked for of 4098 slots; one launch sorts and gathers up to 4096: "
            "the nearest is false");
  EXPECT_EQ(why({.tokens = 2048}, {}), "");
  EXPECT_EQ(why({.tokens = 0}, {}), "");
  MicroMixture micro({.formats = "mxf8", .tokens = 1024, .experts = 65});
  const auto plan = plan_moe(micro.o, model_facts(4, 100), {.sort_with_gather = true});
  ASSERT_FALSE(plan);
  EXPECT_EQ(
      plan.reason(),
      "sort_with_gather is asked for of 2048 slots and 65 experts; one launch sorts and "
      "gathers with scales in tiles where their product is up to 131072: the nearest is false");
}

}  // namespace
}  // namespace warpwright
