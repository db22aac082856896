#include "warpwright/pictures/phases.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::Trace;
using model::TraceTrack;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// When the parts of a tile begin and end.
struct TileTimes {
  std::int64_t load = never;  // its first load
  std::int64_t begin = never;
  std::int64_t end = -1;
  std::int64_t first_mma = never;
  std::int64_t last_mma = -1;
  std::int64_t epilogue = never;
};

// Spans of time, in order and apart from each other.
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

Spans spans_of(const std::vector<PhaseSlice>& slices, Phase phase) {
  Spans all;
  for (const PhaseSlice& s : slices) {
    if (s.phase == phase && s.end > s.begin) all.emplace_back(s.begin, s.end);
  }
  std::sort(all.begin(), all.end());
  Spans merged;
  for (const auto& span : all) {
    if (merged.empty() || span.first > merged.back().second) {
      merged.push_back(span);
    } else {
      merged.back().second = std::max(merged.back().second, span.second);
    }
  }
  return merged;
}

Spans without(Spans spans, const Spans& taken) {
  for (const auto& [from, to] : taken) {
    Spans left;
    for (const auto& [begin, end] : spans) {
      if (begin < std::min(end, from)) left.emplace_back(begin, std::min(end, from));
      if (std::max(begin, to) < end) left.emplace_back(std::max(begin, to), end);
    }
    spans = std::move(left);
  }
  return spans;
}

std::int64_t length(const Spans& spans) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : spans) sum += end - begin;
  return sum;
}

// The first CTA that has an MMA, or stores a tile.
const TraceTrack* multiplying(const Trace& trace) {
  for (const TraceTrack& track : trace.tracks) {
    const bool multiplies = track.kind == TraceTrack::Kind::tensor_core && !track.events.empty();
    if (multiplies || stores_tiles(trace, track)) return &track;
  }
  return trace.tracks.empty() ? nullptr : &trace.tracks.front();
}

// By CTA and name.
using Tiles = std::map<std::pair<int, std::string_view>, TileTimes>;

// Which tiles the CTA's roles go through, where they have names, and when; with their epilogues.
void add_role(const Trace& trace, const TraceTrack& track, Tiles& tiles) {
  const bool stores = stores_tiles(trace, track);
  if (!stores) return;
  std::vector<TrackSlice> own = track_slices(trace, track);
  std::stable_sort(own.begin(), own.end(), [](const TrackSlice& a, const TrackSlice& b) {
    return std::pair(a.begin, a.depth) < std::pair(b.begin, b.depth);
  });
  TileTimes* current = nullptr;
  for (const TrackSlice& s : own) {
    if (!s.name.empty() && s.name == tile_of(s.name)) {
      current = &tiles[{track.cta, s.name}];
      current->begin = std::min(current->begin, s.begin);
      current->end = std::max(current->end, s.end);
    }
    if (current == nullptr) continue;
    if (s.name.starts_with("epilogue subtile")) {
      current->epilogue = std::min(current->epilogue, s.begin);
    }
  }
}

}  // namespace

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::prologue:
      return "prologue";
    case Phase::main_loop:
      return "main loop";
    case Phase::epilogue:
      break;
  }
  return "epilogue";
}

std::vector<PhaseSlice> phases(const Trace& trace) {
  const TraceTrack* const first = multiplying(trace);
  if (first == nullptr) return {};
  const std::vector<int> ctas = ctas_together(trace, *first);
  std::vector<const TraceTrack*> tracks;
  for (const TraceTrack& track : trace.tracks) {
    const bool is_drawn = std::find(ctas.begin(), ctas.end(), track.cta) != ctas.end();
    if (track.grid == first->grid && is_drawn) tracks.push_back(&track);
  }
  Tiles tiles;
  for (const TraceTrack* track : tracks) {
    if (track->kind == TraceTrack::Kind::role) add_role(trace, *track, tiles);
  }
  const bool unnamed = tiles.empty();
  if (unnamed) {
    for (const TraceTrack* track : tracks) {
      TileTimes& all = tiles[{track->cta, ""}];
      all.begin = 0;
      for (const model::TraceEvent& e : track->events) all.end = std::max(all.end, e.time);
    }
  }
  const auto tile_at = [&](int cta, std::string_view name) {
    return tiles.find({cta, unnamed ? std::string_view() : tile_of(name)});
  };
  for (const TraceTrack* track : tracks) {
    using Kind = TraceTrack::Kind;
    if (track->kind != Kind::loads && track->kind != Kind::tensor_core) continue;
    for (const TrackSlice& s : track_slices(trace, *track)) {
      const auto at = tile_at(track->cta, s.name);
      if (at == tiles.end()) continue;
      TileTimes& tile = at->second;
      if (track->kind == Kind::tensor_core) {
        tile.first_mma = std::min(tile.first_mma, s.begin);
        tile.last_mma = std::max(tile.last_mma, s.end);
      } else if (s.name.find("epilogue") == std::string_view::npos) {
        tile.load = std::min(tile.load, s.begin);
      }
    }
  }
  std::vector<PhaseSlice> slices;
  for (const auto& [key, t] : tiles) {
    const auto [cta, tile] = key;
    const bool multiplies = t.last_mma >= 0;
    const std::int64_t begin = t.load != never ? t.load : t.begin;
    const std::int64_t epilogue = t.epilogue != never ? t.epilogue
                                  : multiplies        ? t.last_mma
                                                      : t.end;
    if (multiplies) {
      if (begin < t.first_mma) slices.push_back({Phase::prologue, cta, tile, begin, t.first_mma});
      slices.push_back({Phase::main_loop, cta, tile, t.first_mma, t.last_mma});
    }
    if (epilogue < t.end) slices.push_back({Phase::epilogue, cta, tile, epilogue, t.end});
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const PhaseSlice& a, const PhaseSlice& b) { return a.begin < b.begin; });
  return slices;
}

Bare bare(const std::vector<PhaseSlice>& slices) {
  const Spans main_loops = spans_of(slices, Phase::main_loop);
  const Spans prologues = without(spans_of(slices, Phase::prologue), main_loops);
  const Spans epilogues =
      without(without(spans_of(slices, Phase::epilogue), main_loops), prologues);
  return {length(prologues), length(epilogues)};
}

}  // namespace warpwright::pictures
