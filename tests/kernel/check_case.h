// Kernels under many schedules and with their synchronisation broken: what the tests of all of them
// share. A sample runs in the tests, the whole set in script/campaign.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/must.h"
#include "tests/scheduled.h"
#include "warpwright/simulation/check.h"

namespace warpwright::device {

/// A table that a campaign writes, by a name that script/campaign_pages.py knows; closed outside
/// one.
inline std::ofstream campaign_table(const std::string& name) {
  std::ofstream table;
  if (campaign() && std::filesystem::is_directory("build/campaign")) {
    table.open("build/campaign/" + name + ".md");
  }
  return table;
}

/// The unbroken kernel under `sample` schedules, or 1000 in a campaign: nothing is found.
inline void expect_clean(const std::string& name, const Result<Plan>& plan,
                         const GemmOperands& operands, int sample, std::ofstream& table) {
  SCOPED_TRACE(name);
  ASSERT_TRUE(plan) << plan.reason();
  const auto options = tests::in_schedules(campaign() ? 1000 : sample, all_threads());
  const Result<CheckReport> report = must(check(*plan, operands, options));
  EXPECT_EQ(report->schedules, options.schedules);
  if (table.is_open()) {
    table << "| " << name << " | `" << plan->name() << "` | " << report->schedules << " | "
          << report->findings.size() << " |\n";
  }
  for (const CheckedFinding& f : report->findings) {
    ADD_FAILURE() << model::code(f.finding.check) << " in " << f.first.text() << ": "
                  << f.finding.sentence;
  }
}

/// A mutant that orders accesses differently and yet is the same program, which the model cannot
/// see by itself.
struct Argued {
  const char* site;  ///< begins with: a statement and its file, below warpwright/
  const char* line;  ///< what that line of the source, or the one before it, says; no other does
  const char* how;
  const char* reason;
  bool (*where)(const Plan&) = nullptr;  ///< holds only there
};

/// The lines of a source file below warpwright/, from 1 on.
inline std::vector<std::string> library_source(const std::string& file) {
  std::ifstream source(std::string(WARPWRIGHT_SOURCE) + "/warpwright/" + file);
  std::vector<std::string> lines(1);
  for (std::string line; std::getline(source, line);) lines.push_back(line);
  return lines;
}
/// Those of them that an argument names.
inline std::vector<int> lines_of(const Argued& a) {
  const std::string site = a.site;
  const auto lines = library_source(site.substr(site.rfind(' ') + 1));
  std::vector<int> found;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].find(a.line) != std::string::npos) found.push_back(static_cast<int>(i));
  }
  return found;
}
inline bool names(const Argued& a, const Mutant& m) {
  if (m.site.rfind(std::string(a.site) + ":", 0) != 0 || m.mutation.how() != a.how) return false;
  const std::vector<int> lines = lines_of(a);
  return lines.size() == 1 &&
         (m.mutation.line == lines.front() || m.mutation.line == lines.front() + 1);
}
/// Each names one line: an argument about another statement of a file would excuse too much.
inline void expect_lines(std::span<const Argued> argued) {
  for (const Argued& a : argued) {
    EXPECT_EQ(lines_of(a).size(), 1U) << a.site << ", which says \"" << a.line << "\"";
  }
}

/// For the epilogue that all families share.
inline bool all_by_elements(const Plan& plan) {
  return plan.c_path == EpiloguePath::elements && plan.d_path == EpiloguePath::elements;
}
inline constexpr Argued no_copy_to_wait_for = {
    "syncwarp at kernel/epilogue.h", "bulk_wait_read<config.buffers - 1>();", "dropped",
    "after the wait for a buffer: no copy reads it, and since lanes stored its elements, a chunk "
    "in the other buffer ago, the warp has met",
    all_by_elements};

/// For tiles that are split along K through the workspace.
inline constexpr Argued flag_goes_back = {
    "syncwarp at kernel/stream_k_fixup.h", "together) add(sums, c, columns);", "dropped",
    "before a flag goes back to 0: nobody waits for the 0 before the next launch, which the end of "
    "this one orders"};

