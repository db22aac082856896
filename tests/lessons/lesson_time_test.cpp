// The lessons by the clock: the deck's pages 5 to 7 and 26 to 28 come out as they are drawn, and a
// broken twin is found by the clock where it is found without.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lessons/lesson.h"
#include "warpwright/facts/machines.h"

namespace warpwright::model {
namespace {

// Only one schedule.
testing::Schedules only(bool timed) {
  testing::Schedules s;
  s.eager = false;
  s.latest = !timed;
  s.timed = timed;
  s.random = 0;
  s.starve = 0;
  return s;
}

double clocks_of(int lesson, int stages, int in_flight, const char* machine) {
  testing::Recording recording;
  lessons::Ask ask;
  ask.stages = stages;
  ask.in_flight = in_flight;
  ask.machine = known_machine(machine);
  ask.schedules = only(true);
  ask.recording = &recording;
  const auto& all = lessons::all();
  const testing::Outcome outcome = all[static_cast<std::size_t>(lesson - 1)].run(ask);
  EXPECT_TRUE(outcome.clean()) << outcome.text();
  return static_cast<double>(recording.trace.end());
}

// Pages 5 and 6: with more stages more of the copies lie under MMAs, until all of them do.
TEST(LessonTime, Pages5And6StagesHideCopies) {
  for (const char* machine : {"a100", "l40s"}) {
    const double two = clocks_of(6, 2, -1, machine);
    const double three = clocks_of(6, 3, -1, machine);
    const double four = clocks_of(6, 4, -1, machine);
    const double five = clocks_of(6, 5, -1, machine);
    EXPECT_LT(three, 0.9 * two) << machine;
    EXPECT_LT(four, three) << machine;
    EXPECT_LE(five, four) << machine;
    EXPECT_NEAR(clocks_of(6, 6, -1, machine), five, 0.05 * five) << machine;
  }
}

// Page 5: with six stages five groups of copies are on their way before the first MMA, each in the
// lane of cp.async under its number; the fragments have a lane too.
TEST(LessonTime, Page5TheProloguesCopiesAreSlices) {
  testing::Recording recording;
  const testing::Outcome outcome = lessons::all()[5].run(
      {.stages = 6, .recording = &recording, .machine = known_machine("a100")});
  EXPECT_TRUE(outcome.clean());
  EXPECT_EQ(recording.trace.fault(), "");
  const auto begins = [&](const std::string& track) {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const TraceTrack& t : recording.trace.tracks) {
      for (const TraceEvent& e : t.events) {
        if (t.name != track || e.kind != TraceEvent::Kind::begin) continue;
        all.emplace_back(recording.trace.texts[static_cast<std::size_t>(e.name)], e.time);
      }
    }
    return all;
  };
  const auto copies = begins("cp.async");
  ASSERT_EQ(copies.size(), 16U);  // one a k_tile
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(copies[i].first, "copies " + std::to_string(i));
  }
  ASSERT_FALSE(begins("tensor core").empty());
  EXPECT_LT(copies[2].second, begins("tensor core").front().second);
  EXPECT_GE(begins("ldmatrix").size(), 16U);
}

// Page 26: a single buffer, where the tensor core idles while data come. Page 27: the next k_tile
// comes meanwhile. Page 28: wgmmas in flight, each of which takes a stage from the loads, so that
// they pay where the ring is long.
TEST(LessonTime, Pages26To28StagesAndThenGroupsInFlight) {
  const double single = clocks_of(7, 1, 0, "h200");
  const double two = clocks_of(7, 2, 0, "h200");
  const double four = clocks_of(7, 4, 0, "h200");
  const double eight = clocks_of(7, 8, 0, "h200");
  EXPECT_LT(two, 0.8 * single);
  EXPECT_LT(four, two);
  EXPECT_LE(eight, four);
  EXPECT_LT(clocks_of(7, 8, 1, "h200"), eight);
  EXPECT_GT(clocks_of(7, 2, 1, "h200"), two);
}

TEST(LessonTime, BrokenTwinsAreFoundByTheClockToo) {
  int found = 0;
  for (const lessons::Lesson& lesson : lessons::all()) {
    if (lesson.run == nullptr) continue;
    lessons::Ask ask;
    ask.broken = true;
    ask.schedules = only(true);
    const bool by_clock = lesson.run(ask).has(lesson.finding);
    ask.schedules = only(false);
    const bool without = lesson.run(ask).has(lesson.finding);
    EXPECT_TRUE(by_clock || !without) << lesson.name;
    found += by_clock ? 1 : 0;
  }
  EXPECT_GE(found, 10);
}

}  // namespace
}  // namespace warpwright::model
