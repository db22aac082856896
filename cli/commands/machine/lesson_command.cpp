#include "cli/commands/machine/lesson_command.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/outputs.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/files/output_file.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "lessons/lesson.h"
#include "warpwright/pictures/barrier_svg.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/compare_svg.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::cli {
namespace {

using pictures::barrier_steps;
using pictures::barrier_svg;
using pictures::barrier_text;
using pictures::BarrierStep;
using pictures::CellGrid;
using pictures::cells_svg;
using pictures::cells_text;
using pictures::compare_svg;
using pictures::ComparedRun;
using pictures::escaped;
using pictures::grid_svg;
using pictures::step_text;
using pictures::tensor_core_time;

using lessons::Ask;
using lessons::Lesson;
using model::testing::Outcome;
using model::testing::Recording;

// A way to run the lesson, and what came of it.
struct LessonRun {
  Ask ask;
  std::string knobs;  // "stages 2, in flight 1"; empty without
  Recording recording;
  Outcome outcome;
};

std::string file_of(const Lesson& lesson) {
  const std::string number = std::to_string(lesson.number);
  return "examples/lessons/" + std::string(2 - number.size(), '0') + number + "_" +
         std::string(lesson.name) + ".h";
}

std::string heading(const Lesson& lesson) {
  return "Lesson " + std::to_string(lesson.number) + ": " + std::string(lesson.title);
}

std::string expected(const Lesson& lesson) {
  return std::string(model::code(lesson.finding)) + " " + std::string(model::name(lesson.finding));
}

const Lesson& lesson_of(int number) {
  const std::vector<Lesson>& all = lessons::all();
  const int last = static_cast<int>(all.size());
  if (number < 1 || number > last) {
    throw InputError("There is no lesson " + std::to_string(number) + ": lessons are 1 to " +
                     std::to_string(last) + "; the nearest is " +
                     as_nearest(std::to_string(std::clamp(number, 1, last))) + ".");
  }
  return all[static_cast<std::size_t>(number - 1)];
}

void check_knob(const Lesson& lesson, const char* option, const std::vector<int>& values, int least,
                int most) {
  if (values.empty()) return;
  if (most == 0) {
    std::string having;
    for (const Lesson& other : lessons::all()) {
      const bool has = std::string(option) == "--stages" ? other.stages > 0 : other.in_flight > 0;
      if (has) having += (having.empty() ? "" : " and ") + std::to_string(other.number);
    }
    throw InputError("Lesson " + std::to_string(lesson.number) + " does not take " + option +
                     ": leave it out; it is of " +
                     (having.find(' ') == std::string::npos ? "lesson " : "lessons ") + having +
                     ".");
  }
  for (const int value : values) {
    if (value >= least && value <= most) continue;
    throw InputError(std::string(option) + " is " + std::to_string(value) + "; of lesson " +
                     std::to_string(lesson.number) + " it is " + std::to_string(least) + " to " +
                     std::to_string(most) + "; the nearest is " +
                     as_nearest(std::to_string(std::clamp(value, least, most))) + ".");
  }
}

// All that is asked for: one run, or one for each pair of knobs that fits.
std::vector<LessonRun> runs_of(const Lesson& lesson, const LessonOptions& o) {
  const int least = lesson.in_flight > 0 ? 1 : 2;
  check_knob(lesson, "--stages", o.stages, least, lesson.stages);
  check_knob(lesson, "--in-flight", o.in_flight, 0, lesson.in_flight);
  std::vector<LessonRun> runs;
  for (const int stages : o.stages.empty() ? std::vector<int>{0} : o.stages) {
    for (const int in_flight : o.in_flight.empty() ? std::vector<int>{-1} : o.in_flight) {
      const int ring = stages == 0 ? 4 : stages;
      if (in_flight >= ring) continue;
      LessonRun run;
      run.ask = {.broken = o.broken, .stages = stages, .in_flight = in_flight};
      if (stages > 0) run.knobs = "stages " + std::to_string(stages);
      if (in_flight >= 0) {
        run.knobs +=
            (run.knobs.empty() ? "in flight " : ", in flight ") + std::to_string(in_flight);
      }
      runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) {
    throw InputError("--in-flight is " + std::to_string(o.in_flight.front()) + " with --stages " +
                     std::to_string(o.stages.front()) +
                     ": fewer groups are in flight than there are stages; the nearest is " +
                     as_nearest(std::to_string(o.stages.front() - 1)) + ".");
  }
  return runs;
}

// Colour 0 of a lesson stands for what is not looked at.
CellGrid grid_of(const lessons::Cells& cells) {
  CellGrid grid = pictures::cell_grid(cells.title, cells.rows, cells.columns);
  for (int r = 0; r < cells.rows; ++r) {
    for (int c = 0; c < cells.columns; ++c) {
      grid.at(r, c).word = cells.word(r, c);
      grid.at(r, c).colour = cells.colour(r, c) - 1;
    }
  }
  return grid;
}

std::vector<CellGrid> grids_of(const Lesson& lesson) {
  std::vector<CellGrid> grids;
  if (lesson.cells == nullptr) return grids;
  for (const lessons::Cells& cells : lesson.cells()) grids.push_back(grid_of(cells));
  return grids;
}

std::string picture(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  const std::string title =
      heading(lesson) +
      (runs.front().ask.broken ? " (broken: " + std::string(lesson.broken) + ")" : "");
  if (runs.size() > 1) {
    std::vector<ComparedRun> compared;
    compared.reserve(runs.size());
    for (const LessonRun& run : runs) compared.push_back({run.knobs, &run.recording.trace});
    return compare_svg(title, compared);
  }
  const Recording& recording = runs.front().recording;
  switch (lesson.picture) {
    case lessons::Picture::cells:
      return cells_svg(heading(lesson), grids_of(lesson));
    case lessons::Picture::barriers:
      return barrier_svg(title, recording.barriers);
    case lessons::Picture::timeline:
      return compare_svg(title, {{"CTA 0", &recording.trace}});
    case lessons::Picture::grid:
      break;
  }
  return grid_svg(recording.trace,
                  {.title = title, .sms = 4, .occupied_sm = lesson.occupied_sm, .ctas_per_sm = 1});
}

bool is_as_said(const Lesson& lesson, const LessonRun& run) {
  return run.ask.broken ? run.outcome.has(lesson.finding) : run.outcome.clean();
}

// Cycles, and how much of them the tensor core was at work.
std::string compared_text(const std::vector<LessonRun>& runs) {
  std::string text = "  cycles  tensor core\n";
  for (const LessonRun& run : runs) {
    const std::int64_t cycles = run.recording.trace.end();
    const std::int64_t busy = tensor_core_time(run.recording.trace);
    char share[16] = "-";
    if (busy > 0) {
      std::snprintf(share, sizeof share, "%.0f%%",
                    100.0 * static_cast<double>(busy) / static_cast<double>(cycles));
    }
    char line[96];
    std::snprintf(line, sizeof line, "%8lld  %11s  ", static_cast<long long>(cycles), share);
    text += line + (run.knobs.empty() ? "CTA 0" : run.knobs) +
            (run.outcome.clean() ? "" : " (with findings)") + "\n";
  }
  return text;
}

// What the picture shows, as far as it is text.
std::string shown_text(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  if (runs.size() > 1) return compared_text(runs);
  std::string text;
  for (const CellGrid& grid : grids_of(lesson)) text += cells_text(grid);
  const Recording& recording = runs.front().recording;
  if (lesson.picture == lessons::Picture::barriers) {
    text += "mbarriers of CTA 0, in the schedule by the clock:\n" +
            barrier_text(barrier_steps(recording.barriers));
  } else if (lesson.picture != lessons::Picture::cells) {
    text += compared_text(runs);
  }
  return text;
}

std::string outcome_text(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  std::string text;
  for (const LessonRun& run : runs) {
    text += (run.knobs.empty() ? "" : run.knobs + ": ") + run.outcome.text();
    if (!is_as_said(lesson, run)) {
      text += run.ask.broken ? "Expected, and not found: " + expected(lesson) + "\n"
                             : "Expected: nothing\n";
    }
  }
  return text;
}

std::string page(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  const auto row = [](const char* what, std::string_view text) {
    return "<dt>" + std::string(what) + "</dt><dd>" + escaped(text) + "</dd>\n";
  };
  const bool broken = runs.front().ask.broken;
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(heading(lesson)) +
      "</title>\n<style>\n:root{color-scheme:light dark}\nbody{font:16px/1.5 "
      "system-ui,sans-serif;max-width:76rem;margin:auto;padding:1rem}\ndt{font-weight:600}\n"
      "pre,.picture{overflow-x:auto}\npre{font-size:13px}\nsvg{max-width:none}\n</style></"
      "head><body>\n"
      "<h1>" +
      escaped(heading(lesson)) + "</h1>\n<dl>\n";
  html += row("Question", lesson.question) + row("Answer", lesson.answer);
  html += row("Broken twin", lesson.broken) + row("It gives", expected(lesson));
  html += row("In the seeds", lesson.pages) + row("Source", file_of(lesson)) + "</dl>\n";
  html += "<div class=\"picture\">\n" + picture(lesson, runs) + "</div>\n";
  if (lesson.cells != nullptr && lesson.picture != lessons::Picture::cells) {
    html += "<div class=\"picture\">\n" + cells_svg("", grids_of(lesson)) + "</div>\n";
  }
  html += "<h2>" + std::string(broken ? "The broken twin" : "As it stands") + "</h2>\n<pre>" +
          escaped(outcome_text(lesson, runs)) + "</pre>\n<pre>" +
          escaped(shown_text(lesson, runs)) + "</pre>\n</body></html>\n";
  return html;
}

nlohmann::ordered_json about(const Lesson& lesson) {
  return {{"number", lesson.number},
          {"name", lesson.name},
          {"title", lesson.title},
          {"question", lesson.question},
          {"answer", lesson.answer},
          {"seeds", lesson.pages},
          {"file", file_of(lesson)},
          {"twin", lesson.broken},
          {"finding", model::code(lesson.finding)}};
}

nlohmann::ordered_json run_json(const Lesson& lesson, const LessonRun& run) {
  nlohmann::ordered_json json;
  if (run.ask.stages > 0) json["stages"] = run.ask.stages;
  if (run.ask.in_flight >= 0) json["in_flight"] = run.ask.in_flight;
  json["as_said"] = is_as_said(lesson, run);
  json["schedules"] = run.outcome.runs.size();
  json["cycles"] = run.recording.trace.end();
  json["tensor_core_cycles"] = tensor_core_time(run.recording.trace);
  json["findings"] = nlohmann::ordered_json::array();
  for (const model::testing::Seen& seen : run.outcome.findings()) {
    json["findings"].push_back(finding_json(seen.finding));
    json["findings"].back()["schedules"] = seen.schedules;
  }
  json["barriers"] = nlohmann::ordered_json::array();
  for (const BarrierStep& step : barrier_steps(run.recording.barriers)) {
    const model::BarrierEvent& e = step.event;
    json["barriers"].push_back({{"cycle", e.time},
                                {"barrier", e.barrier},
                                {"phase", e.phase},
                                {"pending", e.pending},
                                {"expected", e.expected},
                                {"bytes", e.tx},
                                {"waiting", e.waiting},
                                {"what", step_text(step)}});
  }
  return json;
}

int list(bool json, std::ostream& out) {
  if (json) {
    nlohmann::ordered_json all;
    all["lessons"] = nlohmann::ordered_json::array();
    for (const Lesson& lesson : lessons::all()) all["lessons"].push_back(about(lesson));
    out << json_text(all);
    return 0;
  }
  for (const Lesson& lesson : lessons::all()) {
    char number[8];
    std::snprintf(number, sizeof number, "%2d  ", lesson.number);
    out << number << lesson.title << "\n    " << lesson.question
        << "\n    Broken: " << lesson.broken << ": " << model::code(lesson.finding) << "\n";
  }
  return 0;
}

void write_pictures(const Lesson& lesson, const LessonOptions& o,
                    const std::vector<LessonRun>& runs) {
  if (!o.svg.empty()) replace_file(o.svg, picture(lesson, runs));
  if (!o.html.empty()) replace_file(o.html, page(lesson, runs));
}

// The pictures can be written, and no other option stands beside the list.
void check_options(const LessonOptions& o) {
  if (!o.number && (o.broken || !o.svg.empty() || !o.html.empty() || !o.stages.empty() ||
                    !o.in_flight.empty())) {
    throw InputError("Which lesson? Give its number, 1 to " +
                     std::to_string(lessons::all().size()) + ".");
  }
  if (!o.svg.empty()) {
    check_ending("--svg", o.svg, {".svg"});
    check_output_file("The picture", o.svg);
  }
  if (!o.html.empty()) {
    check_ending("--html", o.html, {".html"});
    check_output_file("The page", o.html);
  }
}

}  // namespace

CLI::App* add_lesson_command(CLI::App& app, LessonOptions& o) {
  CLI::App* lesson =
      app.add_subcommand("lesson", "small kernels to learn from, each with a broken twin");
  std::string numbers;
  for (const Lesson& each : lessons::all()) numbers += std::to_string(each.number) + " ";
  offer(lesson->add_option("N", o.number, "the lesson; without it all are listed")
            ->option_text("N")
            ->check(whole(0, 999)),
        numbers);
  lesson->add_flag("--broken", o.broken, "its broken twin, and what the model finds");
  lesson
      ->add_option("--stages", o.stages,
                   "of lessons 6 and 7: stages of the ring; several are compared")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(whole(0, 999));
  lesson
      ->add_option("--in-flight", o.in_flight,
                   "of lesson 7: groups of wgmmas that stay in flight; several are compared")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(whole(0, 999));
  lesson->add_option("--svg", o.svg, "where its picture is written")->type_name("FILE");
  lesson->add_option("--html", o.html, "where all of it is written as one page")->type_name("FILE");
  lesson->add_flag("--json", o.json, "for programs");
  lesson->footer(
      "Exit status: 0 when the lesson is clean, or its broken twin gives the finding that it "
      "names.\n\n"
      "Examples:\n"
      "  warpwright lesson\n"
      "  warpwright lesson 3 --broken\n"
      "  warpwright lesson 7 --stages 1,2,4 --in-flight 0,1");
  return lesson;
}

int lesson_command(const LessonOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    if (!o.number) return list(o.json, out);
    const Lesson& lesson = lesson_of(*o.number);
    std::vector<LessonRun> runs = runs_of(lesson, o);
    bool as_said = true;
    for (LessonRun& run : runs) {
      run.ask.recording = &run.recording;
      run.outcome = lesson.run(run.ask);
      as_said = as_said && is_as_said(lesson, run);
    }
    write_pictures(lesson, o, runs);
    if (o.json) {
      nlohmann::ordered_json json = about(lesson);
      json["broken"] = o.broken;
      json["as_said"] = as_said;
      json["runs"] = nlohmann::ordered_json::array();
      for (const LessonRun& run : runs) json["runs"].push_back(run_json(lesson, run));
      out << json_text(json);
      return as_said ? 0 : 1;
    }
    out << heading(lesson) << "\n  " << lesson.question << "\n  "
        << (o.broken ? "Broken: " + std::string(lesson.broken) + "." : std::string(lesson.answer))
        << "\n  " << file_of(lesson) << "; " << lesson.pages << "\n\n";
    if (!o.broken) out << shown_text(lesson, runs) << "\n";
    out << outcome_text(lesson, runs);
    for (const std::string& path : {o.svg, o.html}) {
      if (!path.empty()) out << "Wrote " << path << "\n";
    }
    return as_said ? 0 : 1;
  });
}

}  // namespace warpwright::cli