/// One mutant of so many is made in a usual run, drawn by its seed.
inline constexpr unsigned drawn_mutants = 6;

/// The mutants of a family of kernels. A survivor fails the test unless an argument explains it, at
/// most one survivor of a kernel by each; in a campaign so does an argument that explains nobody.
class Mutants {
 public:
  explicit Mutants(std::span<const Argued> argued) : argued_(argued) {}

  /// Mutants of the kernel under up to `sample` schedules, every one under 64 in a campaign: none
  /// survives.
  void expect_all_killed(const std::string& name, const Result<Plan>& plan,
                         const GemmOperands& operands, int sample, std::ofstream& table) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(plan) << plan.reason();
    auto options = tests::in_schedules(campaign() ? 64 : sample, all_threads());
    options.wanted = sampled_mutants(drawn_mutants);
    const auto start = std::chrono::steady_clock::now();
    const Result<MutationReport> result = mutate(*plan, operands, options);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(result) << result.reason();
    MutationReport report = *result;
    ASSERT_TRUE(report.unbroken.empty()) << report.unbroken.front().finding.sentence;
    EXPECT_GT(report.mutants.size(), campaign() ? 50U : 50U / drawn_mutants);
    const std::map<const Mutant*, const char*> reasons = explain(report, *plan);
    std::string survivors;
    std::string rows;
    for (const Mutant& m : report.mutants) {
      const bool survived = m.fate == Mutant::Fate::survived;
      if (survived) survivors += m.site + ", " + std::string(m.mutation.how()) + "\n";
      const auto reason = reasons.find(&m);
      rows += "| " + m.site + " | " + std::string(m.mutation.how()) + " | " +
              std::string(survived                         ? "**survived**"
                          : reason != reasons.end()        ? reason->second
                          : m.fate == Mutant::Fate::killed ? model::code(m.finding.check)
                                                           : "equivalent") +
              " | " + std::to_string(m.schedules) + " |\n";
    }
    EXPECT_EQ(survivors, "") << report.score();
    if (!table.is_open()) return;
    table << "\n## " << name << "\n\n`" << plan->name() << "`, " << report.sites.size()
          << " sites, " << static_cast<int>(spent.count() + 1) << " s on " << all_threads()
          << " threads; " << report.score();
    if (!reasons.empty()) table << ", of those by argument " << reasons.size();
    table << "\n\n| site | broken | caught by | schedules |\n|---|---|---|---:|\n" << rows;
  }

  /// After all kernels: in a campaign every argument must have explained somebody. Parts of one
  /// print what theirs did not need.
  void expect_all_needed() const {
    if (!campaign()) return;
    for (const Argued& a : argued_) {
      if (campaign_part().second > 1) {
        if (used_.count(&a) == 0) std::printf("not needed here: %s, %s\n", a.site, a.how);
        continue;
      }
      EXPECT_TRUE(used_.count(&a) == 1) << "no longer needed: " << a.site << ", " << a.how;
    }
  }

 private:
  /// Makes the survivors that an argument explains equivalent; they and their reasons.
  std::map<const Mutant*, const char*> explain(MutationReport& report, const Plan& plan) {
    std::map<const Mutant*, const char*> reasons;
    std::set<const Argued*> here;
    for (Mutant& m : report.mutants) {
      if (m.fate != Mutant::Fate::survived) continue;
      for (const Argued& a : argued_) {
        if (a.where != nullptr && !a.where(plan)) continue;
        if (!names(a, m)) continue;
        if (here.insert(&a).second) {
          reasons[&m] = a.reason;
          m.fate = Mutant::Fate::equivalent;
        }
        break;
      }
    }
    used_.insert(here.begin(), here.end());
    return reasons;
  }

  std::span<const Argued> argued_;
  std::set<const Argued*> used_;
};

}  // namespace warpwright::device
