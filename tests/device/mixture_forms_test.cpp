// What engines ask of a layer of experts beside the plain one, on the model: tokens that come as
// codes, router weights on the input, slots by themselves, a shared output, layers without a gate.
// Each in every way that has kernels; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/campaign.h"
#include "tests/device/micro_mixture.h"
#include "tests/device/mixture_run.h"
#include "tests/must.h"
#include "warpwright/device/moe.h"
#include "warpwright/device/quantise.h"
#include "warpwright/model.h"

namespace warpwright {
namespace {

using tests::MicroMixture;
using tests::MixtureAsk;
using tests::run_and_check;
using tests::SomeMixture;

using Change = std::function<void(MixtureOperands&)>;
void nothing(MixtureOperands& /*o*/) {}

struct FormAsk {
  MixtureAsk ask;
  MixtureChoices choices;
};

// It with all scales and ways that there are kernels for.
std::vector<FormAsk> in_all_ways(MixtureAsk ask, const Change& change = nothing) {
  std::vector<FormAsk> all;
  ask.tokens = 5;
  ask.experts = 3;
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const bool int4 : {false, true}) {
      if (scaling == Scaling::none && (int4 || ask.codes)) continue;
      ask.scaling = scaling;
      ask.hidden = 256;  // two blocks
      ask.inner = 64;
      ask.packed13 = ask.packed2 = int4 ? std::optional(PackedWeights{}) : std::nullopt;
      SomeMixture some(ask);
      change(some.o);
      for (const bool by_index : {false, true}) {
        for (const bool sorts : {false, true}) {
          for (const bool gates : {true, false}) {
            const MixtureChoices choices{
                .gates_in_epilogue = gates, .by_index = by_index, .sort_with_gather = sorts};
            ++ask.seed;
            if (plan_moe(some.o, model_facts(), choices)) all.push_back({ask, choices});
          }
        }
      }
    }
  }
  return all;
}

// Runs a sample of them; each is told from the layer with one thing other, `spoil`.
void agree_and_differ(const std::vector<FormAsk>& all, const Change& change, const Change& spoil,
                      std::size_t step) {
  for (const auto& [ask, choices] : sampled(all, step)) {
    SomeMixture some(ask);
    change(some.o);
    SCOPED_TRACE(plan_moe(some.o, model_facts(), choices)->explain());
    run_and_check(some, choices, tests::scheduled(model::Mode::random, ask.seed));
    spoil(some.o);
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  }
}

TEST(MixtureForms, RouterWeightsOnTheInput) {
  const auto all = in_all_ways({.top_k = 1, .weight = DType::bf16, .on_input = true});
  EXPECT_GE(all.size(), 9U);
  agree_and_differ(
      all, nothing, [](MixtureOperands& o) { o.apply_router_weight_on_input = false; }, 4);
}

TEST(MixtureForms, RouterWeightsOnAnInputOfMicroFormats) {
  MicroMixture some({.top_k = 1});
  some.o.apply_router_weight_on_input = true;
  const auto plan = plan_moe(some.o, model_facts(4, 100));
  if (!plan && plan.refusal().code == RefusalCode::no_kernel) GTEST_SKIP() << plan.reason();
  ASSERT_TRUE(plan) << plan.reason();
  const auto report = device::launch_on_model(*plan, some.o);
  ASSERT_TRUE(report && report->clean()) << report->text();
  EXPECT_EQ(reference::check_mixture(some.o).failures, 0);
  some.o.apply_router_weight_on_input = false;
  EXPECT_GT(reference::check_mixture(some.o).failures, 0);
}

// A number of a launch: one plan serves any.
TEST(MixtureForms, ARoutedScalingFactor) {
  SomeMixture some({});
  some.o.routed_scaling_factor = 2.5F;
  run_and_check(some);
  const auto plan = must(plan_moe(some.o, model_facts()));
  some.o.routed_scaling_factor = 1;
  EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  EXPECT_FALSE(mismatch(*plan, some.o));
  SomeMixture input({.top_k = 1, .on_input = true});
  input.o.routed_scaling_factor = -0.5F;
  run_and_check(input);
}

