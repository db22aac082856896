// Mixtures of experts on the model: the whole call against float64, what is left out, what is
// refused, bits that depend only on a token's row.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

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

TEST(Mixture, Bf16AgreesWithFloat64) {
  SomeMixture some({});
  run_and_check(some);
}

TEST(Mixture, EveryWayOfTheFirstProductAgreesWithFloat64) {
  std::vector<std::pair<MixtureAsk, MixtureChoices>> planned;
  int of_int4 = 0;
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const bool by_index : {false, true}) {
      for (const bool fused : {false, true}) {
        if (fused && scaling != Scaling::blockwise) continue;
        for (const bool is_int4 : {false, true}) {
          if (is_int4 && (fused || scaling == Scaling::none)) continue;
          MixtureAsk ask{.hidden = 256, .inner = 128, .scaling = scaling};
          if (is_int4) ask.packed13 = ask.packed2 = PackedWeights{};
          SomeMixture some(ask);
          const MixtureChoices choices{.quantises_in_epilogue = fused, .by_index = by_index};
          const auto plan = plan_moe(some.o, model_facts(), choices);
          if (!plan && plan.refusal().code == RefusalCode::no_kernel) continue;  // of this build
          ASSERT_TRUE(plan) << plan.reason();
          SCOPED_TRACE(plan->explain());
          const int quantise = scaling != Scaling::none && !fused ? 1 : 0;
          EXPECT_EQ(plan->launches(),
                    4 + quantise);  // the sort gathers
          planned.emplace_back(ask, choices);
          of_int4 += is_int4 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GE(planned.size(), 5U);
  EXPECT_EQ(of_int4, 3);  // with scales of blocks no kernel reads tokens by index
  for (const auto& [ask, choices] : sampled(planned, 3)) {
    SomeMixture some(ask);
    run_and_check(some, choices);
  }
}

// By number and quantised at once: the launches that a mixture needs at least, and the bits of the
// way that gathers first.
TEST(Mixture, FewTokensOfBlocksAreReadByNumberAndLeaveAsCodes) {
  std::vector<std::uint16_t> bits[2];
  for (const bool by_index : {false, true}) {
    SomeMixture some({.hidden = 256, .scaling = Scaling::blockwise});
    const MixtureChoices way{
        .quantises_in_epilogue = true, .by_index = by_index, .sort_with_gather = false};
    const auto plan = must(plan_moe(some.o, model_facts(), way));
    EXPECT_EQ(plan->launches(), by_index ? 4 : 5) << plan->explain();
    run_and_check(some, way);
    for (std::int64_t t = 0; t < some.o.tokens(); ++t) {
      const auto row = some.bits_of_row(t);
      bits[by_index ? 1 : 0].insert(bits[by_index ? 1 : 0].end(), row.begin(), row.end());
    }
  }
  EXPECT_EQ(bits[0], bits[1]);
}

TEST(Mixture, SwigluOaiInTurnsAgreesWithFloat64) {
  SomeMixture some({.biases = true});
  some.o.activation = Activation::swiglu_oai;
  some.o.interleaved = true;
  run_and_check(some);
}

// For gates at their limits: with other numbers, whose results are not the activation's own.
TEST(Mixture, NumbersOfAGateAgreeWithFloat64) {
  for (const GateNumbers& numbers : {GateNumbers{1, 0, 10}, GateNumbers{0.5F, -0.75F, 3}}) {
    SomeMixture some({.biases = true, .largest_x = 24});
    some.o.gate = numbers;
    run_and_check(some);
    some.o.gate.reset();
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  }
}

// An infinity in a token has limits of gates and ups: numbers come of it, only of that token.
TEST(Mixture, LimitsCutInfiniteTokens) {
  SomeMixture some({});
  some.o.activation = Activation::swiglu_oai;
  const std::uint16_t infinite = 0x7f80;
  std::memcpy(static_cast<std::uint16_t*>(some.o.x.data) + 2 * some.o.x.row_stride + 5, &infinite,
              sizeof infinite);
  run_and_check(some);
  for (const std::uint16_t code : some.bits_of_row(2)) {
    EXPECT_TRUE(std::isfinite(numeric::to_double(DType::bf16, code)));
  }
}

// A layer of gpt-oss: its 2880 are 22.5 blocks of 128, here 64 times a small odd number. Gates and
// ups reach their limits. False where the build has no kernel for it.
bool agrees_as_gpt_oss(MixtureAsk ask, bool interleaved, const MixtureChoices& choices) {
  std::mt19937 random(ask.seed);
  ask.tokens = 1 + static_cast<int>(random() % 16);
  ask.experts = 4;
  ask.hidden = 64 * (2 * static_cast<int>(random() % 3) + 1);
  ask.inner = 64 * (2 * static_cast<int>(random() % 3) + 1);
  ask.biases = true;
  ask.largest_x = 24;
  SomeMixture some(ask);
  some.ids[0] = 0;  // at least one slot
  some.put_ids();
  some.o.activation = Activation::swiglu_oai;
  some.o.interleaved = interleaved;
  const auto plan = plan_moe(some.o, model_facts(), choices);
  if (!plan && plan.refusal().code == RefusalCode::no_kernel) return false;
  EXPECT_TRUE(plan) << plan.reason();
  if (!plan) return false;
  SCOPED_TRACE("seed " + std::to_string(ask.seed) + "\n" + plan->explain());
  run_and_check(some, choices, tests::scheduled(model::Mode::random, ask.seed));
  // What this finds: one thing wrong of those that are gpt-oss' own.
  some.o.interleaved = !interleaved;
  EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  some.o.interleaved = interleaved;
  some.o.activation = Activation::silu;
  EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  return true;
}

TEST(Mixture, GptOssAgreesWithFloat64) {
  MixtureAsk ask;
  std::vector<std::tuple<MixtureAsk, bool, MixtureChoices>> all;
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    ask.scaling = scaling;
    for (const bool interleaved : {true, false}) {
      for (const bool by_index : {true, false}) {
        ++ask.seed;
        ask.bias = DType::bf16;  // as the checkpoints have them
        all.emplace_back(ask, interleaved, MixtureChoices{.by_index = by_index});
      }
      if (scaling != Scaling::blockwise) continue;
      ++ask.seed;
      ask.bias = DType::f32;  // D of e4m3 takes no other
      all.emplace_back(ask, interleaved,
                       MixtureChoices{.quantises_in_epilogue = true, .by_index = false});
    }
  }
  int ran = 0;
  for (const auto& [each, interleaved, choices] : sampled(all, 5)) {
    ran += agrees_as_gpt_oss(each, interleaved, choices) ? 1 : 0;
  }
  EXPECT_GE(ran, campaign() ? 4 : 1);
}

// And of its own size, on the GPU that it is for: no weights are copied first.
TEST(Mixture, GptOssHasAPlanOfItsSize) {
  for (const DType type : {DType::bf16, DType::e4m3, DType::s4}) {
    MixtureProblem p;
    p.x = p.d = packed_matrix(DType::bf16, 64, 2880);
    p.topk_ids = packed_matrix(DType::s32, 64, 4);
    p.topk_weights = packed_matrix(DType::f32, 64, 4);
    p.w13 = packed_matrix(type, 5760, 2880);
    p.w2 = packed_matrix(type, 2880, 2880);
    p.bias13 = packed_matrix(DType::bf16, 5760, 1);
    p.bias2 = packed_matrix(DType::bf16, 2880, 1);
    for (PlannedMatrix* m : {&p.w13, &p.w2, &p.bias13, &p.bias2}) {
      m->batch = 128;
      m->batch_stride = m->rows * m->columns;
    }
    p.activation = Activation::swiglu_oai;
    p.interleaved = type != DType::s4;
    if (type == DType::e4m3) {
      p.scaling = Scaling::blockwise;
      p.scale_w13 = packed_matrix(DType::f32, 45, 23);
      p.scale_w2 = packed_matrix(DType::f32, 23, 23);
      p.scale_w13.batch = p.scale_w2.batch = 128;
      p.scale_w13.batch_stride = 45 * 23;
      p.scale_w2.batch_stride = 23 * 23;
    } else if (type == DType::s4) {
      p.scaling = Scaling::row_column;
      p.packed13 = p.packed2 = PackedWeights{};
    }
    const auto plan = plan_moe(p, *known_facts("h200"));
    if (!plan && plan.refusal().code == RefusalCode::no_kernel) continue;  // of this build
    ASSERT_TRUE(plan) << plan.reason();
    EXPECT_FALSE(plan->first.b_copy || plan->second.b_copy) << plan->explain();
    // Sort, first, second, sum; tokens gathered, where no kernel reads them by index; quantised
    // rows.
    EXPECT_LE(plan->launches(), type == DType::bf16 ? 5 : 6) << plan->explain();
  }
}

TEST(Mixture, RowScaledE4m3AgreesWithFloat64) {
  SomeMixture some({.hidden = 256, .inner = 128, .scaling = Scaling::row_column});
  run_and_check(some);
}

// Runs and checks one as its seed says: gate, schedule, batch invariance. Returns its plan.
Result<MixturePlan> run_of_seed(SomeMixture& some, unsigned seed) {
  some.o.activation = seed % 3 == 0 ? Activation::swiglu_oai : Activation::silu;
  const auto how = tests::scheduled(model::Mode::random, seed);
  const MixtureChoices choices{.batch_invariant = seed % 2 == 1};
  run_and_check(some, choices, how);
  return plan_moe(some.o, model_facts(), choices);
}

TEST(Mixture, Int4AgreesWithFloat64) {
  for (const unsigned seed : sampled_seeds(12, 4)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(tests::int4_ask(seed));
    EXPECT_TRUE(run_of_seed(some, seed));
  }
}

// For bf16 tokens none are quantised; weights may have a scale for each row beside their own.
TEST(Mixture, E2m1AgreesWithFloat64) {
  int wide = 0;
  int folded = 0;
  int scaled = 0;
  for (const unsigned seed : sampled_seeds(16, 5)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(tests::e2m1_ask(seed));
    const auto plan = must(run_of_seed(some, seed));
    EXPECT_EQ(plan->takes(MixtureStep::quantise), some.o.quantises());
    folded += some.o.packed2->sums == GroupSums::folded ? 1 : 0;
    wide += some.o.quantises() ? 0 : 1;
    scaled += !some.o.quantises() && some.o.scaling == Scaling::row_column ? 1 : 0;
  }
  if (!campaign()) return;
  EXPECT_GT(folded, 0);
  EXPECT_GT(scaled, 0);
  EXPECT_TRUE(wide > 3 && wide < 13) << wide;
}

// Int4 weights and bf16 tokens: by number.
TEST(Mixture, WideInt4AgreesWithFloat64) {
  int by_index = 0;
  for (const unsigned seed : sampled_seeds(10, 4)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SomeMixture some(tests::wide_int4_ask(seed));
    const auto plan = must(run_of_seed(some, seed));
    EXPECT_FALSE(plan->takes(MixtureStep::quantise));
    by_index += plan->takes(MixtureStep::gather) ? 0 : 1;
  }
  if (campaign()) {
    EXPECT_GT(by_index, 0);
  }
}

TEST(Mixture, RandomOnesAgreeWithFloat64) {
  for (const unsigned seed : sampled_seeds(12, 4)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tests::Draws draw(seed);
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
    run_and_check(some, {.batch_invariant = draw(0, 1) == 1},
                  tests::scheduled(model::Mode::random, seed));
  }
}

TEST(Mixture, IsCleanInManySchedulesAndLaunches) {
  SomeMixture some({.tokens = 5, .experts = 3, .hidden = 64, .inner = 64});
  const auto plan = must(plan_moe(some.o, model_facts()));
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    auto how = tests::scheduled(seed == 1   ? model::Mode::eager
                                : seed == 2 ? model::Mode::latest
                                            : model::Mode::random,
                                seed);
    how.launches = 2;
    const auto report = must(device::launch_on_model(*plan, some.o, how));
    EXPECT_TRUE(report->clean()) << "seed " << seed << "\n" << report->text();
  }
}

