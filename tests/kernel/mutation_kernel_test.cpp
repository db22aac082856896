// The Hopper kernel under many schedules and with its synchronisation broken: a sample here, the
// whole set in script/campaign, which writes docs/mutation.md.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "warpwright/device/check.h"

namespace warpwright::device {
namespace {

using Fate = Mutant::Fate;

bool campaign() {
  const char* asked = std::getenv("WARPWRIGHT_CAMPAIGN");
  return asked != nullptr && std::strcmp(asked, "1") == 0;
}

// A product small enough for hundreds of runs: its K goes once round the ring of stages and on,
// and every CTA takes two tiles or more.
struct Case {
  const char* name;
  atom::ClusterShape cluster;
  int sms;
  DType result;
  int n;
  int tile_n;
  float beta;
  int d_padding;  // columns more than n from row to row
};

constexpr Case cases[] = {
    {"1x1, bf16, 128x128", {1, 1}, 2, DType::bf16, 256, 128, 0, 0},
    {"2x1, bf16 and C, 128x128", {2, 1}, 2, DType::bf16, 256, 128, 1, 0},
    {"1x2, f16, 128x128", {1, 2}, 2, DType::f16, 256, 128, 0, 0},
    {"2x2, f32 and C, 128x128", {2, 2}, 4, DType::f32, 512, 128, 1, 0},
    {"1x1, bf16 and C, 128x256", {1, 1}, 2, DType::bf16, 512, 256, 1, 0},
    {"2x1, f32, 128x256", {2, 1}, 2, DType::f32, 512, 256, 0, 0},
    {"1x1, bf16 and C, D by elements", {1, 1}, 2, DType::bf16, 256, 128, 1, 1},
};

// Run under many schedules, not mutated: the largest cluster, and edges in both directions.
constexpr Case more_clean_cases[] = {
    {"4x4, bf16, 128x128", {4, 4}, 16, DType::bf16, 768, 128, 0, 0},
    {"2x2, f32 and C, ragged, by elements", {2, 2}, 4, DType::f32, 267, 128, 1, 5},
    {"1x2, bf16 and C, ragged, 128x256", {1, 2}, 2, DType::bf16, 776, 256, 1, 0},
};

class Problem {
 public:
  explicit Problem(const Case& c)
      : a_(std::size_t{m} * k), b_(static_cast<std::size_t>(c.n) * k), plan_(Refusal{""}) {
    std::mt19937 random(1);
    // bf16 or f16 of one sign of exponent: +-1 to 2.
    for (auto* operand : {&a_, &b_}) {
      for (std::uint16_t& x : *operand)
        x = static_cast<std::uint16_t>(0x3c00 | (random() & 0x807f));
    }
    const int pitch = c.n + c.d_padding;
    const int bytes = numeric::bits(c.result) / 8;
    c_.resize(static_cast<std::size_t>(m) * c.n * bytes, std::byte{0x3c});
    d_.resize(static_cast<std::size_t>(m) * pitch * bytes);
    const DType operand = c.result == DType::f16 ? DType::f16 : DType::bf16;
    operands_.a = matrix(a_.data(), operand, m, k);
    operands_.b = matrix(b_.data(), operand, c.n, k);
    operands_.d = matrix(d_.data(), c.result, m, c.n);
    operands_.d.row_stride = pitch;
    operands_.beta = c.beta;
    if (c.beta != 0) operands_.c = matrix(c_.data(), c.result, m, c.n);
    PlanChoices choices;
    choices.cluster = c.cluster;
    choices.tile_n = c.tile_n;
    plan_ = warpwright::plan(operands_, model_facts(c.sms), choices);
  }

  [[nodiscard]] const Result<Plan>& plan() const { return plan_; }
  [[nodiscard]] const GemmOperands& operands() const { return operands_; }