TEST(MixtureForms, SlotsByThemselves) {
  for (const Combine combine : {Combine::weighted, Combine::none}) {
    const bool weighted = combine == Combine::weighted;
    const Change left_out = [&](MixtureOperands& o) {
      if (!weighted) o.topk_weights = {};
    };
    const auto all = in_all_ways({.top_k = 3, .combine = combine}, left_out);
    EXPECT_GE(all.size(), 9U);
    agree_and_differ(
        all, left_out, [&](MixtureOperands& o) { o.w2.data = o.w13.data; }, 8);
    SomeMixture some({.top_k = 3, .result = DType::f32, .weight = DType::bf16, .combine = combine});
    some.ids[7] = -1;
    some.put_ids();
    if (weighted) some.o.routed_scaling_factor = 3;
    run_and_check(some);
    const auto* const d = static_cast<const float*>(some.o.d.data);
    EXPECT_TRUE(std::all_of(d + 7 * 128, d + 8 * 128, [](float x) { return x == 0; }));
    if (!weighted) continue;
    some.o.combine = Combine::none;
    some.o.routed_scaling_factor = 1;
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  }
}

// What a rank adds up itself, in the order of experts, is the sum of the whole layer.
TEST(MixtureForms, SlotsAddedUpAreTheSum) {
  const MixtureAsk ask{.top_k = 2, .result = DType::f32, .seed = 9};
  SomeMixture whole(ask);
  run_and_check(whole);
  MixtureAsk apart = ask;
  apart.combine = Combine::none;
  SomeMixture slots(apart);
  run_and_check(slots);
  // The same draws, but for what lay in d.
  slots.o.x = whole.o.x;
  slots.o.w13 = whole.o.w13;
  slots.o.w2 = whole.o.w2;
  slots.ids = whole.ids;
  slots.put_ids();
  run_and_check(slots);
  for (std::int64_t t = 0; t < ask.tokens; ++t) {
    const auto* const weight = static_cast<const float*>(whole.o.topk_weights.data) + 2 * t;
    const auto id = [&](int j) { return whole.ids[static_cast<std::size_t>(2 * t + j)]; };
    const bool swapped = id(1) < id(0) && id(1) >= 0;
    for (std::int64_t n = 0; n < ask.hidden; ++n) {
      float sum = 0;
      for (const int i : {0, 1}) {
        const int j = swapped ? 1 - i : i;
        if (id(j) < 0) continue;
        sum = std::fma(weight[j], static_cast<const float*>(slots.o.d.data)[(2 * t + j) * 128 + n],
                       sum);
      }
      ASSERT_EQ(sum, static_cast<const float*>(whole.o.d.data)[t * 128 + n]) << t << " " << n;
    }
  }
}

TEST(MixtureForms, ASharedOutputIsAdded) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    SomeMixture some({.hidden = type == DType::f16 ? 120 : 128, .shared = type});
    some.ids[4] = some.ids[5] = -1;
    some.put_ids();
    some.o.routed_scaling_factor = 2;
    run_and_check(some);
    // A token without a slot has what the shared expert made of it.
    for (std::int64_t n = 0; n < some.o.hidden(); ++n) {
      const double want = numeric::to_double(
          DType::bf16,
          numeric::from_double(DType::bf16, reference::element(some.o.shared_output, 0, 2, n)));
      ASSERT_EQ(reference::element(some.o.d, 0, 2, n), want);
    }
    some.o.shared_output = {};
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  }
  // Rows apart, that begin at no multiple of 16 bytes.
  SomeMixture apart({.result = DType::f32, .shared = DType::f32});
  apart.o.shared_output.columns = apart.o.x.columns = apart.o.d.columns = 125;
  apart.o.w13.columns = 125;
  apart.o.w2.rows = 125;
  const auto refused = must(plan_moe(apart.o, model_facts()));
  run_and_check(apart);
}

