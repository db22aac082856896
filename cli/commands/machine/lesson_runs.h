// Which lesson is meant, and the ways in which it is to run.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/machine/lesson_command.h"
#include "lessons/lesson.h"

namespace warpwright::cli {

/// A way to run the lesson, and what came of it.
struct LessonRun {
  lessons::Ask ask;
  std::string knobs;  ///< "stages 2, in flight 1"; empty without
  model::testing::Recording recording;
  model::testing::Outcome outcome;
};

/// The lesson of this number. Throws InputError.
const lessons::Lesson& lesson_of(int number);

/// All runs that the options ask for, none of them run: one, or one for each pair of knobs that
/// fits. Throws InputError for knobs that the lesson does not take.
std::vector<LessonRun> lesson_runs(const lessons::Lesson& lesson, const LessonOptions& options);

}  // namespace warpwright::cli
