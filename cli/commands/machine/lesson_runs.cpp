#include "cli/commands/machine/lesson_runs.h"

#include <algorithm>
#include <utility>

#include "cli/commands/gemm/run.h"

namespace warpwright::cli {
namespace {

using lessons::Lesson;

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
                     ": leave it out; it is for " +
                     (having.find(' ') == std::string::npos ? "lesson " : "lessons ") + having +
                     ".");
  }
  for (const int value : values) {
    if (value >= least && value <= most) continue;
    throw InputError(std::string(option) + " is " + std::to_string(value) + "; for lesson " +
                     std::to_string(lesson.number) + " it is " + std::to_string(least) + " to " +
                     std::to_string(most) + "; the nearest is " +
                     as_nearest(std::to_string(std::clamp(value, least, most))) + ".");
  }
}

}  // namespace

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

std::vector<LessonRun> lesson_runs(const Lesson& lesson, const LessonOptions& o) {
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

}  // namespace warpwright::cli