TEST(MixtureForms, TokensThatAreCodes) {
  const auto all = in_all_ways({.codes = true});
  EXPECT_GE(all.size(), 9U);
  int as_they_are = 0;
  for (const auto& [ask, choices] : sampled(all, 2)) {
    SomeMixture some(ask);
    const auto plan = must(plan_moe(some.o, model_facts(), choices));
    // By number nothing is done to them.
    const bool none = plan->way.by_index;
    as_they_are += none ? 1 : 0;
    EXPECT_EQ(plan->layout[MixturePart::tokens].bytes > 0, !none) << plan->explain();
    EXPECT_EQ(plan->layout[MixturePart::token_scales].bytes > 0, !none);
  }
  if (campaign()) {
    EXPECT_GT(as_they_are, 0);
  }
  agree_and_differ(
      all, nothing, [](MixtureOperands& o) { o.scale_x.row_stride = o.scale_x.column_stride = 0; },
      5);
}

TEST(MixtureForms, OneScaleServesAllTokens) {
  const auto all = in_all_ways({.codes = true, .one_scale = true});
  agree_and_differ(
      all, nothing, [](MixtureOperands& o) { *static_cast<float*>(o.scale_x.data) *= 2; }, 4);
}

// Codes and scales that a quantising step makes have that step's results, bit for bit.
void have_the_bits_of_quantised(int tokens, int hidden, Scaling scaling, bool by_index) {
  SomeMixture some(
      {.tokens = tokens, .experts = 3, .hidden = hidden, .inner = 64, .scaling = scaling});
  const MixtureChoices choices{.quantises_in_epilogue = false, .by_index = by_index};
  run_and_check(some, choices);
  const std::int64_t columns = scaling == Scaling::blockwise ? (hidden + 127) / 128 : 1;
  const auto rows = static_cast<std::size_t>(tokens);
  const auto width = static_cast<std::size_t>(hidden);
  // Scales side by side, as the kernels that quantise for other ranks put them; rows apart.
  std::vector<float> scales(rows * static_cast<std::size_t>(columns));
  std::vector<std::uint8_t> codes(rows * (width + 8) + 16);
  auto* const first = codes.data() + (16 - reinterpret_cast<std::uintptr_t>(codes.data()) % 16);
  MixtureOperands given = some.o;
  given.x = {first, DType::e4m3, tokens, hidden, hidden + 8};
  given.scale_x = {scales.data(), DType::f32, tokens, columns, 1, tokens};
  Quantisation quantisation{.x = some.o.x, .codes = given.x, .scales = given.scale_x};
  quantisation.scaling = scaling;
  must_do(quantise_on_host(quantisation));
  std::vector<std::uint16_t> d(rows * width, 0xffff);
  given.d.data = d.data();
  const auto plan = must(plan_moe(given, model_facts(), choices));
  const auto report = device::launch_on_model(*plan, given);
  ASSERT_TRUE(report && report->clean()) << report->text();
  EXPECT_EQ(std::memcmp(d.data(), some.o.d.data, 2 * d.size()), 0) << plan->explain();
  EXPECT_EQ(reference::check_mixture(given).failures, 0);
}

TEST(MixtureForms, CodesHaveTheBitsOfTokensThatAreQuantised) {
  for (const Scaling scaling : {Scaling::row_column, Scaling::blockwise}) {
    for (const bool by_index : sampled(std::vector{false, true}, 2)) {
      have_the_bits_of_quantised(9, 328, scaling, by_index);
    }
  }
}

// Few rows are shared by warps, and long ones are read again.
TEST(MixtureForms, RowsThatWarpsShareHaveTheBitsToo) {
  for (const bool by_index : {false, true}) {
    have_the_bits_of_quantised(2, 8720, Scaling::row_column, by_index);
  }
}

// Rows of any address and length.
TEST(MixtureForms, CodesMayLieAnywhere) {
  SomeMixture some({.experts = 3, .hidden = 256, .scaling = Scaling::row_column, .codes = true});
  std::vector<std::byte> memory(9 * 301 + 3);
  for (std::int64_t t = 0; t < 9; ++t) {
    std::memcpy(memory.data() + 3 + 301 * t, static_cast<std::byte*>(some.o.x.data) + 256 * t, 256);
  }
  run_and_check(some);
  std::vector<std::uint16_t> d(9 * 256);
  std::memcpy(d.data(), some.o.d.data, 2 * d.size());
  some.o.x.data = memory.data() + 3;
  some.o.x.row_stride = 301;
  run_and_check(some);
  EXPECT_EQ(std::memcmp(d.data(), some.o.d.data, 2 * d.size()), 0);
}

