#include "warpwright/pictures/compare_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "warpwright/pictures/phases.h"
#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::Trace;
using model::TraceTrack;

constexpr double kCompareWidth = 1180;
constexpr double kCompareLeft = 210;
constexpr double kCompareRight = 24;
constexpr double kCompareRow = 18;

constexpr double kLetter = 6.2;       // of a label
constexpr double kSmallLetter = 5.1;  // of one that has little room

// What a slice is called where there is room: its own part of "warpgroup: k_tile 3"; else the
// number of what is counted along a lane, of others the first word.
std::string compared_label(std::string_view name, double width) {
  const auto own = name.rfind(": ");
  if (own != std::string_view::npos) name.remove_prefix(own + 2);
  const auto part = name.rfind(", ");
  if (part != std::string_view::npos) name.remove_prefix(part + 2);
  const auto fits = [&](std::string_view text) {
    return kSmallLetter * static_cast<double>(text.size()) <= width;
  };
  if (fits(name)) return std::string(name);
  const bool counts = name.starts_with("k_tile ") || name.starts_with("copies ") ||
                      name.starts_with("k_block ") || name.starts_with("multiply ") ||
                      name.starts_with("tile ") || name.starts_with("epilogue subtile ");
  const std::string_view less =
      counts ? name.substr(name.rfind(' ') + 1) : name.substr(0, name.find(' '));
  return std::string(fits(less) ? less : std::string_view());
}

// What a slice stands for, with its entry in the legend.
struct Look {
  std::string_view fill;
  bool pale = false;
  std::string_view meaning;
};
constexpr Look kWaits{ink::line, true, "a role waits"};
constexpr Look kWorks{"#d5dae1", true, "a role works"};
constexpr Look kRoleStores{ink::orange, true, "a role's epilogue"};
constexpr Look kConverts{ink::red, true, "converts weights"};
constexpr Look kScales{"#f7edba", true, "scales sums"};
constexpr Look kWritesMap{ink::green, true, "writes a map"};
constexpr Look kReleases{ink::violet, true, "releases it"};
constexpr Look kAcquires{ink::red, true, "acquires it"};

Look look_of(TraceTrack::Kind kind, std::string_view name) {
  switch (kind) {
    case TraceTrack::Kind::loads:
      return {ink::strong_blue, false, "TMA loads"};
    case TraceTrack::Kind::copies:
      return {ink::strong_blue, false, "cp.async, of one warp"};
    case TraceTrack::Kind::fragments:
      return {ink::blue, true, "ldmatrix, of one warp"};
    case TraceTrack::Kind::tensor_core:
      return {ink::strong_green, false, "tensor core"};
    case TraceTrack::Kind::stores:
      return {ink::strong_violet, false, "stores"};
    case TraceTrack::Kind::role:
      break;
  }
  if (name.starts_with("wait")) return kWaits;
  if (name.starts_with("epilogue")) return kRoleStores;
  if (name.starts_with("convert")) return kConverts;
  if (name.starts_with("map: ")) return kWritesMap;
  if (name.starts_with("release map")) return kReleases;
  if (name.starts_with("acquire map")) return kAcquires;
  return name.starts_with("scale") ? kScales : kWorks;
}

// Two shades: tiles in turns.
std::string_view phase_fill(Phase phase, int turn) {
  constexpr std::array<std::array<std::string_view, 2>, 3> fills{{
      {ink::yellow, "#f7edba"},
      {ink::strong_green, ink::green},
      {ink::strong_orange, ink::orange},
  }};
  return fills[static_cast<std::size_t>(phase)][static_cast<std::size_t>(turn % 2)];
}

// For CTA 0 and of those that share its SM with it.
std::vector<const TraceTrack*> compared_tracks(const Trace& trace, bool roles) {
  std::vector<const TraceTrack*> tracks;
  if (trace.tracks.empty()) return tracks;
  const std::vector<int> ctas = ctas_together(trace, trace.tracks.front());
  for (const TraceTrack& track : trace.tracks) {
    const bool is_drawn = std::find(ctas.begin(), ctas.end(), track.cta) != ctas.end();
    if (!is_drawn || track.grid != trace.tracks.front().grid || track.events.empty()) continue;
    if (!roles && track.kind == TraceTrack::Kind::role) continue;
    tracks.push_back(&track);
  }
  return tracks;
}

// The phases of a run with their rows: those of one kind that overlap lie below each other.
struct PhaseRow {
  PhaseSlice slice;
  int row = 0;
  int turn = 0;  // of its tile
};
struct PhaseRows {
  std::vector<PhaseRow> slices;
  std::vector<std::pair<Phase, int>> lanes;  // and how many rows each has
  int rows = 0;
};

