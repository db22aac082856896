#include "cli/commands/draw/drawn_run.h"

#include <utility>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"

namespace warpwright::cli {
namespace {

std::string title_of(const lessons::Lesson& lesson, const LessonRun& run) {
  return "Lesson " + std::to_string(lesson.number) + ": " + std::string(lesson.title) +
         (run.ask.broken ? " (broken: " + std::string(lesson.broken) + ")" : "");
}

void add_lesson_options(CLI::App& kind, DrawnRun& run, bool knobs) {
  std::string numbers;
  for (const lessons::Lesson& each : lessons::all()) numbers += std::to_string(each.number) + " ";
  const Values add(kind);
  offer(add("--lesson", run.lesson.number, "N", "the run of a lesson", whole(0, 999)), numbers);
  kind.add_flag("--broken", run.lesson.broken, "with --lesson: its broken twin");
  if (!knobs) return;
  add("--stages", run.lesson.stages, "LIST", "for lessons 6 and 7: stages of the ring",
      whole(0, 999))
      ->delimiter(',');
  add("--in-flight", run.lesson.in_flight, "LIST",
      "for lesson 7: groups of wgmmas that stay in flight", whole(0, 999))
      ->delimiter(',');
}

}  // namespace

const GemmOptions* DrawnRun::asked_product() {
  const bool asks = gemm->parsed() || grouped->parsed();
  const std::string name = gemm->get_parent()->get_name();
  if (asks && lesson.number) {
    throw InputError("--lesson is given beside a product: " + as_rule("leave one of them out") +
                     ".");
  }
  const bool takes_lessons = gemm->get_parent()->get_option_no_throw("--lesson") != nullptr;
  if (!asks && !lesson.number) {
    throw InputError("Which run? Give a product, \"draw " + name + " gemm --random M N K\"" +
                     (takes_lessons ? ", or --lesson N." : "."));
  }
  if (!lesson.number && (lesson.broken || !lesson.stages.empty() || !lesson.in_flight.empty())) {
    throw InputError(std::string(lesson.broken            ? "--broken"
                                 : !lesson.stages.empty() ? "--stages"
                                                          : "--in-flight") +
                     " is of lessons: " + as_rule("give --lesson too, or leave it out") + ".");
  }
  product.is_grouped = grouped->parsed();
  return asks ? &product : nullptr;
}

std::string remark_of(const std::vector<model::Finding>& findings) {
  if (findings.empty()) return "";
  const model::Finding& first = findings.front();
  return " The model found " + std::string(model::code(first.check)) + " " +
         std::string(model::name(first.check)) +
         (findings.size() > 1 ? ", and " + std::to_string(findings.size() - 1) + " more" : "") +
         ": the picture shows the run as far as it went.";
}

void add_drawn_run(CLI::App& kind, DrawnRun& run, const DrawnRunTakes& takes,
                   const std::string& examples) {
  const Values add(kind);
  if (takes.lesson) add_lesson_options(kind, run, takes.knobs);
  if (takes.occupied) {
    add("--occupy-sm", run.how.occupy_sm, "I",
        "an SM of the model that another grid holds: nothing of this one runs there",
        whole(0, 255));
  }
  run.how.most_seconds = most_drawn_seconds;
  kind.require_subcommand(0, 1);
  kind.footer("Examples:\n" + examples);
  for (const bool is_grouped : {false, true}) {
    CLI::App* one = kind.add_subcommand(is_grouped ? "grouped" : "gemm",
                                        is_grouped ? "of a product in groups" : "of a product");
    add_gemm_options(*one, run.product, is_grouped);
    one->footer(product_help("Examples:\n" + examples, is_grouped));
    one->fallthrough();  // the kind's own options stand behind these too
    (is_grouped ? run.grouped : run.gemm) = one;
  }
}

DrawnRecording record(DrawnRun& run, std::ostream& err) {
  const GemmOptions* const product = run.asked_product();
  if (product == nullptr) {
    if (run.how.occupy_sm) {
      throw InputError("--occupy-sm is of a product: " + as_rule("leave it out") + ".");
    }
    std::vector<DrawnRecording> all = record_lesson(run);
    if (all.size() != 1) {
      throw InputError("One run is drawn, and " + std::to_string(all.size()) + " are asked for: " +
                       as_rule("give one value of --stages and --in-flight, "
                               "or draw compare") +
                       ".");
    }
    return std::move(all.front());
  }
  DrawnRecording drawn;
  drawn.product = std::make_unique<RecordedProduct>(record_product(*product, run.how, "draw", err));
  drawn.title = drawn.product->product->title() + ", " + drawn.product->plan_on_device();
  drawn.remark = remark_of(drawn.product->report.findings);
  drawn.trace = std::move(drawn.product->trace);
  drawn.barriers = std::move(drawn.product->barriers);
  return drawn;
}

std::vector<DrawnRecording> record_lesson(const DrawnRun& run) {
  const lessons::Lesson& lesson = lesson_of(*run.lesson.number);
  if (lesson.picture == lessons::Picture::cells && lesson.run == nullptr) {
    throw InputError("Lesson " + std::to_string(lesson.number) + " runs no kernel.");
  }
  std::vector<DrawnRecording> all;
  for (LessonRun& one : lesson_runs(lesson, run.lesson)) {
    one.ask.recording = &one.recording;
    one.ask.schedules = {.eager = false, .latest = false, .timed = true, .random = 0, .starve = 0};
    one.outcome = lesson.run(one.ask);
    DrawnRecording drawn;
    drawn.title = all.empty() && one.knobs.empty() ? title_of(lesson, one) : one.knobs;
    std::vector<model::Finding> findings;
    for (const model::testing::Seen& seen : one.outcome.findings()) {
      findings.push_back(seen.finding);
    }
    drawn.remark = remark_of(findings);
    drawn.trace = std::move(one.recording.trace);
    drawn.barriers = std::move(one.recording.barriers);
    all.push_back(std::move(drawn));
  }
  return all;
}

}  // namespace warpwright::cli