TEST(MixtureForms, WithoutAGate) {
  const std::vector all_of_them = {Activation::relu2, Activation::silu, Activation::gelu};
  for (const Activation activation : sampled(all_of_them, 3)) {
    const Change change = [&](MixtureOperands& o) { o.activation = activation; };
    const auto all = in_all_ways({.biases = true, .gated = false}, change);
    EXPECT_GE(all.size(), 9U);
    agree_and_differ(
        all, change,
        [](MixtureOperands& o) {
          o.activation = o.activation == Activation::relu2 ? Activation::relu : Activation::relu2;
        },
        13);
  }
}

TEST(MixtureForms, WhatCannotBeGatedBehindIsRefused) {
  const auto why = [](const MixtureOperands& o, const MixtureChoices& choices) {
    const auto plan = plan_moe(o, model_facts(), choices);
    return plan ? "" : plan.reason();
  };
  const std::string rule =
      "gates_in_epilogue is false; rows are gated by a launch where there is a gate, and scales "
      "lie in no tiles: the nearest is true";
  const SomeMixture plain({.gated = false});
  EXPECT_EQ(why(plain.o, {.gates_in_epilogue = false}), rule);
  const MicroMixture micro({});
  EXPECT_EQ(why(micro.o, {.gates_in_epilogue = false}), rule);
  const SomeMixture blocks({.hidden = 128, .inner = 128, .scaling = Scaling::blockwise});
  EXPECT_EQ(why(blocks.o, {.quantises_in_epilogue = true, .gates_in_epilogue = false}),
            "gates_in_epilogue is false, and quantises_in_epilogue is asked for; rows that are "
            "quantised there are gated there: the nearest is true");
}

// Gated kernels of packed weights have neither zero points nor chained or folded sums, nor gates
// and ups in turns: a launch gates what a plain one makes.
TEST(MixtureForms, WeightsWithoutAGatedKernelAreGatedByALaunch) {
  const PackedFormat int4{.encoding = Int4Encoding::ex, .group = 32};
  PackedFormat with_zeros = int4;
  with_zeros.zero_points = ZeroPoints::groups;
  PackedFormat mxf4{
      .group = 32, .scale = DType::ue8m0, .code = DType::e2m1, .exponents = Exponents::of_rows};
  const auto wide = [](PackedFormat format) {
    format.tokens = DType::bf16;
    return format;
  };
  const struct {
    PackedWeights w13;
    Scaling scaling;
    bool interleaved;
  } all[] = {
      {{with_zeros}, Scaling::row_column, false},
      {{wide(with_zeros)}, Scaling::none, true},
      {{int4, GroupSums::chained}, Scaling::row_column, false},
      {{int4}, Scaling::row_column, true},
      {{int4}, Scaling::blockwise, true},
      {{wide(int4)}, Scaling::none, true},
      {{mxf4, GroupSums::folded}, Scaling::row_column, false},
      {{mxf4}, Scaling::blockwise, true},
      {{wide(mxf4)}, Scaling::none, true},  // as gpt-oss's checkpoints have it
  };
  MixtureAsk ask{.tokens = 5, .experts = 3, .hidden = 160, .inner = 64, .biases = true};
  for (const auto& [w13, scaling, interleaved] : all) {
    ++ask.seed;
    ask.scaling = scaling;
    ask.packed13 = w13;
    ask.packed2 = PackedWeights{w13.format};
    ask.packed2->format.zero_points = ZeroPoints::none;
    SomeMixture some(ask);
    some.o.interleaved = interleaved;
    // Beside sums of such weights, biases as large.
    auto* const bias = static_cast<float*>(some.o.bias13.data);
    std::for_each(bias, bias + some.o.experts() * some.o.w13.rows, [](float& b) { b *= 32; });
    SCOPED_TRACE("seed " + std::to_string(ask.seed));
    const auto plan = must(plan_moe(some.o, model_facts()));
    EXPECT_TRUE(plan->takes(MixtureStep::gate)) << plan->explain();
    EXPECT_FALSE(plan_moe(some.o, model_facts(), {.gates_in_epilogue = true}));
    run_and_check(some);
    some.o.interleaved = !interleaved;
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
    some.o.interleaved = interleaved;
    some.o.bias13.row_stride = 0;  // every row's bias is the first's
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
    some.o.bias13.row_stride = 1;
    if (w13.format.zero_points == ZeroPoints::none) continue;
    some.o.packed13->format.zero_points = ZeroPoints::none;
    EXPECT_GT(reference::check_mixture(some.o).failures, 0);
  }
}

