// The time of planned grouped products on a GPU, and in the same run that of what one does without
// them: a cuBLASLt call for each group that has tokens, one after the other, which takes lengths
// that the host knows. Measured as dense products are (bench/gemm_bench.h); the calls of a loop are
// captured together, so that launching them costs the host nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "warpwright/plan/grouped.h"

namespace warpwright::bench {

/// What was measured.
struct GroupedTimes {
  GroupedProblem problem;
  std::string plan;            ///< the first plan's name
  Timing ours;                 ///< its time
  std::string config;          ///< the fastest plan's name
  Timing config_time;          ///< its time, in the same rounds
  int configs = 1;             ///< plans that were measured
  std::optional<Timing> loop;  ///< cuBLASLt, each call by the first pick of its heuristic
  int calls = 0;               ///< of the loop
  std::string baseline;        ///< cuBLASLt's version, or why there is no loop
  double relative_error = 0;   ///< of the first plan's result, the worst group's
  bool cold = true;            ///< the buffers were large enough to keep operands out of L2
  int rounds = 0;
  int launches = 0;  ///< of one round
  int buffer_sets = 0;
};

/// What groups of given lengths take at least.
struct GroupedWork {
  std::int64_t tokens = 0;
  std::int64_t busy = 0;  ///< groups that have tokens
  double operations = 0;
  /// The tokens of X and Y and the weights of busy groups, each moved once. Scales are left out, as
  /// in the numbers that speeds are compared with.
  double bytes = 0;
};

inline GroupedWork grouped_work(const GroupedProblem& p, const std::vector<std::int64_t>& lengths) {
  GroupedWork work;
  for (const std::int64_t length : lengths) {
    work.tokens += length;
    work.busy += length > 0 ? 1 : 0;
  }
  const auto tokens = static_cast<double>(work.tokens);
  const auto busy = static_cast<double>(work.busy);
  const auto n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  work.operations = 2 * tokens * n * k;
  work.bytes = (tokens * k * numeric::bits(p.x) + busy * n * k * numeric::bits(p.w) +
                tokens * n * numeric::bits(p.y)) /
               8;
  return work;
}

/// Seconds of `work` by the tensor cores' rate, and by HBM's. 0 without rates.
inline double compute_seconds(const GroupedWork& work, const GroupedProblem& p,
                              const DeviceFacts& device) {
  return device.flops_16bit > 0 ? work.operations / tensor_rate(device, p.x) : 0;
}
inline double memory_seconds(const GroupedWork& work, const DeviceFacts& device) {
  return device.memory_bytes_per_second > 0 ? work.bytes / device.memory_bytes_per_second : 0;
}

/// Times the first of `plans` (all for one packed problem), the fastest of all of them, and the
/// loop, on the current CUDA device and random operands; group g has lengths[g] tokens, of which
/// the plans know nothing. The results of all, poisoned with NaN before, are first compared with a
/// plain product in float32, group by group: refuses, instead of timing, where one is not right up
/// to rounding. `options.offers` is not used.
Result<GroupedTimes> time_grouped(const std::vector<GroupedPlan>& plans,
                                  const std::vector<std::int64_t>& lengths,
                                  const TimeOptions& options = {});

}  // namespace warpwright::bench
