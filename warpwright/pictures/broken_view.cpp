#include "warpwright/pictures/broken_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::Trace;
using model::TraceTrack;

constexpr double kBrokenWidth = 1180;
constexpr double kBrokenEdge = 16;
constexpr double kBrokenLeft = 150;
constexpr double kBrokenRow = 20;
constexpr std::size_t kShownBefore = 3;  // happenings that both have, in the lists
constexpr std::size_t kShownBehind = 7;
constexpr std::size_t kDrawnBefore = 8;  // and in the window of the lanes
constexpr std::size_t kDrawnBehind = 16;
constexpr std::size_t kSentenceLines = 4;

std::string site_place(const model::Site& site) {
  if (site.line == 0) return "";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

// As much of the text as fits.
std::string cut(const std::string& text, double width, double size) {
  const auto room = static_cast<std::size_t>(std::max(0.0, width / (0.56 * size)));
  if (text.size() <= room) return text;
  return room < 4 ? "" : text.substr(0, room - 3) + "...";
}

// The text in lines of so many letters.
std::vector<std::string> lines_of(const std::string& text, std::size_t room) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (text.size() - at > room) {
    std::size_t end = text.rfind(' ', at + room);
    if (end == std::string::npos || end <= at) end = at + room;
    lines.push_back(text.substr(at, end - at));
    at = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
  }
  lines.push_back(text.substr(at));
  return lines;
}

std::string_view ink_of_code(const std::string& code) {
  if (code.empty()) return ink::none;
  switch (code.front()) {
    case 'D':
      return ink::red;
    case 'B':
      return ink::yellow;
    case 'T':
      return ink::blue;
    case 'P':
    case 'M':
    case 'A':
      return ink::violet;
    case 'W':
      return ink::green;
    default:
      return ink::orange;
  }
}

std::string line_of(const Happening& h) {
  return std::to_string(h.time) + "  " + h.where + ": " + h.what;
}

// Those of a run around the time: some before it, and those from it on.
std::vector<Happening> around(const std::vector<Happening>& all, std::int64_t time,
                              std::size_t before, std::size_t behind) {
  const auto from =
      std::find_if(all.begin(), all.end(), [&](const Happening& h) { return h.time >= time; });
  const auto first = from - static_cast<std::ptrdiff_t>(
                                std::min(before, static_cast<std::size_t>(from - all.begin())));
  const auto last = from + static_cast<std::ptrdiff_t>(
                               std::min(behind, static_cast<std::size_t>(all.end() - from)));
  return {first, last};
}

// What happens in one CTA, of both runs.
struct Sides {
  std::int64_t time = 0;  // at which they part, or the broken one ends
  std::vector<Happening> whole;
  std::vector<Happening> broken;
};

int last_grid(const Trace& trace) {
  int last = 0;
  for (const TraceTrack& track : trace.tracks) last = std::max(last, track.grid);
  return last;
}

class BrokenPicture {
 public:
  BrokenPicture(const BrokenStatement& statement, const std::optional<Parting>& part)
      : s_(statement), part_(part) {
    cta_ = part ? part->cta : 0;
    grid_ = part ? part->grid : last_grid(s_.broken.trace);
    sides_.time = part ? part->time : s_.broken.trace.end();
    for (auto& [run, list] : {std::pair{&s_.whole, &sides_.whole}, {&s_.broken, &sides_.broken}}) {
      for (Happening& h : happenings(*run)) {
        if (h.cta == cta_ && h.grid == grid_) list->push_back(std::move(h));
      }
    }
    choose_window();
  }

  [[nodiscard]] const Sides& sides() const { return sides_; }

  std::string draw() {
    double y = 20;
    const std::string found = std::string(model::code(s_.finding.check)) + " " +
                              std::string(model::name(s_.finding.check));
    const std::string at = site_place(s_.finding.site);
    text(kBrokenEdge, y,
         found + (at.empty() ? "" : " at " + at) + ", under the schedule " + s_.line.schedule, 13,
         "font-weight=\"600\"");
    const std::vector<std::string> lines =
        lines_of(s_.finding.sentence.substr(0, s_.finding.sentence.find('\n')), 175);
    for (std::size_t i = 0; i < lines.size() && i < kSentenceLines; ++i) {
      y += 16;
      text(kBrokenEdge, y,
           lines[i] + (i + 1 == kSentenceLines && lines.size() > i + 1 ? " ..." : ""), 12);
    }
    y += 26;
    const double top = y;
    y = lanes(s_.whole, "unbroken", y);
    y = lanes(s_.broken, "broken", y + 10);
    mark(top, y);
    y = lists(y + 38);
    return svg_head(kBrokenWidth, y + 12) + svg_ + "</svg>\n";
  }

 private:
  void text(double x, double y, const std::string& what, double size, std::string_view more = "") {
    svg_ += svg_text(x, y, what, size, more);
  }