TEST(MixtureForms, AGeluGate) {
  const Change change = [](MixtureOperands& o) { o.activation = Activation::gelu; };
  agree_and_differ(
      in_all_ways({.biases = true, .largest_x = 6}, change), change,
      [](MixtureOperands& o) { o.activation = Activation::swiglu_oai; }, 8);
  SomeMixture plain({});
  change(plain.o);
  run_and_check(plain);
  plain.o.activation = Activation::silu;
  EXPECT_GT(reference::check_mixture(plain.o).failures, 0);
  SomeMixture limited({.biases = true, .largest_x = 24});
  limited.o.activation = Activation::gelu;
  limited.o.gate = gate_of(Activation::gelu);
  limited.o.gate->limit = 2;
  run_and_check(limited);
  limited.o.gate.reset();
  EXPECT_GT(reference::check_mixture(limited.o).failures, 0);
}

// By the error function it is the launch's that gates apart, whatever else is asked for.
TEST(MixtureForms, AGeluGateByTheErrorFunction) {
  const Change change = [](MixtureOperands& o) { o.activation = Activation::gelu_erf; };
  const auto all = in_all_ways({.biases = true, .largest_x = 6}, change);
  EXPECT_GE(all.size(), 9U);
  agree_and_differ(
      all, change, [](MixtureOperands& o) { o.activation = Activation::swiglu_oai; }, 6);
  for (const bool interleaved : {false, true}) {
    SomeMixture plain({.biases = true, .result = DType::f32});
    change(plain.o);
    plain.o.interleaved = interleaved;
    const auto plan = must(plan_moe(plain.o, model_facts(), {.batch_invariant = true}));
    EXPECT_TRUE(plan->takes(MixtureStep::gate)) << plan->explain();
    run_and_check(plain);
    plain.o.activation = Activation::gelu;  // which is another by up to 0.0005
    EXPECT_LT(reference::check_mixture(plain.o, true).failures, plain.o.d.rows * plain.o.d.columns);
    plain.o.activation = Activation::silu;
    EXPECT_GT(reference::check_mixture(plain.o, true).failures, 0);
  }
  SomeMixture limited({.biases = true, .largest_x = 24});
  change(limited.o);
  limited.o.gate = GateNumbers{1, 0.5F, 2};
  run_and_check(limited);
  limited.o.gate.reset();
  EXPECT_GT(reference::check_mixture(limited.o).failures, 0);
}

TEST(MixtureForms, OnlyALaunchGatesByTheErrorFunction) {
  const auto why = [](MixtureOperands o, const MixtureChoices& choices) {
    o.activation = Activation::gelu_erf;
    const auto plan = plan_moe(o, model_facts(), choices);
    return plan ? "" : plan.reason();
  };
  const SomeMixture plain({});
  EXPECT_EQ(why(plain.o, {}), "");
  EXPECT_EQ(why(plain.o, {.gates_in_epilogue = true}),
            "gates_in_epilogue is asked for, and activation is gelu_erf; such rows are gated by a "
            "launch of their own: the nearest is false");
  const SomeMixture blocks({.scaling = Scaling::blockwise});
  EXPECT_EQ(why(blocks.o, {.quantises_in_epilogue = true}),
            "quantises_in_epilogue is asked for, and activation is gelu_erf; such rows are gated "
            "by a launch of their own: the nearest is false");
  const MicroMixture micro({});
  EXPECT_EQ(why(micro.o, {}),
            "activation is gelu_erf, and scaling is block_scaled; it is the gate of a launch "
            "between the products, and scales in tiles are a gated product's: the nearest is gelu, "
            "in its tanh form");
  const SomeMixture ungated({.gated = false});
  EXPECT_EQ(why(ungated.o, {}),
            "activation is gelu_erf and there is no gate; what experts without one have is none, "
            "relu, gelu, silu, quick_gelu or relu2: the nearest is gelu");
}

