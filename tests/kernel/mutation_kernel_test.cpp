// The Hopper kernel under many schedules and with its synchronisation broken: a sample here, the
// whole set in script/campaign, which writes docs/mutation.md.
#include "tests/kernel/check_case.h"

namespace warpwright::device {
namespace {

const std::vector<CheckCase> cases = {
    {"1x1, bf16, 128x128", {1, 1}, 2, DType::bf16, 256, 128, 0, 0},
    {"2x1, bf16 and C, 128x128", {2, 1}, 2, DType::bf16, 256, 128, 1, 0},
    {"1x2, f16, 128x128", {1, 2}, 2, DType::f16, 256, 128, 0, 0, DType::f16},
    {"2x2, f32 and C, 128x128", {2, 2}, 4, DType::f32, 512, 128, 1, 0},
    {"1x1, bf16 and C, 128x256", {1, 1}, 2, DType::bf16, 512, 256, 1, 0},
    {"2x1, f32, 128x256", {2, 1}, 2, DType::f32, 512, 256, 0, 0},
    {"1x1, bf16 and C, D by elements", {1, 1}, 2, DType::bf16, 256, 128, 1, 1},
};

// Run under many schedules, not mutated: the largest cluster, and edges in both directions.
const std::vector<CheckCase> more_clean_cases = {
    {"4x4, bf16, 128x128", {4, 4}, 16, DType::bf16, 768, 128, 0, 0},
    {"2x2, f32 and C, ragged, by elements", {2, 2}, 4, DType::f32, 267, 128, 1, 5},
    {"1x2, bf16 and C, ragged, 128x256", {1, 2}, 2, DType::bf16, 776, 256, 1, 0},
};

TEST(Check, CleanUnderManySchedules) {
  std::ofstream table = campaign_page("docs/schedules.md");
  table << "# The unbroken kernels under many schedules\n\n"
           "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
           "checks of the model on and D compared with the reference.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  std::vector<CheckCase> all = cases;
  all.insert(all.end(), more_clean_cases.begin(), more_clean_cases.end());
  expect_clean(all, 4, table);
}

TEST(Check, FindsAMutantAndReplaysIt) {
  const CheckProblem problem(cases[0]);
  ASSERT_TRUE(problem.plan()) << problem.plan().reason();
  const auto mutants = mutants_of(*problem.plan(), problem.operands());
  ASSERT_TRUE(mutants);
  ASSERT_FALSE(mutants->empty());
  CheckOptions options;
  options.schedules = 4;
  options.mode = model::Mode::random;
  for (const model::Mutation& m : *mutants) {
    if (m.at == model::SyncKind::fence_proxy_async) options.mutation = m;
  }
  ASSERT_TRUE(options.mutation);
  const Result<CheckReport> report = check(*problem.plan(), problem.operands(), options);
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->clean());
  EXPECT_EQ(report->failing, 4);
  options.replay = report->findings.front().first;
  options.mode.reset();
  const Result<CheckReport> again = check(*problem.plan(), problem.operands(), options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->schedules, 1);
  EXPECT_EQ(again->findings.front().finding.sentence, report->findings.front().finding.sentence);
  // The fence is missing whatever the order of events: no decision matters.
  const Result<Reduction> reduced =
      reduce(*problem.plan(), problem.operands(), *options.replay, options);
  ASSERT_TRUE(reduced) << reduced.reason();
  EXPECT_TRUE(reduced->kept.empty());
}

TEST(Check, DoesNotDependOnTheJobs) {
  const CheckProblem problem(cases[1]);
  ASSERT_TRUE(problem.plan()) << problem.plan().reason();
  CheckOptions options;
  options.schedules = 6;
  const auto mutants = mutants_of(*problem.plan(), problem.operands());
  ASSERT_TRUE(mutants);
  ASSERT_GT(mutants->size(), 20U);
  options.mutation = (*mutants)[20];
  const Result<CheckReport> one = check(*problem.plan(), problem.operands(), options);
  options.jobs = 3;
  const Result<CheckReport> three = check(*problem.plan(), problem.operands(), options);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->failing, three->failing);
  ASSERT_EQ(one->findings.size(), three->findings.size());
  for (std::size_t i = 0; i < one->findings.size(); ++i) {
    EXPECT_EQ(one->findings[i].finding.sentence, three->findings[i].finding.sentence);
    EXPECT_EQ(one->findings[i].first, three->findings[i].first);
    EXPECT_EQ(one->findings[i].schedules, three->findings[i].schedules);
  }
}

TEST(Check, SchedulesHaveNames) {
  for (const char* text : {"eager", "latest", "0", "17"}) {
    const auto schedule = parse_schedule(text);
    ASSERT_TRUE(schedule) << text;
    EXPECT_EQ(schedule->text(), text);
  }
  EXPECT_FALSE(parse_schedule("soon"));
  EXPECT_FALSE(parse_schedule("-1"));
  EXPECT_FALSE(parse_schedule(""));
  CheckOptions options;
  options.schedules = 4;
  options.seed = 9;
  const std::vector<Schedule> all = schedules_of(options);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].text() + " " + all[1].text() + " " + all[2].text() + " " + all[3].text(),
            "eager latest 9 10");
  options.mode = model::Mode::latest;
  EXPECT_EQ(schedules_of(options).size(), 1U);
}

// In the sample two problems and three schedules; no mutant may survive in either set.
TEST(Mutation, NoMutantOfTheHopperKernelSurvives) {
  std::ofstream table = campaign_page("docs/mutation.md");
  table << "# Mutants of the Hopper GEMM kernel\n\n"
           "Written by `script/campaign`. Every synchronising statement that a run executes is\n"
           "broken in every way there is, one at a time, and the model runs under up to 64\n"
           "schedules until a check speaks (its code, and after how many schedules). A mutant is\n"
           "*equivalent* when a program finds that under all 64 schedules every access to memory\n"
           "comes after the same other accesses as in the unbroken kernel\n"
           "(`warpwright/model/relation.h`). `warpwright check gemm ... --mutate` prints the same\n"
           "table for any product.\n";
  std::vector<CheckCase> some = cases;
  if (!campaign()) some.resize(2);
  expect_all_killed(some, 3, table);
}

}  // namespace
}  // namespace warpwright::device
