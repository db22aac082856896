#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/values.h"
#include "cli/files/ncu_log.h"
#include "cli/files/printable.h"
#include "warpwright/pictures/compare_svg.h"

namespace warpwright::cli {
namespace {

struct CompareOptions : DrawnRun {
  std::vector<std::string> runs;  // further arguments of each
  std::string measured;
  bool roles = false;
};

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The product of the command line with the arguments of one --run beside.
GemmOptions options_of(const GemmOptions& base, const std::string& run) {
  GemmOptions options = base;
  CLI::App app;
  app.allow_extras(false);
  add_gemm_options(app, options, base.is_grouped);
  std::vector<std::string> words = split_words(run);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& stop) {
    throw InputError("--run \"" + run + "\": " + stop.what() + ".");
  }
  return options;
}

// What ncu measured.
std::vector<KernelTime> measured_times(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("--measured is " + printable(path) + ", which cannot be read.");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  KernelTimes times = read_kernel_times(text);
  if (!times.error.empty()) {
    throw InputError("--measured is " + printable(path) + ": " + printable(times.error) + "; " +
                     as_rule("write it by ncu --csv --metrics gpu__time_duration.sum") + ".");
  }
  constexpr std::size_t most = 16;
  if (times.times.size() > most) {
    throw InputError("--measured is " + printable(path) + " with " +
                     std::to_string(times.times.size()) + " kernels; " +
                     as_rule("at most ", std::to_string(most), " are drawn") + ".");
  }
  return std::move(times.times);
}

// What is compared, and how its times become those of the axis.
struct Compared {
  std::vector<DrawnRecording> runs;
  std::vector<std::string> names;
};

Compared compared_products(CompareOptions& o, const GemmOptions& base, std::ostream& err) {
  Compared all;
  const std::vector<std::string> none = {""};
  for (const std::string& run : o.runs.empty() ? none : o.runs) {
    const GemmOptions options = options_of(base, run);
    DrawnRecording drawn;
    drawn.product = std::make_unique<RecordedProduct>(record_product(options, o.how, "draw", err));
    drawn.trace = std::move(drawn.product->trace);
    drawn.title = drawn.product->product->title();
    if (!all.runs.empty() && drawn.title != all.runs.front().title) {
      throw InputError("--run \"" + printable(run) + "\" is of " + drawn.title +
                       ", and the first of " + all.runs.front().title + ": " +
                       as_rule("the product stands before --run") + ", one for all runs.");
    }
    all.names.push_back((run.empty() ? "" : run + ": ") + drawn.product->plan_on_device());
    all.runs.push_back(std::move(drawn));
  }
  return all;
}

pictures::Picture draw_compare_picture(CompareOptions& o, std::ostream& err) {
  const GemmOptions* const base = o.asked_product();
  if (base == nullptr && !o.runs.empty()) {
    throw InputError("--run is of a product: " + as_rule("give --stages or --in-flight") + ".");
  }
  if (base == nullptr && !o.measured.empty()) {
    throw InputError("--measured is of a product, and a lesson has no GPU's times: " +
                     as_rule("leave it out") + ".");
  }
  Compared all;
  std::string title;
  if (base != nullptr) {
    all = compared_products(o, *base, err);
    title = all.runs.front().title;
  } else {
    all.runs = record_lesson(o);
    for (const DrawnRecording& run : all.runs) all.names.push_back(run.title);
    title = "Lesson " + std::to_string(*o.lesson.number) + ": " +
            std::string(lesson_of(*o.lesson.number).title) +
            (o.lesson.broken ? " (broken: " + std::string(lesson_of(*o.lesson.number).broken) + ")"
                             : "");
  }
  pictures::CompareHow how;
  how.roles = o.roles || base == nullptr;
  const bool is_measured =
      !o.measured.empty() ||
      std::any_of(all.runs.begin(), all.runs.end(), [](const auto& r) { return r.trace.measured; });
  how.nanoseconds = is_measured;
  std::vector<pictures::ComparedRun> compared;
  std::size_t slices = 0;
  std::string remarks;
  for (std::size_t i = 0; i < all.runs.size(); ++i) {
    const DrawnRecording& run = all.runs[i];
    pictures::ComparedRun one{all.names[i], &run.trace};
    if (is_measured && !run.trace.measured) {
      one.units = 1e9 / run.product->machine.clock_hz;
    }
    slices += pictures::compared_slices(run.trace, how.roles);
    remarks += run.remark;
    compared.push_back(std::move(one));
  }
  if (slices > pictures::most_compared_slices) {
    throw InputError(
        "The runs are too long to draw: " + std::to_string(slices) + " slices; " +
        as_rule("at most ", std::to_string(pictures::most_compared_slices), " are drawn") +
        ": give a smaller K, fewer tiles" + (o.roles ? ", leave --roles out" : "") +
        " or fewer runs.");
  }
  if (!o.measured.empty()) {
    for (const KernelTime& time : measured_times(o.measured)) {
      compared.push_back({"measured: " + time.kernel.substr(0, 80), nullptr, 1, time.nanoseconds});
    }
  }
  pictures::Picture picture;
  picture.title = title;
  picture.views.push_back(pictures::compare_view(compared, how));
  picture.views.back().caption += remarks;
  return picture;
}

}  // namespace

DrawKind add_draw_compare(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "compare", "several runs on one axis: prologue, main loop and epilogue of each");
  const auto o = std::make_shared<CompareOptions>();
  const Values add(*kind);
  add("--run", o->runs, "'ARGS'",
      "a run: what it has beside the product's arguments; once for each that is compared")
      ->take_all();
  add("--measured", o->measured, "FILE",
      "beside them, kernels as ncu --csv measured them (gpu__time_duration.sum)");
  kind->add_flag("--roles", o->roles, "lanes of roles too");
  add_drawn_run(*kind, *o, {.knobs = true},
                "  warpwright draw compare --lesson 7 --stages 1,2,4 --in-flight 0,1 --svg 7.svg\n"
                "  warpwright draw compare gemm --random 256 512 256 --sms 1 --run '--as h200 "
                "--schedule pingpong' --run '--as b200 --one-sm --cluster 1,1' --svg two.svg");
  return {kind, [o](std::ostream& err) { return draw_compare_picture(*o, err); }};
}

}  // namespace warpwright::cli