// Blocks below 128 x 128: rows are gated and quantised between the products. A rank's share of
// 192 ups begins in the middle of a block of 128, and no extent here is a multiple of a block.
TEST(MixtureForms, SmallBlocks) {
  std::vector<FormAsk> all;
  MixtureAsk ask{.tokens = 9, .experts = 3, .scaling = Scaling::blockwise, .biases = true};
  for (const auto& [block, hidden, inner] :
       {std::tuple{64, 256, 192}, {64, 304, 96}, {32, 256, 192}, {32, 176, 80}, {64, 64, 64}}) {
    for (const bool gated : {true, false}) {
      for (const bool codes : {false, true}) {
        for (const bool sorts : {false, true}) {
          ask.block = block;
          ask.hidden = hidden;
          ask.inner = inner;
          ask.gated = gated;
          ask.codes = codes;
          ask.tokens = codes ? 70 : 9;  // of many and of few
          ++ask.seed;
          all.push_back({ask, {.sort_with_gather = sorts}});
        }
      }
    }
  }
  for (const auto& [each, choices] : sampled(all, 5)) {
    SomeMixture some(each);
    const auto plan = must(plan_moe(some.o, model_facts(), choices));
    SCOPED_TRACE(plan->explain());
    // Where nothing is larger than a block, all blocks are the same.
    const bool small = each.hidden > 64 || each.gated;
    EXPECT_EQ(some.o.scale_block(), small ? each.block : 128);
    EXPECT_EQ(plan->takes(MixtureStep::gate), each.gated);
    run_and_check(some, choices, tests::scheduled(model::Mode::random, each.seed));
    MatrixView& scales = each.seed % 2 == 0 ? some.o.scale_w13 : some.o.scale_w2;
    if (each.hidden <= 64) continue;
    scales.row_stride = scales.column_stride = 0;  // all of an expert's are the first
    EXPECT_GT(reference::check_mixture(some.o, each.gated).failures, 0);
  }
}

TEST(MixtureForms, WhatSmallBlocksHaveNotIsRefused) {
  const auto why = [](const Change& change, const MixtureChoices& choices) {
    SomeMixture some({.hidden = 256, .inner = 192, .scaling = Scaling::blockwise, .block = 64});
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts(), choices);
    return plan ? std::string() : plan.reason();
  };
  EXPECT_EQ(why(nothing, {.batch_invariant = true}), "");
  EXPECT_EQ(why(nothing, {.quantises_in_epilogue = true}),
            "quantises_in_epilogue is asked for; e4m3 weights with scales of blocks of 128 x 128 "
            "have it, and block-scaled ones: the nearest is false");
  EXPECT_EQ(why(nothing, {.gates_in_epilogue = true}),
            "gates_in_epilogue is asked for, and scales are of 64 x 64; such rows are gated by a "
            "launch of their own: the nearest is false");
  EXPECT_EQ(why(nothing, {.by_index = true}),
            "by_index is asked for, and scales are of 64 x 64; tokens with such scales are put "
            "into the order of the experts: the nearest is false");
  EXPECT_EQ(why([](MixtureOperands& o) { o.scale_w2.rows = 2; }, {}),
            "scale_w2 is 2 x 3, and w2 256 x 192; both weights have scales of blocks of 128 x 128, "
            "64 x 64 or 32 x 32: the nearest legal is 4 x 3");
  EXPECT_EQ(why(
                [](MixtureOperands& o) {
                  o.scale_w2.rows = 2;
                  o.scale_w2.columns = 2;
                },
                {}),
            "scale_w2 is 2 x 2, and w2 256 x 192; both weights have scales of blocks of 128 x 128, "
            "64 x 64 or 32 x 32: the nearest legal is 4 x 3");
}

