// Today's choices held against recorded times.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/tuning/times.h"

namespace warpwright {

/// What a .gz holds.
inline std::string unpacked(const std::string& path) {
  FILE* const pipe = ::popen(("gzip -dc '" + path + "'").c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  char part[1 << 16];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  return ::pclose(pipe) == 0 ? text : std::string();
}

/// Plans of other builds choose among other kernels.
inline bool is_usual_build() {
  const auto has = [](Rows rows, bool common) {
    const auto& all = hopper_kernels(rows);
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& row) { return row.common == common; });
  };
  return !has(Rows::built, false) && !has(Rows::missing, true);
}

/// What recorded times say of the ways that are chosen today, in sentences.
struct JudgedChoices {
  std::vector<std::string> worse;    ///< slower than the way that was chosen then
  std::vector<std::string> untimed;  ///< nobody timed: faults
  std::vector<std::string> far;      ///< far from the fastest
  std::vector<std::string> said;     ///< what was left out, or is new
  int products = 0;
  double regret = 0;  ///< mean share of time over the fastest
  double worst = 0;   ///< and the largest
  int over = 0;       ///< products whose choice takes kFar more than the fastest, or longer
};

/// Makes one from a product on a card.
using Chooser = std::function<Result<Plan>(const GemmProblem&, const DeviceFacts&)>;

class ChoiceJudge {
 public:
  /// Shares of time above which a choice is worse, or far from the fastest.
  static constexpr double kNoise = 0.03;
  static constexpr double kFar = 0.1;
  static constexpr const char* kAgain =
      "record again: script/on_gpu run record, and bench/times.tsv.gz takes what comes back";

  explicit ChoiceJudge(Chooser chooser) : chooser_(std::move(chooser)) {}

  /// Rows of one product stand together.
  JudgedChoices judge(const std::vector<MeasuredTime>& times) {
    judged_ = {};
    other_bands_ = 0;
    for (auto first = times.begin(); first != times.end();) {
      const auto end = std::find_if_not(
          first, times.end(), [&](const MeasuredTime& t) { return same_product(t, *first); });
      judge_product({first, end});
      first = end;
    }
    say_bands();
    if (judged_.products > 0) judged_.regret /= judged_.products;
    return judged_;
  }

 private:
  void judge_product(const std::vector<MeasuredTime>& rows) {
    const MeasuredTime& first = rows.front();
    const auto problem = parse_problem(first.product);
    if (!problem) {
      judged_.untimed.push_back(first.product + ": " + problem.reason() + "; " + kAgain);
      return;
    }
    const std::string name = first.card + ", " + shape_text(*problem) + ", " + formula(*problem) +
                             (first.lengths == "-" ? "" : ", lengths " + first.lengths);
    const MachineNumbers* const machine = machine_of_card(first.card);
    if (machine == nullptr) {
      judged_.said.push_back(name + ": machines/ has no such card");
      return;
    }
    const DeviceFacts device = *known_facts(machine->name);
    const auto today = chooser_(*problem, device);
    if (!today) {
      judged_.untimed.push_back(name + ": there is no plan today: " + today.reason());
      return;
    }
    const auto named = [&](const std::string& configuration) {
      return std::find_if(rows.begin(), rows.end(),
                          [&](const MeasuredTime& t) { return t.configuration == configuration; });
    };
    const auto now = named(configuration_text(*today));
    say_differences(name, rows, *problem, device);
    if (now == rows.end()) {
      judged_.untimed.push_back(name + ": today's choice " + configuration_text(*today) +
                                " has no recorded time; " + kAgain);
      return;
    }
    const auto then =
        std::find_if(rows.begin(), rows.end(), [](const MeasuredTime& t) { return t.chosen; });
    const auto best = std::min_element(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
      return x.microseconds < y.microseconds;
    });
    const double regret = now->microseconds / best->microseconds - 1;
    ++judged_.products;
    judged_.regret += regret;
    judged_.worst = std::max(judged_.worst, regret);
    judged_.over += regret >= kFar ? 1 : 0;
    const auto slower = [&](const MeasuredTime& than) {
      return now->microseconds > (1 + kNoise) * than.microseconds;
    };
    const auto sentence = [&](const MeasuredTime& than, const char* what) {
      return name + format(": today's choice %s took %.2f us, and %s %s %.2f us: %.1f%% more",
                           now->configuration.c_str(), now->microseconds, what,
                           than.configuration.c_str(), than.microseconds,
                           100 * (now->microseconds / than.microseconds - 1));
    };
    if (then != rows.end() && slower(*then)) {
      judged_.worse.push_back(sentence(*then, "the choice when it was recorded,"));
    }
    if (slower(*best)) judged_.far.push_back(sentence(*best, "the fastest,"));
  }

  // Ways that are gone or new, and those of which only the bands are others: how many clusters a
  // card holds together differs from card to card, and bands follow it.
  void say_differences(const std::string& name, const std::vector<MeasuredTime>& rows,
                       const GemmProblem& problem, const DeviceFacts& device) {
    std::map<std::string, std::string> had;
    std::map<std::string, std::string> has;
    const auto put = [](std::map<std::string, std::string>& ways, const std::string& text) {
      const std::size_t band = text.rfind('/');
      ways[text.substr(0, band)] = text.substr(band + 1);
    };
    for (const MeasuredTime& t : rows) put(had, t.configuration);
    const auto all = candidates(problem, device);
    for (const Plan& plan : all ? *all : std::vector<Plan>{}) put(has, configuration_text(plan));
    const auto only_in = [](const auto& these, const auto& those) {
      std::vector<std::string> found;
      for (const auto& [way, band] : these) {
        if (!those.contains(way)) found.push_back(way + "/" + band);
      }
      return found;
    };
    for (const auto& [way, band] : had) {
      const auto today = has.find(way);
      if (today == has.end() || today->second == band) continue;
      if (other_bands_++ == 0) first_band_ = way + "/" + today->second + ", timed as " + band;
    }
    const auto gone = only_in(had, has);
    const auto fresh = only_in(has, had);
    if (gone.empty() && fresh.empty()) return;
    std::string text = name;
    if (!gone.empty()) text += format(": %zu are gone, %s first", gone.size(), gone[0].c_str());
    if (!fresh.empty()) text += format(": %zu are new, %s first", fresh.size(), fresh[0].c_str());
    judged_.said.push_back(text);
  }

  // In one sentence of all products.
  void say_bands() {
    if (other_bands_ == 0) return;
    judged_.said.push_back(
        format("ways with other bands than those that were timed: %d, %s first: the card holds "
               "another number of these clusters than its description says, or bands are new",
               other_bands_, first_band_.c_str()));
  }

  Chooser chooser_;
  JudgedChoices judged_;
  int other_bands_ = 0;
  std::string first_band_;
};

}  // namespace warpwright
