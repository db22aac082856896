// The log that Nsight Compute's ncu leaves with --csv: a line for each metric of each kernel, with
// lines of its own (==PROF==, ==ERROR==) before and between them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gemm_bench.h"

namespace warpwright::cli {

/// What is asked of ncu, for --metrics.
inline constexpr const char* kNcuMetrics =
    "smsp__inst_executed.sum,lts__t_sectors_op_read.sum,dram__bytes_read.sum,dram__bytes_write.sum";

/// What the log says.
struct NcuLog {
  /// The sums of all kernels behind each mark (see bench::profile_gemm), by its number.
  std::map<int, bench::Counters> counts;
  std::string error;  ///< the first of ncu's errors, or what is not understood; empty without one
};

/// Reads a log; the units are ncu's base units (--print-units base).
NcuLog read_ncu_log(std::string_view text);

/// A kernel, and how long it took.
struct KernelTime {
  std::string kernel;
  double nanoseconds = 0;
};
/// What a log of the metric gpu__time_duration.sum says, in any of ncu's units of time.
struct KernelTimes {
  std::vector<KernelTime> times;  ///< in the order of the log
  std::string error;              ///< as NcuLog's
};
KernelTimes read_kernel_times(std::string_view text);

}  // namespace warpwright::cli