// Ids that are all -1, and no tokens at all, in every form.
TEST(MixtureForms, NothingToDoIsDone) {
  const std::vector<MixtureAsk> asks = {
      {},
      {.scaling = Scaling::row_column},
      {.scaling = Scaling::blockwise, .codes = true},
      {.top_k = 1, .on_input = true},
      {.combine = Combine::weighted},
      {.scaling = Scaling::blockwise, .combine = Combine::none},
      {.gated = false},
      {.shared = DType::bf16},
      {.scaling = Scaling::row_column, .codes = true, .shared = DType::f32},
  };
  for (MixtureAsk ask : sampled(asks, 3)) {
    for (const bool by_index : {false, true}) {
      ask.tokens = 5;
      ask.experts = 2;
      ask.inner = 64;
      SomeMixture some(ask);
      std::ranges::fill(some.ids, -1);
      some.put_ids();
      run_and_check(some, {.by_index = by_index});
      for (std::int64_t t = 0; t < some.o.d.rows; ++t) {
        for (std::int64_t n = 0; n < some.o.hidden(); ++n) {
          const double shared =
              is_given(some.o.shared_output)
                  ? numeric::to_double(
                        DType::bf16,
                        numeric::from_double(DType::bf16,
                                             reference::element(some.o.shared_output, 0, t, n)))
                  : 0;
          ASSERT_EQ(reference::element(some.o.d, 0, t, n), shared);
        }
      }
      ask.tokens = 0;
      SomeMixture none(ask);
      const auto plan = must(plan_moe(none.o, model_facts(), {.by_index = by_index}));
      EXPECT_EQ(plan->launches(), 0);
      Workspace empty;
      EXPECT_FALSE(launch(*plan, none.o, empty, nullptr));
    }
  }
}

