// Which lesson is meant, and the ways in which it is to run.
#pragma once

#include <vector>

#include "cli/commands/machine/lesson_command.h"
#include "cli/commands/machine/lesson_picture.h"
#include "lessons/lesson.h"

namespace warpwright::cli {

/// The lesson of this number. Throws InputError.
const lessons::Lesson& lesson_of(int number);

/// All runs that the options ask for, none of them run: one, or one for each pair of knobs that
/// fits. Throws InputError for knobs that the lesson does not take.
std::vector<LessonRun> lesson_runs(const lessons::Lesson& lesson, const LessonOptions& options);

}  // namespace warpwright::cli
