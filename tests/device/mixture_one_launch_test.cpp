// Layers of experts in one launch, on the model: the bits of the launches for each step, on any
// number of SMs, whatever the ids; what is refused; flags and memory.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/campaign.h"
#include "tests/device/mixture.h"
#include "tests/draws.h"
#include "tests/kernel/check_case.h"
#include "tests/must.h"
#include "warpwright/device/moe.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/model.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/reference/formulas.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/simulation/moe.h"

namespace warpwright {
namespace {

using tests::MixtureAsk;
using tests::SomeMixture;

constexpr MixtureChoices at_once{.one_launch = true};

DeviceFacts facts_with(int sms) {
  DeviceFacts facts = model_facts();
  facts.sms = sms;
  return facts;
}

bool layer_is_right(const MixtureOperands& done) {
  return reference::check_mixture(done).failures == 0;
}

// The bytes of d behind a run; none where it was not clean.
std::vector<std::byte> result_of(const MixturePlan& plan, SomeMixture& some,
                                 const device::ModelOptions& how) {
  const std::int64_t bytes = some.o.d.rows * some.o.d.columns * element_bytes(some.o.d.dtype);
  auto* const d = static_cast<std::byte*>(some.o.d.data);
  std::memset(d, 0x7f, static_cast<std::size_t>(bytes));
  const auto report = must(device::launch_on_model(plan, some.o, how));
  if (!report) return {};
  EXPECT_TRUE(report->clean()) << report->text();
  return {d, d + bytes};
}

// Has an open plan's one launch, in any schedule and on any number of SMs, the bits of one run?
void expect_same_bits(const MixturePlan& open, SomeMixture& some, int sms, unsigned seed) {
  SCOPED_TRACE(open.explain());
  const auto got = result_of(open, some, {});
  EXPECT_TRUE(layer_is_right(some.o));
  auto how = tests::scheduled(seed % 3 == 0 ? model::Mode::starve : model::Mode::random, seed);
  how.launches = 2;
  how.sms = 1 + sms % 3;
  EXPECT_EQ(result_of(open, some, how), got);
}

// Rows that are quantised: are results those of the steps, but for the order of sums, and what that
// makes of a code here and there?
void expect_near_steps(SomeMixture& some, int sms, unsigned seed) {
  const auto open = must(plan_moe(some.o, facts_with(sms), at_once));
  expect_same_bits(*open, some, sms, seed);
  const auto sums = [&] {
    std::vector<double> all;
    for (std::int64_t row = 0; row < some.o.d.rows; ++row) {
      for (std::int64_t i = 0; i < some.o.d.columns; ++i) {
        all.push_back(reference::element(some.o.d, 0, row, i));
      }
    }
    return all;
  };
  const std::vector<double> got = sums();
  const MixtureChoices by_steps{.quantises_in_epilogue = false, .one_launch = false};
  result_of(*must(plan_moe(some.o, facts_with(4), by_steps)), some, {});
  const std::vector<double> due = sums();
  double largest = 0;
  double off = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(due[i]));
    off = std::max(off, std::abs(due[i] - got[i]));
  }
  EXPECT_LE(off, largest / 32);
}

// Has the mixture the bits of its steps, and are they right? Where bits are left open, its kernel
// may be one that adds up in another order: it is right, and has the same bits on any number of SMs
// and in any schedule.
void expect_bits_of_steps(SomeMixture& some, int sms, unsigned seed) {
  if (some.o.quantises()) return expect_near_steps(some, sms, seed);
  const MixtureChoices by_steps{.batch_invariant = true, .one_launch = false};
  MixtureChoices with_bits = at_once;
  with_bits.batch_invariant = true;
  const auto steps = plan_moe(some.o, facts_with(4), by_steps);
  const auto one = plan_moe(some.o, facts_with(sms), with_bits);
  const auto open = plan_moe(some.o, facts_with(sms), at_once);
  ASSERT_TRUE(steps) << steps.reason();
  ASSERT_TRUE(one) << one.reason();
  ASSERT_TRUE(open) << open.reason();
  SCOPED_TRACE(one->explain());
  EXPECT_EQ(one->launches(), 1);
  auto how = tests::scheduled(seed % 3 == 0 ? model::Mode::starve : model::Mode::random, seed);
  how.launches = 2;
  const auto want = result_of(*steps, some, {});
  EXPECT_EQ(result_of(*one, some, how), want);
  EXPECT_TRUE(layer_is_right(some.o));
  if (open->way != one->way) expect_same_bits(*open, some, sms, seed);
}

