#include "cli/commands/measure/recording.h"
#include "cli/commands/predict/configurations.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/commands/gemm/outputs.h"
#include "cli/files/output_file.h"
#include "cli/files/times_file.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright::cli {
namespace {

// The option whose times are none of what plans choose by themselves; null where there is none.
const char* other_choice(const BenchOptions& o) {
  if (!o.kernel.empty()) return "--kernel";
  if (!o.machine.empty()) return "--machine";
  if (!o.correction.empty()) return "--correction";
  if (o.clusters) return "--clusters";
  if (o.batch_invariant) return "--batch-invariant";
  return o.dependent ? "--dependent" : nullptr;
}

}  // namespace

std::string recorded_lengths(const Shape& shape) {
  if (shape.groups == 0) return "-";
  const bool says_seed = shape.tokens.find("seed:") != std::string::npos;
  return shape.tokens +
         (shape.drawn_by() && !says_seed ? ",seed:" + std::to_string(*shape.drawn_by()) : "");
}

std::vector<MeasuredTime> recorded_rows(const bench::GemmTimes& times, const std::string& card,
                                        const std::string& commit, const std::string& lengths) {
  std::vector<MeasuredTime> rows;
  for (const bench::TriedPlan& tried : times.tried) {
    rows.push_back({card, commit, problem_text(times.problem), lengths, tried.configuration,
                    tried.us, rows.empty()});
  }
  return rows;
}

TimesFile::TimesFile(const BenchOptions& o, std::string commit)
    : path_(o.record), commit_(std::move(commit)) {
  if (!given()) return;
  if (const char* const option = other_choice(o)) {
    throw InputError("--record and " + std::string(option) + " do not go together: " +
                     as_rule("recorded are times of what plans choose by themselves") + ".");
  }
  if (parse_configs(o.configs) == 1) {
    throw InputError("--record keeps how configurations compare, and --configs is 1; " +
                     as_rule("two are the fewest, and all are meant") +
                     ": the nearest legal value is " + as_nearest("2") + ".");
  }
  check_ending("--record", path_, {".tsv"});
  check_output_file("The record", path_);
  // A file that is not there has no times.
  if (std::filesystem::exists(path_)) times_ = read_times("--record", path_);
  if (commit_ == "unknown") {
    throw InputError("--record names the commit of the kernels, and this build knows none: " +
                     as_rule("configure it with -DWARPWRIGHT_COMMIT=...") + ".");
  }
}

bool TimesFile::has(const std::string& card, const GemmProblem& product,
                    const std::string& lengths) const {
  const MeasuredTime like{card, commit_, problem_text(product), lengths, {}};
  return std::any_of(times_.begin(), times_.end(), [&](const MeasuredTime& t) {
    return t.commit == commit_ && same_product(t, like);
  });
}

void TimesFile::add(const bench::GemmTimes& times, const std::string& card,
                    const std::string& lengths) {
  const OutputLock lock(path_);
  // A file that is not there has no times.
  if (std::filesystem::exists(path_)) times_ = read_times("--record", path_);
  const auto put = [&](const bench::GemmTimes& product) {
    const auto rows = recorded_rows(product, card, commit_, lengths);
    if (!rows.empty()) put_times(times_, rows);
  };
  put(times);
  for (const bench::GemmTimes& beside : times.beside) put(beside);
  replace_file(path_, times_text(times_));
}

}  // namespace warpwright::cli