TEST(Mixture, IdsOutOfRangeAreLeftOutAndTold) {
  SomeMixture some({});
  const auto plan = must(plan_moe(some.o, model_facts()));
  auto workspace = must(make_workspace(*plan));
  const auto status = [&] {
    must_do(launch(*plan, some.o, *workspace, nullptr));
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

void bits_depend_on_the_row_alone(const MixtureAsk& ask) {
  SomeMixture all(ask);
  const MixtureChoices choices{.batch_invariant = true};
  run_and_check(all, choices);
  const auto want = all.bits_of_row(0);
  MixtureOperands one = all.o;
  for (MatrixView* v : {&one.x, &one.topk_ids, &one.topk_weights, &one.d}) v->rows = 1;
  const auto plan = must(plan_moe(one, model_facts(), choices));
  std::memset(one.d.data, 0xff, 256);
  const auto report = device::launch_on_model(*plan, one);
  ASSERT_TRUE(report && report->clean());
  EXPECT_EQ(all.bits_of_row(0), want);
}

TEST(Mixture, BitsOfATokenDependOnItsRowAlone) {
  MixtureAsk ask{.tokens = 33};
  bits_depend_on_the_row_alone(ask);
  ask.scaling = Scaling::row_column;
  ask.packed13 = ask.packed2 = PackedWeights{};
  bits_depend_on_the_row_alone(ask);
}

TEST(Mixture, LeftOutScalesAreRefused) {
  for (const Scaling scaling : {Scaling::row_column, Scaling::blockwise}) {
    SomeMixture some({.scaling = scaling});
    some.o.scale_w13 = {};
    const auto plan = plan_moe(some.o, model_facts());
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.reason(), std::string("scale_w13 is left out, and scaling is ") + name(scaling) +
                                 "; e4m3 weights have scales");
  }
}

TEST(Mixture, E2m1WeightsThatDoNotFitAreRefused) {
  const auto refused = [](const auto& change) {
    MixtureAsk ask{.scaling = Scaling::none};
    ask.packed13 = PackedWeights{.format = {.group = 32,
                                            .scale = DType::ue8m0,
                                            .code = DType::e2m1,
                                            .tokens = DType::bf16,
                                            .exponents = Exponents::of_rows}};
    ask.packed2 = ask.packed13;
    SomeMixture some(ask);
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts());
    return plan ? std::string() : plan.reason();
  };
  EXPECT_EQ(refused([](MixtureOperands&) {}), "");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.packed2->format.tokens = DType::e4m3; }),
            "w2 is packed for tokens of e4m3 and w13 for those of bf16; both weights are packed "
            "for one type: the nearest is bf16");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.x.dtype = o.d.dtype = DType::f16; }),
            "x is fp16, and w13 is packed for tokens of bf16; packed weights are multiplied by "
            "what they are packed for: the nearest is bf16");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.scaling = Scaling::blockwise; }),
            "scaling is blockwise and w13 is packed e2m1; packed weights for tokens of bf16 may "
            "have a scale for each row, and tokens have none: the nearest is row-column");
  EXPECT_EQ(
      refused([](MixtureOperands& o) { o.packed13.reset(); }),
      "w13 is e2m1; weights are of x's type, e4m3, packed s4 or e2m1, or with block_scaled of "
      "mxf8 to nvf4: the nearest is bf16");
}

