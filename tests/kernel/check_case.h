// Kernels under many schedules and with their synchronisation broken: what the tests of all of them
// share. A sample runs in the tests, the whole set in script/campaign.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "warpwright/device/check.h"

namespace warpwright::device {

inline bool campaign() {
  const char* asked = std::getenv("WARPWRIGHT_CAMPAIGN");
  return asked != nullptr && std::strcmp(asked, "1") == 0;
}

/// A product small enough for hundreds of runs: its K goes once round the ring of stages and on,
/// in one tile or in those that a CTA takes together, and every CTA of a persistent grid takes two
/// tiles or more.
struct CheckCase {
  std::string name;
  atom::ClusterShape cluster;
  int sms;
  DType result;
  int n;
  int tile_n;
  float beta = 0;
  int d_padding = 0;  ///< columns more than n from row to row
  DType operand = DType::bf16;
  int k = 7 * 64;
  int architecture = 90;
  PlanChoices choices = {};  ///< beside cluster and tile
};

class CheckProblem {
 public:
  explicit CheckProblem(const CheckCase& c) : plan_(Refusal{""}) {
    std::mt19937 random(1);
    const std::int64_t width = numeric::bits(c.operand) / 8;
    a_.resize(static_cast<std::size_t>(m * c.k * width / 2));
    b_.resize(static_cast<std::size_t>(c.n * c.k * width / 2));
    // bf16 or f16, or two 8-bit floats, of one sign of exponent: +-1 to 2.
    for (auto* operand : {&a_, &b_}) {
      for (std::uint16_t& x : *operand) {
        const auto bits = static_cast<unsigned>(random());
        x = static_cast<std::uint16_t>(width == 1 ? 0x3838 | (bits & 0x8787)
                                                  : 0x3c00 | (bits & 0x807f));
      }
    }
    const int pitch = c.n + c.d_padding;
    const int bytes = numeric::bits(c.result) / 8;
    c_.resize(static_cast<std::size_t>(m) * c.n * bytes, std::byte{0x3c});
    d_.resize(static_cast<std::size_t>(m) * pitch * bytes);
    operands_.a = matrix(a_.data(), c.operand, m, c.k);
    operands_.b = matrix(b_.data(), c.operand, c.n, c.k);
    operands_.d = matrix(d_.data(), c.result, m, c.n);
    operands_.d.row_stride = pitch;
    operands_.beta = c.beta;
    if (c.beta != 0) operands_.c = matrix(c_.data(), c.result, m, c.n);
    PlanChoices choices = c.choices;
    choices.cluster = c.cluster;
    choices.tile_n = c.tile_n;
    plan_ = warpwright::plan(operands_, model_facts(c.sms, c.architecture), choices);
  }

  [[nodiscard]] const Result<Plan>& plan() const { return plan_; }
  [[nodiscard]] const GemmOperands& operands() const { return operands_; }

 private:
  static constexpr int m = 256;
  std::vector<std::uint16_t> a_, b_;
  std::vector<std::byte> c_, d_;
  GemmOperands operands_;
  Result<Plan> plan_;
};

inline int all_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

inline std::string survivors(const MutationReport& report) {
  std::string text;
  for (const Mutant& m : report.mutants) {
    if (m.fate == Mutant::Fate::survived) {
      text += m.site + ", " + std::string(m.mutation.how()) + "\n";
    }
  }
  return text;
}

/// A page of docs/ that a campaign writes; closed outside one.
inline std::ofstream campaign_page(const char* path) {
  std::ofstream page;
  if (campaign() && std::filesystem::is_directory("docs")) page.open(path);
  return page;
}

/// The unbroken kernels under `sample` schedules, or 1000 in a campaign: nothing is found.
inline void expect_clean(const std::vector<CheckCase>& cases, int sample, std::ofstream& table) {
  for (const CheckCase& c : cases) {
    SCOPED_TRACE(c.name);
    const CheckProblem problem(c);
    ASSERT_TRUE(problem.plan()) << problem.plan().reason();
    CheckOptions options;
    options.schedules = campaign() ? 1000 : sample;
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

/// Every mutant of the kernels under up to `sample` schedules, or 64 in a campaign: none survives.
inline void expect_all_killed(const std::vector<CheckCase>& cases, int sample,
                              std::ofstream& table) {
  using Fate = Mutant::Fate;
  for (const CheckCase& c : cases) {
    SCOPED_TRACE(c.name);
    const CheckProblem problem(c);
    ASSERT_TRUE(problem.plan()) << problem.plan().reason();
    CheckOptions options;
    options.schedules = campaign() ? 64 : sample;
    options.jobs = all_threads();
    const auto start = std::chrono::steady_clock::now();
    const Result<MutationReport> report = mutate(*problem.plan(), problem.operands(), options);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(report) << report.reason();
    ASSERT_TRUE(report->unbroken.empty()) << report->unbroken.front().finding.sentence;
    EXPECT_GT(report->mutants.size(), 60U);
    EXPECT_EQ(report->count(Fate::survived), 0) << report->score() << "\n" << survivors(*report);
    if (!table.is_open()) continue;
    table << "\n## " << c.name << "\n\n`" << problem.plan()->name() << "`, " << report->sites.size()
          << " sites, " << static_cast<int>(spent.count() + 1) << " s on " << all_threads()
          << " threads; " << report->score()
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

}  // namespace warpwright::device