PhaseRows phase_rows(const Trace& trace) {
  PhaseRows all;
  const std::vector<PhaseSlice> slices = phases(trace);
  std::vector<std::pair<int, std::string_view>> tiles;
  for (const Phase phase : {Phase::prologue, Phase::main_loop, Phase::epilogue}) {
    std::vector<std::int64_t> ends;
    for (const PhaseSlice& s : slices) {
      if (s.phase != phase) continue;
      auto free = std::find_if(ends.begin(), ends.end(), [&](auto end) { return end <= s.begin; });
      if (free == ends.end()) free = ends.insert(free, 0);
      *free = s.end;
      const std::pair key(s.cta, s.tile);
      auto tile = std::find(tiles.begin(), tiles.end(), key);
      if (tile == tiles.end()) tile = tiles.insert(tile, key);
      all.slices.push_back({s, all.rows + static_cast<int>(free - ends.begin()),
                            static_cast<int>(tile - tiles.begin())});
    }
    if (ends.empty()) continue;
    all.lanes.emplace_back(phase, static_cast<int>(ends.size()));
    all.rows += static_cast<int>(ends.size());
  }
  return all;
}

std::string amount(double value, const CompareHow& how) {
  return decimal(std::round(value)) + (how.nanoseconds ? " ns" : " cycles");
}

// For the tensor core in a run: "45%".
std::string share_text(const Trace& trace) {
  const double all = static_cast<double>(std::max<std::int64_t>(1, trace.end()));
  return decimal(std::round(100 * static_cast<double>(tensor_core_time(trace)) / all)) + "%";
}

double length_of(const ComparedRun& run) {
  return run.trace == nullptr ? run.took : static_cast<double>(run.trace->end()) * run.units;
}

class ComparePicture {
 public:
  ComparePicture(const std::vector<ComparedRun>& runs, const CompareHow& how)
      : runs_(runs), how_(how) {
    for (const ComparedRun& run : runs) end_ = std::max(end_, length_of(run));
  }

  std::string draw(const std::string& title) {
    std::string lanes;
    const double top = title.empty() ? 40 : 68;
    y_ = top;
    for (std::size_t i = 0; i < runs_.size(); ++i) draw_run(i);
    std::swap(lanes, svg_);
    if (!title.empty()) svg_ += svg_text(16, 30, title, 16, "font-weight=\"600\"");
    legend(top - 27);
    for (const Tick& tick : round_ticks(0, static_cast<std::int64_t>(end_), how_.nanoseconds)) {
      const double x = at(static_cast<double>(tick.time));
      svg_ += svg_box(x, top - 8, 1, y_ - top + 6, ink::none);
      svg_ += svg_text(x, y_ + 14, tick.text, 10,
                       static_cast<double>(tick.time) > 0.96 * end_ ? "text-anchor=\"end\""
                                                                    : "text-anchor=\"middle\"");
    }
    return svg_head(kCompareWidth, y_ + 24) + svg_ + lanes + "</svg>\n";
  }

 private:
  [[nodiscard]] double at(double units) const {
    return kCompareLeft + units / end_ * (kCompareWidth - kCompareLeft - kCompareRight);
  }

  void legend(double y) {
    double x = 16;
    const auto entry = [&](std::string_view fill, std::string_view text) {
      svg_ += svg_box(x, y, 12, 11, fill);
      svg_ += svg_text(x + 17, y + 9, text, 11);
      x += 34 + 6.3 * static_cast<double>(text.size());
    };
    for (const auto& [fill, meaning] : legend_) entry(fill, meaning);
  }

  void draw_run(std::size_t row) {
    const ComparedRun& run = runs_[row];
    std::string text = run.name + ": " + amount(length_of(run), how_);
    if (run.trace != nullptr && tensor_core_time(*run.trace) > 0) {
      text += ", tensor core " + share_text(*run.trace);
    }
    svg_ += svg_text(16, y_ + 12, text, 12, "font-weight=\"600\" " + data_row(row));
    y_ += 18;
    if (run.trace == nullptr) {
      svg_ += svg_text(kCompareLeft - 8, y_ + 12, "whole kernel", 11, "text-anchor=\"end\"");
      slice(0, run.took, ink::grey, run.name, "", true, data_row(row));
      y_ += kCompareRow + 12;
      return;
    }
    draw_phases(run, row);
    const std::vector<const TraceTrack*> tracks = compared_tracks(*run.trace, how_.roles);
    const bool is_alone = std::all_of(tracks.begin(), tracks.end(), [&](const TraceTrack* track) {
      return track->cta == tracks.front()->cta;
    });
    for (const TraceTrack* track : tracks) draw_track(run, *track, is_alone);
    y_ += 12;
  }

  void draw_phases(const ComparedRun& run, std::size_t row) {
    const PhaseRows rows = phase_rows(*run.trace);
    double y = y_;
    for (const auto& [phase, count] : rows.lanes) {
      svg_ += svg_text(kCompareLeft - 8, y + 12, name(phase), 11, "text-anchor=\"end\"");
      y += count * kCompareRow;
    }
    const double top = y_;
    constexpr std::array<const char*, 3> meanings{"prologue: first load to first MMA", "main loop",
                                                  "epilogue"};
    for (const PhaseRow& p : rows.slices) {
      y_ = top + p.row * kCompareRow;
      explain(phase_fill(p.slice.phase, 0), meanings[static_cast<std::size_t>(p.slice.phase)]);
      slice(static_cast<double>(p.slice.begin) * run.units,
            static_cast<double>(p.slice.end) * run.units, phase_fill(p.slice.phase, p.turn),
            std::string(name(p.slice.phase)) + " of " +
                (p.slice.tile.empty() ? "D" : std::string(p.slice.tile)) + ", CTA " +
                std::to_string(p.slice.cta),
            short_tile(p.slice.tile), p.slice.phase == Phase::prologue || p.turn % 2 == 1,
            data_row(row));
    }
    y_ = y;
  }