  // The times at which something happens near the parting, in either run.
  void choose_window() {
    times_.push_back(sides_.time);
    for (const auto* list : {&sides_.whole, &sides_.broken}) {
      for (const Happening& h : around(*list, sides_.time, kDrawnBefore, kDrawnBehind)) {
        times_.push_back(h.time);
      }
    }
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    // The same number in front of the parting and behind it leaves no lane empty.
    const auto at = std::find(times_.begin(), times_.end(), sides_.time) - times_.begin();
    if (times_.size() > static_cast<std::size_t>(at) + kDrawnBehind) {
      times_.resize(static_cast<std::size_t>(at) + kDrawnBehind);
    }
    if (at > static_cast<std::ptrdiff_t>(kDrawnBefore)) {
      times_.erase(times_.begin(),
                   times_.begin() + (at - static_cast<std::ptrdiff_t>(kDrawnBefore)));
    }
    from_ = times_.front();
    to_ = times_.back() + 1;
  }

  // Scheduling steps are no durations: times at which something happens stand equally far apart.
  [[nodiscard]] double x(std::int64_t time) const {
    const auto count = static_cast<double>(times_.size());
    double at = count;
    const auto next = std::lower_bound(times_.begin(), times_.end(), time);
    if (next != times_.end()) {
      at = static_cast<double>(next - times_.begin());
      if (*next != time && next != times_.begin()) {  // between two
        const double span = static_cast<double>(*next - *(next - 1));
        at -= static_cast<double>(*next - time) / span;
      }
    }
    return kBrokenLeft + at / count * (kBrokenWidth - kBrokenLeft - kBrokenEdge);
  }

  double lanes(const KeptRun& run, const char* what, double y) {
    text(kBrokenEdge, y + 12, std::string(what) + ", CTA " + std::to_string(cta_), 12,
         "font-weight=\"600\"");
    y += 18;
    const std::vector<EndlessWait> hanging = endless_waits(run);
    for (const TraceTrack& track : run.trace.tracks) {
      if (track.cta != cta_ || track.grid != grid_ || track.events.empty()) continue;
      if (track.kind != TraceTrack::Kind::role || track.events.front().time > to_) continue;
      if (track.name == "idle" || track.name == "initialiser") continue;
      text(kBrokenLeft - 8, y + 13, track.name, 11, "text-anchor=\"end\"");
      for (const TrackSlice& slice : track_slices(run.trace, track)) {
        if (slice.end < from_ || slice.begin > to_) continue;
        const double left = x(slice.begin);
        const double width = x(slice.end) - left;
        if (width < 0.8) continue;
        const bool waits = slice.name.starts_with("wait");
        svg_ += svg_box(left, y, std::max(0.8, width - 0.6), kBrokenRow - 4,
                        waits              ? ink::line
                        : slice.depth == 0 ? ink::none
                        : slice.depth == 1 ? ink::grey
                                           : ink::green);
        const std::string label = cut(std::string(slice.name), width - 4, 10);
        if (!label.empty() && !slice.covered) text(left + 3, y + 12, label, 10);
      }
      for (const EndlessWait& w : hanging) {
        if (w.cta != cta_ || w.grid != grid_ || w.role != track.name || w.since > to_) continue;
        const double left = x(w.since);
        const double room = kBrokenWidth - kBrokenEdge - left;
        const bool hangs = s_.line.code.starts_with('D');
        svg_ += svg_box(left, y, room, kBrokenRow - 4, hangs ? ink::red : ink::line);
        text(left + 3, y + 12,
             cut("waits for " + w.barrier + (hangs ? " and hangs" : " until the run ends"),
                 room - 4, 10),
             10);
      }
      y += kBrokenRow;
    }
    return y;
  }

  void mark(double top, double bottom) {
    const double at = x(sides_.time);
    svg_ += svg_box(at - 0.8, top - 2, 1.6, bottom - top + 4, ink::strong_red);
    text(at + 5, top + 8, part_ ? "here they part" : "here the broken run ends", 11);
    double free = 0;
    for (const std::int64_t time : times_) {
      const double left = x(time);
      svg_ += svg_box(left, bottom, 0.8, 4, ink::line);
      if (left < free) continue;
      text(left, bottom + 14, std::to_string(time), 9);
      free = left + 6 + 5.5 * static_cast<double>(std::to_string(time).size());
    }
  }

