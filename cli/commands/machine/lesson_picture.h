// What a lesson shows: its picture with tables, and what its page says beside them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lessons/lesson.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/page.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::cli {

/// A way to run the lesson, and what came of it.
struct LessonRun {
  lessons::Ask ask;
  std::string knobs;  ///< "stages 2, in flight 1"; empty without
  model::testing::Recording recording;
  model::testing::Outcome outcome;
};

/// "Lesson 3: Whose wait passes first?"
std::string lesson_heading(const lessons::Lesson& lesson);
/// Where the seeds teach it, and where the seeds are told.
std::string lesson_pages(const lessons::Lesson& lesson);
/// Its layouts, none for most.
std::vector<pictures::CellGrid> lesson_grids(const lessons::Lesson& lesson);
/// "41%", the share of the cycles in which the tensor core was at work; "-" without one.
std::string tensor_core_share(const model::Trace& trace);

/// The events of its barriers, for programs.
nlohmann::ordered_json barriers_json(const model::testing::Recording& recording);

/// What the lesson draws of its runs; for several one axis. Then its layouts.
pictures::Picture lesson_picture(const lessons::Lesson& lesson, const std::vector<LessonRun>& runs);

/// Question, answer, broken twin, where it stands, and `report`, what the model found.
std::vector<pictures::Note> lesson_notes(const lessons::Lesson& lesson, bool broken,
                                         const std::string& report);

}  // namespace warpwright::cli
