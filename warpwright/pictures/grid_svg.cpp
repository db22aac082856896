#include "warpwright/pictures/grid_svg.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
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

// Tiles of one SM at the same time, of ping-pong or of several CTAs, lie in rows of their own.
struct GridSlice {
  TileRun tile;
  int row = 0;  // within its SM's
};

std::vector<GridSlice> slices_of(const Trace& trace) {
  std::vector<GridSlice> slices;
  std::vector<std::int64_t> ends;  // of the rows of an SM
  for (const TileRun& tile : tile_runs(trace)) {
    if (slices.empty() || slices.back().tile.sm != tile.sm) ends.clear();
    auto free = std::find_if(ends.begin(), ends.end(), [&](auto end) { return end <= tile.begin; });
    if (free == ends.end()) free = ends.insert(free, 0);
    *free = tile.end;
    slices.push_back({tile, static_cast<int>(free - ends.begin())});
  }
  return slices;
}

std::string label_at(double x, double y, double size, const char* colour, const std::string& value,
                     const char* anchor = "start") {
  return format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" fill=\"%s\" text-anchor=\"%s\">", x,
                y, size, colour, anchor) +
         value + "</text>\n";
}

std::string box(double x, double y, double width, double height, const char* fill,
                const std::string& more = "") {
  return format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" fill=\"%s\" ",
                x, y, width, height, fill) +
         more + "/>\n";
}

}  // namespace

std::vector<TileRun> tile_runs(const Trace& trace) {
  std::vector<TileRun> slices;
  std::map<std::pair<int, std::string_view>, std::size_t> known;  // by CTA and tile
  std::map<std::string_view, bool> roles;
  for (const TraceTrack& track : trace.tracks) {
    const auto [role, is_new] = roles.try_emplace(track.name, false);
    if (is_new) role->second = stores_tiles(trace, track);
    if (!role->second) continue;
    std::vector<std::size_t> open;
    for (const TraceEvent& e : track.events) {
      const std::string_view name = trace.texts[static_cast<std::size_t>(e.name)];
      if (name.empty() || name != tile_of(name)) continue;
      if (e.kind == TraceEvent::Kind::begin) {
        const auto [at, first] = known.try_emplace({track.cta, name}, slices.size());
        if (first) slices.push_back({track.sm, track.cta, e.time, e.time, name});
        TileRun& s = slices[at->second];
        s.begin = std::min(s.begin, e.time);
        open.push_back(at->second);
      } else if (e.kind == TraceEvent::Kind::end && !open.empty()) {
        slices[open.back()].end = std::max(slices[open.back()].end, e.time);
        open.pop_back();
      }
    }
  }
  std::stable_sort(slices.begin(), slices.end(), [](const TileRun& a, const TileRun& b) {
    return std::tuple(a.sm, a.begin) < std::tuple(b.sm, b.begin);
  });
  return slices;
}

std::string grid_svg(const Trace& trace, const GridView& view) {
  const std::vector<GridSlice> slices = slices_of(trace);
  const bool is_grouped = !slices.empty() && slices.front().tile.name.starts_with("group ");
  std::int64_t last = 1;
  int rows = 1;
  for (const GridSlice& s : slices) {
    last = std::max(last, s.tile.end);
    rows = std::max(rows, s.row + 1);
  }
  const double row = kGridRow / rows;
  const auto x = [&](std::int64_t time) {
    return kGridLeft + static_cast<double>(time) / static_cast<double>(last) *
                           (kGridWidth - kGridLeft - kGridRight);
  };
  const double top = view.title.empty() ? kGridTop - 22 : kGridTop;
  const auto y = [top](int sm) { return top + sm * (kGridRow + kGridGap); };
  const double height = y(view.sms) + 40;
  std::string out = svg_head(kGridWidth, height);
  out += label_at(18, 28, 16, "#111827", view.title);
  std::string remark = format(
      "%zu tiles in %.1f %s. A lane is an SM; a box is a tile (%srow,column), from the first "
      "wait for it "
      "to its last store; colours alternate from CTA to CTA.",
      slices.size(), static_cast<double>(last) / 1000,
      trace.measured ? "microseconds" : "nominal kilocycles", is_grouped ? "group: " : "");
  if (view.ctas_per_sm > 1) {
    remark += format(" %d CTAs an SM.", view.ctas_per_sm);
  }
  out += label_at(18, top - 24, 12.5, "#4b5563", remark);
  for (int sm = 0; sm < view.sms; ++sm) {
    out += label_at(18, y(sm) + 16.5, 12.5, "#1f2933", "SM " + std::to_string(sm));
    const bool held = sm == view.occupied_sm;
    out += box(kGridLeft, y(sm), kGridWidth - kGridLeft - kGridRight, kGridRow,
               held ? "#e5e7eb" : "#fafbfc");
    if (held) out += label_at(kGridLeft + 10, y(sm) + 16.5, 12, "#6b7480", "held by another grid");
  }
  constexpr const char* fills[] = {"#2f6fb3", "#1f8a63"};
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const GridSlice& s = slices[i];
    const double width = std::max(x(s.tile.end) - x(s.tile.begin) - 1, 0.5);
    const double row_top = y(s.tile.sm) + s.row * row;
    out += box(x(s.tile.begin), row_top, width, rows > 1 ? row - 1 : row, fills[s.tile.cta % 2],
               data_row(i));
    const std::string name = short_tile(s.tile.name);
    const double size = rows > 1 ? 9 : 11;
    if (rows <= 2 && 0.64 * size * static_cast<double>(name.size()) < width) {
      out += label_at(x(s.tile.begin) + width / 2, row_top + row / 2 + 0.36 * size, size, "#ffffff",
                      name, "middle");
    }
  }
  for (const Tick& tick : round_ticks(0, last, trace.measured)) {
    const bool is_last = x(tick.time) > kGridWidth - kGridRight - 30;
    out +=
        label_at(x(tick.time), height - 18, 12, "#374151", tick.text, is_last ? "end" : "middle");
  }
  return out + "</svg>\n";
}

View grid_view(const Trace& trace, const GridView& what) {
  View view;
  view.id = "time";
  view.title = "SMs over time";
  view.caption = what.occupied_sm < 0 ? "A lane an SM, a box a tile."
                                      : "A lane an SM, a box a tile; another grid holds SM " +
                                            std::to_string(what.occupied_sm) + ".";
  view.svg = grid_svg(trace, what);
  const char* const unit = trace.measured ? "ns" : "cycles";
  view.table.header = {"tile", "SM", "CTA", std::string("begin, ") + unit,
                       std::string("end, ") + unit};
  for (const TileRun& tile : tile_runs(trace)) {
    view.table.rows.push_back({std::string(tile.name), std::to_string(tile.sm),
                               std::to_string(tile.cta), std::to_string(tile.begin),
                               std::to_string(tile.end)});
  }
  return view;
}

}  // namespace warpwright::pictures
