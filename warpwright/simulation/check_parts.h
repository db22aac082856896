// How checks run: what a schedule asks of the model, and how runs are shared among OS threads.
// Internal to simulation/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <thread>

#include "warpwright/facts/share.h"
#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"

namespace warpwright::device {

/// One run under `schedule`, of what `check` breaks.
inline ModelOptions model_options(const Schedule& schedule, const CheckOptions& check) {
  ModelOptions options;
  options.mode = schedule.mode;
  options.seed = schedule.seed;
  options.mutation = check.mutation;
  options.fence_after_reads = check.fence_after_reads;
  // Not in all: a launch takes its time.
  const bool prompt = schedule.mode == model::Mode::eager || schedule.mode == model::Mode::starve;
  options.launches = prompt ? 2 : 1;
  return options;
}

/// OS threads for `count` pieces of work: more than the machine has would only take memory.
inline int workers(int count, const CheckOptions& options) {
  const auto here = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, std::min({options.jobs, count, here}));
}

/// Runs work(i, worker) for all i below `count` on some OS threads, and tells how far it has come;
/// `before` pieces as large were done by themselves.
template <class Work>
void share_runs(int count, const CheckOptions& options, const Work& work, int before = 0) {
  std::mutex mutex;
  int done = before;
  share(count, workers(count, options), [&](int worker) {
    return [&, worker](std::int64_t i) {
      work(static_cast<int>(i), worker);
      const std::lock_guard lock(mutex);
      if (options.progress) options.progress(static_cast<double>(++done) / (count + before));
    };
  });
}

}  // namespace warpwright::device