 private:
  static constexpr int m = 256;
  static constexpr int k = 7 * 64;
  std::vector<std::uint16_t> a_, b_;
  std::vector<std::byte> c_, d_;
  GemmOperands operands_;
  Result<Plan> plan_;
};

int all_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

std::string survivors(const MutationReport& report) {
  std::string text;
  for (const Mutant& m : report.mutants) {
    if (m.fate == Fate::survived) text += m.site + ", " + std::string(m.mutation.how()) + "\n";
  }
  return text;
}

TEST(Check, CleanUnderManySchedules) {
  std::ofstream table;
  if (campaign() && std::filesystem::is_directory("docs")) {
    table.open("docs/schedules.md");
    table << "# The unbroken kernels under many schedules\n\n"
             "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
             "checks of the model on and D compared with the reference.\n\n"
             "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  }
  std::vector<Case> all(std::begin(cases), std::end(cases));
  all.insert(all.end(), std::begin(more_clean_cases), std::end(more_clean_cases));
  for (const Case& c : all) {
    SCOPED_TRACE(c.name);
    const Problem problem(c);
    ASSERT_TRUE(problem.plan()) << problem.plan().reason();
    CheckOptions options;
    options.schedules = campaign() ? 1000 : 4;
    options.jobs = all_threads();
    const Result<CheckReport> report = check(*problem.plan(), problem.operands(), options);
    ASSERT_TRUE(report) << report.reason();
    EXPECT_EQ(report->schedules, options.schedules);
    if (table.is_open()) {
      table << "| " << c.name << " | `" << problem.plan()->name() << "` | " << report->schedules
            << " | " << report->findings.size() << " |\n";
    }
    for (const CheckedFinding& f : report->findings) {
      ADD_FAILURE() << model::code(f.finding.check) << " in " << f.first.text() << ": "
                    << f.finding.sentence;
    }
  }
}

TEST(Check, FindsAMutantAndReplaysIt) {
  const Problem problem(cases[0]);
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
  const Problem problem(cases[1]);
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
  std::ofstream table;
  if (campaign() && std::filesystem::is_directory("docs")) {
    table.open("docs/mutation.md");
    table
        << "# Mutants of the Hopper GEMM kernel\n\n"
           "Written by `script/campaign`. Every synchronising statement that a run executes is\n"
           "broken in every way there is, one at a time, and the model runs under up to 64\n"
           "schedules until a check speaks (its code, and after how many schedules). A mutant is\n"
           "*equivalent* when a program finds that under all 64 schedules every access to memory\n"
           "comes after the same other accesses as in the unbroken kernel\n"
           "(`warpwright/model/relation.h`). `warpwright check gemm ... --mutate` prints the same\n"
           "table for any product.\n";
  }
  const std::size_t last = campaign() ? std::size(cases) : 2;
  for (std::size_t i = 0; i < last; ++i) {
    SCOPED_TRACE(cases[i].name);
    const Problem problem(cases[i]);
    ASSERT_TRUE(problem.plan()) << problem.plan().reason();
    CheckOptions options;
    options.schedules = campaign() ? 64 : 3;
    options.jobs = all_threads();
    const auto start = std::chrono::steady_clock::now();
    const Result<MutationReport> report = mutate(*problem.plan(), problem.operands(), options);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(report) << report.reason();
    ASSERT_TRUE(report->unbroken.empty()) << report->unbroken.front().finding.sentence;
    EXPECT_GT(report->mutants.size(), 60U);
    EXPECT_EQ(report->count(Fate::survived), 0) << report->score() << "\n" << survivors(*report);
    if (!table.is_open()) continue;
    table << "\n## " << cases[i].name << "\n\n`" << problem.plan()->name() << "`, "
          << report->sites.size() << " sites, " << static_cast<int>(spent.count() + 1) << " s on "
          << all_threads() << " threads; " << report->score()
          << "\n\n| site | broken | caught by | schedules |\n|---|---|---|---:|\n";
    for (const Mutant& m : report->mutants) {
      table << "| " << m.site << " | " << m.mutation.how() << " | "
            << (m.fate == Fate::killed       ? model::code(m.finding.check)
                : m.fate == Fate::equivalent ? "equivalent"
                                             : "**survived**")
            << " | " << m.schedules << " |\n";
    }
  }
}

}  // namespace
}  // namespace warpwright::device
