// The time of planned products on a GPU, and that of cuBLASLt in the same run. For groups that is
// what one does without a grouped kernel: a call for each group that has rows, one after the other,
// which takes lengths that the host knows.
//
// Every launch finds its operands in HBM and not in the L2 cache: launches go round sets of buffers
// that together are larger than twice the cache. Each contender is captured in a CUDA graph of many
// launches; the graphs are replayed in turns, so that clocks and power treat them alike, and timed
// by events. The time of a launch is a graph's divided by its launches. Results are compared before
// anything is timed. Large products rest between rounds, so that the card does not throttle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/plan.h"

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

/// What a product must do, and the microseconds that the tensor cores at their rate and HBM with
/// everything moved once take for it: 0 where the rates are unknown.
struct Roof {
  double operations = 0;
  /// For groups: A and D and the matrices of B whose groups have rows. Scales are left out then, as
  /// in the numbers that speeds are compared with, but for those of packed weights.
  double bytes = 0;
  double compute_us = 0;
  double memory_us = 0;
  double sustained_us = 0;  ///< compute_us at the clock that large products keep on this card

  [[nodiscard]] double us() const { return std::max(compute_us, memory_us); }
  [[nodiscard]] Bound bound() const {
    return compute_us >= memory_us ? Bound::tensor_cores : Bound::memory;
  }
};

/// The groups that have rows.
inline std::int64_t busy_groups(const std::vector<std::int64_t>& lengths) {
  return std::count_if(lengths.begin(), lengths.end(), [](std::int64_t n) { return n > 0; });
}

/// Bytes of one of B's matrices.
inline double matrix_bytes(const GemmProblem& p) {
  if (p.packed) return static_cast<double>(packed::data_bytes(p.packed->format, {1, p.n(), p.k()}));
  return static_cast<double>(p.n()) * static_cast<double>(p.k()) * numeric::bits(p.b.dtype) / 8;
}

/// The roof of `p`; its groups, when it has any, have these `lengths`.
inline Roof roof(const GemmProblem& p, const DeviceFacts& device,
                 const std::vector<std::int64_t>& lengths = {}) {
  Roof roof{operations(p), moved_bytes(p)};
  if (p.groups) {
    const double row = static_cast<double>(p.k()) * numeric::bits(p.a.dtype) +
                       static_cast<double>(result_columns(p)) * numeric::bits(p.d.dtype);
    roof.bytes = static_cast<double>(p.m()) * row / 8 +
                 static_cast<double>(busy_groups(lengths)) * matrix_bytes(p);
  }
  if (device.flops_16bit <= 0 || device.memory_bytes_per_second <= 0) return roof;
  roof.compute_us = roof.operations / tensor_rate(device, p.a.dtype) * 1e6;
  const MachineNumbers& numbers = numbers_of(device);
  roof.sustained_us = roof.compute_us;
  if (numbers.loaded_clock_hz > 0) {
    roof.sustained_us *= std::max(1.0, numbers.clock_hz / numbers.loaded_clock_hz);
  }
  roof.memory_us = roof.bytes / device.memory_bytes_per_second * 1e6;
  return roof;
}

/// What a profiler counted of a launch's kernels, together.
struct Counters {
  double instructions = 0;  ///< executed, by warps
  double sectors = 0;       ///< of 32 bytes, read from L2
  double dram_bytes = 0;    ///< read and written
};

/// For `mark`'s kernel in a profiler's list.
inline constexpr const char* kMarkKernel = "mark_kernel";

/// A plan that was tried, and what it took by a few replays.
struct TriedPlan {
  std::string name;
  std::string configuration;  ///< `configuration_text`
  double us = 0;
};

/// What was measured.
struct GemmTimes {
  GemmProblem problem;
  std::string plan;              ///< the first plan's name
  Timing ours;                   ///< its time
  double predicted_us = 0;       ///< what `warpwright predict` says of that plan; 0: nothing
  std::string config;            ///< the fastest plan's name
  Timing config_time;            ///< its time, in the same rounds
  int configs = 1;               ///< plans that were measured
  std::vector<TriedPlan> tried;  ///< those, the first one in front; empty when there is one
  HostTimes host;                ///< of launches of the first plan; not measured of groups
  std::optional<Timing> first;   ///< cuBLASLt by the first pick of its heuristic
  std::optional<Timing> best;    ///< by the fastest of the offered algorithms; for groups the first
  int calls = 0;                 ///< of cuBLASLt: those of a launch
  int offered = 0;               ///< algorithms that its heuristic offered
  int best_index = 0;            ///< which of them is the fastest; 0 is the first pick
  std::string baseline;          ///< cuBLASLt's version, or why there is no baseline
  std::string checked_against;   ///< what the results were compared with
  double relative_error = 0;     ///< of the first plan's result, to that; the worst group's
  bool cold = true;              ///< the buffers were large enough to keep operands out of L2
  int rounds = 0;
  int launches = 0;  ///< of one round
  int buffer_sets = 0;
  Roof roof;
  std::optional<Counters> counted;  ///< of the first plan's launch
  /// For cuBLASLt's launch by its first pick; for groups, for all its calls.
  std::optional<Counters> first_counted;
  std::vector<GemmTimes> beside;  ///< other products, in the same rounds
};

/// How it is measured.
struct TimeOptions {
  int rounds = 21;
  double round_seconds = 3e-3;
  int offers = 16;         ///< algorithms that cuBLASLt is asked for; 1 of groups
  std::uint64_t seed = 1;  ///< of random operands
  bool dependent = false;  ///< programmatic dependent launch, on our side
  /// Rows of each group: the plans know nothing of them, and they add up to M.
  std::vector<std::int64_t> lengths = {};
  /// Plans for other products of the same lengths, those of each one in a vector: they take turns
  /// with the first one's instead of cuBLASLt.
  std::vector<std::vector<Plan>> beside = {};
  /// Called with the number of contenders measured so far and of all.
  std::function<void(int done, int all)> progress = {};
};

/// A plan with its time.
struct RankedPlan {
  Plan plan;
  Timing timing;
};

/// `operations` a second of `timing`, in units of 1e12.
inline double tflops(double operations, const Timing& timing) {
  return timing.median > 0 ? operations / timing.median * 1e-6 : 0;
}

/// Times the first of `plans` (all for one problem), the fastest of all of them, and cuBLASLt, on
/// the current CUDA device; or, instead of cuBLASLt, other products of ours. `host` holds the
/// operands (without groups), or is null: random ones are made on the device. Refuses, instead of
/// timing, where a result is not right up to rounding: that of a product compared with cuBLASLt's
/// (and, where they differ, both with a plain product in float64), that of groups, of packed
/// weights and of a product that cuBLASLt has not with the plain product's.
Result<GemmTimes> time_gemm(const std::vector<Plan>& plans, const GemmOperands* host,
                            const TimeOptions& options = {});

/// Times all of `plans` (for one problem) on random operands, the fastest first; its results are
/// checked as in `time_gemm`. The fastest few are measured again in turns.
Result<std::vector<RankedPlan>> rank_plans(const std::vector<Plan>& plans,
                                           const TimeOptions& options = {});

/// Launches the plan once, and cuBLASLt's first pick once where it serves the product, on random
/// operands and in a profiler's range, after they were checked as in `time_gemm`. In front of the
/// two stand marks of `number` and of `number` + 1.
std::optional<Refusal> profile_gemm(const Plan& plan, int number, const TimeOptions& options = {});

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
