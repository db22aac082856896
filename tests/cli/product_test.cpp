// What is said of products on devices that are not here, and of ones that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>
#include <sstream>
#include <string>

#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/product.h"
#include "tests/campaign.h"
#include "tests/cli/run_cli.h"
#include "tests/must.h"
#include "tests/own_folder.h"
#include "tests/scheduled.h"
#include "warpwright/device/cuda.h"
#include "warpwright/plan/tuning/tuning.h"
#include "warpwright/simulation/check.h"

namespace warpwright::cli {
namespace {

// A time is told with the roof of the groups that have tokens.
TEST(Product, TheRoofIsThatOfTheGroupsThatHaveTokens) {
  GemmOptions options;
  options.is_grouped = true;
  options.groups = 4;
  options.tokens = "16,0,3,40";
  options.n = 72;
  options.k = 96;
  options.total = 64;
  options.dtype = "e4m3";
  const std::optional<DeviceFacts> facts = known_facts("h200");
  ASSERT_TRUE(facts.has_value());
  std::ostringstream err;
  const Product few(options, *facts, err);
  // 3 groups with 59 tokens: A, three B, and D in bf16.
  const double bytes = 59 * 96 + 3 * 72 * 96 + 59 * 72 * 2;
  EXPECT_DOUBLE_EQ(roof_us(few.job, few.plan), bytes / facts->memory_bytes_per_second * 1e6);
  options.n = options.k = 16384;
  options.tokens = "8000,0,1000,7000";
  options.total = 20000;
  const Product many(options, *facts, err);
  const double operations = 2.0 * 16000 * 16384 * 16384;
  EXPECT_DOUBLE_EQ(roof_us(many.job, many.plan),
                   operations / tensor_rate(*facts, DType::e4m3) * 1e6);
  const Product model(options, model_facts(), err);
  EXPECT_EQ(roof_us(model.job, model.plan), 0);
}

// The cache lies in a folder of its own, where the command line looks for it.
TEST(Product, SaysWhereItsPlanCameFrom) {
  const char* given = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> before =
      given != nullptr ? std::optional<std::string>(given) : std::nullopt;
  const OwnFolder own;
  ::setenv("XDG_CACHE_HOME", own.path().c_str(), 1);
  const DeviceFacts h200 = *known_facts("h200");
  std::ostringstream err;
  GemmOptions options;
  options.random = {4096, 4096, 4096};
  const Product usual(options, h200, err);
  EXPECT_TRUE(contains(usual.origin, "by rule")) << usual.origin;
  const GemmProblem& problem = usual.plan.problem;
  const Plan other = candidates(problem, h200)->back();
  TuningCache cache(TuningCache::default_path());
  ASSERT_FALSE(cache.store({{tuning_key(problem, h200), tuning_entry(other, 123.25)}}));
  const Product tuned(options, h200, err);
  EXPECT_TRUE(contains(tuned.origin, "123.25 us: from " + own.path().string())) << tuned.origin;
  EXPECT_EQ(tuned.plan.cluster, other.cluster);
  GemmOptions untuned = options;
  untuned.no_tuning = true;
  const Product off(untuned, h200, err);
  EXPECT_EQ(off.plan.cluster, usual.plan.cluster);
  EXPECT_TRUE(contains(off.origin, "not used")) << off.origin;
  EXPECT_EQ(err.str(), "");
  std::ofstream(TuningCache::default_path(), std::ios::app) << "scribble\n";
  const Product scribbled(options, h200, err);
  const std::string said = err.str();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_TRUE(contains(said, "damaged")) << said;
  before ? ::setenv("XDG_CACHE_HOME", before->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

// Memory that runs out in one of the threads ends the check, not the program.
TEST(Product, WhatAThreadThrowsIsThrownByTheCheck) {
  GemmOptions options;
  options.random = {16, 8, 16};
  std::ostringstream err;
  Product product(options, facts_of(options), err);
  product.load(1, err);
  auto how = tests::in_schedules(16, 2);
  how.progress = [](double share) {
    if (share > 0.5) throw std::bad_alloc();
  };
  EXPECT_THROW(static_cast<void>(device::check(product.plan, product.operands, how)),
               std::bad_alloc);
  EXPECT_THROW(static_cast<void>(device::mutate(product.plan, product.operands, how)),
               std::bad_alloc);
}

// A product whose tiles are drawn.
GemmOptions drawn_tiles() {
  GemmOptions options;
  options.random = {128, 256, 64};
  options.sms = 2;
  options.scheduler = "dynamic";
  return options;
}

// All its schedules: as many classes however many threads run them,
// and of a broken one the findings with the class that shows them, which can be run again.
TEST(Product, AllSchedulesByClasses) {
  const GemmOptions options = drawn_tiles();
  std::ostringstream err;
  Product product(options, facts_of(options), err);
  product.load(1, err);
  device::CheckOptions how;
  how.exhaustive.emplace();
  for (const int jobs : {1, 2}) {
    how.jobs = jobs;
    const auto whole = must(device::check(product.plan, product.operands, how));
    EXPECT_TRUE(whole->clean() && whole->explored->complete) << whole->explored->text();
    EXPECT_EQ(whole->schedules, 2);
  }
  const auto mutants = must(device::mutants_of(product.plan, product.operands));
  const auto dropped = std::find_if(mutants->begin(), mutants->end(), [](const auto& m) {
    return m.kind == model::Mutation::Kind::drop && m.at == model::SyncKind::mbarrier_wait &&
           m.barrier == "tile_full";
  });
  ASSERT_NE(dropped, mutants->end());
  how.mutation = *dropped;
  how.exhaustive->classes = 2;
  const auto broken = must(device::check(product.plan, product.operands, how));
  ASSERT_FALSE(broken->clean());
  const device::CheckedFinding& first = broken->findings.front();
  how.replay = device::parse_schedule(first.first.text());
  ASSERT_TRUE(how.replay && how.replay->of_class > 0) << first.first.text();
  const auto again = must(device::check(product.plan, product.operands, how));
  ASSERT_FALSE(again->clean());
  EXPECT_EQ(again->findings.front().finding.sentence, first.finding.sentence);
}

// What sampled schedules find of a broken kernel, the first classes of all schedules find too.
TEST(Product, MutantsThatSamplesKillAreFoundByClasses) {
  const GemmOptions options = drawn_tiles();
  std::ostringstream err;
  Product product(options, facts_of(options), err);
  product.load(1, err);
  auto how = tests::in_schedules(8);
  how.wanted = sampled_mutants(16);
  const auto report = must(device::mutate(product.plan, product.operands, how));
  how.exhaustive = {.classes = 4};
  how.fence_after_reads = report->fence_after_reads;
  for (const device::Mutant& mutant : report->mutants) {
    if (mutant.fate != device::Mutant::Fate::killed) continue;
    how.mutation = mutant.mutation;
    const auto found = must(device::check(product.plan, product.operands, how));
    EXPECT_FALSE(found->clean()) << mutant.site << ", " << mutant.mutation.how() << ": "
                                 << mutant.by.text() << " finds " << mutant.finding.sentence;
  }
}

// Padded rows: what lies between them is nobody's, and a product that writes there is found out.
TEST(Product, GapsBetweenRowsAreLookedAt) {
  GemmOptions options;
  options.random = {20, 24, 40};
  options.pitch = 48;
  options.beta = "1";
  for (const bool in_place : {false, true}) {
    options.in_place = in_place;
    std::ostringstream err;
    Product product(options, facts_of(options), err);
    product.load(1, err);
    EXPECT_EQ(product.operands.d.row_stride, 48);
    EXPECT_EQ(product.operands.a.row_stride, 48);
    EXPECT_EQ(product.operands.c.data == product.operands.d.data, in_place);
    ASSERT_TRUE(device::launch_on_model(product.plan, product.operands)->clean());
    EXPECT_TRUE(check_job(product.job, product.operands).passed());
    product.d.bytes[(3 * 48 + 24) * 2] = std::byte{1};
    const JobCheck found = check_job(product.job, product.operands);
    EXPECT_EQ(found.gaps, 1);
    EXPECT_TRUE(found.elements.passed);
    EXPECT_FALSE(found.passed());
  }
}

// Two products in one workspace: flags of the second may lie where the first had other bytes, or
// has left its own, which must be 0.
TEST(Product, ASecondOneFindsTheWorkspaceAsTheFirstLeftIt) {
  struct Case {
    const char* first;
    const char* second;
    bool same_flags;
  };
  for (const Case& c :
       {Case{"hopper_bf16_bf16_128x64_sw_sk", "hopper_bf16_bf16_128x64_sw_sk", true},
        Case{"hopper_bf16_bf16_128x128_pp", "hopper_bf16_bf16_128x64_sw_sk", false},
        Case{"hopper_bf16_bf16_128x128_pp_dyn", "hopper_bf16_bf16_128x64_sw_sk", false}}) {
    SCOPED_TRACE(std::string(c.first) + ", " + c.second);
    GemmOptions options;
    options.sms = 3;
    options.random = {256, 256, 192};
    options.kernel = c.first;
    options.cluster = "1,1";
    std::ostringstream err;
    Product first(options, facts_of(options), err);
    options.kernel = c.second;
    options.random = {128, 128, 1024};
    options.ctas = 3;
    Product second(options, facts_of(options), err);
    first.load(1, err);
    second.load(2, err);
    EXPECT_GT(second.plan.flag_bytes, 0);
    EXPECT_EQ(first.plan.flag_bytes == second.plan.flag_bytes, c.same_flags);
    bool is_right = true;
    const device::SecondProduct behind{second.plan, second.operands, [&](const GemmOperands& o) {
                                         return is_right && check_job(second.job, o).passed();
                                       }};
    auto how = tests::in_schedules(4);
    how.second = &behind;
    how.right = [&](const GemmOperands& o) { return check_job(first.job, o).passed(); };
    const auto clean = must(device::check(first.plan, first.operands, how));
    EXPECT_TRUE(clean->clean()) << clean->findings.front().finding.sentence;
    is_right = false;
    const auto wrong = must(device::check(first.plan, first.operands, how));
    ASSERT_EQ(wrong->findings.size(), 1U);
    EXPECT_TRUE(contains(wrong->findings.front().finding.sentence, "D of the second product"));
  }
}

// For a machine without the driver a build for GPUs says that, not how the runtime puts it.
TEST(Product, NoDriverIsSaid) {
  if (!device::built_with_cuda() || !device::cuda_devices().empty()) {
    GTEST_SKIP() << "did not run: this build has no CUDA side, or there is a GPU here";
  }
  expect_refused({"gemm", "--random", "40", "24", "16", "--device", "cuda"},
                 "no NVIDIA driver here");
}

}  // namespace
}  // namespace warpwright::cli
