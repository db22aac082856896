#include "cli/pictures/grid_svg.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "cli/pictures/timeline_parts.h"
#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using model::Trace;
using model::TraceEvent;
using model::TraceTrack;

constexpr double kGridWidth = 1180;
constexpr double kGridLeft = 90;
constexpr double kGridRight = 24;
constexpr double kGridTop = 74;
constexpr double kGridRow = 24;
constexpr double kGridGap = 6;

struct GridSlice {
  int sm = 0;
  int cta = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;
};

// A role that goes through its CTA's tiles from their first operand to the last store.
bool multiplies(const TraceTrack& track) {
  return track.kind == TraceTrack::Kind::role &&
         (track.name == "epilogue" || track.name.starts_with("consumer"));
}

std::vector<GridSlice> slices_of(const Trace& trace) {
  std::vector<GridSlice> slices;
  for (const TraceTrack& track : trace.tracks) {
    if (!multiplies(track)) continue;
    std::vector<std::size_t> open;
    for (const TraceEvent& e : track.events) {
      if (e.kind == TraceEvent::Kind::begin) {
        open.push_back(slices.size());
        slices.push_back(
            {track.sm, track.cta, e.time, e.time, trace.texts[static_cast<std::size_t>(e.name)]});
      } else if (e.kind == TraceEvent::Kind::end && !open.empty()) {
        slices[open.back()].end = e.time;
        open.pop_back();
      }
    }
  }
  std::erase_if(slices,
                [](const GridSlice& s) { return s.name.empty() || s.name != tile_of(s.name); });
  return slices;
}

// "tile m 1 n 0" as "1,0", and "group 3 tile m 1 n 0" as "3: 1,0".
std::string label(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c >= '0' && c <= '9') text += c;
    if (c == 'm' && !text.empty()) text += ": ";
    if (c == 'n') text += ',';
  }
  return text;
}

std::string label_at(double x, double y, double size, const char* colour, const std::string& value,
                     const char* anchor = "start") {
  return format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" fill=\"%s\" text-anchor=\"%s\">", x,
                y, size, colour, anchor) +
         value + "</text>\n";
}

std::string box(double x, double y, double width, double height, const char* fill) {
  return format(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" fill=\"%s\"/>\n", x, y,
      width, height, fill);
}

}  // namespace

std::string grid_svg(const Trace& trace, const GridView& view) {
  const std::vector<GridSlice> slices = slices_of(trace);
  const bool is_grouped = !slices.empty() && slices.front().name.starts_with("group ");
  std::int64_t last = 1;
  for (const GridSlice& s : slices) last = std::max(last, s.end);
  const auto x = [&](std::int64_t time) {
    return kGridLeft + static_cast<double>(time) / static_cast<double>(last) *
                           (kGridWidth - kGridLeft - kGridRight);
  };
  const auto y = [](int sm) { return kGridTop + sm * (kGridRow + kGridGap); };
  const double height = y(view.sms) + 40;
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
      "%.0f\" font-family=\"Inter, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n",
      kGridWidth, height, kGridWidth, height);
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += label_at(18, 28, 16, "#111827", view.title);
  out += label_at(
      18, 50, 12.5, "#4b5563",
      format("%zu tiles in %.1f %s. A lane is an SM; a box is a tile (%sm,n), from the "
             "epilogue's wait for it to its last store; colours alternate from CTA to "
             "CTA.",
             slices.size(), static_cast<double>(last) / 1000,
             trace.measured ? "microseconds" : "nominal kilocycles", is_grouped ? "group: " : ""));
  for (int sm = 0; sm < view.sms; ++sm) {
    out += label_at(18, y(sm) + 16.5, 12.5, "#1f2933", "SM " + std::to_string(sm));
    const bool held = sm == view.occupied_sm;
    out += box(kGridLeft, y(sm), kGridWidth - kGridLeft - kGridRight, kGridRow,
               held ? "#e5e7eb" : "#fafbfc");
    if (held) out += label_at(kGridLeft + 10, y(sm) + 16.5, 12, "#6b7480", "held by another grid");
  }
  constexpr const char* fills[] = {"#2f6fb3", "#1f8a63"};
  for (const GridSlice& s : slices) {
    const double width = std::max(x(s.end) - x(s.begin) - 1, 0.5);
    out += box(x(s.begin), y(s.sm), width, kGridRow, fills[s.cta % 2]);
    const std::string name = label(s.name);
    if (7.0 * static_cast<double>(name.size()) < width) {
      out += label_at(x(s.begin) + width / 2, y(s.sm) + 16, 11, "#ffffff", name, "middle");
    }
  }
  for (const Tick& tick : round_ticks(0, last, trace.measured)) {
    out += label_at(x(tick.time), height - 18, 12, "#374151", tick.text, "middle");
  }
  return out + "</svg>\n";
}

}  // namespace warpwright::cli