TEST(MixtureForms, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [](const MixtureAsk& ask, const Change& change) {
    SomeMixture some(ask);
    change(some.o);
    const auto plan = plan_moe(some.o, model_facts());
    return plan ? std::string() : plan.reason();
  };
  const struct {
    MixtureAsk ask;
    void (*change)(MixtureOperands& o);
    const char* why;
  } all[] = {
      {{},
       [](MixtureOperands& o) { o.apply_router_weight_on_input = true; },
       "apply_router_weight_on_input is asked for, and topk_ids is 9 x 2; a token that is "
       "multiplied by its router weight has one expert: the nearest legal is 9 x 1"},
      {{.top_k = 1, .scaling = Scaling::row_column, .codes = true},
       [](MixtureOperands& o) { o.apply_router_weight_on_input = true; },
       "apply_router_weight_on_input is asked for, and x is e4m3; router weights are multiplied to "
       "tokens before these are quantised: multiply them to scale_x"},
      {{},
       [](MixtureOperands& o) { o.routed_scaling_factor = std::numeric_limits<float>::infinity(); },
       "routed_scaling_factor is inf; it is a finite number: the nearest is 1"},
      {{.combine = Combine::none},
       [](MixtureOperands& o) { o.routed_scaling_factor = 2; },
       "routed_scaling_factor is 2 and combine is none; it is multiplied to router weights, and "
       "then no result is: leave it out, or the nearest combine is weighted"},
      {{.combine = Combine::weighted},
       [](MixtureOperands& o) { o.d.rows = 9; },
       "d is 9 x 128; the result has a row for each slot: the nearest legal is 18 x 128"},
      {{.combine = Combine::weighted},
       [](MixtureOperands& o) { o.topk_weights = {}; },
       "topk_weights is 0 x 0; there is one for each id: the nearest legal is 9 x 2"},
      {{.combine = Combine::none, .shared = DType::f32},
       nothing,
       "shared_output is given and combine is none; it is added to the sum over a token's experts: "
       "leave it out, or the nearest combine is sum"},
      {{.shared = DType::f32},
       [](MixtureOperands& o) { o.shared_output.rows = 8; },
       "shared_output is 8 x 128; it has the shape of x: the nearest legal is 9 x 128"},
      {{.shared = DType::f32},
       [](MixtureOperands& o) { o.shared_output.dtype = DType::e4m3; },
       "shared_output is e4m3; what is added to the sums is f32, bf16 or fp16: the nearest is "
       "bf16"},
      {{.shared = DType::f32},
       [](MixtureOperands& o) { o.shared_output.rows = o.shared_output.columns = 0; },
       "shared_output has an address and is 0 x 0; what is left out has none"},
      {{},
       [](MixtureOperands& o) { o.scale_x.data = o.x.data; },
       "scale_x has an address and is 0 x 0; what is left out has none"},
      {{},
       [](MixtureOperands& o) { o.scale_w13.data = o.x.data; },
       "scale_w13 has an address and is 0 x 0; what is left out has none"},
      {{},
       [](MixtureOperands& o) { o.factor_w2.data = o.x.data; },
       "factor_w2 has an address and is 0 x 0; what is left out has none"},
      {{},
       [](MixtureOperands& o) { o.factor_inner.data = o.x.data; },
       "factor_inner has an address and is 0 x 0; what is left out has none"},
      {{},
       [](MixtureOperands& o) { o.bias2.data = o.x.data; },
       "bias2 has an address and is 0 x 0; what is left out has none"},
      {{.result = DType::f32, .shared = DType::f32},
       [](MixtureOperands& o) { o.shared_output.data = o.d.data; },
       "d overlaps shared_output; the result may lie only over x"},
      {{},
       [](MixtureOperands& o) { o.scale_x = o.topk_weights; },
       "scale_x is given and x is bf16; only tokens that are e4m3 have scales: leave it out"},
      {{.codes = true},
       nothing,
       "x is e4m3, and scaling is none; tokens are e4m3 beside weights for tokens of e4m3 whose "
       "scaling is row-column or blockwise: the nearest x is bf16"},
      {{.scaling = Scaling::blockwise, .codes = true},
       [](MixtureOperands& o) { o.scale_x = {}; },
       "scale_x is left out, and x is e4m3; tokens of e4m3 have scales"},
      {{.scaling = Scaling::blockwise, .codes = true},
       [](MixtureOperands& o) { o.scale_x.columns = 2; },
       "scale_x is 9 x 2 of f32; tokens of e4m3 have one for each 128 of a row: the nearest legal "
       "is 9 x 1 of f32"},
      {{.scaling = Scaling::row_column, .codes = true},
       [](MixtureOperands& o) { o.scale_x.rows = 8; },
       "scale_x is 8 x 1 of f32; tokens of e4m3 have one each, or one together: the nearest legal "
       "is 9 x 1 of f32"},
      {{.scaling = Scaling::row_column, .result = DType::f16, .codes = true},
       nothing,
       "d is fp16; the result of e4m3 tokens is bf16 or f32: the nearest is bf16"},
      {{.gated = false},
       [](MixtureOperands& o) { o.activation = Activation::swiglu_oai; },
       "activation is swiglu_oai and there is no gate; what experts without one have is none, "
       "relu, "
       "gelu, silu, quick_gelu or relu2: the nearest is silu"},
      {{.gated = false},
       [](MixtureOperands& o) { o.interleaved = true; },
       "gate and up are interleaved, and there is no gate; the rows of w13 are ups then: the "
       "nearest gate_up is halves"},
      {{.gated = false},
       [](MixtureOperands& o) { o.gate = GateNumbers{}; },
       "numbers of a gate (gate_limit, gate_alpha, gate_beta) are given, and the epilogue is not "
       "gated: leave them out"},
      {{},
       [](MixtureOperands& o) { o.activation = Activation::relu2; },
       "activation is relu2; the gate of a mixture is gelu, silu, swiglu_oai or gelu_erf: the "
       "nearest is silu"},
      {{},
       [](MixtureOperands& o) {
         o.activation = Activation::gelu;
         o.gate = GateNumbers{};
       },
       "gate_alpha is 1; a gelu has no other than its own: leave it out for the activation's own"},
  };
  for (const auto& each : all) EXPECT_EQ(refused(each.ask, each.change), each.why);
}

}  // namespace
}  // namespace warpwright
