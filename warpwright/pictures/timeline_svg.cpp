#include "warpwright/pictures/timeline_svg.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::Trace;
using model::TraceEvent;
using model::TraceTrack;

constexpr double kWidth = 1480;
constexpr double kLeft = 186;  // lanes start here
constexpr double kRight = 24;
constexpr double kTileRow = 15;  // the strip that names a role's tiles
constexpr double kRow = 27;
constexpr double kGap = 9;

// What a slice is for the eye.
enum class Paint { tile, load, fragments, multiply, convert, scale, epilogue, store, wait, other };

struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;
  int depth = 0;
  int tile = -1;  // which of the CTA's tiles, in the order of their first appearance
  Paint paint = Paint::other;
};

struct Lane {
  const TraceTrack* track = nullptr;
  std::string name;
  std::vector<Slice> slices;
  bool has_tiles = false;
};

// Two shades a kind: neighbouring tiles differ.
struct Shades {
  const char* fill[2];
  const char* text[2];
  const char* meaning;
};

const Shades& shades(Paint paint) {
  static const Shades table[] = {
      {{"#d5dae1", "#e9ecf0"}, {"#1f2933", "#1f2933"}, "tile"},
      {{"#2f6fb3", "#8fb9e3"}, {"#ffffff", "#10253d"}, "load of A and B"},
      {{"#8fb9e3", "#c9dff3"}, {"#10253d", "#10253d"}, "ldmatrix"},
      {{"#1f8a63", "#86cfb0"}, {"#ffffff", "#0c2f22"}, "multiply"},
      {{"#b83c3c", "#e6a1a1"}, {"#ffffff", "#3d0f0f"}, "convert weights"},
      {{"#f2e08a", "#f7edba"}, {"#3d3208", "#3d3208"}, "scale sums"},
      {{"#d9772b", "#f4bd86"}, {"#ffffff", "#3d2208"}, "epilogue"},
      {{"#8e4f9e", "#cfa5d9"}, {"#ffffff", "#2c1233"}, "store of D"},
      {{"#f1f2f4", "#f1f2f4"}, {"#6b7480", "#6b7480"}, "waiting"},
      {{"#b8c4d2", "#d6dee8"}, {"#1f2933", "#1f2933"}, "instructions"},
  };
  return table[static_cast<int>(paint)];
}

// "k_tile 3" of "consumer 0: tile m 1 n 0, k_tile 3", what an engine's slice is called. For
// several the last: who multiplies one block may load another.
std::string_view work_of(std::string_view name) {
  for (const std::string_view key : {"k_block ", "k_tile ", "copies ", "epilogue subtile "}) {
    const auto at = name.rfind(key);
    if (at != std::string_view::npos) return name.substr(at, name.find(',', at) - at);
  }
  return name;
}

// Ever shorter names for ever narrower slices: "k_tile 3", "k 3", "3".
std::vector<std::string> labels(const Slice& s) {
  std::string_view last = s.name;
  if (s.paint == Paint::multiply || s.paint == Paint::load || s.paint == Paint::store ||
      s.paint == Paint::fragments) {
    last = work_of(last);
  }
  std::vector<std::string> all = {std::string(last)};
  const auto number = last.rfind(' ');
  if (last.starts_with("k_tile ")) all.push_back("k " + std::string(last.substr(number + 1)));
  if (last.starts_with("epilogue subtile ")) {
    all.push_back("epilogue " + std::string(last.substr(number + 1)));
  }
  const auto block = last.find(" k_block ");  // of "convert k_block 4"
  if (block != std::string_view::npos) {
    all.push_back(std::string(last.substr(0, block)) + std::string(last.substr(number)));
  }
  const bool counts = last.starts_with("k_tile ") || last.starts_with("epilogue subtile ") ||
                      last.starts_with("k_block ") || last.starts_with("copies ");
  if (counts || block != std::string_view::npos) all.emplace_back(last.substr(number + 1));
  if (last.starts_with("wait ")) all.emplace_back(last.substr(5));
  if (s.paint == Paint::tile) {
    const auto place = last.find("m ");
    const auto group = last.starts_with("group ") ? last.substr(6, last.find(" tile ") - 6) : "";
    all.push_back((group.empty() ? "" : "g " + std::string(group) + " ") +
                  std::string(last.substr(std::min(place, last.size()))));
  }
  return all;
}