  // The one at which they part: a step that ends with it, the last that says the same, or the first
  // behind it.
  [[nodiscard]] std::size_t parting_among(const std::vector<Happening>& shown, bool whole) const {
    std::size_t found = shown.size();
    const std::optional<Happening> parts = !part_  ? std::nullopt
                                           : whole ? part_->whole
                                                   : part_->broken;
    if (!parts) return found;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const Happening& h = shown[i];
      if (h.where != parts->where || h.time < parts->time) continue;
      if (h == *parts || found == shown.size()) found = i;
    }
    return found;
  }

  double lists(double y) {
    const double half = (kBrokenWidth - 2 * kBrokenEdge) / 2;
    double bottom = y;
    for (const auto& [list, what, left] : {std::tuple{&sides_.whole, "unbroken", kBrokenEdge},
                                           {&sides_.broken, "broken", kBrokenEdge + half}}) {
      double line = y;
      text(left, line, what, 12, "font-weight=\"600\"");
      const std::vector<Happening> shown = around(*list, sides_.time, kShownBefore, kShownBehind);
      const std::size_t parts = parting_among(shown, list == &sides_.whole);
      for (std::size_t i = 0; i < shown.size(); ++i) {
        line += 15;
        text(left, line, cut(line_of(shown[i]), half - 8, 11), 11,
             i == parts ? "font-weight=\"600\"" : "");
      }
      bottom = std::max(bottom, line);
    }
    return bottom;
  }

  const BrokenStatement& s_;
  const std::optional<Parting>& part_;
  int grid_ = 0;
  int cta_ = 0;
  Sides sides_;
  std::vector<std::int64_t> times_;
  std::int64_t from_ = 0;
  std::int64_t to_ = 1;
  std::string svg_;
};

std::string caption_of(const BrokenStatement& s, const std::optional<Parting>& part) {
  std::string text;
  if (!part) {
    text =
        "Both runs do the same until the check speaks: the order of events is that of a lucky "
        "schedule, and nothing in the program keeps it.";
  } else {
    text = "They part at " + std::to_string(part->time) + " in CTA " + std::to_string(part->cta) +
           ", at " + part->where + ": unbroken " +
           (part->whole ? "\"" + part->whole->what + "\" at " + std::to_string(part->whole->time)
                        : std::string("nothing more")) +
           ", broken " +
           (part->broken ? "\"" + part->broken->what + "\" at " + std::to_string(part->broken->time)
                         : std::string("nothing more")) +
           ".";
  }
  if (!s.finding.mend.empty()) text += " Mend: " + s.finding.mend + ".";
  return text + " Time counts the model's scheduling steps.";
}

}  // namespace

std::string mutant_id(int number) {
  return "m" + std::to_string(number);
}

View mutants_view(const std::vector<MutantLine>& mutants) {
  constexpr double left = 470;
  constexpr double box = 66;
  constexpr double row = 22;
  View view;
  view.id = "mutants";
  view.title = "All mutants";
  view.caption =
      "A line a statement that synchronises, a box a way to break it, with the finding that tells. "
      "Grey: no schedule shows a difference, and none is ordered otherwise.";
  view.table.header = {"mutant", "kind", "site", "fate", "finding", "schedule"};
  std::string svg;
  double y = -4;
  double x = left;
  const std::string* site = nullptr;
  for (const MutantLine& m : mutants) {
    const bool is_new = site == nullptr || *site != m.site;
    if (is_new || x + box > kBrokenWidth - kBrokenEdge) {
      y += row;
      x = left;
    }
    if (is_new) {
      svg += svg_text(left - 10, y + 13, cut(m.site, left - 20, 11), 11, "text-anchor=\"end\"");
    }
    site = &m.site;
    const std::size_t at = view.table.rows.size();
    const std::string shown =
        svg_box(x, y, box - 4, row - 4, ink_of_code(m.code), m.how, data_row(at)) +
        svg_text(x + (box - 4) / 2, y + 13,
                 std::to_string(m.number) + (m.code.empty() ? "" : ": " + m.code), 10,
                 "text-anchor=\"middle\" pointer-events=\"none\"");
    svg +=
        m.code.empty() ? shown : "<a href=\"#view=" + mutant_id(m.number) + "\">" + shown + "</a>";
    x += box;
    view.table.rows.push_back(
        {std::to_string(m.number), m.how, m.site, m.fate, m.code, m.schedule});
  }
  view.svg = svg_head(kBrokenWidth, y + row + 14) + svg + "</svg>\n";
  return view;
}

View broken_view(const BrokenStatement& statement) {
  const std::optional<Parting> part = parting(statement.whole, statement.broken);
  BrokenPicture picture(statement, part);
  View view;
  view.id = mutant_id(statement.line.number);
  view.title = std::to_string(statement.line.number) + ". " + statement.line.how + ": " +
               statement.line.site;
  view.caption = caption_of(statement, part);
  view.svg = picture.draw();
  view.table.header = {"time", "unbroken", "time", "broken"};
  const Sides& sides = picture.sides();
  const auto whole = around(sides.whole, sides.time, kShownBefore, 2 * kShownBehind);
  const auto broken = around(sides.broken, sides.time, kShownBefore, 2 * kShownBehind);
  const auto cells = [](const std::vector<Happening>& list, std::size_t i) {
    if (i >= list.size()) return std::pair<std::string, std::string>();
    return std::pair{std::to_string(list[i].time), list[i].where + ": " + list[i].what};
  };
  for (std::size_t i = 0; i < std::max(whole.size(), broken.size()); ++i) {
    const auto [time, what] = cells(whole, i);
    const auto [other_time, other] = cells(broken, i);
    view.table.rows.push_back({time, what, other_time, other});
  }
  return view;
}

}  // namespace warpwright::pictures