TEST(Mixture, NoTokensAreNoLaunch) {
  SomeMixture some({.tokens = 0});
  const auto plan = must(plan_moe(some.o, model_facts()));
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
            "x is f32; tokens are bf16 or fp16, or e4m3 with scale_x: the nearest is bf16");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.w2.data = nullptr; }),
            "w2 is a null pointer; a tensor of 128 x 128 elements needs memory");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.first_expert = 1; }),
            "first_expert is 1, and there are 8 experts here, from 1 on, of 8; those of a rank lie "
            "among all of them: the nearest legal first_expert is 0");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.d.data = o.w2.data; }),
            "d overlaps w2; the result may lie only over x");
  EXPECT_EQ(refused([](MixtureOperands& o) { o.scaling = Scaling::blockwise; }),
            "scaling is blockwise and w13 is bf16; weights of 16 bits have no scales: the nearest "
            "is none");
}

TEST(Mixture, Int4WeightsThatHaveNoKernelsAreRefused) {
  const auto refused = [](const auto& change, const MixtureChoices& choices = {}, int inner = 128) {
    MixtureAsk ask{.inner = inner, .scaling = Scaling::row_column};
    ask.packed13 = ask.packed2 = PackedWeights{};
    SomeMixture some(ask);
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts(), choices);
    return plan ? std::string() : plan.reason();
  };
  const auto as_it_is = [](MixtureOperands&) {};
  EXPECT_EQ(refused(as_it_is), "");
  struct Refused {
    void (*change)(MixtureOperands& o);
    const char* why;
  };
  const Refused all[] = {
      {[](MixtureOperands& o) { o.scaling = Scaling::none; },
       "scaling is none and w13 is packed s4; tokens of e4m3 that packed weights are multiplied by "
       "have scales of rows or of blocks: the nearest is row-column"},
      {[](MixtureOperands& o) { o.scaling = Scaling::blockwise; },
       "the product with w13: scale_b is given with block scaling and packed weights, which bring "
       "the scales of their groups; leave it out"},
      {[](MixtureOperands& o) { o.packed2.reset(); },
       "packed13 is given and packed2 is not; both weights are packed, or none is"},
      {[](MixtureOperands& o) { o.packed13.reset(); },
       "w13 is s4, and packed13 is not given; int4 weights are multiplied in their packed form, "
       "which `warpwright pack` makes"},
      {[](MixtureOperands& o) { o.w13.dtype = o.w2.dtype = DType::e4m3; },
       "w13 is e4m3, and packed13 is given; packed weights are s4"},
      {[](MixtureOperands& o) { o.w2.dtype = DType::e4m3; },
       "w2 is e4m3; both weights are of one type: the nearest is s4"},
      {[](MixtureOperands& o) { o.packed13->format.group = 0; },
       "w13 is packed, and that form is none: int4 weights share a scale in groups of 32, 64 or "
       "128 along K"},
      {[](MixtureOperands& o) { o.w2.data = nullptr; },
       "w2 is a null pointer; a tensor of 1 x 67584 elements needs memory"},
      // Its 8 x 2 tiles of 4224 bytes, not 8 x 128 x 128 elements.
      {[](MixtureOperands& o) { o.d.data = static_cast<std::byte*>(o.w2.data) + 67584 - 16; },
       "d overlaps w2; the result may lie only over x"},
  };
  for (const auto& each : all) EXPECT_EQ(refused(each.change), each.why);
  // A gated kernel has none of these. Where it is not asked for, a launch gates them
  // (MixtureForms.WeightsWithoutAGatedKernelAreGatedByALaunch).
  const Refused of_a_gated_kernel[] = {
      // Such weights are longer than what is allocated: D lies where they cannot reach.
      {[](MixtureOperands& o) {
         alignas(128) static std::byte elsewhere[1 << 16];
         o.d.data = elsewhere;
         o.packed13->format.zero_points = ZeroPoints::groups;
       },
       "the product with w13: B has zero points and the epilogue is gated, which no kernel has "
       "together: the nearest is weights that are packed without"},
      {[](MixtureOperands& o) { o.packed13->sums = GroupSums::chained; },
       "the product with w13: the sums of packed weights are chained and the epilogue is gated, "
       "which no kernel has together: the nearest is exact"},
      {[](MixtureOperands& o) { o.interleaved = true; },
       "the product with w13: B are packed int4 weights, and gate and up are interleaved; a "
       "packed tile has 64 rows of one of them: pack the rows of all gates, then those of all "
       "ups (rows 0, 2, 4 ..., then 1, 3, 5 ...): the nearest gate_up is halves"},
  };
  for (const auto& each : of_a_gated_kernel) {
    EXPECT_EQ(refused(each.change, {.gates_in_epilogue = true}), each.why);
    EXPECT_EQ(refused(each.change, {.batch_invariant = true}), each.why);
    EXPECT_EQ(refused(each.change), "");
  }
  EXPECT_EQ(refused([](MixtureOperands& o) {
              o.packed2->format = {.group = 32,
                                   .scale = DType::ue8m0,
                                   .code = DType::e2m1,
                                   .tokens = DType::bf16,
                                   .exponents = Exponents::of_rows};
            }),
            "w2 is s4, and packed2 is given; packed weights are e2m1");
  EXPECT_EQ(
      refused(as_it_is, {}, 96),
      "inner is 96; w13 has the rows of gates and of ups in two halves, each of a multiple of "
      "64 rows: the nearest legal inner is 128");
  EXPECT_EQ(refused(as_it_is, {.quantises_in_epilogue = true}),
            "quantises_in_epilogue is asked for; e4m3 weights with scales of blocks of 128 x 128 "
            "have it, and block-scaled ones: the nearest is false");
  EXPECT_EQ(refused(as_it_is, {.quantises_in_epilogue = true, .gates_in_epilogue = false}),
            "quantises_in_epilogue is asked for; e4m3 weights with scales of blocks of 128 x 128 "
            "have it, and block-scaled ones: the nearest is false");
}