// Packed weights for tokens of bf16. Steps have exact sums of both products then.
PackedWeights int4_form(tests::Draws& draw) {
  PackedWeights w{tests::format_of(draw.seed() % 18)};
  w.format.tokens = DType::bf16;
  w.format.encoding = Int4Encoding::ex;
  w.format.zero_points = ZeroPoints::none;
  w.sums = GroupSums::exact;
  return w;
}
PackedWeights e2m1_form(tests::Draws& draw) {
  PackedWeights w{.format = {.group = 32,
                             .scale = DType::ue8m0,
                             .code = DType::e2m1,
                             .tokens = DType::bf16,
                             .exponents = Exponents::of_rows}};
  if (draw.seed() % 2 == 0) {  // nvf4
    w.format.exponents = Exponents::own;
    w.format.group = 16;
    w.format.scale = DType::ue4m3;
  }
  return w;
}

// Any mixture by seed that one launch serves.
MixtureAsk served_ask(unsigned seed) {
  tests::Draws draw(seed);
  MixtureAsk ask;
  ask.seed = seed;
  ask.top_k = 1 << draw(0, 3);
  ask.tokens = draw(1, draw(0, 7) == 0 ? 256 / ask.top_k : 6);
  ask.experts = draw(1, draw(0, 7) == 0 ? 70 : 6);
  ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 3));
  if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
  ask.hidden = 8 * draw(1, 24);
  ask.inner = 8 * draw(1, 12);
  ask.wide_ids = draw(0, 1) == 1;
  ask.biases = draw(0, 1) == 1;
  ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
  if (draw(0, 2) == 0) ask.shared = draw(0, 1) == 0 ? DType::f32 : DType::bf16;
  if (seed % 3 != 0) {
    ask.hidden = 64 * draw(1, 3);
    ask.inner = 64 * draw(1, 2);
    ask.weight_scales = draw(0, 1) == 1;
    ask.scaling = ask.weight_scales ? Scaling::row_column : Scaling::none;
    ask.packed13 = seed % 3 == 1 ? int4_form(draw) : e2m1_form(draw);
    ask.packed2 = seed % 3 == 1 ? int4_form(draw) : e2m1_form(draw);
  } else if (seed % 2 == 0) {
    ask.scaling = Scaling::blockwise;
    ask.hidden = 128 * draw(1, 3);
    ask.inner = 128 * draw(1, 2);
    ask.tokens = draw(1, std::min(6, 16 / ask.top_k));
  }
  return ask;
}

TEST(OneLaunch, HasTheBitsOfSteps) {
  constexpr int sms[] = {1, 2, 3, 5};
  for (const unsigned seed : sampled_seeds(400, 50)) {
    SCOPED_TRACE(seed);
    SomeMixture some(served_ask(seed));
    some.o.interleaved = seed % 4 == 0 && !some.o.is_packed();
    if (seed % 3 == 0) some.o.activation = Activation::swiglu_oai;
    some.o.routed_scaling_factor = seed % 5 == 0 ? 2.5F : 1;
    expect_bits_of_steps(some, sms[seed % 4], seed);
  }
}

