// Mixtures whose second product adds up the slots of its tokens: the bits of the launch that does
// it otherwise, whatever is left out; no statement of it can be left out; who may ask for it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/campaign.h"
#include "tests/device/mixture.h"
#include "warpwright/device/moe.h"
#include "warpwright/model.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/simulation/check.h"
#include "warpwright/simulation/moe.h"

namespace warpwright {
namespace {

using tests::MixtureAsk;
using tests::SomeMixture;

// The kernels of this build that add up slots.
std::vector<const KernelFacts*> summing_kernels() {
  std::vector<const KernelFacts*> found;
  for (const KernelFacts* f : all_kernels()) {
    if (f->built && f->sums_slots) found.push_back(f);
  }
  return found;
}

bool is_of(const KernelFacts& f, Scaling scaling) {
  const auto has = [&](const char* word) {
    return std::find(f.features.begin(), f.features.end(), word) != f.features.end();
  };
  const DType type = scaling == Scaling::none ? DType::bf16 : DType::e4m3;
  return f.a.front() == type && f.b.front() == type &&
         has("block scales") == (scaling == Scaling::blockwise);
}

std::vector<std::byte> content(const MatrixView& d) {
  const auto* const at = static_cast<const std::byte*>(d.data);
  return {at, at + d.rows * d.row_stride * element_bytes(d.dtype)};
}

void poison(const MatrixView& d) {
  std::memset(d.data, 0xff,
              static_cast<std::size_t>(d.rows * d.row_stride) *
                  static_cast<std::size_t>(element_bytes(d.dtype)));
}

// Runs it with a kernel, or by the launch of its own where none is named, and gives d.
std::vector<std::byte> result_of(SomeMixture& some, const KernelFacts* kernel,
                                 const device::ModelOptions& how = {}) {
  MixtureChoices choices{.sums_in_product = kernel != nullptr};
  if (kernel != nullptr) choices.second_kernel = kernel->name;
  const auto plan = plan_moe(some.o, model_facts(3), choices);
  EXPECT_TRUE(plan) << plan.reason();
  if (!plan) return {};
  EXPECT_EQ(plan->takes(MixtureStep::sum), kernel == nullptr);
  poison(some.o.d);
  const auto report = device::launch_on_model(*plan, some.o, how);
  EXPECT_TRUE(report) << report.reason();
  if (report) {
    EXPECT_TRUE(report->clean()) << report->text();
  }
  return content(some.o.d);
}

TEST(SlotSums, EveryKernelHasTheBitsOfTheLaunchBehindIt) {
  int planned = 0;
  for (const Scaling scaling : {Scaling::none, Scaling::row_column, Scaling::blockwise}) {
    for (const KernelFacts* kernel : summing_kernels()) {
      if (!is_of(*kernel, scaling)) continue;
      SCOPED_TRACE(kernel->name);
      SomeMixture some({.tokens = 41,
                        .experts = 5,
                        .top_k = 3,
                        .hidden = 136,
                        .inner = 128,
                        .scaling = scaling});
      const auto pass = result_of(some, nullptr);
      EXPECT_EQ(result_of(some, kernel), pass);
      EXPECT_EQ(reference::check_mixture(some.o).failures, 0);
      ++planned;
    }
  }
  EXPECT_GE(planned, 1);
}

// A mixture whose second product a kernel of packed weights can be.
MixtureAsk packed_ask(const KernelFacts& kernel, MixtureAsk ask) {
  const DType tokens = kernel.a.front();
  PackedWeights w{.sums = GroupSums::exact};
  w.format.tokens = tokens;
  if (kernel.b.front() == DType::e2m1) {
    w.format = {.group = 32,
                .scale = DType::ue8m0,
                .code = DType::e2m1,
                .tokens = tokens,
                .exponents = Exponents::of_rows};
  }
  ask.packed13 = ask.packed2 = w;
  ask.scaling = tokens == DType::e4m3 ? Scaling::row_column : Scaling::none;
  if (tokens == DType::f16) ask.x = ask.result = tokens;
  return ask;
}
bool is_packed(const KernelFacts& f) {
  return f.b.front() == DType::s4 || f.b.front() == DType::e2m1;
}

TEST(SlotSums, EveryKernelOfPackedWeightsHasTheBitsOfTheLaunchBehindIt) {
  int planned = 0;
  for (const KernelFacts* kernel : summing_kernels()) {
    if (!is_packed(*kernel)) continue;
    SCOPED_TRACE(kernel->name);
    SomeMixture some(packed_ask(*kernel, {.tokens = 23, .experts = 5, .top_k = 3, .hidden = 160}));
    const auto pass = result_of(some, nullptr);
    EXPECT_EQ(result_of(some, kernel), pass);
    EXPECT_EQ(reference::check_mixture(some.o).failures, 0);
    ++planned;
  }
  EXPECT_GE(planned, 1);
}

// Ids left out, of other ranks and twice for a token; tokens without a slot; extents of all kinds.
TEST(SlotSums, RandomMixturesHaveTheBitsOfTheLaunchBehindThem) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto draw = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    MixtureAsk ask;
    ask.seed = seed;
    ask.tokens = draw(1, 40);
    ask.experts = draw(1, 6);
    ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 5));
    if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
    ask.top_k = draw(0, 3) == 0 ? draw(17, 32) : draw(1, 9);
    ask.hidden = 8 * draw(1, 40);
    ask.inner = 8 * draw(1, 12);
    ask.biases = draw(0, 1) == 1;
    ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
    ask.weight = draw(0, 1) == 0 ? DType::f32 : DType::bf16;
    SomeMixture some(ask);
    if (draw(0, 2) == 0) {
      for (int j = 0; j < ask.top_k; ++j) some.ids[static_cast<std::size_t>(j)] = -1;
      some.put_ids();
    }
    const auto pass = result_of(some, nullptr);
    device::ModelOptions how;
    how.mode = std::array{model::Mode::eager, model::Mode::latest, model::Mode::random,
                          model::Mode::starve}[seed % 4];
    how.seed = seed;
    how.launches = draw(1, 2);
    for (const KernelFacts* kernel : summing_kernels()) {
      if (!is_of(*kernel, Scaling::none)) continue;
      EXPECT_EQ(result_of(some, kernel, how), pass) << kernel->name;
    }
  }
}

