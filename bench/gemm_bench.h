// The time of planned GEMMs on a GPU, and that of cuBLASLt in the same run.
//
// Every launch finds its operands in HBM and not in the L2 cache: launches go round sets of buffers
// that together are larger than twice the cache. Each contender is captured in a CUDA graph of many
// launches; the graphs are replayed in turns, so that clocks and power treat them alike, and timed
// by events. The time of a launch is a graph's divided by its launches. Results are compared before
// anything is timed. Large products rest between rounds, so that the card does not throttle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/plan.h"

namespace warpwright::bench {

/// Microseconds of one launch over the rounds: the median, and the quartiles as the spread.
struct Timing {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// Microseconds of the host that a launch takes, and that of an empty kernel of the same grid.
struct HostTimes {
  Timing ours;
  Timing empty;
};

/// What was measured.
struct GemmTimes {
  GemmProblem problem;
  std::string plan;             ///< the first plan's name
  Timing ours;                  ///< its time
  std::string config;           ///< the fastest plan's name
  Timing config_time;           ///< its time, in the same rounds
  int configs = 1;              ///< plans that were measured
  HostTimes host;               ///< of launches of the first plan
  std::optional<Timing> first;  ///< cuBLASLt by the first pick of its heuristic
  std::optional<Timing> best;   ///< by the fastest of the offered algorithms
  int offered = 0;              ///< algorithms that its heuristic offered
  int best_index = 0;           ///< which of them is the fastest; 0 is the first pick
  std::string baseline;         ///< cuBLASLt's version, or why there is no baseline
  std::string checked_against;  ///< what the results were compared with
  double relative_error = 0;    ///< of the first plan's result, to that
  bool cold = true;             ///< the buffers were large enough to keep operands out of L2
  int rounds = 0;
  int launches = 0;  ///< of one round
  int buffer_sets = 0;
  double roof_us = 0;                 ///< what the roofs allow (see `roof`); 0 where unknown
  Bound bound = Bound::tensor_cores;  ///< which of them
};

/// How it is measured.
struct TimeOptions {
  int rounds = 21;
  double round_seconds = 3e-3;
  int offers = 16;         ///< algorithms that cuBLASLt is asked for
  std::uint64_t seed = 1;  ///< of random operands
  bool dependent = false;  ///< programmatic dependent launch, on our side
  /// Called with the number of contenders measured so far and of all.
  std::function<void(int done, int all)> progress;
};

/// A plan with its time.
struct RankedPlan {
  Plan plan;
  Timing timing;
};

/// Operations a second of `timing`, in units of 1e12.
inline double tflops(const GemmProblem& problem, const Timing& timing) {
  return timing.median > 0 ? operations(problem) / timing.median * 1e-6 : 0;
}

/// Seconds the roofs allow, and which of them bounds.
struct Roof {
  double seconds = 0;
  Bound bound = Bound::tensor_cores;
};

/// The tensor cores at their rate, or HBM with everything moved once. 0 seconds without rates.
inline Roof roof(const GemmProblem& p, const DeviceFacts& device) {
  if (device.flops_16bit <= 0 || device.memory_bytes_per_second <= 0) return {};
  const double compute = operations(p) / tensor_rate(device, p.a);
  const double memory = moved_bytes(p) / device.memory_bytes_per_second;
  return compute >= memory ? Roof{compute, Bound::tensor_cores} : Roof{memory, Bound::memory};
}

/// Times the first of `plans` (all for one problem), the fastest of all of them, and cuBLASLt, on
/// the current CUDA device. `host` holds the operands, or is null: random ones are made on the
/// device. Refuses, instead of timing, where a result is not right up to rounding. Without
/// cuBLASLt, or where it has no such product, the baseline is left out and the results are compared
/// with a plain product in float32.
Result<GemmTimes> time_gemm(const std::vector<Plan>& plans, const GemmOperands* host,
                            const TimeOptions& options = {});

/// Times all of `plans` (for one problem) on random operands, the fastest first; its results are
/// checked as in `time_gemm`. The fastest few are measured again in turns.
Result<std::vector<RankedPlan>> rank_plans(const std::vector<Plan>& plans,
                                           const TimeOptions& options = {});

/// One line for people.
std::string line(const GemmTimes& times);

/// Versions of what a measurement ran on: the CUDA runtime's ("13.0") and cuBLASLt's (empty where
/// it is not here).
struct Software {
  std::string cuda;
  std::string cublaslt;
};
Software software();

}  // namespace warpwright::bench