TEST(Mixture, ThePlanOfInt4WeightsIsOfTheirForm) {
  MixtureAsk ask{.scaling = Scaling::row_column};
  ask.packed13 = PackedWeights{{.group = 64}};
  ask.packed2 = PackedWeights{{.group = 32, .scale = DType::f16}, GroupSums::chained};
  SomeMixture some(ask);
  const auto plan = must(plan_moe(some.o, *known_facts("h200")));
  expect_contains(plan->explain(),
                  "bf16 by s4, w13 packed in groups of 64 with bf16 scales, exact "
                  "sums, w2 packed in groups of 32 with fp16 scales, chained sums");
  // 8 experts of 4 x 1 tiles, and of 2 x 1.
  EXPECT_EQ(plan->first.problem.packed, ask.packed13);
  const std::vector<PlannedStep> steps = plan->steps();
  const auto bytes = [&](MixtureStep step) {
    return std::ranges::find(steps, step, &PlannedStep::step)->bytes;
  };
  EXPECT_LT(bytes(MixtureStep::first), 8 * 4 * 4352 + 18 * (128 + 2 * 128));
  EXPECT_GT(bytes(MixtureStep::second), 2 * 4608);
  // Strides of packed weights mean nothing; their form does.
  some.o.w13.row_stride = 7;
  EXPECT_FALSE(mismatch(*plan, some.o));
  some.o.packed2->format.group = 64;
  EXPECT_EQ(mismatch(*plan, some.o)->code, RefusalCode::plan_mismatch);
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
  const auto plan = must(plan_moe(some.o, model_facts()));
  EXPECT_EQ(mismatch(*plan, other.o)->code, RefusalCode::plan_mismatch);
  Workspace none;
  EXPECT_EQ(launch(*plan, some.o, none, nullptr)->code, RefusalCode::bad_workspace);
}

