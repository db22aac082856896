// `warpwright check gemm` and `check grouped`: the kernel of a product under many schedules of the
// model, or with its synchronisation broken on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"
#include "cli/commands/gemm/product.h"
#include "cli/reports/check_report.h"
#include "cli/reports/progress.h"
#include "warpwright/simulation/check.h"

namespace warpwright::cli {

/// The arguments beside those of the product.
struct CheckCommandOptions {
  std::optional<int> schedules;  ///< not given: 64, with `family` 12
  std::optional<int> jobs;       ///< OS threads; not given: as many as the machine has
  std::string replay;
  bool strict = false;  ///< reads by threads need a proxy fence before asynchronous writes, too
  bool json = false;
  bool mutate = false;
  std::optional<int> mutant;  ///< runs this row of --mutate's table
  bool reduce = false;        ///< with a replay: shrinks the schedule
  bool family = false;        ///< with companions of the product (companions.h)
  bool exhaustive = false;    ///< all schedules of a small case
  std::optional<int> most;    ///< with exhaustive: classes of them
  std::optional<int> within;  ///< and seconds
  std::string kernel;         ///< of `check kernel`: products of that one, with companions
  /// A second random product behind the first, in one workspace: M, N and K, or groups' tokens.
  std::vector<std::int64_t> behind;
  std::string tokens_behind;
};

/// Refuses what is of one product beside --family. Throws InputError.
void require_family(const CheckCommandOptions& options);

/// What both forms of the command make of their arguments. Throws InputError.
device::CheckOptions check_options(const RunOptions& run, const CheckCommandOptions& options);

/// Says whether a result is that of a loaded product, by its reference.
std::function<device::Judged(const GemmOperands&)> judge_of(const Product& product);

/// What `work` makes of the options, with a line that says how far it is; gone when it returns.
template <class Work>
auto with_progress(std::ostream& err, const char* label, device::CheckOptions options,
                   const Work& work) {
  Progress progress(err, label);
  options.progress = [&progress](double share) { progress.share(share); };
  return work(options);
}

/// What is checked, the name of its plan, and what its runs left out, by the statements that they
/// executed.
struct CheckedSubject {
  const device::Subject& subject;
  std::string plan;
  std::function<Untried(const std::vector<model::SyncSite>& ran)> untried;
  const char* family = "the kernel has";  ///< what --family tries
  std::string survived = {};              ///< what is said of mutants that do
};

/// Checks it as the options say, which `check_options` made of `o`, and prints what was found.
/// Returns the exit status. Throws InputError.
int check_subject(const CheckedSubject& checked, device::CheckOptions options,
                  const CheckCommandOptions& o, std::ostream& out, std::ostream& err);

/// Says on `err` what takes long, where one run takes so many seconds.
void note_checks(const device::CheckOptions& options, double seconds, bool mutates,
                 std::ostream& err);

/// Runs the command. `product.seed` is that of the tensors and of the first random schedule.
/// Returns the exit status: 0 when nothing was found (with `mutate`: when every mutant that is not
/// equivalent was killed), 1 otherwise, 2 for bad input, with one sentence on `err`.
int check_command(const GemmOptions& product, const CheckCommandOptions& options, std::ostream& out,
                  std::ostream& err);

}  // namespace warpwright::cli