// Few tiles of long rows are cut along K. Without batch_invariant the bits are then others than
// those of steps; under all schedules they are the same.
TEST(OneLaunch, CutsLongRowsIntoParts) {
  tests::Draws draw(11);
  const PackedWeights int4 = int4_form(draw);
  const PackedWeights e2m1 = e2m1_form(draw);
  const MixtureAsk asks[] = {
      {.tokens = 2, .experts = 2, .top_k = 2, .hidden = 72, .inner = 3080, .biases = true},
      {.experts = 2, .top_k = 1, .hidden = 64, .inner = 2048, .packed13 = e2m1, .packed2 = e2m1},
      {.experts = 2, .top_k = 1, .hidden = 64, .inner = 2048, .packed13 = int4, .packed2 = int4}};
  for (const MixtureAsk& ask : asks) {
    SomeMixture some(ask);
    const auto plan = must(plan_moe(some.o, facts_with(5), at_once));
    SCOPED_TRACE(plan->explain());
    EXPECT_GT(plan->way.k_parts, 1);
    const auto got = result_of(*plan, some, {});
    EXPECT_TRUE(layer_is_right(some.o));
    auto how = tests::scheduled(&ask == &asks[0] ? model::Mode::starve : model::Mode::random, 3);
    how.sms = 2;
    how.launches = 2;
    EXPECT_EQ(result_of(*plan, some, how), got);
    MixtureChoices invariant = at_once;
    invariant.batch_invariant = true;
    const auto whole = must(plan_moe(some.o, facts_with(5), invariant));
    EXPECT_EQ(whole->way.k_parts, 1);
    const MixtureChoices by_steps{.batch_invariant = true, .one_launch = false};
    const auto steps = must(plan_moe(some.o, facts_with(4), by_steps));
    EXPECT_EQ(result_of(*whole, some, {}), result_of(*steps, some, {}));
  }
}

TEST(OneLaunch, AddsBiasesSideBySide) {
  for (const DType bias : {DType::f32, DType::bf16}) {
    SomeMixture some(
        {.tokens = 3, .experts = 3, .hidden = 136, .inner = 72, .biases = true, .bias = bias});
    expect_bits_of_steps(some, 3, 5);
  }
  SomeMixture apart({.tokens = 2, .experts = 2, .hidden = 64, .inner = 64, .biases = true});
  apart.o.bias2.row_stride = 2;
  apart.o.bias2.batch_stride *= 2;
  expect_contains(why_not(plan_moe(apart.o, facts_with(2), at_once)), "side by side");
}

TEST(OneLaunch, MakesNoCopies) {
  SomeMixture some({.tokens = 3, .experts = 3, .hidden = 100, .inner = 72});
  expect_contains(why_not(plan_moe(some.o, facts_with(2), at_once)),
                  "do not begin at multiples of 16 bytes");
  SomeMixture e4m3({.tokens = 3, .hidden = 128, .inner = 128, .scaling = Scaling::blockwise});
  e4m3.o.x.row_stride += 4;
  expect_contains(why_not(plan_moe(e4m3.o, facts_with(2), at_once)), "multiples of 16 bytes");
}

// Its rows are those of one expert.
TEST(OneLaunch, ServesAnMlpOf64Tokens) {
  tests::Draws draw(7);
  const MixtureAsk asks[] = {
      {.hidden = 192, .inner = 136, .biases = true},
      {.hidden = 128, .inner = 128, .packed13 = e2m1_form(draw), .packed2 = e2m1_form(draw)}};
  for (MixtureAsk ask : asks) {
    for (const int tokens : {1, 7, 64}) {
      ask.tokens = tokens;
      ask.seed = static_cast<unsigned>(tokens);
      SomeMixture some(tests::unrouted(ask));
      const auto plan = must(plan_moe(some.o, facts_with(5), at_once));
      EXPECT_EQ(plan->launches(), 1);
      const auto got = result_of(*plan, some, {});
      EXPECT_TRUE(layer_is_right(some.o)) << plan->explain();
      std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 0);
      std::vector<float> weights(ids.size(), 1);
      some.o.topk_ids = matrix(ids.data(), DType::s32, tokens, 1);
      some.o.topk_weights = matrix(weights.data(), DType::f32, tokens, 1);
      const auto routed = must(plan_moe(some.o, facts_with(5), at_once));
      EXPECT_EQ(result_of(*routed, some, {}), got);
    }
  }
}

