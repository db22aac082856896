// `bench --record`: measured times as rows of a file (warpwright/plan/tuning/times.h).
#pragma once

#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "cli/commands/measure/bench_command.h"
#include "warpwright/plan/tuning/times.h"

namespace warpwright::cli {

/// The words of `--record` for the lengths of a shape's groups.
std::string recorded_lengths(const Shape& shape);

/// Rows for all configurations of a product that were tried; none where that was only one.
std::vector<MeasuredTime> recorded_rows(const bench::GemmTimes& times, const std::string& card,
                                        const std::string& commit, const std::string& lengths);

/// The file of --record, or none.
class TimesFile {
 public:
  /// Reads what the file of these options has. Throws InputError where it is no such file or cannot
  /// be written, for options whose times say nothing of what plans choose, and where nobody knows
  /// the commit of this build.
  TimesFile(const BenchOptions& options, std::string commit);

  [[nodiscard]] bool given() const { return !path_.empty(); }
  /// Has the file times of this product, card and commit?
  [[nodiscard]] bool has(const std::string& card, const GemmProblem& product,
                         const std::string& lengths) const;
  /// Writes the times of a shape and of what was measured beside it, in place of older ones.
  void add(const bench::GemmTimes& times, const std::string& card, const std::string& lengths);

 private:
  std::string path_;
  std::string commit_;
  std::vector<MeasuredTime> times_;
};

}  // namespace warpwright::cli
