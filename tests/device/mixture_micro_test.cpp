// Mixtures of mxf8 to nvf4 on a B200 of the model: the whole call against float64, and each step
// against what the host makes of the step before; empty experts, other ranks', NaN, zeros; what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/campaign.h"
#include "tests/device/micro_mixture.h"
#include "tests/must.h"
#include "warpwright/device/launch.h"
#include "warpwright/model.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/reference/operand.h"
#include "warpwright/reference/product.h"
#include "warpwright/reference/tolerance.h"
#include "warpwright/simulation/moe.h"

namespace warpwright {
namespace {

using testing::HasSubstr;
using tests::MicroAsk;
using tests::MicroMixture;

DeviceFacts b200() {
  return model_facts(4, 100);
}

bool is_not_built(const Refusal& r) {
  return r.code == RefusalCode::no_kernel;
}

// Runs it and has every element in its bound; false where the build has no kernel.
bool micro_agrees(MicroMixture& some, const MixtureChoices& choices = {},
                  const device::ModelOptions& how = {}) {
  const auto plan = plan_moe(some.o, b200(), choices);
  if (!plan && is_not_built(plan.refusal())) return false;
  EXPECT_TRUE(plan) << plan.reason();
  if (!plan) return false;
  SCOPED_TRACE(plan->explain());
  some.poison();
  const auto report = must(device::launch_on_model(*plan, some.o, how));
  if (!report) return false;
  EXPECT_TRUE(report->clean()) << report->text();
  const auto verdict = reference::check_mixture(some.o, plan->way.gates_behind);
  EXPECT_EQ(verdict.failures, 0) << verdict.worst_token << " " << verdict.worst_column << " got "
                                 << verdict.worst_got << " want " << verdict.worst_want << " +- "
                                 << verdict.worst_allowed;
  return true;
}

TEST(MicroMixture, AgreesWithFloat64BySeed) {
  const int ran = count_ran(2000, 251, [](unsigned seed) {
    const MicroAsk ask = tests::micro_ask(seed);
    SCOPED_TRACE(ask.text());
    MicroMixture some(ask);
    device::ModelOptions how;
    constexpr model::Mode modes[] = {model::Mode::eager, model::Mode::latest, model::Mode::random,
                                     model::Mode::starve};
    how.mode = modes[seed / 3 % 4];
    how.seed = seed;
    MixtureChoices choices;
    if (seed % 3 == 1) choices.quantises_in_epilogue = false;
    if (seed % 4 == 1) choices.by_index = false;
    return micro_agrees(some, choices, how);
  });
  EXPECT_GT(ran, 0);
  std::printf("%d ran\n", ran);
}

// --- each step against the host ------------------------------------------------------------------

// A launch with its workspace, which had any content, and what lies in it.
class Steps {
 public:
  Steps(MicroMixture& some, const MixturePlan& plan)
      : plan_(plan), memory_(static_cast<std::size_t>(plan.workspace_bytes()) + 256) {
    std::fill(memory_.begin(), memory_.end(), std::byte{0xff});  // NaN, of scales too
    some.poison();
    const auto report = must(device::launch_on_model(plan, some.o, {}, base()));
    if (report) {
      EXPECT_TRUE(report->clean()) << report->text();
    }
  }
  std::byte* base() {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (256 - at % 256) % 256;
  }
  MixtureParts<MatrixView> parts() {
    MixtureParts<MatrixView> all;
    for (int i = 0; i < mixture_parts; ++i) {
      const auto part = static_cast<MixturePart>(i);
      if (plan_.layout[part].bytes == 0) continue;
      all[part] = {base() + plan_.layout[part].at, plan_.parts[part]};
    }
    return all;
  }

