#include "warpwright/simulation/recorded.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "warpwright/simulation/check_parts.h"
#include "warpwright/simulation/trial.h"

namespace warpwright::device {
namespace {

// Ends as the run of the check did that found it: soon after the first finding.
RecordedRun recorded_run(Trial& trial, const Schedule& schedule, const CheckOptions& how) {
  RecordedRun run;
  ModelOptions options = model_options(schedule, how);
  options.trace = &run.trace;
  options.barrier_events = &run.barriers;
  options.stop_at_finding = true;
  Result<model::Report> report = trial.run(options);
  run.report = std::move(*report);  // the check has run the same
  return run;
}

// The unbroken subject under each schedule, made when first asked for.
class WholeRuns {
 public:
  WholeRuns(const Subject& subject, const CheckOptions& how) : how_(how), trial_(subject.trial()) {}

  const RecordedRun& operator[](const Schedule& schedule) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<RecordedRun>& run = runs_[schedule.text()];
    if (run == nullptr) {
      run = std::make_unique<RecordedRun>(recorded_run(*trial_, schedule, how_));
    }
    return *run;
  }

 private:
  const CheckOptions& how_;
  std::mutex mutex_;
  std::unique_ptr<Trial> trial_;
  std::map<std::string, std::unique_ptr<RecordedRun>> runs_;
};

}  // namespace

void record_mutants(
    const Subject& subject, const MutationReport& report, const CheckOptions& options,
    const std::function<void(std::size_t at, const RecordedMutant& recorded)>& take) {
  std::vector<std::size_t> killed;
  for (std::size_t i = 0; i < report.mutants.size(); ++i) {
    if (report.mutants[i].fate == Mutant::Fate::killed) killed.push_back(i);
  }
  CheckOptions reading;
  reading.fence_after_reads = report.fence_after_reads;
  WholeRuns whole(subject, reading);
  const int count = static_cast<int>(killed.size());
  std::vector<std::unique_ptr<Trial>> trials(static_cast<std::size_t>(workers(count, options)));
  std::mutex mutex;
  share_runs(count, options, [&](int i, int worker) {
    std::unique_ptr<Trial>& trial = trials[static_cast<std::size_t>(worker)];
    if (trial == nullptr) trial = subject.trial();
    const std::size_t at = killed[static_cast<std::size_t>(i)];
    const Mutant& mutant = report.mutants[at];
    CheckOptions how = reading;
    how.mutation = mutant.mutation;
    const RecordedRun broken = recorded_run(*trial, mutant.by, how);
    const RecordedRun& unbroken = whole[mutant.by];
    const std::lock_guard lock(mutex);
    take(at, {mutant, unbroken, broken});
  });
}

}  // namespace warpwright::device