TEST(OneLaunch, TakesAsManySmsAsThereAre) {
  SomeMixture some({.tokens = 2, .experts = 6, .top_k = 4, .hidden = 200, .inner = 72});
  for (const int sms : {1, 2, 3, 8, 132}) {
    SCOPED_TRACE(sms);
    expect_bits_of_steps(some, sms, static_cast<unsigned>(sms));
  }
}

// CTAs that start late find their items taken: others wait for none of them. A plan for eight SMs
// runs on fewer.
TEST(OneLaunch, EndsOnFewerSmsThanItWasPlannedFor) {
  SomeMixture some({.tokens = 4, .experts = 4, .top_k = 2, .hidden = 256, .inner = 128});
  const auto plan = must(plan_moe(some.o, facts_with(8), at_once));
  const auto want = result_of(*plan, some, {});
  for (const int sms : {1, 2, 5}) {
    SCOPED_TRACE(sms);
    for (const unsigned seed : {1U, 2U, 3U}) {
      auto how = tests::scheduled(model::Mode::random, seed);
      how.sms = sms;
      EXPECT_EQ(result_of(*plan, some, how), want);
    }
  }
}

TEST(OneLaunch, IdsMayBeAnything) {
  // The second is for warps by themselves, to which one expert's slots are four tiles.
  const MixtureAsk asks[] = {
      {.tokens = 5, .experts = 4, .top_k = 4, .hidden = 136, .inner = 72},
      {.tokens = 4, .experts = 4, .top_k = 4, .hidden = 192, .inner = 64},
  };
  const auto with = [&](const char* what, const std::optional<DType>& shared,
                        const std::function<void(std::vector<std::int64_t>&)>& change) {
    for (MixtureAsk given : asks) {
      SCOPED_TRACE(what);
      given.shared = shared;
      SomeMixture some(given);
      change(some.ids);
      some.put_ids();
      expect_bits_of_steps(some, 3, 7);
    }
  };
  const auto all = [](std::int64_t id) {
    return [id](std::vector<std::int64_t>& ids) { std::fill(ids.begin(), ids.end(), id); };
  };
  with("none", {}, all(-1));
  with("none, beside a shared output", DType::bf16, all(-1));
  with("one expert", {}, all(2));
  with("the last expert", {}, all(3));
  with("a token has none", DType::f32,
       [](std::vector<std::int64_t>& ids) { std::fill_n(ids.begin() + 4, 4, -1); });
  with("of nobody", {}, all(1000));
}

TEST(OneLaunch, SaysThatAnIdIsOutOfRange) {
  SomeMixture some({.tokens = 5, .experts = 4, .top_k = 2, .hidden = 64, .inner = 64});
  const auto plan = must(plan_moe(some.o, facts_with(3), at_once));
  auto workspace = must(make_workspace(*plan));
  ASSERT_FALSE(launch(*plan, some.o, *workspace, nullptr));
  EXPECT_EQ(*ids_status(*plan, *workspace, nullptr), 0U);
  some.ids[3] = 4;
  some.put_ids();
  ASSERT_FALSE(launch(*plan, some.o, *workspace, nullptr));
  EXPECT_EQ(*ids_status(*plan, *workspace, nullptr), 1U);
  some.ids[3] = -1;
  some.put_ids();
  ASSERT_FALSE(launch(*plan, some.o, *workspace, nullptr));
  EXPECT_EQ(*ids_status(*plan, *workspace, nullptr), 0U);
}

TEST(OneLaunch, ResultMayBeX) {
  SomeMixture some({.tokens = 6, .experts = 3, .top_k = 2, .hidden = 256, .inner = 64});
  std::fill_n(some.ids.begin(), 2, -1);  // a token without a slot
  some.put_ids();
  const auto apart = must(plan_moe(some.o, facts_with(3), at_once));
  const auto want = result_of(*apart, some, {});
  some.o.d = some.o.x;
  const auto plan = must(plan_moe(some.o, facts_with(3), at_once));
  const auto report = device::launch_on_model(*plan, some.o, {});
  ASSERT_TRUE(report && report->clean()) << report->text();
  EXPECT_EQ(std::memcmp(some.o.x.data, want.data(), want.size()), 0);
}

