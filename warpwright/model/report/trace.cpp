#include "warpwright/model/report/trace.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace warpwright::model {

std::int64_t Trace::event_count() const {
  std::int64_t count = 0;
  for (const TraceTrack& t : tracks) count += static_cast<std::int64_t>(t.events.size());
  return count;
}

std::int64_t Trace::dropped() const {
  std::int64_t count = 0;
  for (const TraceTrack& t : tracks) count += t.dropped;
  return count;
}

std::int64_t Trace::end() const {
  std::int64_t last = 0;
  for (const TraceTrack& t : tracks) {
    if (!t.events.empty()) last = std::max(last, t.events.back().time);
  }
  return last;
}

std::string Trace::fault() const {
  const auto known = [&](int text, bool optional) {
    return (optional && text == -1) || (text >= 0 && text < static_cast<int>(texts.size()));
  };
  for (const TraceTrack& t : tracks) {
    const std::string where = t.name + " of CTA " + std::to_string(t.cta);
    std::vector<int> open;
    std::int64_t last = 0;
    for (const TraceEvent& e : t.events) {
      if (e.time < last) return where + ": time runs back at " + std::to_string(e.time);
      last = e.time;
      if (!known(e.name, false) || !known(e.detail, true)) return where + ": an unknown text";
      if (e.kind == TraceEvent::Kind::begin) open.push_back(e.name);
      if (e.kind != TraceEvent::Kind::end) continue;
      if (open.empty()) return where + ": an end without a begin at " + std::to_string(e.time);
      if (open.back() != e.name) return where + ": slices overlap at " + std::to_string(e.time);
      open.pop_back();
    }
    if (!open.empty()) return where + ": a slice is left open";
  }
  return "";
}

std::string label_text(const std::string& label, int a, int b, int c) {
  const int numbers[] = {a, b, c};
  std::string text;
  std::size_t next = 0;
  for (const char ch : label) {
    if (ch == '%' && next < 3) {
      text += std::to_string(numbers[next++]);
    } else {
      text += ch;
    }
  }
  return text;
}

int TraceBuilder::text(const std::string& value) {
  const auto [at, is_new] = numbers_.try_emplace(value, static_cast<int>(texts_.size()));
  if (is_new) texts_.push_back(value);
  return at->second;
}

std::int64_t TraceBuilder::forward(Building& b, std::int64_t time) const {
  return b.track.events.empty() ? std::max<std::int64_t>(time, 0)
                                : std::max(time, b.track.events.back().time);
}

int TraceBuilder::add_track(TraceTrack::Kind kind, int cta, const std::string& name, int thread,
                            int grid) {
  Building b;
  b.track.kind = kind;
  b.track.grid = grid;
  b.track.cta = cta;
  b.track.name = name;
  b.track.thread = thread;
  tracks_.push_back(std::move(b));
  return static_cast<int>(tracks_.size()) - 1;
}

void TraceBuilder::begin(int track, std::int64_t time, const std::string& name,
                         const std::string& detail) {
  Building& b = tracks_[static_cast<std::size_t>(track)];
  TraceEvent event{TraceEvent::Kind::begin, forward(b, time), text(name),
                   detail.empty() ? -1 : text(detail)};
  // A wait that looks again and goes on is one slice.
  std::vector<TraceEvent>& events = b.track.events;
  if (!events.empty() && events.back().kind == TraceEvent::Kind::end &&
      events.back().time == event.time && events.back().name == event.name &&
      events.back().detail == event.detail) {
    events.pop_back();
  } else {
    events.push_back(event);
  }
  b.open.push_back(event);
}

void TraceBuilder::end(int track, std::int64_t time) {
  Building& b = tracks_[static_cast<std::size_t>(track)];
  if (b.open.empty()) return;
  TraceEvent event = b.open.back();
  b.open.pop_back();
  event.kind = TraceEvent::Kind::end;
  event.time = forward(b, time);
  b.track.events.push_back(event);
}

void TraceBuilder::lengthen(int track, std::int64_t from, std::int64_t to,
                            const std::string& name) {
  std::vector<TraceEvent>& events = tracks_[static_cast<std::size_t>(track)].track.events;
  if (!events.empty() && events.back().kind == TraceEvent::Kind::end &&
      texts_[static_cast<std::size_t>(events.back().name)] == name) {
    events.back().time = std::max(events.back().time, to);
    return;
  }
  begin(track, from, name);
  end(track, to);
}

void TraceBuilder::instant(int track, std::int64_t time, const std::string& name,
                           const std::string& detail) {
  Building& b = tracks_[static_cast<std::size_t>(track)];
  b.track.events.push_back({TraceEvent::Kind::instant, forward(b, time), text(name),
                            detail.empty() ? -1 : text(detail)});
}

std::string TraceBuilder::open_text(int track) const {
  std::string all;
  for (const TraceEvent& e : tracks_[static_cast<std::size_t>(track)].open) {
    if (!all.empty()) all += ", ";
    all += texts_[static_cast<std::size_t>(e.name)];
  }
  return all;
}

Trace TraceBuilder::finish() {
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Building& b = tracks_[i];
    while (!b.open.empty()) end(static_cast<int>(i), 0);
  }
  std::erase_if(tracks_, [](const Building& b) { return b.track.events.empty(); });
  // As the work flows: the first role (it feeds TMA), loads, tensor core, the other
  // roles, stores.
  const auto place = [](const TraceTrack& t) { return std::pair(t.grid, t.cta); };
  std::map<std::pair<int, int>, int> first_thread;
  for (const Building& b : tracks_) {
    if (b.track.kind != TraceTrack::Kind::role) continue;
    const auto [at, is_new] = first_thread.try_emplace(place(b.track), b.track.thread);
    if (!is_new) at->second = std::min(at->second, b.track.thread);
  }
  const auto rank = [&](const TraceTrack& t) {
    switch (t.kind) {
      case TraceTrack::Kind::loads:
      case TraceTrack::Kind::copies:
      case TraceTrack::Kind::fragments:
        return 1;
      case TraceTrack::Kind::tensor_core:
        return 2;
      case TraceTrack::Kind::stores:
        return 4;
      case TraceTrack::Kind::role:
        break;
    }
    return t.thread == first_thread[place(t)] ? 0 : 3;
  };
  std::stable_sort(tracks_.begin(), tracks_.end(), [&](const Building& a, const Building& b) {
    return std::tuple(place(a.track), rank(a.track), a.track.thread) <
           std::tuple(place(b.track), rank(b.track), b.track.thread);
  });
  Trace trace;
  std::set<std::pair<std::pair<int, int>, std::string>> seen;
  for (Building& b : tracks_) {
    if (seen.insert({place(b.track), b.track.name}).second)
      trace.tracks.push_back(std::move(b.track));
  }
  trace.texts = std::move(texts_);
  *this = {};
  return trace;
}

}  // namespace warpwright::model
