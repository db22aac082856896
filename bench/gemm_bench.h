// The time of a planned GEMM on a GPU, and that of cuBLASLt in the same run.
//
// Every launch finds its operands in HBM and not in the L2 cache: launches go round sets of buffers
// that together are larger than twice the cache. Each contender is captured in a CUDA graph of many
// launches; the graphs are replayed in turns, so that clocks and power treat them alike, and timed
// by events. The time of a launch is a graph's divided by its launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "warpwright/plan/plan.h"

namespace warpwright::bench {

/// Microseconds of one launch over the rounds: the median, and the quartiles as the spread.
struct Timing {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// What was measured.
struct GemmTimes {
  double operations = 0;  ///< 2 M N K
  Timing ours;
  std::optional<Timing> first;  ///< cuBLASLt by the first pick of its heuristic
  std::optional<Timing> best;   ///< by the fastest of the offered algorithms
  int offered = 0;              ///< algorithms that its heuristic offered
  int best_index = 0;           ///< which of them is the fastest; 0 is the first pick
  std::string baseline;         ///< cuBLASLt's version, or why there is no baseline
  bool cold = true;             ///< the buffers were large enough to keep operands out of L2
  int rounds = 0;
  int launches = 0;  ///< of one round
  int buffer_sets = 0;

  /// Floating-point operations a second of `timing`, in units of 1e12.
  [[nodiscard]] double tflops(const Timing& timing) const;
};

/// How it is measured.
struct TimeOptions {
  int rounds = 21;
  double round_seconds = 3e-3;
  int offers = 16;  ///< algorithms that cuBLASLt is asked for
};

/// Times `plan` on the current CUDA device with copies of `operands` (packed, in host memory; D is
/// not read). Refuses, instead of timing, where the results of the two are not the same up to
/// rounding. Without cuBLASLt the plan alone is timed.
Result<GemmTimes> time_gemm(const Plan& plan, const GemmOperands& operands,
                            const TimeOptions& options = {});

/// One line for people.
std::string line(const GemmTimes& times);

}  // namespace warpwright::bench
