#include "cli/commands/machine/lesson_command.h"

#include <cstdio>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/outputs.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/machine/lesson_picture.h"
#include "cli/commands/machine/lesson_runs.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/files/machine_file.h"
#include "cli/files/output_file.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "lessons/lesson.h"
#include "lessons/source.h"
#include "lessons/twin.h"
#include "warpwright/facts/format.h"
#include "warpwright/pictures/barrier_svg.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/compare_svg.h"

namespace warpwright::cli {
namespace {

using pictures::barrier_steps;
using pictures::barrier_text;
using pictures::CellGrid;
using pictures::cells_text;
using pictures::tensor_core_time;

using lessons::Lesson;
using model::testing::Recording;

std::string expected(const Lesson& lesson) {
  return std::string(model::code(lesson.finding)) + " " + std::string(model::name(lesson.finding));
}

bool is_as_said(const Lesson& lesson, const LessonRun& run) {
  return run.ask.broken ? run.outcome.has(lesson.finding) : run.outcome.clean();
}

// Cycles, and how much of them the tensor core was at work.
std::string compared_text(const std::vector<LessonRun>& runs) {
  std::string text = "  cycles  tensor core\n";
  for (const LessonRun& run : runs) {
    const std::int64_t cycles = run.recording.trace.end();
    const std::string share = tensor_core_share(run.recording.trace);
    text += format("%8lld  %11s  ", static_cast<long long>(cycles), share.c_str()) +
            (run.knobs.empty() ? "CTA 0" : run.knobs) +
            (run.outcome.clean() ? "" : " (with findings)") + "\n";
  }
  return text;
}

// What the picture shows, as far as it is text.
std::string shown_text(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  if (runs.size() > 1) return compared_text(runs);
  std::string text;
  for (const CellGrid& grid : lesson_grids(lesson)) text += cells_text(grid);
  const Recording& recording = runs.front().recording;
  if (lesson.picture == lessons::Picture::barriers) {
    text += "mbarriers of CTA 0, in the schedule by the clock:\n" +
            barrier_text(barrier_steps(recording.barriers));
  } else if (lesson.picture != lessons::Picture::cells) {
    text += compared_text(runs);
  }
  return text;
}

// The lesson's own finding, and a line for each that follows from it.
std::string twin_text(const Lesson& lesson, const model::testing::Outcome& outcome) {
  std::string text = std::to_string(outcome.runs.size()) + " schedules:\n";
  const std::vector<model::testing::Seen> all = lessons::ranked_findings(lesson, outcome);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const model::Finding& f = all[i].finding;
    if (i == 0) {
      text += outcome.text(all[i]);
      continue;
    }
    if (i == 1) text += "What follows from it, whole with --json:\n";
    text += "  " + std::string(model::code(f.check)) + " " + std::string(model::name(f.check));
    if (f.site.line > 0) {
      text += std::string(" at ") + f.site.file + ":" + std::to_string(f.site.line);
    }
    text += ", in " + outcome.seen_in(all[i]) + "\n";
  }
  return text;
}

std::string outcome_text(const Lesson& lesson, const std::vector<LessonRun>& runs) {
  std::string text;
  for (const LessonRun& run : runs) {
    text += (run.knobs.empty() ? "" : run.knobs + ": ") + (is_as_said(lesson, run) && run.ask.broken
                                                               ? twin_text(lesson, run.outcome)
                                                               : run.outcome.text());
    if (!is_as_said(lesson, run)) {
      text += run.ask.broken ? "Expected, and not found: " + expected(lesson) + "\n"
                             : "Expected: nothing\n";
    }
  }
  return text;
}

nlohmann::ordered_json about(const Lesson& lesson) {
  return {{"number", lesson.number},
          {"name", lesson.name},
          {"title", lesson.title},
          {"question", lesson.question},
          {"answer", lesson.answer},
          {"seeds", lesson.pages},
          {"file", lessons::files(lesson).front()},
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
  for (const model::testing::Seen& seen : lessons::ranked_findings(lesson, run.outcome)) {
    json["findings"].push_back(finding_json(seen.finding));
    json["findings"].back()["schedules"] = seen.schedules;
  }
  json["barriers"] = barriers_json(run.recording);
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
    out << format("%2d  ", lesson.number) << lesson.title << "\n    " << lesson.question
        << "\n    Broken: " << lesson.broken << ": " << model::code(lesson.finding) << "\n";
  }
  return 0;
}

// The source; with --broken what its twin has otherwise.
int print_source(const Lesson& lesson, const LessonOptions& o, std::ostream& out) {
  nlohmann::ordered_json json = about(lesson);
  json["files"] = nlohmann::ordered_json::array();
  for (const std::string& file : lessons::files(lesson)) {
    const std::string_view text = lessons::source(file);
    const std::string diff = lessons::twin_diff(text);
    if (o.json) {
      json["files"].push_back({{"file", file}, {"source", text}, {"twin", diff}});
    } else if (!o.broken) {
      out << text;
    } else if (!diff.empty()) {
      out << "--- " << file << ", as it stands\n+++ its broken twin\n" << diff;
    }
  }
  if (o.json) out << json_text(json);
  return 0;
}

void write_pictures(const Lesson& lesson, const LessonOptions& o,
                    const std::vector<LessonRun>& runs) {
  const pictures::Picture picture = lesson_picture(lesson, runs);
  if (!o.svg.empty()) replace_file(o.svg, pictures::as_svg(picture));
  if (o.html.empty()) return;
  const std::string page =
      pictures::as_html(picture, lesson_notes(lesson, o.broken, outcome_text(lesson, runs)));
  if (page.size() > pictures::most_page_bytes) {
    throw InputError("The page would have " + std::to_string(page.size()) +
                     " bytes; one has at most " + std::to_string(pictures::most_page_bytes) +
                     ": compare fewer --stages and --in-flight.");
  }
  replace_file(o.html, page);
}

// The pictures can be written, and no other option stands beside the list.
void check_options(const LessonOptions& o) {
  if (!o.number && (o.broken || o.source || !o.svg.empty() || !o.html.empty() ||
                    !o.machine.empty() || !o.stages.empty() || !o.in_flight.empty())) {
    throw InputError("Which lesson? Give its number, 1 to " +
                     std::to_string(lessons::all().size()) + ".");
  }
  if (o.source && (!o.svg.empty() || !o.html.empty() || !o.machine.empty() || !o.stages.empty() ||
                   !o.in_flight.empty())) {
    throw InputError("--source runs nothing: leave out the options of a run; " +
                     as_rule("--broken and --json may stand beside it") + ".");
  }
  check_outputs({{"--svg", "The picture", o.svg, {".svg"}}});
  check_outputs({{"--html", "The page", o.html, {".html"}}});
}

}  // namespace