TEST(SlotSums, WithoutAnySlotAllTokensBecomeZero) {
  SomeMixture some({.tokens = 7, .hidden = 72});
  std::fill(some.ids.begin(), some.ids.end(), -1);
  some.put_ids();
  for (const KernelFacts* kernel : summing_kernels()) {
    if (!is_of(*kernel, Scaling::none)) continue;
    const auto d = result_of(some, kernel);
    EXPECT_TRUE(std::all_of(d.begin(), d.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

// Whoever counts last adds up, whatever comes first; a workspace of any content serves.
TEST(SlotSums, IsCleanInManySchedules) {
  for (const KernelFacts* kernel : summing_kernels()) {
    if (!is_of(*kernel, Scaling::none)) continue;
    SCOPED_TRACE(kernel->name);
    SomeMixture some({.tokens = 6, .experts = 3, .hidden = 40, .inner = 64});
    const MixtureChoices choices{.second_kernel = kernel->name, .sums_in_product = true};
    const auto plan = plan_moe(some.o, model_facts(2), choices);
    ASSERT_TRUE(plan) << plan.reason();
    const auto subject = device::mixture_subject(*plan, some.o, [](const MixtureOperands& done) {
      return reference::check_mixture(done).failures == 0;
    });
    device::CheckOptions options;
    options.schedules = 24;
    const auto report = device::check(*subject, options);
    ASSERT_TRUE(report) << report.reason();
    EXPECT_TRUE(report->clean()) << report->findings.front().finding.sentence;
  }
}

void expect_no_mutant_survives(const KernelFacts& kernel, const MixtureAsk& ask) {
  SomeMixture some(ask);
  const MixtureChoices choices{.second_kernel = kernel.name, .sums_in_product = true};
  const auto plan = plan_moe(some.o, model_facts(2), choices);
  ASSERT_TRUE(plan) << plan.reason();
  const auto subject = device::mixture_subject(*plan, some.o, [](const MixtureOperands& done) {
    return reference::check_mixture(done).failures == 0;
  });
  device::CheckOptions options;
  options.wanted = [](const model::Mutation& m) {
    return m.file.ends_with("slot_sums.h") || m.file.ends_with("slot_adder.h");
  };
  const auto mutated = device::mutate(*subject, options);
  ASSERT_TRUE(mutated) << mutated.reason();
  ASSERT_TRUE(mutated->unbroken.empty());
  std::printf("%s: %s\n", kernel.name.c_str(), mutated->score().c_str());
  bool counts = false;
  for (const device::Mutant& m : mutated->mutants) {
    EXPECT_EQ(m.fate, device::Mutant::Fate::killed) << m.site << ": " << m.mutation.how();
    counts = counts || m.mutation.at == model::SyncKind::flag_count;
  }
  EXPECT_TRUE(counts);
  EXPECT_GE(mutated->mutants.size(), 6U);  // two meetings of a warp, a count in four ways
}

// Each statement that orders rows, counts and sums, in every way that it can be wrong; more than
// one CTA and several rows of a token, or nothing depends on some.
TEST(SlotSums, NoMutantOfTheSumsSurvives) {
  const MixtureAsk ask{.tokens = 6, .experts = 3, .top_k = 3, .hidden = 40, .inner = 64};
  bool plain = false;
  for (const KernelFacts* kernel : summing_kernels()) {
    SCOPED_TRACE(kernel->name);
    if (is_packed(*kernel)) {
      const bool is_sample = kernel->b.front() == DType::s4 && kernel->a.front() == DType::bf16;
      if (!campaign() && !is_sample) continue;
      expect_no_mutant_survives(
          *kernel,
          packed_ask(*kernel, {.tokens = 6, .experts = 3, .top_k = 3, .hidden = 64, .inner = 64}));
    } else if (is_of(*kernel, Scaling::none) && !plain) {
      plain = true;
      expect_no_mutant_survives(*kernel, ask);
    }
  }
}

TEST(SlotSums, FewTokensTakeThreeLaunchesAndRowsThatKeepTheirBitsThePass) {
  if (summing_kernels().empty()) GTEST_SKIP() << "this build has no such kernel";
  const auto plan_for = [](int tokens, const MixtureChoices& choices) {
    SomeMixture some({.tokens = tokens, .experts = 4, .hidden = 256, .inner = 64});
    const auto plan = plan_moe(some.o, model_facts(), choices);
    EXPECT_TRUE(plan) << plan.reason();
    EXPECT_FALSE(mismatch(*plan, some.o));
    MixtureChoices named = choices;
    named.second_kernel = plan->second.kernel;
    EXPECT_FALSE(mismatch(*plan, named)) << mismatch(*plan, named)->reason;
    named.sums_in_product = !plan->sums_in_product;
    EXPECT_TRUE(mismatch(*plan, named));
    return *plan;
  };
  for (const int tokens : {1, 8, 64}) {
    const MixturePlan plan = plan_for(tokens, {});
    EXPECT_TRUE(plan.sums_in_product) << plan.explain();
    EXPECT_NE(plan.explain().find("where it stores the last of a token's rows"), std::string::npos);
    EXPECT_EQ(plan.layout.counts.bytes, 4 * tokens * 16);
    EXPECT_NE(plan.second.explain().find("adds them all up"), std::string::npos);
  }
  SomeMixture on_a_gpu({.tokens = 8, .experts = 4, .hidden = 256, .inner = 64});
  const auto there = plan_moe(on_a_gpu.o, *known_facts("h200"));  // a launch is faster there
  ASSERT_TRUE(there) << there.reason();
  EXPECT_FALSE(there->sums_in_product);
  EXPECT_FALSE(plan_for(65, {}).sums_in_product);
  EXPECT_TRUE(plan_for(65, {.sums_in_product = true}).sums_in_product);
  EXPECT_FALSE(plan_for(8, {.sums_in_product = false}).sums_in_product);
  const MixturePlan invariant = plan_for(8, {.batch_invariant = true});
  EXPECT_FALSE(invariant.sums_in_product);
  EXPECT_EQ(invariant.explain().find("the second product adds"), std::string::npos);
  EXPECT_EQ(invariant.layout.counts.bytes, 0);
}

TEST(SlotSums, WhatCannotBeAskedForIsRefused) {
  SomeMixture some({});
  const auto both =
      plan_moe(some.o, model_facts(), {.batch_invariant = true, .sums_in_product = true});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.reason(),
            "sums_in_product is asked for, and batch_invariant; rows that keep their bits are "
            "added up by a launch of its own: the nearest is false");
  const auto other = plan_moe(some.o, *known_facts("b200"), {.sums_in_product = true});
  EXPECT_FALSE(other);
  if (summing_kernels().empty()) return;
  const KernelFacts& kernel = *summing_kernels().front();
  const GemmProblem alone = packed_grouped_problem(16, 128, 128, 2, kernel.a.front(), DType::bf16);
  const auto named = plan(alone, model_facts(), {.kernel = kernel.name});
  ASSERT_FALSE(named);
  EXPECT_EQ(named.reason(), "the kernel " + kernel.name +
                                " adds up the slots of tokens; it is the last product of a "
                                "mixture of experts");
}

}  // namespace
}  // namespace warpwright
