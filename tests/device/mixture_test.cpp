// Mixtures of experts on the model: the whole call against float64, what is left out, what is
// refused, bits that depend on a token's row alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/device/mixture.h"
#include "warpwright/device/moe.h"
#include "warpwright/model.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/simulation/moe.h"

namespace warpwright {
namespace {

using tests::MixtureAsk;
using tests::SomeMixture;

// Runs it, and has every element in its bound.
void run_and_check(SomeMixture& some, const MixtureChoices& choices = {},
                   const device::ModelOptions& options = {}) {
  const auto plan = plan_moe(some.o, model_facts(), choices);
  ASSERT_TRUE(plan) << plan.reason();
  const auto report = device::launch_on_model(*plan, some.o, options);
  ASSERT_TRUE(report) << report.reason();
  ASSERT_TRUE(report->clean()) << report->text();
  const auto verdict = reference::check_mixture(some.o);
  EXPECT_EQ(verdict.failures, 0) << verdict.worst_token << " " << verdict.worst_column << " got "
                                 << verdict.worst_got << " want " << verdict.worst_want << " +- "
                                 << verdict.worst_allowed;
}

TEST(Mixture, Bf16AgreesWithFloat64) {
  SomeMixture some({});
  run_and_check(some);
}

TEST(Mixture, EveryWayOfTheFirstProductAgreesWithFloat64) {
  int planned = 0;
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const bool by_index : {false, true}) {
      for (const bool fused : {false, true}) {
        if (fused && scaling != Scaling::blockwise) continue;
        SomeMixture some({.hidden = 256, .inner = 128, .scaling = scaling});
        const MixtureChoices choices{.quantises_in_epilogue = fused, .by_index = by_index};
        const auto plan = plan_moe(some.o, model_facts(), choices);
        if (!plan && plan.refusal().code == RefusalCode::no_kernel) continue;  // of this build
        if (!plan && fused) continue;  // no kernel does both
        ASSERT_TRUE(plan) << plan.reason();
        SCOPED_TRACE(plan->explain());
        const int quantise = scaling != Scaling::none && !fused ? 1 : 0;
        EXPECT_EQ(plan->launches(),
                  3 + (by_index ? 0 : 1) + quantise + (plan->sums_in_product ? 0 : 1));
        run_and_check(some, choices);
        ++planned;
      }
    }
  }
  EXPECT_GE(planned, 2);
}

TEST(Mixture, SwigluOaiInTurnsAgreesWithFloat64) {
  SomeMixture some({.biases = true});
  some.o.activation = Activation::swiglu_oai;
  some.o.interleaved = true;
  run_and_check(some);
}

TEST(Mixture, RowScaledE4m3AgreesWithFloat64) {
  SomeMixture some({.hidden = 256, .inner = 128, .scaling = Scaling::row_column});
  run_and_check(some);
}

TEST(Mixture, RandomOnesAgreeWithFloat64) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    MixtureAsk ask;
    ask.seed = seed;
    ask.tokens = draw(1, 40);
    ask.experts = draw(1, 9);
    ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 5));
    if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
    ask.top_k = draw(1, 4);
    ask.hidden = 8 * draw(1, 30);
    ask.inner = 8 * draw(1, 20);
    ask.wide_ids = draw(0, 1) == 1;
    ask.biases = draw(0, 1) == 1;
    ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
    ask.weight = draw(0, 1) == 0 ? DType::f32 : DType::bf16;
    SomeMixture some(ask);
    device::ModelOptions how;
    how.mode = model::Mode::random;
    how.seed = seed;
    run_and_check(some, {.batch_invariant = draw(0, 1) == 1}, how);
  }
}

TEST(Mixture, IsCleanInManySchedulesAndLaunches) {
  SomeMixture some({.tokens = 5, .experts = 3, .hidden = 64, .inner = 64});
  const auto plan = plan_moe(some.o, model_facts());
  ASSERT_TRUE(plan) << plan.reason();
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    device::ModelOptions how;
    how.mode = seed == 1   ? model::Mode::eager
               : seed == 2 ? model::Mode::latest
                           : model::Mode::random;
    how.seed = seed;
    how.launches = 2;
    const auto report = device::launch_on_model(*plan, some.o, how);
    ASSERT_TRUE(report) << report.reason();
    EXPECT_TRUE(report->clean()) << "seed " << seed << "\n" << report->text();
  }
}

TEST(Mixture, IdsOutOfRangeAreLeftOutAndTold) {
  SomeMixture some({});
  const auto plan = plan_moe(some.o, model_facts());
  ASSERT_TRUE(plan) << plan.reason();
  auto workspace = make_workspace(*plan);
  ASSERT_TRUE(workspace) << workspace.reason();
  const auto status = [&] {
    const auto refused = launch(*plan, some.o, *workspace, nullptr);
    EXPECT_FALSE(refused) << refused->reason;
    const auto word = ids_status(*plan, *workspace, nullptr);
    EXPECT_TRUE(word);
    return ids_fault(*word);
  };
  EXPECT_FALSE(status());
  some.ids[3] = 8;
  some.ids[6] = -2;
  some.ids[10] = some.ids[11] = -1;  // a token without a slot
  some.put_ids();
  EXPECT_TRUE(status());
  EXPECT_EQ(reference::check_mixture(some.o).failures, 0);
  EXPECT_EQ(some.bits_of_row(5), std::vector<std::uint16_t>(128, 0));
}