 private:
  const MixturePlan& plan_;
  std::vector<std::byte> memory_;
};

// Codes and scales on the host: of rows of `x` in the order of `rows` of it, each in its group.
void expect_codes(const MatrixView& x, const std::vector<std::int64_t>& rows,
                  const std::int32_t* offsets, std::int64_t experts, const MatrixView& factor,
                  const MatrixView& codes, const std::vector<std::int64_t>& code_rows,
                  const MatrixView& tiles) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t k = x.columns;
  std::vector<std::uint16_t> in(static_cast<std::size_t>(count * k));
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(
        in.data() + r * k,
        static_cast<std::uint16_t*>(x.data) + rows[static_cast<std::size_t>(r)] * x.row_stride,
        static_cast<std::size_t>(2 * k));
  }
  const std::int64_t row_bytes = k * numeric::bits(codes.dtype) / 8;
  std::vector<std::byte> want(static_cast<std::size_t>(count * row_bytes));
  std::vector<std::byte> scales(static_cast<std::size_t>(tiles.rows * tiles.columns));
  Quantisation q;
  q.scaling = Scaling::block_scaled;
  q.x = matrix(in.data(), x.dtype, count, k);
  q.codes = matrix(want.data(), codes.dtype, count, k);
  const ScaleGroups groups{offsets, OffsetType::int32, experts};
  const std::int64_t needed = block_scales::grouped_rows(count, experts);
  ASSERT_LE(needed, tiles.rows);
  q.scales = matrix(scales.data(), tiles.dtype, needed, tiles.columns);
  q.groups = groups;
  if (factor.data != nullptr) {
    q.tensor_scale = factor;
    q.given = true;
  }
  must_do(quantise_on_host(q));
  std::int64_t tile = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    for (std::int64_t r = offsets[e]; r < offsets[e + 1]; ++r) {
      const std::int64_t at = code_rows[static_cast<std::size_t>(r)];
      const auto* const got = static_cast<const std::byte*>(codes.data) +
                              at * codes.row_stride * numeric::bits(codes.dtype) / 8;
      ASSERT_TRUE(std::equal(got, got + row_bytes, want.data() + r * row_bytes)) << "row " << r;
      for (std::int64_t block = 0; block < tiles.columns; ++block) {
        const auto place = block_scales::place(tile + r - offsets[e], block, tiles.columns);
        ASSERT_EQ(static_cast<const std::uint8_t*>(tiles.data)[place],
                  static_cast<std::uint8_t>(scales[static_cast<std::size_t>(place)]))
            << "row " << r << ", block " << block;
      }
    }
    tile += block_scales::padded_rows(offsets[e + 1] - offsets[e]);
  }
}

// Every row of a product against float64 of the very codes that it read: no bound for quantising.
void expect_product(const GemmOperands& operands, std::int64_t rows) {
  const reference::Product product(operands);
  const double share = reference::lost_share(operands, 16);
  for (std::int64_t g = 0; g < operands.b.batch; ++g) {
    const auto [begin, end] = reference::rows_of_group(operands, g);
    for (std::int64_t i = begin; i < std::min(end, rows); ++i) {
      for (std::int64_t j = 0; j < operands.d.columns; j += 3) {
        const auto want = product.bounded(
            0, g, i, j, [&](const reference::Sum& sum) { return share * sum.size; });
        const double got = reference::element(operands.d, 0, i, j);
        const double allowed =
            want.bound + std::abs(want.value) * 0x1p-7 + 1e-5 * std::abs(want.value) + 1e-6;
        ASSERT_LE(std::abs(got - want.value), allowed) << "row " << i << ", column " << j;
      }
    }
  }
}