// `multiplies`: the role's own instructions do, and no engine that has a track.
Paint paint_of(const TraceTrack& track, bool multiplies, std::string_view name) {
  switch (track.kind) {
    case TraceTrack::Kind::loads:
      return name.find("epilogue") == std::string_view::npos ? Paint::load : Paint::store;
    case TraceTrack::Kind::copies:
      return Paint::load;
    case TraceTrack::Kind::fragments:
      return Paint::fragments;
    case TraceTrack::Kind::stores:
      return Paint::store;
    case TraceTrack::Kind::tensor_core:
      return Paint::multiply;
    case TraceTrack::Kind::role:
      break;
  }
  if (name.starts_with("wait")) return Paint::wait;
  if (!name.empty() && name == tile_of(name)) return Paint::tile;
  if (multiplies && name.starts_with("k_tile")) return Paint::multiply;
  if (name.starts_with("convert")) return Paint::convert;
  if (name.starts_with("scale")) return Paint::scale;
  return name.starts_with("epilogue") ? Paint::epilogue : Paint::other;
}

bool same_cta(const TraceTrack& a, const TraceTrack& b) {
  return a.grid == b.grid && a.cta == b.cta;
}

// Is it the role that multiplies, by instructions of its own (mma.sync)?
bool multiplies(const Trace& trace, const TraceTrack& track) {
  if (!stores_tiles(trace, track)) return false;
  return std::none_of(trace.tracks.begin(), trace.tracks.end(), [&](const TraceTrack& other) {
    return other.kind == TraceTrack::Kind::tensor_core && same_cta(other, track);
  });
}

Lane lane_of(const Trace& trace, const TraceTrack& track, std::map<std::string_view, int>& tiles) {
  const bool itself = multiplies(trace, track);
  Lane lane;
  lane.track = &track;
  lane.name = track.name;
  std::vector<std::size_t> open;
  // A multicast load carries its issuer's tile; CTAs of a cluster go through theirs in step.
  std::map<std::string_view, std::map<std::string_view, int>> by_issuer;
  int tile = -1;
  for (const TraceEvent& e : track.events) {
    if (e.kind == TraceEvent::Kind::begin) {
      Slice s;
      s.begin = s.end = e.time;
      s.name = trace.texts[static_cast<std::size_t>(e.name)];
      s.depth = static_cast<int>(open.size());
      s.paint = paint_of(track, itself, s.name);
      const std::string_view named = tile_of(s.name);
      if (!named.empty()) {
        const std::string_view detail =
            e.detail < 0 ? "" : std::string_view(trace.texts[static_cast<std::size_t>(e.detail)]);
        const auto issuer = detail.find("issued by ");
        auto& known = track.kind == TraceTrack::Kind::loads && issuer != std::string_view::npos
                          ? by_issuer[detail.substr(issuer)]
                          : tiles;
        tile = known.try_emplace(named, static_cast<int>(known.size())).first->second;
      }
      s.tile = tile;
      lane.has_tiles = lane.has_tiles || s.paint == Paint::tile;
      // Loads of one k_tile, or stores of one chunk, that follow each other are one for the eye.
      if (track.kind != TraceTrack::Kind::role && !lane.slices.empty() &&
          lane.slices.back().tile == s.tile &&
          (lane.slices.back().name == s.name ||
           (s.paint == Paint::load && work_of(lane.slices.back().name) == work_of(s.name))) &&
          s.begin - lane.slices.back().end <= 2) {
        open.push_back(lane.slices.size() - 1);
        continue;
      }
      open.push_back(lane.slices.size());
      lane.slices.push_back(s);
    } else if (e.kind == TraceEvent::Kind::end) {
      lane.slices[open.back()].end = e.time;
      open.pop_back();
      if (open.empty() && track.kind == TraceTrack::Kind::role) tile = -1;
    }
  }
  return lane;
}

