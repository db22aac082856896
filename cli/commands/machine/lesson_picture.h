// What a lesson shows: its picture with tables, and what its page says beside them.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/machine/lesson_runs.h"
#include "lessons/lesson.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/page.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::cli {

/// "Lesson 3: Whose wait passes first?"
std::string lesson_heading(const lessons::Lesson& lesson);
/// Its source.
std::string lesson_file(const lessons::Lesson& lesson);
/// Its layouts, none for most.
std::vector<pictures::CellGrid> lesson_grids(const lessons::Lesson& lesson);
/// "41%", the share of the cycles in which the tensor core was at work; "-" without one.
std::string tensor_core_share(const model::Trace& trace);

/// What the lesson draws of its runs; of several one axis. Then its layouts.
pictures::Picture lesson_picture(const lessons::Lesson& lesson, const std::vector<LessonRun>& runs);

/// Question, answer, broken twin, where it stands, and `report`, what the model found.
std::vector<pictures::Note> lesson_notes(const lessons::Lesson& lesson, bool broken,
                                         const std::string& report);

}  // namespace warpwright::cli