TEST(OneLaunch, IsCleanUnderManySchedules) {
  const MixtureAsk asks[] = {
      {.tokens = 5, .experts = 3, .hidden = 128, .inner = 64},
      {.tokens = 2, .experts = 5, .top_k = 4, .hidden = 192, .inner = 136, .biases = true},
      {.tokens = 24, .experts = 2, .top_k = 1, .hidden = 64, .inner = 64},
      {.tokens = 3, .experts = 3, .hidden = 384, .inner = 128, .scaling = Scaling::blockwise},
      {.tokens = 2, .experts = 2, .top_k = 2, .hidden = 64, .inner = 2048},
  };
  for (const MixtureAsk& ask : asks) {
    SomeMixture some(ask);
    const auto plan = must(plan_moe(some.o, facts_with(3), at_once));
    const auto report = must(check(*device::mixture_subject(*plan, some.o, layer_is_right),
                                   tests::in_schedules(campaign() ? 1000 : 8, all_threads())));
    for (const device::CheckedFinding& f : report->findings) {
      ADD_FAILURE() << model::code(f.finding.check) << " in " << f.first.text() << ": "
                    << f.finding.sentence;
    }
  }
}

// Rows between the products that do not fit a warp's place at once come in several pieces.
TEST(OneLaunch, LongRowsComeInPieces) {
  tests::Draws draw(5);
  const PackedWeights e2m1 = e2m1_form(draw);
  MixtureAsk asks[] = {
      {.tokens = 1, .experts = 8, .top_k = 8, .hidden = 64, .inner = 1472},
      {.tokens = 1, .experts = 8, .top_k = 8, .hidden = 64, .inner = 1856, .packed13 = e2m1},
      {.tokens = 1, .experts = 8, .top_k = 8, .hidden = 128, .inner = 1920}};
  asks[1].packed2 = e2m1;
  asks[2].scaling = Scaling::blockwise;
  for (const MixtureAsk& ask : asks) {
    SomeMixture some(ask);
    const auto plan = must(plan_moe(some.o, facts_with(4), at_once));
    EXPECT_EQ(plan->way.k_parts, 1) << plan->explain();
    result_of(*plan, some, {});
    EXPECT_TRUE(layer_is_right(some.o)) << plan->explain();
  }
}

// What fills the last stage of a K must not meet an infinite weight, or a sum would be NaN where it
// is infinite by steps. Warps by themselves have whole stages.
TEST(OneLaunch, AnInfiniteWeightMakesInfiniteSums) {
  const auto kinds = [](const std::vector<std::byte>& sums) {
    std::string made;
    for (std::size_t i = 0; i < sums.size(); i += 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, &sums[i], 2);
      const int size = bits & 0x7fff;
      made += size < 0x7f80 ? 'x' : size > 0x7f80 ? '?' : bits == size ? '+' : '-';
    }
    return made;
  };
  for (const int inner : {96, 192}) {
    SomeMixture some({.tokens = 4, .experts = 2, .top_k = 2, .hidden = 64, .inner = inner});
    static_cast<std::uint16_t*>(some.o.w2.data)[37 * some.o.w2.row_stride + inner - 1] = 0x7f80;
    const auto plan = must(plan_moe(some.o, facts_with(2), at_once));
    EXPECT_EQ(plan->name() == "moe by layer_bf16_w8", inner == 192);
    const auto steps = must(plan_moe(some.o, facts_with(2), {.one_launch = false}));
    const std::string due = kinds(result_of(*steps, some, {}));
    EXPECT_NE(due.find_first_of("+-"), std::string::npos);
    EXPECT_EQ(kinds(result_of(*plan, some, {})), due);
  }
}

