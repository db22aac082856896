// A lesson's source: which of its lines the broken twin has otherwise, and which finding is its
// own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lessons/lesson.h"

namespace lessons {

/// A line that asks for `Broken`, as it stands for the one that is right and for the twin. A
/// statement that one of them does not have is empty there.
struct TwinLine {
  int line = 0;  ///< from 1
  std::string right;
  std::string broken;
};
std::vector<TwinLine> twin_lines(std::string_view source);

/// They as a diff from what is right to the twin: a line with "-", one with "+".
std::string twin_diff(std::string_view source);

/// The files that a lesson is in, its header first: "examples/lessons/04_ring.h".
std::vector<std::string> files(const Lesson& lesson);

/// What was found, the lesson's own finding first, of those the one of most schedules. What comes
/// behind it follows from it.
std::vector<testing::Seen> ranked_findings(const Lesson& lesson, const testing::Outcome& outcome);

}  // namespace lessons
