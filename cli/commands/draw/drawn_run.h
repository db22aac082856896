// What runs for a picture: a product, dense or in groups, or a lesson.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"
#include "cli/commands/gemm/recorded_product.h"
#include "cli/commands/machine/lesson_runs.h"

namespace warpwright::cli {

/// The arguments of a kind that shows a run.
struct DrawnRun {
  GemmOptions product;  ///< of the subcommands gemm and grouped
  CLI::App* gemm = nullptr;
  CLI::App* grouped = nullptr;
  LessonOptions lesson;  ///< of kinds that show lessons too
  RecordHow how;

  /// The product that was asked for, null for a lesson. Throws InputError where it is neither, or
  /// both.
  [[nodiscard]] const GemmOptions* asked_product();
};

/// Which parts of DrawnRun a kind takes beside the product.
struct DrawnRunTakes {
  bool lesson = true;    ///< --lesson and --broken
  bool knobs = false;    ///< --stages and --in-flight of lessons
  bool occupied = true;  ///< --occupy-sm
};

/// Adds them to the kind, and its subcommands gemm and grouped. `examples` are lines of the help.
void add_drawn_run(CLI::App& kind, DrawnRun& run, const DrawnRunTakes& takes,
                   const std::string& examples);

/// Seconds of the model that a picture may take.
inline constexpr double most_drawn_seconds = 4;

/// A sentence on what the model found, to stand behind a caption; empty without findings.
std::string remark_of(const std::vector<model::Finding>& findings);

/// A run with what a picture needs of it.
struct DrawnRecording {
  std::string title;
  std::string remark;  ///< what the model found, a sentence behind a caption; or empty
  model::Trace trace;
  std::vector<model::BarrierEvent> barriers;
  std::unique_ptr<RecordedProduct> product;  ///< null of a lesson
};

/// Runs what was asked for once, by the model's clock. Throws InputError or RunError.
DrawnRecording record(DrawnRun& run, std::ostream& err);
/// Runs each of a lesson's runs; their names are the knobs.
std::vector<DrawnRecording> record_lesson(const DrawnRun& run);

}  // namespace warpwright::cli
