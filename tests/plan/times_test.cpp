// Measured times as data, and today's choices held against those of bench/times.tsv.gz.
#include "warpwright/plan/tuning/times.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/must.h"
#include "tests/plan/recorded_choices.h"
#include "tests/problem_changes.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright {
namespace {

const std::string kHeading =
    "card\tcommit\tproduct\tlengths\tconfiguration\tmicroseconds\tchosen\n";

GemmProblem few_rows() {
  return packed_problem(64, 4096, 7168, DType::bf16, DType::bf16);
}

// All ways to `few_rows` on an H200: 20 us for the first, which is the choice, and one more for
// each behind it.
std::vector<MeasuredTime> recorded(std::vector<Plan>& plans) {
  plans = *candidates(few_rows(), *known_facts("h200"));
  std::vector<MeasuredTime> times;
  for (const Plan& plan : plans) {
    times.push_back({"NVIDIA H200", "c0ffee", problem_text(few_rows()), "-",
                     configuration_text(plan), 20.0 + static_cast<double>(times.size()),
                     times.empty()});
  }
  return times;
}

Chooser always(const Plan& plan) {
  return [plan](const GemmProblem&, const DeviceFacts&) -> Result<Plan> { return plan; };
}

std::string all_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

TEST(Times, AreReadAsTheyAreWritten) {
  std::vector<Plan> plans;
  const auto times = recorded(plans);
  ASSERT_GT(times.size(), 30U);
  std::set<std::string> configurations;
  for (const MeasuredTime& t : times) configurations.insert(t.configuration);
  EXPECT_EQ(configurations.size(), times.size());
  const auto read = must(parse_times(times_text(times)));
  EXPECT_EQ(*read, times);
}

TEST(Times, RowsOfAProductTakeThePlaceOfItsOldOnes) {
  const MeasuredTime one{"H", "c", "p", "-", "x", 1, true};
  MeasuredTime newer = one;
  newer.commit = "d";
  newer.microseconds = 2;
  MeasuredTime other = one;
  other.lengths = "16";
  std::vector<MeasuredTime> times = {one, one, other};
  put_times(times, {newer});
  EXPECT_EQ(times, (std::vector<MeasuredTime>{other, newer}));
}

TEST(Times, ABadLineIsRefusedByItsNumberAndField) {
  const std::string good = "NVIDIA H200\tc0ffee\tp\t-\tx_c1x1/132/m1\t1.5\tchosen\n";
  EXPECT_TRUE(parse_times(kHeading + good));
  const auto said = [&](const std::string& text) {
    const auto read = parse_times(text);
    return read ? std::string("read") : read.reason();
  };
  EXPECT_EQ(said("warpwright tuning v1\n").substr(0, 33), "it is no file of measured times: ");
  const std::pair<const char*, const char*> lines[] = {
      {"a\tb\tc\n", "row 2 has 3 fields; a row has 7, with tabs between"},
      {"a\t\tc\td\te\t1\t-\n", "row 2, field commit: it is empty"},
      {"a\tb\tc\td\te\tnan\t-\n",
       "row 2, field microseconds: \"nan\" is no time of a launch: more than 0 and at most "
       "3.6e+09"},
      {"a\tb\tc\td\te\t-1\t-\n",
       "row 2, field microseconds: \"-1\" is no time of a launch: more than 0 and at most 3.6e+09"},
      {"a\tb\tc\td\te\t1e30\t-\n",
       "row 2, field microseconds: \"1e30\" is no time of a launch: more than 0 and at most "
       "3.6e+09"},
      {"a\tb\tc\td\te\t1\tyes\n", "row 2, field chosen: \"yes\" is neither \"chosen\" nor \"-\""},
  };
  for (const auto& [line, sentence] : lines) EXPECT_EQ(said(kHeading + good + line), sentence);
}

TEST(Times, AProductThatIsNoneIsRefused) {
  const std::string text = problem_text(few_rows());
  ASSERT_TRUE(parse_problem(text));
  for (const std::string& other :
       {std::string(), text + " x=1", text + " scaling", text.substr(0, text.size() - 1) + "-1",
        "a=bf16" + text.substr(2), text.substr(0, text.rfind(' ')), text.substr(0, 40) + "2e99",
        "a=bf99" + text.substr(6)}) {
    EXPECT_FALSE(parse_problem(other)) << other;
  }
}

TEST(RecordedChoices, ASlowerChoiceIsAFault) {
  std::vector<Plan> plans;
  const auto times = recorded(plans);
  const auto same = ChoiceJudge(always(plans[0])).judge(times);
  EXPECT_EQ(same.products, 1);
  EXPECT_EQ(same.regret, 0);
  EXPECT_EQ(all_of(same.worse) + all_of(same.untimed) + all_of(same.far) + all_of(same.said), "");
  const auto slower = ChoiceJudge(always(plans[1])).judge(times);
  EXPECT_NEAR(slower.regret, 0.05, 1e-9);
  EXPECT_EQ(all_of(slower.worse), "NVIDIA H200, 64x4096x7168, " + formula(few_rows()) +
                                      ": today's choice " + times[1].configuration +
                                      " took 21.00 us, and the choice when it was recorded, " +
                                      times[0].configuration + " 20.00 us: 5.0% more\n");
  EXPECT_EQ(slower.far.size(), 1U);
}

TEST(RecordedChoices, OneThatWasSlowThenIsListed) {
  std::vector<Plan> plans;
  auto times = recorded(plans);
  times[0].microseconds = 30;
  const auto judged = ChoiceJudge(always(plans[0])).judge(times);
  EXPECT_TRUE(judged.worse.empty());
  EXPECT_EQ(all_of(judged.far), "NVIDIA H200, 64x4096x7168, " + formula(few_rows()) +
                                    ": today's choice " + times[0].configuration +
                                    " took 30.00 us, and the fastest, " + times[1].configuration +
                                    " 21.00 us: 42.9% more\n");
  // Within the noise nothing is said.
  times[0].microseconds = 21.6;
  EXPECT_TRUE(ChoiceJudge(always(plans[0])).judge(times).far.empty());
}

TEST(RecordedChoices, WaysThatAreGoneOrNewAreSaidAndAnUntimedChoiceIsAFault) {
  std::vector<Plan> plans;
  auto times = recorded(plans);
  const std::string missing = times[2].configuration;
  times[2].configuration = "gone_c1x1/1/m1";
  const auto judged = ChoiceJudge(always(plans[0])).judge(times);
  EXPECT_TRUE(judged.worse.empty() && judged.untimed.empty());
  ASSERT_EQ(judged.said.size(), 1U);
  expect_contains(judged.said[0], "1 are gone, gone_c1x1/1/m1 first: 1 are new, " + missing);
  // Another band is said in one sentence, and has no time of its own.
  times[2].configuration = missing.substr(0, missing.rfind('/') + 1) + "n77";
  const auto banded = ChoiceJudge(always(plans[0])).judge(times);
  ASSERT_EQ(banded.said.size(), 1U);
  EXPECT_EQ(banded.said[0].rfind("ways with other bands than those that were timed: 1, " + missing +
                                     ", timed as n77 first",
                                 0),
            0U)
      << banded.said[0];
  const auto untimed = ChoiceJudge(always(plans[2])).judge(times);
  ASSERT_EQ(untimed.untimed.size(), 1U);
  expect_contains(untimed.untimed[0], "today's choice " + missing +
                                          " has no recorded time; record again: script/on_gpu run");
}

TEST(RecordedChoices, AreNearTheFastest) {
  if (!is_usual_build()) GTEST_SKIP() << "times are of the kernels of a usual build";
  const std::string path = WARPWRIGHT_SOURCE "/bench/times.tsv.gz";
  const auto times = must(parse_times(unpacked(path)));
  const auto choose = [](const GemmProblem& p, const DeviceFacts& d) { return plan(p, d); };
  std::map<std::string, std::vector<MeasuredTime>> by_card;
  for (const MeasuredTime& time : *times) by_card[time.card].push_back(time);
  // What choices lose (docs/log/prediction.md) does not grow unseen: in the mean, and how many are
  // far from the fastest. One of six products had no part in what choices go by.
  const std::map<std::string, std::pair<double, double>> bounds = {
      {"NVIDIA H200", {0.011, 0.02}}, {"NVIDIA H100 80GB HBM3", {0.01, 0.02}}};
  for (const auto& [card, rows] : by_card) {
    SCOPED_TRACE(card);
    const JudgedChoices judged = ChoiceJudge(choose).judge(rows);
    std::printf(
        "%s, %d products: choices take %.2f%% more than the fastest of %zu rows, %.1f%% at worst, "
        "%d of them at least 10%%, %zu over 3%% more than the choice when they were recorded\n",
        card.c_str(), judged.products, 100 * judged.regret, rows.size(), 100 * judged.worst,
        judged.over, judged.worse.size());
    EXPECT_TRUE(judged.untimed.empty()) << all_of(judged.untimed);
    ASSERT_TRUE(bounds.contains(card)) << "a card without bounds";
    EXPECT_LE(judged.regret, bounds.at(card).first) << all_of(judged.far);
    EXPECT_LE(1.0 * judged.over / judged.products, bounds.at(card).second) << all_of(judged.far);
  }
}

}  // namespace
}  // namespace warpwright