// Those of the consumers' wait for rows, which only a result in x's place needs.
bool orders_reads_of_x(const device::Mutant& m) {
  constexpr device::Argued wait{"flag wait at kernel/hopper/layer.h",
                                "if (counts) await_rows(item);", "dropped", ""};
  constexpr device::Argued first{"flag wait at kernel/hopper/layer.h",
                                 "if (counts) await_rows(item);", "dropped the first time", ""};
  return device::names(wait, m) || device::names(first, m);
}

// Whoever hands a number back in a kernel whose warps multiply by themselves, and that its lanes
// have read it: there is room for two, and all warps have met since they read the one before. Nor
// do lanes meet before rows are brought where a warp brings them once an item.
bool has_room(const device::Mutant& m) {
  constexpr const char* site = "mbarrier.arrive tile_empty at tile/numbers.h";
  constexpr const char* line = "const int number = ring_.template read<Who>(state_);";
  constexpr device::Argued twice{site, line, "executed twice the first time", ""};
  constexpr device::Argued other{site, line, "by the warpgroup beside it", ""};
  constexpr device::Argued lanes{"syncwarp at tile/numbers.h", line, "dropped", ""};
  constexpr device::Argued rows{"syncwarp at kernel/hopper/warp_layer.h",
                                "isa::sync_warp();  // those before have been read", "dropped", ""};
  return device::names(twice, m) || device::names(other, m) || device::names(lanes, m) ||
         device::names(rows, m);
}

// Some of them here, and all waits for flags, all in script/campaign: none survives. In the second
// case the result is x.
TEST(OneLaunch, WhatIsBrokenIsFound) {
  tests::Draws draw(11);
  const PackedWeights e2m1 = e2m1_form(draw);
  MixtureAsk asks[] = {
      {.tokens = 12, .experts = 3, .top_k = 2, .hidden = 896, .inner = 128, .biases = true},
      {.tokens = 6, .experts = 8, .top_k = 2, .hidden = 256, .inner = 64},
      {.tokens = 2, .experts = 2, .top_k = 2, .hidden = 64, .inner = 2048},
      {.tokens = 3, .experts = 4, .top_k = 2, .hidden = 512, .inner = 192},
      {.tokens = 2,
       .experts = 3,
       .top_k = 2,
       .hidden = 256,
       .inner = 128,
       .packed13 = e2m1,
       .packed2 = e2m1},
      {.tokens = 2, .experts = 3, .top_k = 2, .hidden = 256, .inner = 128}};
  asks[5].scaling = Scaling::blockwise;
  for (const MixtureAsk& ask : asks) {
    SomeMixture some(ask);
    const bool in_place = &ask == &asks[1];
    if (in_place) some.o.d = some.o.x;
    // Few CTAs for warps by themselves, so that numbers come round.
    const bool by_warps = &ask - asks > 2;
    MixtureChoices how = at_once;
    how.batch_invariant = &ask == &asks[1];
    const auto plan = must(plan_moe(some.o, facts_with(in_place ? 3 : by_warps ? 2 : 5), how));
    auto options = tests::in_schedules(campaign() ? 16 : 6, all_threads());
    options.wanted = [turn = in_place ? 20 : 0](const model::Mutation& m) mutable {
      return campaign() || turn++ % 60 == 0 || m.at == model::SyncKind::flag_wait;
    };
    const auto right = in_place ? std::function<device::Judged(const MixtureOperands&)>()
                                : [](const MixtureOperands& o) { return layer_is_right(o); };
    const auto report = must(mutate(*device::mixture_subject(*plan, some.o, right), options));
    ASSERT_TRUE(report->unbroken.empty()) << report->unbroken.front().finding.sentence;
    std::printf("%s: %s\n", plan->name().c_str(), report->score().c_str());
    for (const device::Mutant& m : report->mutants) {
      EXPECT_TRUE(m.fate != device::Mutant::Fate::survived || (!in_place && orders_reads_of_x(m)) ||
                  (by_warps && has_room(m)))
          << m.site << ", " << m.mutation.how();
    }
  }
}

}  // namespace
}  // namespace warpwright
