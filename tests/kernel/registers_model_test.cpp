// The register kernels on the model: every one that the build has, every alignment of rows, split
// tiles, schedules, mutants, and what other devices are told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/kernel/problem.h"
#include "tests/must.h"
#include "tests/processor_time.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"

namespace warpwright::tests {
namespace {

using kernel::RegisterConfig;

std::vector<Instance> register_instances(bool any_alignment, bool grouped = false) {
  std::vector<Instance> found;
  for (const KernelFacts* f : built_kernels(registers_family())) {
    if (f->grouped != grouped) continue;
    found.push_back({f->name.c_str(), f, f->a.front(), f->b.front()});
    if (any_alignment && !takes_any_rows(found.back())) found.pop_back();
  }
  return found;
}

// What is wrong with it in this schedule; empty when nothing is.
std::string fault(const Instance& instance, const Ask& ask, model::Mode mode, std::uint64_t seed) {
  return Problem(instance, ask).run(scheduled(mode, seed));
}

// Rows that begin at multiples of 2 and 4 and 8 bytes, and at odd bytes where elements are bytes.
TEST(RegisterKernels, RowsBeginAnywhere) {
  unsigned seed = 40;
  for (const Instance& i : sampled(register_instances(true), 4)) {
    for (const int k : {1, 31, 64, 90, 130}) {
      for (const int loose : {1, 2, 4, 8}) {
        Ask ask;
        ask.m = 5 + loose;
        ask.n = 70;
        ask.k = k;
        ask.loose = loose;
        ask.padding = loose / 2;
        ask.batch = loose == 2 ? 2 : 1;
        ask.seed = ++seed;
        ask.clusters = 2;
        const auto mode = seed % 2 == 0 ? model::Mode::latest : model::Mode::random;
        EXPECT_EQ(fault(i, ask, mode, seed), "") << i.name << ", " << text(ask);
      }
    }
  }
}

std::vector<Instance> fed_instances() {
  std::vector<Instance> found;
  for (const Instance& i : register_instances(false)) {
    if (is_fed(i)) found.push_back(i);
  }
  return found;
}

// Rows of A and B at every multiple of 16 bytes, C by copies and by elements, and nothing to
// multiply.
TEST(RegisterKernels, ProducersBringRowsThatAreAligned) {
  unsigned seed = 80;
  for (const Instance& i : sampled(fed_instances(), 6)) {
    const int block = step_k(i) / 2;  // that of 64 bytes
    for (const int apart : {0, 1, 2, 3}) {
      Ask ask = extents(i, 1, ++seed);
      ask.m -= 5;
      ask.k = whole_k(i, apart * block + 1);
      ask.apart = apart;
      ask.batch = apart == 2 ? 2 : 1;
      ask.shares_b = apart == 2;
      ask.beta = apart % 2 == 0 ? 0.5F : 0.0F;
      ask.padding = apart == 0 ? 3 : 0;
      ask.clusters = 1 + apart;
      EXPECT_EQ(fault(i, ask, model::Mode::random, seed), "") << i.name << ", " << text(ask);
    }
    Ask empty = extents(i, 1, ++seed);
    empty.beta = -0.5F;
    EXPECT_EQ(fault(i, empty, model::Mode::latest, seed), "") << i.name << ", K = 0";
    empty.k = whole_k(i, block);
    empty.alpha = 0;
    EXPECT_EQ(fault(i, empty, model::Mode::latest, seed), "") << i.name << ", alpha = 0";
  }
}

// Lengths of all kinds, of which some groups have no rows and one several tiles: each group's
// scales begin at a tile, and what lies between is NaN.
Ask asked_in_groups(const Instance& i, const std::vector<std::int64_t>& offsets, int k) {
  Ask ask;
  ask.offsets = offsets;
  ask.m = static_cast<int>(offsets.back());
  ask.n = i.facts->tile.n + 24;
  ask.k = whole_k(i, k);
  return ask;
}

TEST(RegisterKernels, GroupsHaveScalesFromATileOn) {
  unsigned seed = 120;
  for (const Instance& i : sampled(register_instances(false, true), 3)) {
    for (const std::vector<std::int64_t>& offsets :
         {std::vector<std::int64_t>{0, 3, 3, 140, 141, 410}, {0, 128, 256}, {0, 0, 1}}) {
      Ask ask = asked_in_groups(i, offsets, 200);
      ask.seed = ++seed;
      ask.beta = seed % 2 == 0 ? 0.5F : 0.0F;
      const auto mode = seed % 2 == 0 ? model::Mode::latest : model::Mode::random;
      EXPECT_EQ(fault(i, ask, mode, seed), "") << i.name << ", " << text(ask);
    }
  }
}

// Three tiles a CTA or more, of groups and of columns. The mutants are killed in script/campaign.
TEST(RegisterKernels, GroupsAreCleanInEverySchedule) {
  for (const Instance& i : part_of(register_instances(false, true))) {
    Ask ask = asked_in_groups(i, {0, 40, 40, 170, 171}, 200);
    const Problem problem(i, ask);
    const GemmOperands operands = problem.operands();
    const auto made = must(plan(operands, model_facts(1, 120), problem.choices()));
    auto how = in_schedules(campaign() ? 1000 : 3, all_threads());
    const auto checked = must(device::check(*made, operands, how));
    EXPECT_TRUE(checked->clean()) << i.name;
    if (!campaign()) continue;
    how.schedules = 24;
    const auto broken = must(device::mutate(*made, operands, how));
    for (const device::Mutant& m : broken->mutants) {
      if (m.fate != device::Mutant::Fate::survived) continue;
      EXPECT_NE(m.site.find("fence.proxy.async at "), std::string::npos)
          << i.name << ": " << m.site << ", " << model::text(m.mutation);
    }
  }
}

TEST(RegisterKernels, TilesAreSplitAlongK) {
  for (const Instance& i : register_instances(true)) {
    for (const int ctas : {2, 3, 5}) {
      Ask ask;
      ask.m = 40;
      ask.n = 33;
      ask.k = 12 * step_k(i) / 2 + 3;
      ask.clusters = ctas;
      ask.beta = 1.0F;
      EXPECT_EQ(fault(i, ask, model::Mode::random, 7), "") << i.name << ", " << ctas << " CTAs";
    }
  }
}

GemmProblem small_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return packed_problem(m, n, k, DType::bf16, DType::bf16);
}

// For a size, for a kernel.
GemmProblem problem_for(const Instance& i, std::int64_t size) {
  GemmProblem p = packed_problem(size, size, size, i.a, i.facts->result);
  p.b.dtype = i.b;
  if (has_block_scales(i)) {
    p.scaling = Scaling::block_scaled;
    p.scale_a.dtype = p.scale_b.dtype = micro_scale_of(i);
  }
  return p;
}

TEST(RegisterKernels, ServeTheDevicesThatHaveThem) {
  for (const char* name : {"a100", "rtx3090", "l40s", "rtx5090"}) {
    const auto made = must(plan(small_problem(4096, 4096, 4096), *known_facts(name)));
    EXPECT_STREQ(made->facts().family, "registers_gemm");
    EXPECT_LE(made->facts().shared_bytes, made->device.shared_bytes_per_cta);
    expect_contains(made->explain(), "mma.sync m16n8k16");
    // Any K, and any rows.
    EXPECT_TRUE(plan(small_problem(33, 35, 37), *known_facts(name))) << name;
  }
  // Before cp.async: of f16, by plain loads.
  const GemmProblem f16 = packed_problem(64, 64, 64, DType::f16, DType::f16);
  for (const auto& [name, mma] : {std::pair{"t4", "m16n8k8"}, {"v100", "m8n8k4"}}) {
    const auto made =
        must(plan(packed_problem(4096, 4096, 4096, DType::f16, DType::f16), *known_facts(name)));
    EXPECT_LE(made->facts().shared_bytes, made->device.shared_bytes_per_cta);
    const std::string words = made->explain();
    expect_contains(words, "mma.sync " + std::string(mma));
    expect_contains(words, "filled by plain loads");
    EXPECT_EQ(words.find("nvcc 13") != std::string::npos, name == std::string("v100")) << words;
    // On later devices for who names it.
    EXPECT_TRUE(plan(f16, *known_facts("a100"), {.kernel = made->kernel}));
    for (const char* later : {"t4", "a100"}) {
      if (later == std::string(name)) continue;
      const auto others = candidates(f16, *known_facts(later));
      if (!others) continue;  // this build has none of f16 for it
      for (const Plan& each : *others) EXPECT_EQ(each.kernel.find(mma), std::string::npos);
    }
  }
  // Few tiles are split along K, but where rows must not depend on others.
  const auto split = must(plan(small_problem(64, 128, 8192), *known_facts("a100")));
  EXPECT_GT(split->ctas, 2);
  EXPECT_GT(split->workspace_bytes, split->flag_bytes);
  const auto whole =
      must(plan(small_problem(64, 128, 8192), *known_facts("a100"), {.batch_invariant = true}));
  EXPECT_EQ(whole->workspace_bytes, 0);
}

TEST(RegisterKernels, RunOnHopperForWhoNamesThem) {
  const DeviceFacts h200 = *known_facts("h200");
  const GemmProblem p = small_problem(256, 256, 256);
  for (const Instance& i : register_instances(false)) {
    if (is_fed_by_request(i) || has_block_scales(i)) continue;
    const auto named = must(plan(problem_for(i, 256), h200, only(i)));
    EXPECT_STREQ(named->facts().family, "registers_gemm");
  }
  const auto all = candidates(p, h200);
  if (!all) return;  // a build of only register kernels
  for (const Plan& each : *all) EXPECT_STREQ(each.facts().family, "hopper_gemm");
}

TEST(RegisterKernels, RefusalsNameWhatADeviceLacks) {
  const auto said = [](const char* device, GemmProblem p, const PlanChoices& choices = {}) {
    const auto made = plan(p, *known_facts(device), choices);
    return made ? "a plan" : made.reason();
  };
  const auto has = [](const std::string& text, const char* part) { expect_contains(text, part); };
  const GemmProblem p = small_problem(64, 64, 64);
  has(said("t4", p), "multiply only fp16");
  has(said("t4", packed_problem(64, 64, 64, DType::e4m3, DType::f16)), "the nearest is fp16");
  has(said("v100", p), "multiply only fp16");
  has(said("v100", packed_problem(64, 64, 64, DType::s8, DType::f32)), "multiply only fp16");
  has(said("a100", packed_problem(64, 64, 64, DType::f32, DType::f32)), "the nearest is tf32");
  has(said("a100", packed_problem(64, 64, 64, DType::u8, DType::f32)), "the nearest is s8");
  has(said("a100", packed_problem(64, 64, 131072, DType::s8, DType::f32)),
      "the nearest legal K is 131071");
  has(said("h200", packed_problem(64, 64, 64, DType::tf32, DType::f32)), "a plan");
  has(said("v100", packed_problem(64, 64, 64, DType::f16, DType::bf16)), "D is bf16");
  const auto none = plan(p, model_facts(4, 60));
  ASSERT_FALSE(none);
  has(none.reason(), "has architecture sm_60; kernels exist for sm_70 (V100), sm_75 (T4)");
  has(said("a100", packed_problem(64, 64, 64, DType::e4m3, DType::bf16)),
      "multiply no 8-bit floats, which sm_89 is the first to do");
  GemmProblem transposed = p;
  transposed.a.row_stride = 1;
  transposed.a.column_stride = 64;
  has(said("a100", transposed), "A is MN-major");
  const GemmProblem groups = packed_grouped_problem(64, 64, 64, 2, DType::bf16, DType::bf16);
  has(said("a100", groups), "the product has groups");
  has(said("rtx5090", groups), "the nearest dtype is mxf8");
  PlanChoices choices;
  choices.cluster = atom::ClusterShape{2, 1};
  has(said("a100", p, choices), "has a cluster of several CTAs, which those for sm_90");
  choices = {};
  choices.schedule = kernel::Schedule::pingpong;
  has(said("a100", p, choices), "has the schedule pingpong, which those for sm_90, sm_120");
  choices = {};
  choices.tile_m = 96;
  has(said("a100", p, choices), "no kernel of mma.sync has tile_m 96");
}

// Scales that the tensor core multiplies, where it does not, and of what they are not.
TEST(RegisterKernels, RefusalsNameWhatMicroScalesAsk) {
  const auto said = [](const char* device, DType type, std::int64_t k = 64) {
    GemmProblem p = packed_problem(64, 64, k, type, DType::bf16);
    p.scaling = Scaling::block_scaled;
    const auto made = plan(p, *known_facts(device));
    return made ? "a plan" : made.reason();
  };
  const auto has = [](const std::string& text, const char* part) { expect_contains(text, part); };
  has(said("a100", DType::e4m3), "the tensor cores of a100 (sm_80) multiply no scales");
  has(said("a100", DType::e4m3), "the nearest device is rtx5090");
  has(said("t4", DType::e2m1), "the nearest device is rtx5090");
  has(said("l40s", DType::e2m1), "the nearest device is rtx5090");
  has(said("h200", DType::e4m3), "no kernel for ");
  has(said("rtx5090", DType::bf16), "e4m3, e5m2, e2m3, e3m2 or e2m1: the nearest is e4m3");
  has(said("rtx5090", DType::e2m1, 63), "the nearest legal K is 64");
  GemmProblem without = packed_problem(64, 64, 64, DType::e2m1, DType::bf16);
  const auto made = plan(without, *known_facts("rtx5090"));
  ASSERT_FALSE(made);
  has(made.reason(),
      "e2m1 is multiplied with a scale for every 16: the nearest scaling is block_scaled");
}

// What names a kernel with a producer: rows that not even copies of them bring, targets without TMA
// or CLC.
TEST(RegisterKernels, RefusalsNameWhatAProducerLacks) {
  const auto said = [](const char* device, const GemmProblem& p, const PlanChoices& choices) {
    const auto made = plan(p, *known_facts(device), choices);
    return made ? "a plan" : made.reason();
  };
  const auto has = [](const std::string& text, const char* part) { expect_contains(text, part); };
  for (const Instance& i : fed_instances()) {
    GemmProblem p = problem_for(i, 128);
    const bool block_scaled = has_block_scales(i);
    has(said("rtx5090", p, only(i)), "a plan");
    has(said("h200", p, only(i)), block_scaled           ? "(sm_90) multiply no scales"
                                  : is_fed_by_request(i) ? "CLC"
                                                         : "a plan");
    has(said("l40s", p, only(i)), block_scaled
                                      ? "the nearest device is rtx5090"
                                      : "a producer copies by TMA, which begins with sm_90");
    p.a.row_stride = 124;
    has(said("rtx5090", p, only(i)), "the nearest legal is 128");
    PlanChoices choices = only(i);
    choices.ctas = 0;
    has(said("rtx5090", problem_for(i, 128), choices), "a grid of 0 CTAs");
  }
}

// Where rows allow it a plan for sm_120 has a producer; CLC is for who asks for it.
TEST(RegisterKernels, GeForceBlackwellHasProducers) {
  for (const Instance& i : fed_instances()) {
    GemmProblem p = problem_for(i, 8192);
    const auto made = must(plan(p, *known_facts("rtx5090")));
    expect_contains(made->kernel, "_tma");
    EXPECT_EQ(made->kernel.find("_clc"), std::string::npos) << made->kernel;
    expect_contains(made->explain(), "filled by TMA copies");
    EXPECT_GE(made->barriers().size(), 2U);
    p.a.row_stride = 8196;
    const auto loose = must(plan(p, *known_facts("rtx5090")));
    EXPECT_TRUE(loose->a_copy && !loose->b_copy) << loose->explain();
    p.a.row_stride = 8192;
    const auto asked = plan(p, *known_facts("rtx5090"), {.tiles = kernel::TileSource::clc});
    if (!is_fed_by_request(i)) continue;
    ASSERT_TRUE(asked) << asked.reason();
    EXPECT_EQ(asked->ctas, 64 * 64);
    expect_contains(asked->kernel, "_clc");
  }
}

// One CTA takes two tiles, only by cp.async or by registers too; and three share a tile along K.
void check_and_mutate(const Instance& instance) {
  struct Checked {
    bool split;
    int loose;
  };
  for (const Checked& c : {Checked{false, 0}, {true, 0}, {false, 1}}) {
    if (c.loose > 0 && !campaign()) continue;
    Ask ask;
    ask.m = 50;
    ask.n = c.split ? 40 : 100;
    ask.k = c.split ? 300 : 200;
    ask.loose = c.loose;
    ask.clusters = c.split ? 3 : 1;
    ask.beta = 0.5F;
    const Problem problem(instance, ask);
    const GemmOperands operands = problem.operands();
    const auto made = must(problem.planned());
    EXPECT_EQ(made->workspace_bytes > 0, c.split);
    auto how = in_schedules(campaign() ? 1000 : 12, all_threads());
    const auto checked = must(device::check(*made, operands, how));
    EXPECT_TRUE(checked->clean());
    how.schedules = campaign() ? 64 : 16;
    const auto broken = must(device::mutate(*made, operands, how));
    EXPECT_GT(broken->count(device::Mutant::Fate::killed), 8);
    for (const device::Mutant& m : broken->mutants) {
      if (m.fate != device::Mutant::Fate::survived) continue;
      // Before a flag goes back to 0: mutation_kernel_test.cpp says why it changes nothing.
      EXPECT_NE(m.site.find("syncwarp at kernel/stream_k_fixup.h"), std::string::npos)
          << instance.name << ": " << m.site << ", " << model::text(m.mutation);
    }
  }
}

// Kernels with a producer: a CTA takes three tiles or more, of which the last has tails. C comes by
// copies. Their mutants are killed in script/campaign.
TEST(RegisterKernels, ProducersAreCleanInEverySchedule) {
  for (const Instance& i : sampled(fed_instances(), 3)) {
    Ask ask;
    ask.m = 40;  // three chunks of a warp's rows: a buffer of C is used again within a tile
    ask.n = 2 * i.facts->tile.n + 40;
    // CLC has a ring of four answers, which more tiles go round.
    if (is_fed_by_request(i)) ask.n += 3 * i.facts->tile.n;
    ask.k = whole_k(i, 3 * step_k(i) / 2 * (campaign() ? 2 : 1));
    ask.clusters = 1;
    ask.beta = 0.5F;
    const Problem problem(i, ask);
    const GemmOperands operands = problem.operands();
    const auto made = must(problem.planned());
    auto how = in_schedules(campaign() ? 1000 : 3, all_threads());
    const auto checked = must(device::check(*made, operands, how));
    EXPECT_TRUE(checked->clean()) << i.name;
    if (!campaign()) continue;
    how.schedules = 24;
    const auto broken = must(device::mutate(*made, operands, how));
    EXPECT_GT(broken->count(device::Mutant::Fate::killed), 40) << i.name;
    for (const device::Mutant& m : broken->mutants) {
      if (m.fate != device::Mutant::Fate::survived) continue;
      // Between a read and an asynchronous write a fence is wanted only by the strict reading, to
      // which these kernels are not held, whose warps release stages without. The ring of answers
      // is held to it in tests/corpus/clc_test.cpp. docs/log/mutation.md says why it
      // does not matter who arrives for a load of C.
      const bool fence = m.site.find("fence.proxy.async at ") != std::string::npos;
      const bool of_c = m.mutation.kind == model::Mutation::Kind::stranger &&
                        m.site.find("mbarrier.arrive c_full at ") != std::string::npos;
      EXPECT_TRUE(fence || of_c) << i.name << ": " << m.site << ", " << model::text(m.mutation);
    }
  }
}

// One kernel of each feed and MMA.
TEST(RegisterKernels, CleanInEveryScheduleAndMutantsAreFound) {
  std::vector<RegisterConfig> seen;
  std::vector<Instance> one_of_each;
  for (const Instance& i : register_instances(true)) {
    const RegisterConfig& c = config_named<kernel::RegisterConfig>(i.name);
    const auto same = [&](const RegisterConfig& other) {
      return other.feed == c.feed && other.mma.kind == c.mma.kind;
    };
    if (std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(c);
    one_of_each.push_back(i);
  }
  ASSERT_FALSE(seen.empty());
  for (const Instance& i : sampled(one_of_each, 3)) check_and_mutate(i);
}

TEST(RegisterKernels, CostTwoSecondsAtMostOnTheModel) {
  WW_CAMPAIGN_ONLY();
  for (const Instance& i : part_of(register_instances(false))) {
    Ask ask;
    ask.m = ask.n = ask.k = 512;
    ask.clusters = 8;
    const Problem problem(i, ask);
    const GemmOperands operands = problem.operands();
    const auto made = must(problem.planned());
    const double seconds = least_seconds(3, [&] {
      const auto report = must(device::launch_on_model(*made, operands, {}));
      EXPECT_TRUE(report->clean()) << i.name;
    });
    std::printf("%s: %.2f s\n", i.name, seconds);
    EXPECT_LT(seconds, 2.0) << i.name;
  }
}

}  // namespace
}  // namespace warpwright::tests
