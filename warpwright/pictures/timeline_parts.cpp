#include "warpwright/pictures/timeline_parts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace warpwright::pictures {

std::string_view issuer_of(std::string_view name) {
  const std::size_t colon = name.find(": ");
  return colon == std::string_view::npos ? std::string_view() : name.substr(0, colon);
}

std::string_view tile_of(std::string_view name) {
  if (const std::string_view issuer = issuer_of(name); !issuer.empty()) {
    name.remove_prefix(issuer.size() + 2);
  }
  const bool is_tile = name.starts_with("tile ") || name.starts_with("group ");
  return is_tile ? name.substr(0, name.find(',')) : std::string_view();
}

std::string short_tile(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c >= '0' && c <= '9') text += c;
    if (c == 'm' && !text.empty()) text += ": ";
    if (c == 'n') text += ',';
  }
  return text;
}

bool stores_tiles(const model::Trace& trace, const model::TraceTrack& track) {
  if (track.kind != model::TraceTrack::Kind::role) return false;
  // By name: a CTA may give all of its parts of tiles to others.
  return std::any_of(trace.tracks.begin(), trace.tracks.end(), [&](const auto& other) {
    return other.kind == track.kind && other.name == track.name &&
           std::any_of(other.events.begin(), other.events.end(), [&](const auto& e) {
             return trace.texts[static_cast<std::size_t>(e.name)].starts_with("epilogue subtile");
           });
  });
}

std::vector<int> ctas_together(const model::Trace& trace, const model::TraceTrack& first) {
  std::map<int, std::pair<std::int64_t, std::int64_t>> spans;
  for (const model::TraceTrack& t : trace.tracks) {
    if (t.grid != first.grid || t.sm != first.sm || t.events.empty()) continue;
    const auto [at, is_new] = spans.try_emplace(t.cta, t.events.front().time, t.events.back().time);
    at->second = {std::min(at->second.first, t.events.front().time),
                  std::max(at->second.second, t.events.back().time)};
  }
  std::vector<int> together = {first.cta};
  const auto [begin, end] = spans[first.cta];
  for (const auto& [cta, span] : spans) {
    const bool meets = first.sm >= 0 && span.first < end && begin < span.second;
    if (cta != first.cta && meets) together.push_back(cta);
  }
  return together;
}

std::string cta_name(const model::Trace& trace, const model::TraceTrack& track) {
  const auto grid = static_cast<std::size_t>(track.grid);
  return (grid < trace.grids.size() ? trace.grids[grid] + ": CTA " : "CTA ") +
         std::to_string(track.cta);
}

std::vector<TrackSlice> track_slices(const model::Trace& trace, const model::TraceTrack& track) {
  std::vector<TrackSlice> slices;
  std::vector<std::size_t> open;
  for (const model::TraceEvent& e : track.events) {
    if (e.kind == model::TraceEvent::Kind::begin) {
      if (!open.empty()) slices[open.back()].covered = true;
      open.push_back(slices.size());
      slices.push_back({e.time, e.time, trace.texts[static_cast<std::size_t>(e.name)],
                        static_cast<int>(open.size()) - 1, false});
    } else if (e.kind == model::TraceEvent::Kind::end && !open.empty()) {
      slices[open.back()].end = e.time;
      open.pop_back();
    }
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const TrackSlice& a, const TrackSlice& b) { return a.depth < b.depth; });
  return slices;
}

std::vector<Tick> round_ticks(std::int64_t from, std::int64_t to, bool measured) {
  constexpr std::int64_t kMost = 10;  // steps
  std::int64_t step = 1;
  for (std::int64_t power = 1; step * kMost < to - from; power *= 10) {
    for (const std::int64_t factor : {1, 2, 5}) {
      step = factor * power;
      if (step * kMost >= to - from) break;
    }
  }
  // Steps of a thousand and more are thousands of the unit.
  const std::int64_t unit = step >= 1000 ? 1000 : 1;
  const auto text = [&](std::int64_t count) {
    if (count == 0) return std::string("0");
    const std::string prefix = unit > 1   ? (measured ? " us" : " kcycle")
                               : measured ? " ns"
                                          : " cycle";
    return std::to_string(count) + prefix + (measured || count == 1 ? "" : "s");
  };
  std::vector<Tick> ticks;
  for (std::int64_t at = (from + step - 1) / step * step; at <= to; at += step) {
    ticks.push_back({at, text(at / unit)});
  }
  return ticks;
}

}  // namespace warpwright::pictures
