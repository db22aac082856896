// Every lesson under every schedule: clean as it stands, and broken the finding that it names, at
// the line that it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "lessons/11_pair_umma.h"

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
  if (!lesson.line.empty()) {
    const std::vector<testing::Seen> found = broken.findings();
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [&](const testing::Seen& s) {
                              return s.finding.check == lesson.finding &&
                                     names_line(s.finding, lesson.line);
                            }))
        << "no finding names a line with \"" << lesson.line << "\": " << broken.text();
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
  for (const int stages : {2, 4}) {
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
