#include "warpwright/pictures/parting.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "warpwright/pictures/barrier_svg.h"

namespace warpwright::pictures {
namespace {

using model::TraceEvent;
using model::TraceTrack;

// By CTA, and role or barrier.
using Threads = std::map<std::tuple<int, int, std::string>, std::vector<Happening>>;

void add_roles(const model::Trace& trace, Threads& all) {
  for (const TraceTrack& track : trace.tracks) {
    if (track.kind != TraceTrack::Kind::role) continue;
    std::vector<Happening>& list = all[{track.grid, track.cta, track.name}];
    for (const TraceEvent& e : track.events) {
      if (e.kind == TraceEvent::Kind::end) continue;
      list.push_back(
          {e.time, track.cta, track.name, trace.texts[static_cast<std::size_t>(e.name)]});
    }
  }
}

// Each event by itself: what two runs have done of a step one sees only so.
void add_events(const std::vector<model::BarrierEvent>& events, Threads& all) {
  for (const model::BarrierEvent& e : events) {
    const BarrierStep step{e, 1, e.amount, e.who.substr(0, e.who.find(" ("))};
    all[{-1, e.cta, e.barrier}].push_back({e.time, e.cta, e.barrier, step_text(step)});
  }
}

// Events of one kind that follow each other as one, for a reader.
void add_steps(const std::vector<model::BarrierEvent>& events, Threads& all) {
  std::map<int, std::vector<model::BarrierEvent>> by_cta;
  for (const model::BarrierEvent& e : events) by_cta[e.cta].push_back(e);
  for (const auto& [cta, own] : by_cta) {
    for (const BarrierStep& step : barrier_steps(own, cta)) {
      const model::BarrierEvent& e = step.event;
      all[{-1, cta, e.barrier}].push_back({e.time, cta, e.barrier, step_text(step)});
    }
  }
}

Threads threads_of(const KeptRun& run) {
  Threads all;
  add_roles(run.trace, all);
  add_events(run.barriers, all);
  return all;
}

std::int64_t end_of(const KeptRun& run) {
  std::int64_t end = run.trace.end();
  for (const model::BarrierEvent& e : run.barriers) end = std::max(end, e.time);
  return end;
}

}  // namespace

std::vector<Happening> happenings(const KeptRun& run) {
  Threads threads;
  add_roles(run.trace, threads);
  add_steps(run.barriers, threads);
  std::vector<Happening> all;
  for (auto& [key, list] : threads) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Happening& a, const Happening& b) { return a.time < b.time; });
  return all;
}

std::optional<Parting> parting(const KeptRun& whole, const KeptRun& broken) {
  const Threads first = threads_of(whole);
  Threads second = threads_of(broken);
  for (const auto& [key, list] : first) second.try_emplace(key);
  // A run that was ended by its finding has not done later what the other still does.
  const std::int64_t end = end_of(broken);
  const std::vector<Happening> none;
  std::optional<Parting> earliest;
  for (const auto& [key, list] : second) {
    const auto at = first.find(key);
    const std::vector<Happening>& other = at == first.end() ? none : at->second;
    const auto [a, b] = std::mismatch(other.begin(), other.end(), list.begin(), list.end());
    Parting found;
    if (a != other.end()) found.whole = *a;
    if (b != list.end()) found.broken = *b;
    if (!found.whole && !found.broken) continue;
    const Happening& next =
        !found.broken || (found.whole && found.whole->time <= found.broken->time) ? *found.whole
                                                                                  : *found.broken;
    if (next.time >= end && !found.broken) continue;
    if (earliest && earliest->time <= next.time) continue;
    found.time = next.time;
    found.cta = next.cta;
    found.where = next.where;
    earliest = found;
  }
  return earliest;
}

}  // namespace warpwright::pictures
