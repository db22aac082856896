#include "warpwright/pictures/compare_svg.h"

#include <algorithm>
#include <utility>

#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::Trace;
using model::TraceEvent;
using model::TraceTrack;

constexpr double kCompareWidth = 1180;
constexpr double kCompareLeft = 210;
constexpr double kCompareRight = 24;
constexpr double kCompareRow = 18;

struct ComparedSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;
  int depth = 0;
  bool waits = false;
};

std::vector<ComparedSlice> compared_slices(const Trace& trace, const TraceTrack& track) {
  std::vector<ComparedSlice> slices;
  std::vector<std::int64_t> open;
  for (const TraceEvent& e : track.events) {
    const std::string& name = trace.texts[static_cast<std::size_t>(e.name)];
    if (e.kind == TraceEvent::Kind::begin) {
      open.push_back(e.time);
    } else if (e.kind == TraceEvent::Kind::end && !open.empty()) {
      const int depth = static_cast<int>(open.size()) - 1;
      slices.push_back({open.back(), e.time, name, depth, name.starts_with("wait")});
      open.pop_back();
    }
  }
  // What lies inside is drawn above.
  std::stable_sort(slices.begin(), slices.end(),
                   [](const auto& a, const auto& b) { return a.depth < b.depth; });
  return slices;
}

// What a slice is called where there is room: its own part of "warpgroup: k_tile 3", or the number.
std::string compared_label(const ComparedSlice& slice, double width) {
  std::string name = slice.name.substr(
      slice.name.rfind(": ") == std::string::npos ? 0 : slice.name.rfind(": ") + 2);
  const auto room = static_cast<std::size_t>(width / 6.2);
  if (name.size() > room) name = name.substr(name.rfind(' ') + 1);
  return name.size() > room ? "" : name;
}

const char* compared_fill(TraceTrack::Kind kind) {
  switch (kind) {
    case TraceTrack::Kind::loads:
      return "#2f6fb3";
    case TraceTrack::Kind::tensor_core:
      return "#1f8a63";
    case TraceTrack::Kind::stores:
      return "#8e4f9e";
    case TraceTrack::Kind::role:
      break;
  }
  return "#d5dae1";
}

std::vector<const TraceTrack*> compared_tracks(const Trace& trace) {
  std::vector<const TraceTrack*> tracks;
  for (const TraceTrack& track : trace.tracks) {
    if (track.cta == 0 && !track.events.empty()) tracks.push_back(&track);
  }
  return tracks;
}

}  // namespace

std::int64_t tensor_core_time(const Trace& trace) {
  std::int64_t busy = 0;
  for (const TraceTrack& track : trace.tracks) {
    if (track.cta != 0 || track.kind != TraceTrack::Kind::tensor_core) continue;
    std::int64_t until = 0;
    for (const ComparedSlice& s : compared_slices(trace, track)) {
      busy += std::max<std::int64_t>(0, s.end - std::max(s.begin, until));
      until = std::max(until, s.end);
    }
  }
  return busy;
}

std::string compare_svg(const std::string& title, const std::vector<ComparedRun>& runs) {
  std::int64_t end = 1;
  double height = 96;
  for (const ComparedRun& run : runs) {
    end = std::max(end, run.trace->end());
    height += kCompareRow * static_cast<double>(compared_tracks(*run.trace).size()) + 30;
  }
  const double scale = (kCompareWidth - kCompareLeft - kCompareRight) / static_cast<double>(end);
  const auto x = [&](std::int64_t time) {
    return kCompareLeft + static_cast<double>(time) * scale;
  };
  std::string svg = svg_head(kCompareWidth, height);
  svg += svg_text(16, 30, title, 16, "font-weight=\"600\"");
  svg += svg_text(
      16, 50, "blue: TMA loads; green: tensor core; light: steps of a role; grey: it waits", 11);
  for (const Tick& tick : round_ticks(0, end, false)) {
    svg += svg_box(x(tick.time), 60, 1, height - 84, "#e9ecf0");
    svg += svg_text(x(tick.time), height - 8, tick.text, 10, "text-anchor=\"middle\"");
  }
  double y = 68;
  for (const ComparedRun& run : runs) {
    svg += svg_text(16, y + 12, run.name + ": " + std::to_string(run.trace->end()) + " cycles", 12,
                    "font-weight=\"600\"");
    y += 18;
    for (const TraceTrack* track : compared_tracks(*run.trace)) {
      svg += svg_text(kCompareLeft - 8, y + 12, track->name, 11, "text-anchor=\"end\"");
      const std::vector<ComparedSlice> slices = compared_slices(*run.trace, *track);
      for (const ComparedSlice& s : slices) {
        const bool role = track->kind == TraceTrack::Kind::role;
        const double width = std::max(1.0, x(s.end) - x(s.begin));
        svg += svg_box(x(s.begin), y, width > 3 ? width - 0.6 : width, kCompareRow - 4,
                       s.waits               ? "#9aa5b1"
                       : role && s.depth > 0 ? "#cfa5d9"
                                             : compared_fill(track->kind),
                       s.name);
        // What lies inside would cover a role's label.
        const bool covered =
            role && std::any_of(slices.begin(), slices.end(), [&](const auto& other) {
              return other.depth > s.depth && other.begin < s.end && other.end > s.begin;
            });
        const std::string label = compared_label(s, width - 4);
        if (!label.empty() && !s.waits && !covered) {
          svg += svg_text(x(s.begin) + 3, y + 11, label, 10, role ? "" : "style=\"fill:#ffffff\"");
        }
      }
      y += kCompareRow;
    }
    y += 12;
  }
  return svg + "</svg>\n";
}

}  // namespace warpwright::pictures