  // In the legend, once.
  void explain(std::string_view fill, std::string_view meaning) {
    const std::pair<std::string_view, std::string_view> entry(fill, meaning);
    if (std::find(legend_.begin(), legend_.end(), entry) == legend_.end()) legend_.push_back(entry);
  }

  void draw_track(const ComparedRun& run, const TraceTrack& track, bool is_alone) {
    svg_ += svg_text(kCompareLeft - 8, y_ + 12,
                     (is_alone ? "" : "CTA " + std::to_string(track.cta) + ": ") + track.name, 11,
                     "text-anchor=\"end\"");
    for (const TrackSlice& s : track_slices(*run.trace, track)) {
      const bool role = track.kind == TraceTrack::Kind::role;
      const bool waits = s.name.starts_with("wait");
      const Look look = look_of(track.kind, s.name);
      explain(look.fill, look.meaning);
      const double begin = static_cast<double>(s.begin) * run.units;
      const double end = static_cast<double>(s.end) * run.units;
      // What lies inside would cover a role's label.
      const bool is_named = !waits && !(role && s.covered);
      slice(begin, end, look.fill, s.name,
            is_named ? compared_label(s.name, at(end) - at(begin) - 4) : "", look.pale, "");
    }
    y_ += kCompareRow;
  }

  void slice(double begin, double end, std::string_view fill, std::string_view tip,
             const std::string& label, bool pale, std::string_view more) {
    const double width = std::max(1.0, at(end) - at(begin));
    svg_ +=
        svg_box(at(begin), y_, width > 3 ? width - 0.6 : width, kCompareRow - 4, fill, tip, more);
    const auto letters = static_cast<double>(label.size());
    if (label.empty() || kSmallLetter * letters > width - 4) return;
    svg_ += svg_text(
        at(begin) + 3, y_ + 11, label, kLetter * letters > width - 4 ? 8 : 10,
        pale ? "pointer-events=\"none\"" : "pointer-events=\"none\" style=\"fill:#ffffff\"");
  }

  const std::vector<ComparedRun>& runs_;
  const CompareHow& how_;
  double end_ = 1;
  double y_ = 0;
  std::vector<std::pair<std::string_view, std::string_view>> legend_;
  std::string svg_;
};

}  // namespace

std::int64_t tensor_core_time(const Trace& trace) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const TraceTrack* track : compared_tracks(trace, false)) {
    if (track->kind != TraceTrack::Kind::tensor_core) continue;
    for (const TrackSlice& s : track_slices(trace, *track)) spans.emplace_back(s.begin, s.end);
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t busy = 0;
  std::int64_t until = 0;
  for (const auto& [begin, end] : spans) {
    busy += std::max<std::int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return busy;
}

std::string compare_svg(const std::string& title, const std::vector<ComparedRun>& runs,
                        const CompareHow& how) {
  return ComparePicture(runs, how).draw(title);
}

std::size_t compared_slices(const Trace& trace, bool roles) {
  std::size_t count = phases(trace).size();
  for (const TraceTrack* track : compared_tracks(trace, roles)) {
    count += track_slices(trace, *track).size();
  }
  return count;
}

View compare_view(const std::vector<ComparedRun>& runs, const CompareHow& how) {
  View view;
  view.id = "compare";
  view.title = "Runs on one axis";
  view.caption =
      "The first CTA of each run, and those on its SM at a time. A prologue or an epilogue "
      "costs time where it lies under no main loop.";
  view.svg = compare_svg("", runs, how);
  view.table.header = {
      "run",           how.nanoseconds ? "ns" : "cycles", "tensor core", "tiles", "bare prologues",
      "bare epilogues"};
  for (const ComparedRun& run : runs) {
    std::vector<std::string> row = {run.name, decimal(std::round(length_of(run)))};
    if (run.trace == nullptr) {
      row.insert(row.end(), {"", "", "", ""});
    } else {
      const std::vector<PhaseSlice> slices = phases(*run.trace);
      const Bare costs = bare(slices);
      const auto tiles = std::count_if(slices.begin(), slices.end(), [](const PhaseSlice& s) {
        return s.phase == Phase::main_loop;
      });
      row.push_back(share_text(*run.trace));
      row.push_back(std::to_string(tiles));
      row.push_back(decimal(std::round(static_cast<double>(costs.prologue) * run.units)));
      row.push_back(decimal(std::round(static_cast<double>(costs.epilogue) * run.units)));
    }
    view.table.rows.push_back(std::move(row));
  }
  return view;
}

}  // namespace warpwright::pictures