TEST(Mixture, AStepAloneIsOfAGpu) {
  SomeMixture some({});
  const auto plan = must(plan_moe(some.o, model_facts()));
  auto workspace = must(make_workspace(*plan));
  const auto refused =
      must(launch(*plan, some.o, *workspace, nullptr, {.only = MixtureStep::sort}));
  EXPECT_EQ(refused->reason,
            "the step sort is asked for by itself; a GPU launches by itself only a step that the "
            "plan takes");
}

TEST(Mixture, TheResultMayLieOverTheTokens) {
  SomeMixture apart({});
  run_and_check(apart);
  SomeMixture over({});
  over.o.d = over.o.x;
  const auto plan = must(plan_moe(over.o, model_facts()));
  const auto report = device::launch_on_model(*plan, over.o);
  ASSERT_TRUE(report && report->clean());
  for (std::int64_t t = 0; t < 9; ++t) EXPECT_EQ(over.bits_of_row(t), apart.bits_of_row(t));
}

TEST(Mixture, ExplainCountsItsLaunches) {
  SomeMixture some({.hidden = 512, .inner = 256});
  const auto plan = must(plan_moe(some.o, *known_facts("h200")));
  const std::string text = plan->explain();
  expect_contains(text, std::to_string(plan->launches()) + " launches");
  expect_contains(text, "sum_slots");
  expect_contains(text, "floors together");
}

}  // namespace
}  // namespace warpwright
