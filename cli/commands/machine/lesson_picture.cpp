#include "cli/commands/machine/lesson_picture.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "lessons/source.h"
#include "lessons/twin.h"
#include "warpwright/facts/format.h"
#include "warpwright/pictures/barrier_states.h"
#include "warpwright/pictures/compare_svg.h"
#include "warpwright/pictures/grid_svg.h"

namespace warpwright::cli {
namespace {

using lessons::Lesson;
using model::testing::Recording;
using nlohmann::ordered_json;
using pictures::BarrierStep;
using pictures::CellGrid;
using pictures::ComparedRun;
using pictures::View;

// The command line that draws it again.
std::string command_of(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  std::string text = "warpwright lesson " + std::to_string(lesson.number);
  if (runs.front().ask.broken) text += " --broken";
  const auto list = [&](const char* option, int lessons::Ask::*knob, int none) {
    std::vector<int> seen;
    for (const LessonRun& run : runs) {
      const int value = run.ask.*knob;
      bool is_new = value != none;
      for (const int other : seen) is_new = is_new && other != value;
      if (is_new) seen.push_back(value);
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      text += (i == 0 ? std::string(" ") + option + " " : ",") + std::to_string(seen[i]);
    }
  };
  list("--stages", &lessons::Ask::stages, 0);
  list("--in-flight", &lessons::Ask::in_flight, -1);
  return text;
}

View cells_view(const Lesson& lesson) {
  View view{.id = "cells",
            .title = "Layouts",
            .caption = "",
            .svg = "",
            .table = {{"grid", "row", "column", "element"}, {}},
            .data = ""};
  std::vector<CellGrid> grids = lesson_grids(lesson);
  ordered_json data = ordered_json::array();
  for (CellGrid& grid : grids) {
    data.push_back({{"title", grid.title}, {"rows", grid.rows}, {"columns", grid.columns}});
    data.back()["cells"] = ordered_json::array();
    for (int r = 0; r < grid.rows; ++r) {
      for (int c = 0; c < grid.columns; ++c) {
        grid.at(r, c).row = static_cast<std::int64_t>(view.table.rows.size());
        view.table.rows.push_back(
            {grid.title, std::to_string(r), std::to_string(c), grid.at(r, c).word});
        data.back()["cells"].push_back(grid.at(r, c).word);
      }
    }
  }
  view.svg = pictures::cells_svg("", grids);
  view.data = data.dump();
  return view;
}

View barriers_view(const Recording& recording) {
  View view = pictures::barrier_view(recording.barriers);
  view.id = "barriers";
  view.title = "Its mbarriers, event by event";
  view.caption = "CTA 0, in the schedule by the clock. " + view.caption;
  view.data = barriers_json(recording).dump();
  return view;
}

View times_view(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  View view;
  if (runs.size() == 1 && lesson.picture == lessons::Picture::grid) {
    view = pictures::grid_view(
        runs.front().recording.trace,
        {.title = "", .sms = 4, .occupied_sm = lesson.occupied_sm, .ctas_per_sm = 1});
    view.title = "Which SM works on which tile";
  } else {
    std::vector<ComparedRun> compared;
    compared.reserve(runs.size());
    for (const LessonRun& run : runs) {
      compared.push_back({run.knobs.empty() ? "CTA 0" : run.knobs, &run.recording.trace});
    }
    view = pictures::compare_view(compared);
    view.title = "What works when";
  }
  view.id = "timeline";
  return view;
}

}  // namespace

std::string lesson_heading(const Lesson& lesson) {
  return "Lesson " + std::to_string(lesson.number) + ": " + std::string(lesson.title);
}

std::string lesson_pages(const Lesson& lesson) {
  return std::string(lesson.pages) + " (docs/seeds.md)";
}

// Colour 0 of a lesson stands for what is not looked at.
std::vector<CellGrid> lesson_grids(const Lesson& lesson) {
  std::vector<CellGrid> grids;
  if (lesson.cells == nullptr) return grids;
  for (const lessons::Cells& cells : lesson.cells()) {
    CellGrid grid = pictures::cell_grid(cells.title, cells.rows, cells.columns);
    for (int r = 0; r < cells.rows; ++r) {
      for (int c = 0; c < cells.columns; ++c) {
        grid.at(r, c).word = cells.word(r, c);
        grid.at(r, c).colour = cells.colour(r, c) - 1;
      }
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

ordered_json barriers_json(const Recording& recording) {
  ordered_json json = ordered_json::array();
  for (const BarrierStep& step : pictures::barrier_steps(recording.barriers)) {
    const model::BarrierEvent& e = step.event;
    json.push_back({{"cycle", e.time},
                    {"barrier", e.barrier},
                    {"phase", e.phase},
                    {"pending", e.pending},
                    {"expected", e.expected},
                    {"bytes", e.tx},
                    {"waiting", e.waiting},
                    {"what", pictures::step_text(step)}});
  }
  return json;
}

std::string tensor_core_share(const model::Trace& trace) {
  const std::int64_t busy = pictures::tensor_core_time(trace);
  if (busy == 0) return "-";
  return format("%.0f%%", 100.0 * static_cast<double>(busy) / static_cast<double>(trace.end()));
}

pictures::Picture lesson_picture(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  const bool broken = runs.front().ask.broken;
  pictures::Picture picture{
      .kind = "lesson-" + std::to_string(lesson.number) + (broken ? "-broken" : ""),
      .title = lesson_heading(lesson) + (broken ? " (broken twin)" : ""),
      .command = command_of(lesson, runs),
      .views = {}};
  if (runs.size() == 1 && lesson.picture == lessons::Picture::barriers) {
    picture.views.push_back(barriers_view(runs.front().recording));
  }
  if (runs.size() > 1 || lesson.picture != lessons::Picture::cells) {
    picture.views.push_back(times_view(lesson, runs));
  }
  if (lesson.cells != nullptr) picture.views.push_back(cells_view(lesson));
  return picture;
}

std::vector<pictures::Note> lesson_notes(const Lesson& lesson, bool broken,
                                         const std::string& report) {
  std::vector<pictures::Note> notes = {{"Question", std::string(lesson.question)},
                                       {"Answer", std::string(lesson.answer)},
                                       {"Broken twin", std::string(lesson.broken)},
                                       {"It gives", std::string(model::code(lesson.finding)) + " " +
                                                        std::string(model::name(lesson.finding))},
                                       {"In the seeds", lesson_pages(lesson)},
                                       {broken ? "The broken twin" : "As it stands", report}};
  for (const std::string& file : lessons::files(lesson)) {
    const std::string_view source = lessons::source(file);
    const std::vector<lessons::TwinLine> twins = lessons::twin_lines(source);
    if (!twins.empty())
      notes.push_back({"What the twin has otherwise", lessons::twin_diff(source)});
    pictures::Note text{file, std::string(source)};
    for (const lessons::TwinLine& twin : twins) text.marked.push_back(twin.line);
    text.is_source = true;
    notes.push_back(std::move(text));
  }
  return notes;
}

}  // namespace warpwright::cli