// The tensor core takes groups of several warpgroups in turns: a lane for each of them shows whose
// it works on.
std::vector<Lane> by_issuer(Lane all) {
  std::map<std::string_view, Lane> lanes;
  for (const Slice& s : all.slices) lanes[issuer_of(s.name)].slices.push_back(s);
  if (lanes.size() < 2) return {std::move(all)};
  std::vector<Lane> split;
  for (auto& [issuer, lane] : lanes) {
    lane.track = all.track;
    lane.name = all.name + (issuer.empty() ? "" : ": " + std::string(issuer));
    split.push_back(std::move(lane));
  }
  return split;
}

class Timeline {
 public:
  Timeline(const Trace& trace, const TimelineView& view) : trace_(trace), view_(view) {
    // The first CTAs of every grid.
    std::map<std::pair<int, int>, std::map<std::string_view, int>> tiles;
    const TraceTrack* last = nullptr;
    int ctas = 0;
    for (const TraceTrack& t : trace.tracks) {
      if (last == nullptr || t.grid != last->grid) ctas = 0;
      if (last == nullptr || !same_cta(t, *last)) ++ctas;
      last = &t;
      if (ctas > std::max(1, view.ctas)) continue;
      for (Lane& lane : by_issuer(lane_of(trace, t, tiles[{t.grid, t.cta}]))) {
        lanes_.push_back(std::move(lane));
      }
    }
    // Roles that work on no tile say nothing here.
    std::erase_if(lanes_, [](const Lane& lane) {
      return std::none_of(lane.slices.begin(), lane.slices.end(),
                          [](const Slice& s) { return s.tile >= 0; });
    });
    choose_window();
  }

  std::string draw() {
    double y = view_.title.empty() ? 0 : 30;
    if (y > 0) text(18, y, 17, "#111827", view_.title, "font-weight=\"600\"");
    y += 21;
    text(
        18, y, 12.5, "#4b5563",
        trace_.measured
            ? "Measured by the GPU's clocks. Recording itself costs time: compare proportions, not "
              "durations with those of an unrecorded run."
            : "Nominal time from the model's table of costs: it shows what overlaps and who waits "
              "for whom, and predicts no speed.");
    y += 30;
    legend(y);
    y += 22;
    const double top = y;
    std::string lanes;
    std::swap(lanes, body_);
    const std::string header = std::move(lanes);
    const TraceTrack* track = nullptr;
    for (const Lane& lane : lanes_) {
      if (lane.track == track) y -= kGap - 2;  // lanes of one track stand close
      const bool is_new = track == nullptr || !same_cta(*lane.track, *track);
      track = lane.track;
      if (is_new) {
        y += 20;
        std::string name = cta_name(trace_, *lane.track);
        if (lane.track->sm >= 0) name += " on SM " + std::to_string(lane.track->sm);
        text(18, y, 13.5, "#111827", name, "font-weight=\"600\"");
        y += 9;
      }
      y = draw_lane(lane, y) + kGap;
    }
    const std::string drawn = std::move(body_);
    body_.clear();
    axis(top, y);
    const double height = y + 46;
    return svg_head(kWidth, height) + header + body_ + drawn + "</svg>\n";
  }

  /// For the table, once it is drawn.
  [[nodiscard]] std::vector<std::vector<std::string>> rows() const { return rows_; }

 private:
  // From the start of the first CTA's first tile to the end of the last tile that is shown.
  void choose_window() {
    if (lanes_.empty()) return;
    const TraceTrack& front = *lanes_.front().track;
    std::int64_t first = -1;
    std::int64_t last = 0;
    std::int64_t all = 1;
    for (const Lane& lane : lanes_) {
      for (const Slice& s : lane.slices) {
        all = std::max(all, s.end);
        if (s.tile < 0 || lane.track->cta != front.cta) continue;
        if (first < 0 || s.begin < first) first = s.begin;
        if (s.tile < view_.tiles) last = std::max(last, s.end);
      }
    }
    from_ = std::max<std::int64_t>(first, 0);
    to_ = last > from_ ? last : all;
    const std::int64_t margin = (to_ - from_) / 60 + 1;
    from_ = std::max<std::int64_t>(0, from_ - margin);
    to_ += margin;
  }

