// Where two runs part.
#include "warpwright/pictures/parting.h"
#include "tests/must.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpwright::pictures {
namespace {

using model::BarrierEvent;
using Kind = BarrierEvent::Kind;

struct MadeRun {
  model::Trace trace;
  std::vector<BarrierEvent> barriers;
  [[nodiscard]] KeptRun kept() const { return {trace, barriers}; }
};

MadeRun run_of(const std::vector<std::pair<std::int64_t, std::string>>& slices,
               std::vector<BarrierEvent> barriers = {}) {
  model::TraceBuilder builder;
  const int track = builder.add_track(model::TraceTrack::Kind::role, 0, "producer");
  for (const auto& [time, name] : slices) {
    builder.begin(track, time, name);
    builder.end(track, time + 1);
  }
  return {builder.finish(), std::move(barriers)};
}

BarrierEvent event(Kind kind, std::int64_t time, const std::string& who) {
  BarrierEvent e;
  e.kind = kind;
  e.time = time;
  e.barrier = "full[0]";
  e.who = who;
  e.amount = 1;
  e.expected = 1;
  return e;
}

TEST(Parting, RunsThatDoTheSameDoNotPart) {
  const MadeRun run = run_of({{1, "a"}, {5, "b"}}, {event(Kind::init, 0, "producer (warp 0)")});
  EXPECT_FALSE(parting(run.kept(), run.kept()).has_value());
}

TEST(Parting, TheFirstDifferenceOfARole) {
  const MadeRun whole = run_of({{1, "a"}, {5, "b"}, {9, "c"}});
  const MadeRun broken = run_of({{1, "a"}, {6, "x"}, {9, "c"}});
  const auto part = must(parting(whole.kept(), broken.kept()));
  EXPECT_EQ(part->time, 5);
  EXPECT_EQ(part->where, "producer");
  EXPECT_EQ(part->whole->what, "b");
  EXPECT_EQ(part->broken->what, "x");
}

TEST(Parting, AnArrivalThatNeverComes) {
  const std::vector<BarrierEvent> waits = {event(Kind::init, 0, ""),
                                           event(Kind::wait, 2, "consumer 0 (warp 4)")};
  std::vector<BarrierEvent> arrives = waits;
  arrives.push_back(event(Kind::arrive, 4, "producer (warp 0)"));
  arrives.push_back(event(Kind::pass, 5, "consumer 0 (warp 4)"));
  const MadeRun whole = run_of({{1, "a"}, {8, "b"}}, arrives);
  const MadeRun broken = run_of({{1, "a"}, {8, "b"}}, waits);
  const auto part = must(parting(whole.kept(), broken.kept()));
  EXPECT_EQ(part->time, 4);
  EXPECT_EQ(part->where, "full[0]");
  EXPECT_TRUE(part->whole.has_value());
  EXPECT_FALSE(part->broken.has_value());
  EXPECT_TRUE(endless_waits(whole.kept()).empty());
  const auto hanging = endless_waits(broken.kept());
  ASSERT_EQ(hanging.size(), 1U);
  EXPECT_EQ(hanging[0].role, "consumer 0");
  EXPECT_EQ(hanging[0].barrier, "full[0]");
  EXPECT_EQ(hanging[0].since, 2);
}

// What a run that was ended by its finding has not done is no difference.
TEST(Parting, ARunThatEndsEarlyDoesNotPart) {
  const MadeRun whole = run_of({{1, "a"}, {5, "b"}, {9, "c"}});
  const MadeRun broken = run_of({{1, "a"}, {5, "b"}});
  EXPECT_FALSE(parting(whole.kept(), broken.kept()).has_value());
}

TEST(Parting, HappeningsAreInTheOrderOfTime) {
  const MadeRun run = run_of({{1, "a"}, {5, "b"}}, {event(Kind::init, 3, "")});
  const std::vector<Happening> all = happenings(run.kept());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].what, "a");
  EXPECT_EQ(all[1].where, "full[0]");
  EXPECT_EQ(all[2].what, "b");
}

}  // namespace
}  // namespace warpwright::pictures