void expect_steps(const MicroAsk& ask, const MixtureChoices& choices, int& ran) {
  SCOPED_TRACE(ask.text());
  MicroMixture some(ask);
  const auto plan = plan_moe(some.o, b200(), choices);
  if (!plan && is_not_built(plan.refusal())) return;
  ASSERT_TRUE(plan) << plan.reason();
  SCOPED_TRACE(plan->explain());
  ++ran;
  Steps done(some, *plan);
  const MixtureParts<MatrixView> parts = done.parts();
  using Part = MixturePart;
  const auto* const offsets = static_cast<const std::int32_t*>(parts[Part::offsets].data);
  const auto* const slots = static_cast<const std::int32_t*>(parts[Part::slots].data);
  const std::int64_t experts = some.o.experts();
  const std::int32_t rows = offsets[experts];
  std::vector<std::int64_t> tokens, places, same;
  for (std::int32_t r = 0; r < rows; ++r) {
    tokens.push_back(slots[r] / ask.top_k);
    places.push_back(plan->way.by_index ? tokens.back() : r);
    same.push_back(r);
  }
  expect_codes(some.o.x, tokens, offsets, experts, some.o.factor_x, parts[Part::tokens], places,
               parts[Part::token_scales]);
  if (!plan->way.fused) {
    expect_product(first_product(some.o, parts, plan->way), rows);
    expect_codes(parts[Part::inner], same, offsets, experts, some.o.factor_inner,
                 parts[Part::codes], same, parts[Part::code_scales]);
  }
  expect_product(second_product(some.o, parts, plan->way), rows);
}

TEST(MicroMixture, EveryStepHasTheBitsOfTheHost) {
  const int all_ran = count_ran(600, 101, [](unsigned seed) {
    MicroAsk ask = tests::micro_ask(seed);
    if (ask.tokens > 40) ask.tokens = 40;
    MixtureChoices choices;
    choices.quantises_in_epilogue = seed % 4 == 3;
    if (seed % 4 == 3 && std::string(ask.formats).substr(0, 4) == "mxf4") return false;
    if (seed % 3 == 1) choices.by_index = false;
    int ran = 0;
    expect_steps(ask, choices, ran);
    return ran > 0;
  });
  EXPECT_GT(all_ran, 0);
}

// --- what is hard --------------------------------------------------------------------------------

TEST(MicroMixture, NanAndInfinityTouchTheirTokenAlone) {
  for (const char* formats : {"mxf8", "nvf4", "mxf4"}) {
    for (const bool fused : {true, false}) {
      SCOPED_TRACE(std::string(formats) + (fused ? ", fused" : ""));
      const MicroAsk ask{.formats = formats, .tokens = 6, .hidden = 256, .seed = 5};
      MicroMixture some(ask);
      for (std::int64_t k = 0; k < ask.hidden; ++k) some.put_x(1, k, 0);  // a row of zeros
      some.put_x(2, 17, std::numeric_limits<double>::quiet_NaN());
      some.put_x(3, 40, std::numeric_limits<double>::infinity());
      for (int j = 0; j < ask.top_k; ++j)
        some.ids[static_cast<std::size_t>(4 * ask.top_k + j)] = -1;
      some.ids[static_cast<std::size_t>(2 * ask.top_k)] = 0;  // it has a slot
      some.ids[0] = 99;                                       // no expert
      if (!micro_agrees(some, {.quantises_in_epilogue = fused})) continue;
      const auto at = [&](std::int64_t t, std::int64_t k) {
        return reference::element(some.o.d, 0, t, k);
      };
      for (std::int64_t k = 0; k < ask.hidden; ++k) {
        EXPECT_TRUE(std::isnan(at(2, k))) << k;
        EXPECT_EQ(at(1, k), 0) << k;
        EXPECT_EQ(at(4, k), 0) << k;
        EXPECT_TRUE(std::isnan(at(3, k))) << k;
        EXPECT_FALSE(std::isnan(at(0, k)) || std::isnan(at(5, k))) << k;
      }
    }
  }
}

// Experts that nobody takes, and one that all do: more than a tile of tokens.
TEST(MicroMixture, OneExpertHasAllTokens) {
  for (const char* formats : sampled<const char*>({"mxf8", "nvf4", "mxf4"}, 2)) {
    MicroMixture some({.formats = formats, .tokens = 150, .experts = 4, .top_k = 1, .seed = 8});
    std::fill(some.ids.begin(), some.ids.end(), 2);
    micro_agrees(some);
    std::fill(some.ids.begin(), some.ids.end(), -1);  // and none at all
    micro_agrees(some);
  }
}