void add_lesson_command(CLI::App& app, LessonOptions& o) {
  CLI::App* lesson =
      app.add_subcommand("lesson", "small kernels to learn from, each with a broken twin");
  std::string numbers;
  for (const Lesson& each : lessons::all()) numbers += std::to_string(each.number) + " ";
  offer(lesson->add_option("N", o.number, "the lesson; without it all are listed")
            ->option_text("N")
            ->check(whole(0, 999)),
        numbers);
  lesson->add_flag("--broken", o.broken, "its broken twin, and what the model finds");
  lesson->add_flag("--source", o.source,
                   "its source and nothing else; with --broken, what the twin has otherwise");
  const Values add(*lesson);
  add("--stages", o.stages, "LIST", "for lessons 6 and 7: stages of the ring; several are compared",
      whole(0, 999))
      ->delimiter(',');
  add("--in-flight", o.in_flight, "LIST",
      "for lesson 7: groups of wgmmas that stay in flight; several are compared", whole(0, 999))
      ->delimiter(',');
  add_machine_option(*lesson, o.machine);
  add("--svg", o.svg, "FILE", "where its picture is written");
  add("--html", o.html, "FILE", "where all of it is written as one page");
  lesson->add_flag("--json", o.json, "for programs");
  lesson->footer(
      "Exit status: 0 when the lesson is clean, or its broken twin gives the finding that it "
      "names.\n\n"
      "Examples:\n"
      "  warpwright lesson\n"
      "  warpwright lesson 3 --broken\n"
      "  warpwright lesson 3 --source\n"
      "  warpwright lesson 7 --stages 1,2,4 --in-flight 0,1\n"
      "  warpwright lesson 7 --machine h20.json");
}

int lesson_command(const LessonOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    if (!o.number) return list(o.json, out);
    const Lesson& lesson = lesson_of(*o.number);
    if (o.source) return print_source(lesson, o, out);
    std::vector<LessonRun> runs = lesson_runs(lesson, o);
    std::optional<MachineNumbers> machine;
    if (!o.machine.empty()) machine = read_machine("--machine", o.machine);
    bool as_said = true;
    for (LessonRun& run : runs) {
      if (machine) run.ask.machine = &*machine;
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
    out << lesson_heading(lesson) << "\n  " << lesson.question << "\n  "
        << (o.broken ? "Broken: " + std::string(lesson.broken) + "." : std::string(lesson.answer))
        << "\n  " << lessons::files(lesson).front() << "; " << lesson_pages(lesson) << "\n\n";
    if (!o.broken) out << shown_text(lesson, runs) << "\n";
    out << outcome_text(lesson, runs);
    for (const std::string& path : {o.svg, o.html}) {
      if (!path.empty()) out << "Wrote " << path << "\n";
    }
    return as_said ? 0 : 1;
  });
}

}  // namespace warpwright::cli