  [[nodiscard]] double x(std::int64_t time) const {
    const double share = static_cast<double>(time - from_) /
                         static_cast<double>(std::max<std::int64_t>(1, to_ - from_));
    return kLeft + share * (kWidth - kLeft - kRight);
  }

  void text(double at, double y, double size, const char* colour, std::string_view value,
            const char* more = "") {
    body_ += "<text x=\"" + decimal(at) + "\" y=\"" + decimal(y) + "\" font-size=\"" +
             decimal(size) + "\" fill=\"" + colour + "\" " + more + ">" + escaped(value) +
             "</text>\n";
  }

  void rect(double left, double y, double width, double height, const char* fill,
            std::string_view tip = "", const std::string& more = "") {
    body_ += "<rect x=\"" + decimal(left) + "\" y=\"" + decimal(y) + "\" width=\"" +
             decimal(width) + "\" height=\"" + decimal(height) + "\" fill=\"" + fill + "\"";
    if (width > 4) body_ += " rx=\"2\"";
    body_ += more;
    body_ += tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></rect>\n";
  }

  void legend(double y) {
    double at = kLeft;
    std::set<Paint> used;
    for (const Lane& lane : lanes_) {
      for (const Slice& s : lane.slices) used.insert(s.paint);
    }
    for (const Paint p : {Paint::load, Paint::fragments, Paint::multiply, Paint::convert,
                          Paint::scale, Paint::epilogue, Paint::store, Paint::other, Paint::wait}) {
      if (!used.contains(p)) continue;
      const Shades& s = shades(p);
      rect(at, y - 11, 14, 14, s.fill[0]);
      if (p != Paint::wait) rect(at + 14, y - 11, 14, 14, s.fill[1]);
      const std::string_view meaning = s.meaning;
      text(at + (p == Paint::wait ? 20 : 34), y, 12.5, "#1f2933", meaning);
      at += 58 + 7.2 * static_cast<double>(meaning.size());
    }
    const bool has_room = at < kWidth - 400;
    text(at, y, 12.5, "#4b5563",
         has_room ? "dark, light: neighbouring tiles; numbers: k_tile, subtile of D"
                  : "numbers: k_tile, k_block, subtile of D");
  }