// The layer of gpt-oss: 2880 is 22 blocks of 128 and one of 64, in turns or in halves.
TEST(MicroMixture, TheLastBlockOfGatesMayBeShort) {
  for (const bool interleaved : {false, true}) {
    for (const bool fused : {true, false}) {
      for (const int inner : sampled<int>({64, 192}, 2)) {
        MicroMixture some({.formats = "mxf8,mxf4",
                           .tokens = 5,
                           .experts = 3,
                           .inner = inner * 2,
                           .interleaved = interleaved,
                           .biases = true,
                           .activation = Activation::swiglu_oai,
                           .seed = 12});
        micro_agrees(some, {.quantises_in_epilogue = fused});
        MicroMixture other({.formats = "nvf4",
                            .tokens = 5,
                            .experts = 3,
                            .inner = inner,
                            .interleaved = interleaved,
                            .biases = true,
                            .seed = 13});
        micro_agrees(other, {.quantises_in_epilogue = fused});
      }
    }
  }
}

TEST(MicroMixture, NoTokensAreNoLaunch) {
  MicroMixture some({.tokens = 0});
  const auto plan = plan_moe(some.o, b200());
  if (!plan && is_not_built(plan.refusal())) GTEST_SKIP() << plan.reason();
  ASSERT_TRUE(plan) << plan.reason();
  EXPECT_EQ(plan->launches(), 0);
}

// --- what is refused -----------------------------------------------------------------------------

std::string refusal_of(const MixtureOperands& o, const MixtureChoices& choices = {}) {
  const auto plan = plan_moe(o, b200(), choices);
  return plan ? "" : plan.reason();
}

TEST(MicroMixture, WhatDoesNotFitIsRefused) {
  const MicroMixture some({.formats = "nvf4"});
  MixtureOperands o = some.o;
  o.scale_w2.dtype = DType::ue8m0;
  EXPECT_EQ(refusal_of(o),
            "scale_w2 is ue8m0, and w13 e2m1; scales of both weights are ue8m0, or of e2m1 ue4m3: "
            "the nearest is ue4m3");
  o = some.o;
  o.scale_w13.rows -= 128;
  EXPECT_THAT(refusal_of(o), HasSubstr("the product with w13: scale_b is 128 x 16"));
  o = some.o;
  o.tokens_as = DType::e4m3;
  EXPECT_EQ(refusal_of(o),
            "tokens would become e4m3 with scales of ue4m3; they become mxf8, mxf4, or beside nvf4 "
            "weights nvf4: the nearest tokens_as is e2m1");
  o = some.o;
  float factor = 1;
  o.factor_w13 = matrix(&factor, DType::f32, 3, 1);
  EXPECT_EQ(refusal_of(o),
            "factor_w13 is 3 x 1 of f32; there is one, or one for each expert: the nearest legal "
            "is 5 x 1 of f32");
  o = some.o;
  o.scaling = Scaling::blockwise;
  EXPECT_THAT(refusal_of(o), HasSubstr("w13 is e2m1; weights are of x's type"));
  o = some.o;
  o.scale_w13.data = nullptr;
  EXPECT_EQ(refusal_of(o),
            "scale_w13 is left out, and scaling is block_scaled; e2m1 weights have "
            "scales");
  const MicroMixture mx({.formats = "mxf8"});
  o = mx.o;
  o.factor_x = matrix(&factor, DType::f32, 1, 1);
  EXPECT_EQ(refusal_of(o),
            "factor_x is given; tokens of nvf4 have a scale of the tensor: leave it out");
  o = mx.o;
  o.tokens_as = DType::e5m2;
  EXPECT_THAT(refusal_of(o), HasSubstr("tokens would become e5m2"));
}

}  // namespace
}  // namespace warpwright
