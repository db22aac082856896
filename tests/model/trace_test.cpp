// The timeline of Mode::timed: well-formed, deterministic, and true to who overlaps with whom.
#include "warpwright/model/report/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/harness.h"
#include "warpwright/facts/machines.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

// Those of a run that names no machine.
Costs costs() {
  return Costs(machine_of_architecture(90), 0);
}

Trace traced(const Kernel& kernel, Mode mode = Mode::timed) {
  Trace trace;
  Options how;
  how.mode = mode;
  how.trace = &trace;
  must_be_clean(run(kernel, how));
  EXPECT_EQ(trace.fault(), "");
  return trace;
}

const TraceTrack* find_track(const Trace& trace, const std::string& name, int cta = 0) {
  for (const TraceTrack& t : trace.tracks) {
    if (t.name == name && t.cta == cta) return &t;
  }
  return nullptr;
}

std::vector<std::string> names(const Trace& trace, const TraceTrack& track,
                               TraceEvent::Kind kind = TraceEvent::Kind::begin) {
  std::vector<std::string> all;
  for (const TraceEvent& e : track.events) {
    if (e.kind == kind) all.push_back(trace.texts[static_cast<std::size_t>(e.name)]);
  }
  return all;
}

TEST(Trace, LabelsTakeTheirNumbersInOrder) {
  EXPECT_EQ(label_text("tile m % n %, k_tile %", 1, 0, 23), "tile m 1 n 0, k_tile 23");
  EXPECT_EQ(label_text("epilogue", 1, 2, 3), "epilogue");
  EXPECT_EQ(label_text("% % % %", 1, 2, 3), "1 2 3 %");
}

TEST(Trace, TheBuilderKeepsTracksWellFormed) {
  TraceBuilder b;
  const int track = b.add_track(TraceTrack::Kind::role, 0, "producer");
  b.end(track, 5);  // its begin was dropped
  b.begin(track, 10, "outer");
  b.begin(track, 12, "inner");
  EXPECT_EQ(b.open_text(track), "outer, inner");
  b.end(track, 11);  // time does not run back
  b.instant(track, 13, "moment");
  const int silent = b.add_track(TraceTrack::Kind::role, 0, "idle");
  EXPECT_EQ(silent, 1);
  const Trace trace = b.finish();
  EXPECT_EQ(trace.fault(), "");
  ASSERT_EQ(trace.tracks.size(), 1U);
  EXPECT_EQ(trace.event_count(), 5);
  EXPECT_EQ(trace.end(), 13);
}

TEST(Trace, AWaitThatLooksAgainIsOneSlice) {
  TraceBuilder b;
  const int track = b.add_track(TraceTrack::Kind::role, 0, "consumer");
  for (const int from : {0, 10, 20}) {
    b.begin(track, from, "wait stores");
    b.end(track, from + 10);
  }
  EXPECT_EQ(b.finish().event_count(), 2);
}

TEST(Trace, OfOneRoleTheFirstThreadIsKept) {
  TraceBuilder b;
  for (const int thread : {160, 128}) {
    const int track = b.add_track(TraceTrack::Kind::role, 0, "consumer", thread);
    b.instant(track, 1, "moment");
  }
  const Trace trace = b.finish();
  ASSERT_EQ(trace.tracks.size(), 1U);
  EXPECT_EQ(trace.tracks[0].thread, 128);
}

TEST(Trace, FaultsAreFound) {
  Trace trace;
  trace.texts = {"a", "b"};
  trace.tracks.emplace_back();
  std::vector<TraceEvent>& events = trace.tracks[0].events;
  using Kind = TraceEvent::Kind;
  events = {{Kind::begin, 5, 0}, {Kind::end, 4, 0}};
  EXPECT_NE(trace.fault(), "");
  events = {{Kind::end, 5, 0}};
  EXPECT_NE(trace.fault(), "");
  events = {{Kind::begin, 5, 0}};
  EXPECT_NE(trace.fault(), "");
  events = {{Kind::begin, 5, 0}, {Kind::begin, 6, 1}, {Kind::end, 7, 0}, {Kind::end, 8, 1}};
  EXPECT_NE(trace.fault(), "");
  events = {{Kind::instant, 5, 2}};
  EXPECT_NE(trace.fault(), "");
  events = {{Kind::begin, 5, 0}, {Kind::begin, 6, 1}, {Kind::end, 7, 1}, {Kind::end, 8, 0}};
  EXPECT_EQ(trace.fault(), "");
}

