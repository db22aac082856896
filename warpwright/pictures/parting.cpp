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

// By grid, CTA, and role or barrier.
using Threads = std::map<std::tuple<int, int, std::string>, std::vector<Happening>>;

void add_roles(const model::Trace& trace, Threads& all) {
  for (const TraceTrack& track : trace.tracks) {
    if (track.kind != TraceTrack::Kind::role) continue;
    std::vector<Happening>& list = all[{track.grid, track.cta, track.name}];
    for (const TraceEvent& e : track.events) {
      if (e.kind == TraceEvent::Kind::end) continue;
      list.push_back({e.time, track.grid, track.cta, track.name,
                      trace.texts[static_cast<std::size_t>(e.name)]});
    }
  }
}

std::string role_of(const model::BarrierEvent& e) {
  return e.who.substr(0, e.who.find(" ("));
}

// Which grid's barriers of the CTA these are: events do not say it, but each grid makes its own.
class GridOfBarriers {
 public:
  explicit GridOfBarriers(const model::Trace& trace) {
    for (const TraceTrack& track : trace.tracks) {
      if (track.kind != TraceTrack::Kind::role || track.events.empty()) continue;
      const auto [at, is_new] =
          begins_.try_emplace({track.cta, track.grid}, track.events.front().time);
      if (!is_new) at->second = std::min(at->second, track.events.front().time);
    }
  }
  // The last one that had begun when the barrier was made.
  int operator()(const model::BarrierEvent& e) {
    if (e.kind != model::BarrierEvent::Kind::init) return made_[{e.cta, e.barrier}];
    int grid = 0;
    for (const auto& [key, begin] : begins_) {
      if (key.first == e.cta && begin <= e.time) grid = key.second;
    }
    return made_[{e.cta, e.barrier}] = grid;
  }

 private:
  std::map<std::pair<int, int>, std::int64_t> begins_;  // by CTA and grid
  std::map<std::pair<int, std::string>, int> made_;
};

// Each event by itself: what two runs have done of a step one sees only so.
void add_events(const KeptRun& run, Threads& all) {
  GridOfBarriers grid_of(run.trace);
  for (const model::BarrierEvent& e : run.barriers) {
    const BarrierStep step{e, 1, e.amount, role_of(e)};
    const int grid = grid_of(e);
    all[{grid, e.cta, e.barrier}].push_back({e.time, grid, e.cta, e.barrier, step_text(step)});
  }
}

// Events of one kind that follow each other as one, for a reader.
void add_steps(const KeptRun& run, Threads& all) {
  GridOfBarriers grid_of(run.trace);
  std::map<std::pair<int, int>, std::vector<model::BarrierEvent>> by_cta;
  for (const model::BarrierEvent& e : run.barriers) by_cta[{grid_of(e), e.cta}].push_back(e);
  for (const auto& [key, own] : by_cta) {
    for (const BarrierStep& step : barrier_steps(own, key.second)) {
      const model::BarrierEvent& e = step.event;
      all[{key.first, e.cta, e.barrier}].push_back(
          {e.time, key.first, e.cta, e.barrier, step_text(step)});
    }
  }
}

Threads threads_of(const KeptRun& run) {
  Threads all;
  add_roles(run.trace, all);
  add_events(run, all);
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
  add_steps(run, threads);
  std::vector<Happening> all;
  for (auto& [key, list] : threads) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Happening& a, const Happening& b) { return a.time < b.time; });
  return all;
}

std::vector<EndlessWait> endless_waits(const KeptRun& run) {
  struct Waiting {
    std::int64_t since = 0;
    int threads = 0;
  };
  std::map<std::tuple<int, int, std::string, std::string>, Waiting> waiting;
  GridOfBarriers grid_of(run.trace);
  for (const model::BarrierEvent& e : run.barriers) {
    const int grid = grid_of(e);
    if (e.kind == model::BarrierEvent::Kind::wait) {
      Waiting& w = waiting[{grid, e.cta, role_of(e), e.barrier}];
      w.since = e.time;
      ++w.threads;
    } else if (e.kind == model::BarrierEvent::Kind::pass) {
      const auto at = waiting.find({grid, e.cta, role_of(e), e.barrier});
      if (at != waiting.end()) at->second.threads = std::max(0, at->second.threads - 1);
    }
  }
  std::vector<EndlessWait> all;
  for (const auto& [key, w] : waiting) {
    if (w.threads == 0) continue;
    all.push_back(
        {w.since, std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key)});
  }
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
    found.grid = next.grid;
    found.cta = next.cta;
    found.where = next.where;
    earliest = found;
  }
  return earliest;
}

}  // namespace warpwright::pictures