  double draw_lane(const Lane& lane, double y) {
    const double main = y + (lane.has_tiles ? kTileRow + 1 : 0);
    rect(kLeft, main, kWidth - kLeft - kRight, kRow, "#fafbfc");
    text(18, main + 18, 13, "#1f2933", lane.name);
    // Outer slices first: inner ones lie on top of them.
    std::vector<const Slice*> order;
    std::map<const Slice*, std::size_t> row;  // of the table
    for (const Slice& s : lane.slices) {
      if (s.end < from_ || s.begin > to_) continue;
      order.push_back(&s);
      row[&s] = rows_.size();
      rows_.push_back({cta_name(trace_, *lane.track), lane.name, std::string(s.name),
                       shades(s.paint).meaning, std::to_string(s.begin), std::to_string(s.end)});
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Slice* a, const Slice* b) { return a->depth < b->depth; });
    const std::map<Paint, std::size_t> level = label_levels(order);
    for (const Slice* s : order) {
      const bool strip = s->paint == Paint::tile;
      const Shades& colour = shades(s->paint);
      const int shade = s->tile < 0 ? 0 : s->tile % 2;
      const double left = x(std::max(s->begin, from_));
      const double full = x(std::min(s->end, to_)) - left;
      const double width = full > 3 ? full - 1 : std::max(full, 0.4);
      const std::string tip = std::string(s->name) + "  " + span(*s);
      rect(left, strip ? y : main, width, strip ? kTileRow : kRow, colour.fill[shade], tip,
           " " + data_row(row.at(s)));
      const auto [clear, room] = clear_part(lane, *s);
      const std::vector<std::string> names = labels(*s);
      const std::string& label = names[std::min(level.at(s->paint), names.size() - 1)];
      if (!fits(label, strip ? width : room)) continue;
      text(strip ? left + width / 2 : clear, strip ? y + 11.5 : main + 17.5, 11, colour.text[shade],
           label, "text-anchor=\"middle\" pointer-events=\"none\"");
    }
    return main + kRow;
  }

  // Middle and width of the widest part of a slice that no inner slice covers.
  [[nodiscard]] std::pair<double, double> clear_part(const Lane& lane, const Slice& s) const {
    const auto clamped = [&](std::int64_t time) { return x(std::clamp(time, from_, to_)); };
    double from = clamped(s.begin);
    double middle = from;
    double widest = 0;
    const auto offer = [&](double to) {
      if (to - from > widest) {
        widest = to - from;
        middle = (from + to) / 2;
      }
    };
    // Inner slices follow their outer one.
    for (std::size_t i = static_cast<std::size_t>(&s - lane.slices.data()) + 1;
         i < lane.slices.size() && lane.slices[i].depth > s.depth; ++i) {
      if (lane.slices[i].depth > s.depth + 1) continue;
      offer(clamped(lane.slices[i].begin));
      from = clamped(lane.slices[i].end);
    }
    offer(clamped(s.end));
    return {middle, widest};
  }

  static bool fits(const std::string& label, double width) {
    const auto wide =
        std::count_if(label.begin(), label.end(), [](char c) { return c == 'm' || c == 'w'; });
    return 6.3 * static_cast<double>(label.size()) + 4 * static_cast<double>(wide) + 4 <= width;
  }

  // How short the names of a lane's slices are, alike for all of a kind: as most of them need.
  [[nodiscard]] std::map<Paint, std::size_t> label_levels(
      const std::vector<const Slice*>& slices) const {
    std::map<Paint, std::vector<std::size_t>> needs;
    for (const Slice* s : slices) {
      const std::vector<std::string> names = labels(*s);
      std::size_t level = 0;
      while (level + 1 < names.size() && !fits(names[level], x(s->end) - x(s->begin))) ++level;
      needs[s->paint].push_back(level);
    }
    std::map<Paint, std::size_t> levels;
    for (auto& [paint, all] : needs) {
      const auto most = all.begin() + static_cast<std::ptrdiff_t>(all.size() * 3 / 4);
      std::nth_element(all.begin(), most, all.end());
      levels[paint] = *most;
    }
    return levels;
  }

  [[nodiscard]] std::string span(const Slice& s) const {
    return "(" + unit_text(s.begin) + " to " + unit_text(s.end) + ")";
  }
  [[nodiscard]] std::string unit_text(std::int64_t time) const {
    return decimal(static_cast<double>(time) / 1000) + (trace_.measured ? " us" : " kcycles");
  }

  void axis(double top, double bottom) {
    for (const Tick& tick : round_ticks(from_, to_, trace_.measured)) {
      const double px = x(tick.time);
      body_ += "<line x1=\"" + decimal(px) + "\" y1=\"" + decimal(top) + "\" x2=\"" + decimal(px) +
               "\" y2=\"" + decimal(bottom) + "\" stroke=\"#dfe3e8\"/>\n";
      const bool is_last = px > kWidth - kRight - 30;
      text(px, bottom + 15, 12, "#374151", tick.text,
           is_last ? "text-anchor=\"end\"" : "text-anchor=\"middle\"");
    }
    text((kLeft + kWidth - kRight) / 2, bottom + 35, 12.5, "#374151",
         trace_.measured ? "time" : "nominal time", "text-anchor=\"middle\"");
  }

  const Trace& trace_;
  const TimelineView& view_;
  std::vector<Lane> lanes_;
  std::int64_t from_ = 0;
  std::int64_t to_ = 1;
  std::string body_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::string timeline_svg(const Trace& trace, const TimelineView& view) {
  return Timeline(trace, view).draw();
}

View timeline_view(const Trace& trace, const TimelineView& what) {
  Timeline timeline(trace, what);
  View view;
  view.id = "pipeline";
  view.title = "The first tiles over time";
  view.caption = "A lane a role or engine; a box is what it does or waits for.";
  view.svg = timeline.draw();
  const char* const unit = trace.measured ? "ns" : "cycles";
  view.table.header = {
      "CTA", "lane", "slice", "is", std::string("begin, ") + unit, std::string("end, ") + unit};
  view.table.rows = timeline.rows();
  return view;
}

}  // namespace warpwright::pictures