// Warp 0 loads `count` boxes of 64 x 64 bf16 (8 KiB) into a ring of `stages`; warp 1 waits for each
// and spends some time on it.
Kernel loads(Memory<std::uint16_t>& source, int count, int stages) {
  Kernel kernel;
  kernel.shape = {.ctas = 1, .cluster_size = 1, .threads = 64, .shared_bytes = stages * 8192 + 64};
  kernel.memory = {source.allocation("source", false)};
  const TensorMap map =
      map_of({.data = source.data(), .rows = 64, .columns = 64, .box_rows = 64, .box_columns = 64});
  kernel.body = [=] {
    const isa::SharedAddress base = isa::shared_base();
    const isa::SharedAddress full = base + stages * 8192;
    const isa::SharedAddress empty = full + stages * 8;
    if (isa::thread_index() == 0) {
      for (int s = 0; s < stages; ++s) {
        isa::mbarrier_init(full + s * 8, 1, {"full", s});
        isa::mbarrier_init(empty + s * 8, 1, {"empty", s});
        isa::fence_mbarrier_init();
      }
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(64);
    if (isa::thread_index() == 0) {
      isa::set_role("producer");
      for (int i = 0; i < count; ++i) {
        const isa::Mark mark("box %", i);
        const int s = i % stages;
        isa::mbarrier_wait<isa::Scope::cta>(empty + s * 8, (i / stages & 1) ^ 1, {"empty", s});
        expect_load(8192, base + s * 8192, map, full + s * 8, isa::Coords{0, 0});
      }
    } else if (isa::thread_index() >= 32) {
      isa::set_role("consumer");
      for (int i = 0; i < count; ++i) {
        const int s = i % stages;
        isa::mbarrier_wait<isa::Scope::cta>(full + s * 8, i / stages & 1, {"full", s});
        const isa::SharedView<std::uint16_t> box{base + s * 8192};
        for (int j = 0; j < 200; ++j) static_cast<void>(box.load(j));
        isa::sync_warp();
        if (isa::thread_index() == 32) isa::mbarrier_arrive<isa::Scope::cta>(empty + s * 8);
      }
    }
  };
  return kernel;
}

TEST(Trace, NamesWaitsByBarrierAndEngineSlicesByMark) {
  Memory<std::uint16_t> source(64 * 64);
  const Trace trace = traced(loads(source, 4, 2));
  EXPECT_EQ(trace.clock, "nominal cycles");
  EXPECT_FALSE(trace.measured);
  const TraceTrack* producer = find_track(trace, "producer");
  const TraceTrack* engine = find_track(trace, "TMA: loads");
  const TraceTrack* consumer = find_track(trace, "consumer");
  ASSERT_NE(producer, nullptr);
  ASSERT_NE(engine, nullptr);
  ASSERT_NE(consumer, nullptr);
  EXPECT_EQ(names(trace, *engine), (std::vector<std::string>{"box 0", "box 1", "box 2", "box 3"}));
  const auto waits = names(trace, *consumer);
  // Box 2 is asked for when box 0 has been read, so the consumer waits for both.
  EXPECT_EQ(std::count(waits.begin(), waits.end(), "wait full[0]"), 2);
  const auto produced = names(trace, *producer);
  EXPECT_EQ(std::count(produced.begin(), produced.end(), "wait empty[0]"), 1);
  // Tracks come as the work flows.
  EXPECT_LT(producer - trace.tracks.data(), engine - trace.tracks.data());
  EXPECT_LT(engine - trace.tracks.data(), consumer - trace.tracks.data());
}

TEST(Trace, OneEngineMovesOneCopyAtATime) {
  Memory<std::uint16_t> source(64 * 64);
  const Trace trace = traced(loads(source, 6, 3));
  const TraceTrack* engine = find_track(trace, "TMA: loads");
  ASSERT_NE(engine, nullptr);
  ASSERT_EQ(engine->events.size(), 12U);
  for (std::size_t i = 0; i < 12; i += 2) {
    EXPECT_EQ(engine->events[i].kind, TraceEvent::Kind::begin);
    EXPECT_EQ(engine->events[i + 1].kind, TraceEvent::Kind::end);
    EXPECT_NEAR(static_cast<double>(engine->events[i + 1].time - engine->events[i].time),
                8192 / costs().tma_rate, 1);
  }
  EXPECT_GE(engine->events[0].time, costs().tma_latency);
}

TEST(Trace, AWaitEndsAfterItsLoad) {
  Memory<std::uint16_t> source(64 * 64);
  const Trace trace = traced(loads(source, 1, 1));
  const TraceTrack* engine = find_track(trace, "TMA: loads");
  const TraceTrack* consumer = find_track(trace, "consumer");
  ASSERT_NE(engine, nullptr);
  ASSERT_NE(consumer, nullptr);
  for (const TraceEvent& e : consumer->events) {
    if (e.kind != TraceEvent::Kind::end) continue;
    if (trace.texts[static_cast<std::size_t>(e.name)] != "wait full[0]") continue;
    EXPECT_EQ(e.time, engine->events[1].time + costs().wake);
    return;
  }
  ADD_FAILURE() << "no wait for full[0]";
}

TEST(Trace, TwoRunsAreEqual) {
  Memory<std::uint16_t> source(64 * 64);
  const Kernel kernel = loads(source, 9, 2);
  const Trace a = traced(kernel);
  const Trace b = traced(kernel);
  ASSERT_EQ(a.texts, b.texts);
  ASSERT_EQ(a.tracks.size(), b.tracks.size());
  for (std::size_t t = 0; t < a.tracks.size(); ++t) {
    EXPECT_EQ(a.tracks[t].name, b.tracks[t].name);
    ASSERT_EQ(a.tracks[t].events.size(), b.tracks[t].events.size());
    for (std::size_t i = 0; i < a.tracks[t].events.size(); ++i) {
      EXPECT_EQ(a.tracks[t].events[i].time, b.tracks[t].events[i].time);
      EXPECT_EQ(a.tracks[t].events[i].name, b.tracks[t].events[i].name);
    }
  }
}

TEST(Trace, OtherModesCountSteps) {
  Memory<std::uint16_t> source(64 * 64);
  const Trace trace = traced(loads(source, 4, 2), Mode::latest);
  EXPECT_EQ(trace.clock, "scheduler steps");
  EXPECT_NE(find_track(trace, "producer"), nullptr);
  EXPECT_EQ(find_track(trace, "TMA: loads"), nullptr);
}

TEST(Trace, ClustersThatWaitForAnSmStartWhenOneIsFree) {
  Kernel kernel;
  kernel.shape = {.ctas = 3, .cluster_size = 1, .threads = 32, .shared_bytes = 1024};
  kernel.body = [] {
    const isa::Mark mark("work of CTA %", isa::cta_index());
    for (int i = 0; i < 10; ++i) isa::sync_warp();
  };
  Trace trace;
  Options how;
  how.mode = Mode::timed;
  how.sms = 2;
  how.trace = &trace;
  EXPECT_TRUE(run(kernel, how).clean());
  EXPECT_EQ(trace.fault(), "");
  ASSERT_EQ(trace.tracks.size(), 3U);
  EXPECT_EQ(trace.tracks[0].events.front().time, 0);
  EXPECT_EQ(trace.tracks[1].events.front().time, 0);
  EXPECT_EQ(trace.tracks[2].events.front().time,
            trace.tracks[0].events.back().time + costs().next_cta);
  EXPECT_EQ(trace.tracks[0].sm, 0);
  EXPECT_EQ(trace.tracks[1].sm, 1);
  EXPECT_EQ(trace.tracks[2].sm, 0);
}

TEST(Trace, AStoppedKernelLeavesAWellFormedTrace) {
  Kernel kernel;
  kernel.shape = {.ctas = 1, .cluster_size = 1, .threads = 64, .shared_bytes = 1024};
  kernel.body = [] {
    const isa::Mark mark("for ever");
    if (isa::thread_index() >= 32) isa::named_barrier_sync(1, 64);
  };
  Trace trace;
  Options how;
  how.mode = Mode::timed;
  how.trace = &trace;
  EXPECT_TRUE(run(kernel, how).has(Check::deadlock));
  EXPECT_EQ(trace.fault(), "");
  ASSERT_FALSE(trace.tracks.empty());
}

}  // namespace
}  // namespace warpwright::model
