// Every lesson under every schedule: clean as it stands, and broken the finding that it names, at
// the line that it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "lessons/11_pair_umma.h"
#include "lessons/source.h"
#include "lessons/twin.h"

namespace lessons {

// What GoogleTest prints of a lesson.
static void PrintTo(const Lesson& lesson, std::ostream* out) {
  *out << lesson.name;
}

}  // namespace lessons

namespace warpwright::model {
namespace {

std::string line_of(const Site& site) {
  std::ifstream file(std::string(WARPWRIGHT_SOURCE "/") + site.file);
  std::string line;
  for (int i = 0; i < site.line && std::getline(file, line);) ++i;
  return line;
}

bool names_line(const Finding& f, std::string_view words) {
  if (line_of(f.site).find(words) != std::string::npos) return true;
  return std::any_of(f.accesses.begin(), f.accesses.end(), [&](const auto& access) {
    return line_of(access.site).find(words) != std::string::npos;
  });
}

class LessonTest : public ::testing::TestWithParam<lessons::Lesson> {};

TEST_P(LessonTest, IsCleanAndItsTwinIsFound) {
  const lessons::Lesson& lesson = GetParam();
  const testing::Outcome right = lesson.run({});
  EXPECT_TRUE(right.clean()) << right.text();
  EXPECT_EQ(right.runs.size(), 14U);
  const testing::Outcome broken = lesson.run({.broken = true});
  EXPECT_TRUE(broken.has(lesson.finding)) << broken.text();
  // What it says first is the lesson's own.
  const std::vector<testing::Seen> found = lessons::ranked_findings(lesson, broken);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.size(), broken.findings().size());
  EXPECT_EQ(found.front().finding.check, lesson.finding);
  EXPECT_TRUE(lesson.line.empty() || names_line(found.front().finding, lesson.line))
      << "the first finding names no line with \"" << lesson.line << "\": " << broken.text();
}

// All schedules of a lesson are of one class, but for the one whose clusters take each other's
// places in many orders.
// What a twin does wrong the first classes show: no schedule must be hit on.
TEST_P(LessonTest, AllSchedulesAreCleanAndTheTwinIsFound) {
  const lessons::Lesson& lesson = GetParam();
  lessons::Ask ask;
  ask.schedules.exhaustive = {.classes = 4, .seconds = 60};
  const testing::Outcome right = lesson.run(ask);
  EXPECT_TRUE(right.clean()) << right.text();
  if (lesson.name != "launch_control") {
    EXPECT_TRUE(right.explored->complete) << right.explored->text();
  }
  ask.broken = true;
  const testing::Outcome broken = lesson.run(ask);
  // Bytes that are not counted are told of where the CTA is gone before they come.
  EXPECT_TRUE(broken.has(lesson.finding) ||
              (lesson.name == "tma_copy" && broken.has(Check::barrier_outlived)))
      << broken.text();
}

// What the program holds is what lies in the checkout, and says what the twin has otherwise.
TEST_P(LessonTest, ItsSourceIsInTheProgram) {
  std::string changes;
  for (const std::string& file : lessons::files(GetParam())) {
    std::ifstream in(std::string(WARPWRIGHT_SOURCE "/") + file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(lessons::source(file), text.str()) << file;
    for (const lessons::TwinLine& twin : lessons::twin_lines(text.str())) {
      EXPECT_EQ((twin.right + twin.broken).find("Broken"), std::string::npos) << twin.line;
      EXPECT_NE(twin.right, twin.broken);
    }
    changes += lessons::twin_diff(text.str());
  }
  EXPECT_NE(changes, "");
}

TEST(Twin, LinesAreThoseOfTheRightOneAndOfTheBrokenOne) {
  const auto diff = [](const char* line) { return lessons::twin_diff(line); };
  EXPECT_EQ(diff("  int phase = Broken ? 0 : 1;  // first"),
            "line 1\n-  int phase = 1;  // first\n+  int phase = 0;  // first\n");
  EXPECT_EQ(diff("wait<n + (Broken ? 1 : 0)>();"), "line 1\n-wait<n + 0>();\n+wait<n + 1>();\n");
  EXPECT_EQ(diff("f(a, Broken ? g(1, 2) : own::none);"),
            "line 1\n-f(a, own::none);\n+f(a, g(1, 2));\n");
  EXPECT_EQ(diff("int a;\n  if constexpr (!Broken) turn.enter();"), "line 2\n-  turn.enter();\n");
  EXPECT_EQ(diff("if constexpr (Broken) at = 0;"), "line 1\n+at = 0;\n");
  EXPECT_EQ(diff("if (!Broken && none(x)) return;"), "line 1\n-if (none(x)) return;\n");
  EXPECT_EQ(diff("template <bool Broken>\nkernel<Broken>();"), "");
}

// Both orders of lesson 3 stand in one run: the deck's goes on in the twin, note 004's hangs.
TEST(FirstPhase, TheDeckDoesNotHang) {
  testing::Recording recording;
  EXPECT_TRUE(
      lessons::all()[2].run({.broken = true, .recording = &recording}).has(Check::deadlock));
  std::int64_t deck = 0;
  std::int64_t note = 0;
  for (const BarrierEvent& e : recording.barriers) {
    if (e.kind != BarrierEvent::Kind::flip) continue;
    const bool of_deck = e.barrier.starts_with("bar_");
    (of_deck ? deck : note) += 1;
  }
  EXPECT_EQ(deck, 8);  // full and empty, four times
  EXPECT_EQ(note, 0);
}

// Events come in the order of time, and what they say of a barrier is what came until then.
TEST(Lesson, BarrierEventsAreInTheOrderOfTime) {
  for (const int number : {3, 4, 11}) {
    testing::Recording recording;
    lessons::all()[static_cast<std::size_t>(number - 1)].run({.recording = &recording});
    std::map<std::pair<int, std::string>, std::int64_t> bytes;
    std::int64_t last = 0;
    for (const BarrierEvent& e : recording.barriers) {
      EXPECT_GE(e.time, last) << "lesson " << number << ", " << e.barrier;
      last = e.time;
      std::int64_t& due = bytes[{e.cta, e.barrier}];
      if (e.kind == BarrierEvent::Kind::expect) due += e.amount;
      if (e.kind == BarrierEvent::Kind::bytes) due -= e.amount;
      EXPECT_EQ(e.tx, due) << "lesson " << number << ", " << e.barrier << " at " << e.time;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LessonTest, ::testing::ValuesIn(lessons::all()),
                         [](const auto& each) { return std::string(each.param.name); });

// With other stages and other numbers in flight, too.
TEST(Lesson, KnobsAreCleanAndTheirTwinsAreFound) {
  for (const lessons::Ask& ask : {lessons::Ask{.stages = 1, .in_flight = 0},
                                  {.stages = 2, .in_flight = 1},
                                  {.stages = 4, .in_flight = 3},
                                  {.stages = 8, .in_flight = 2}}) {
    lessons::Ask twin = ask;
    twin.broken = true;
    const lessons::Lesson& wgmma = lessons::all()[6];
    EXPECT_TRUE(wgmma.run(ask).clean()) << ask.stages << " stages, in flight " << ask.in_flight;
    EXPECT_TRUE(wgmma.run(twin).has(wgmma.finding)) << ask.stages << " stages";
  }
  for (const int stages : {2, 4, 6}) {
    const lessons::Lesson& ampere = lessons::all()[5];
    EXPECT_TRUE(ampere.run({.stages = stages}).clean()) << stages << " stages";
    EXPECT_TRUE(ampere.run({.broken = true, .stages = stages}).has(ampere.finding)) << stages;
  }
}

// A recording is of the schedule by the clock, whatever the others do.
TEST(Lesson, ARecordingHasTheTimelineAndTheBarriers) {
  testing::Recording recording;
  const testing::Outcome outcome = lessons::all()[1].run({.recording = &recording});
  EXPECT_TRUE(outcome.clean());
  EXPECT_EQ(recording.trace.fault(), "");
  EXPECT_GT(recording.trace.event_count(), 0);
  std::int64_t landed = 0;
  int flips = 0;
  for (const BarrierEvent& e : recording.barriers) {
    if (e.kind == BarrierEvent::Kind::bytes) landed += e.amount;
    if (e.kind == BarrierEvent::Kind::flip) ++flips;
  }
  EXPECT_EQ(landed, 16384);
  EXPECT_EQ(flips, 1);
}

// A find in the seeds, as docs/seeds.md has it: seed 000's loop lets all threads wait for a phase
// and go on, and one that is late misses it.
TEST(PairUmma, WithoutABarrierBehindTheWaitAPhaseIsMissed) {
  EXPECT_TRUE(lessons::pair_umma::run<false>({}).has(Check::stale_parity));
}

}  // namespace
}  // namespace warpwright::model