TEST(Mixture, SlotsLeftOutAreNotMultipliedAndNanStaysInItsToken) {
  SomeMixture some({});
  auto* const weights = static_cast<float*>(some.o.topk_weights.data);
  some.ids[4] = -1;
  weights[4] = std::numeric_limits<float>::infinity();
  some.ids[8] = 2;
  weights[8] = std::numeric_limits<float>::quiet_NaN();
  some.put_ids();
  run_and_check(some);
  for (std::int64_t t = 0; t < 9; ++t) {
    const auto row = some.bits_of_row(t);
    const bool is_nan = std::isnan(numeric::to_double(DType::bf16, row[0]));
    EXPECT_EQ(is_nan, t == 4) << "token " << t;
  }
}

TEST(Mixture, BitsOfATokenDependOnItsRowAlone) {
  SomeMixture all({.tokens = 33});
  const MixtureChoices choices{.batch_invariant = true};
  run_and_check(all, choices);
  const auto want = all.bits_of_row(0);
  MixtureOperands one = all.o;
  for (MatrixView* v : {&one.x, &one.topk_ids, &one.topk_weights, &one.d}) v->rows = 1;
  const auto plan = plan_moe(one, model_facts(), choices);
  ASSERT_TRUE(plan) << plan.reason();
  std::memset(one.d.data, 0xff, 256);
  const auto report = device::launch_on_model(*plan, one);
  ASSERT_TRUE(report && report->clean());
  EXPECT_EQ(all.bits_of_row(0), want);
}

TEST(Mixture, NoTokensAreNoLaunch) {
  SomeMixture some({.tokens = 0});
  const auto plan = plan_moe(some.o, model_facts());
  ASSERT_TRUE(plan) << plan.reason();
  EXPECT_EQ(plan->launches(), 0);
  Workspace none;
  EXPECT_FALSE(launch(*plan, some.o, none, nullptr));
}

TEST(Mixture, WhatDoesNotFitIsRefusedBeforeAnyLaunch) {
  const auto refused = [](const auto& change) {
    SomeMixture some({});
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts());
    return plan ? std::string() : plan.reason();
  };
  EXPECT_EQ(refused([](MixtureOperands&) {}), "");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.w2.rows = 64; }),
            "w2 is 8 x 64 x 128; it takes what w13 gives, to rows of x: the nearest legal is 8 x "
            "128 x 128");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.topk_weights.columns = 1; }),
            "topk_weights is 9 x 1; there is one for each id: the nearest legal is 9 x 2");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.w13.rows = 255; }),
            "w13 has 255 rows; its gate and up have as many rows each: the nearest legal is 256");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.x.dtype = DType::f32; }),
            "x is f32; tokens are bf16 or fp16: the nearest is bf16");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.w2.data = nullptr; }),
            "w2 is a null pointer; a tensor of 128 x 128 elements needs memory");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.first_expert = 1; }),
            "first_expert is 1 and there are 8 experts here of 8; those of a rank lie among all of "
            "them: the nearest is first_expert 0");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.d.data = o.w2.data; }),
            "d overlaps w2; the result may lie over x alone");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.scaling = Scaling::blockwise; }),
            "scaling is blockwise and w13 is bf16; weights of 16 bits have no scales: the nearest "
            "is none");
}

TEST(Mixture, ADeviceWithoutKernelsIsRefused) {
  SomeMixture some({});
  const auto plan = plan_moe(some.o, *known_facts("a100"));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.refusal().code, RefusalCode::no_device);
}

TEST(Mixture, AnotherMixturesOperandsAndASmallWorkspaceAreRefused) {
  SomeMixture some({});
  SomeMixture other({.tokens = 10});
  const auto plan = plan_moe(some.o, model_facts());
  ASSERT_TRUE(plan) << plan.reason();
  EXPECT_EQ(mismatch(*plan, other.o)->code, RefusalCode::plan_mismatch);
  Workspace none;
  EXPECT_EQ(launch(*plan, some.o, none, nullptr)->code, RefusalCode::bad_workspace);
}

TEST(Mixture, TheResultMayLieOverTheTokens) {
  SomeMixture apart({});
  run_and_check(apart);
  SomeMixture over({});
  over.o.d = over.o.x;
  const auto plan = plan_moe(over.o, model_facts());
  ASSERT_TRUE(plan) << plan.reason();
  const auto report = device::launch_on_model(*plan, over.o);
  ASSERT_TRUE(report && report->clean());
  for (std::int64_t t = 0; t < 9; ++t) EXPECT_EQ(over.bits_of_row(t), apart.bits_of_row(t));
}

TEST(Mixture, ExplainCountsItsLaunches) {
  SomeMixture some({.hidden = 512, .inner = 256});
  const auto plan = plan_moe(some.o, *known_facts("h200"), {.sums_in_product = false});
  ASSERT_TRUE(plan) << plan.reason();
  const std::string text = plan->explain();
  EXPECT_NE(text.find(std::to_string(plan->launches()) + " launches"), std::string::npos) << text;
  EXPECT_NE(text.find("sum_slots"), std::string::npos) << text;
  EXPECT_NE(text.find("floors together"), std::string::npos) << text;
}

}  // namespace
}  // namespace warpwright
