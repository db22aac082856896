// What `bench dense` says of its measurements: a table for people, one for documents, JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "cli/compute/bench_shapes.h"
#include "cli/reports/bench_words.h"

namespace warpwright::cli {

/// One shape: its times, or why there are none.
struct BenchRow {
  Shape shape;
  std::optional<bench::GemmTimes> times;
  std::string refusal;
};

/// What was measured, and how.
struct BenchRun : BenchHead {
  std::string types;  ///< see `types_name`
  std::vector<BenchRow> rows;
};

/// Speeds of a row: another's time over ours, so that more than 1 is faster than it. Nothing where
/// there is no baseline.
std::optional<double> speed_over_first(const BenchRow& row);
std::optional<double> speed_over_best(const BenchRow& row);
std::optional<double> config_over_best(const BenchRow& row);

/// The time that the roofs allow over ours; nothing where it is unknown.
std::optional<double> roof_share(const BenchRow& row);

/// The geometric mean; nothing of nothing.
std::optional<double> geomean(const std::vector<double>& values);

/// One kind of speed over all rows that have it.
struct SpeedSummary {
  std::optional<double> mean;
  int rows = 0;
  double worst = 0;
  Shape worst_shape;
};
SpeedSummary summarise(const std::vector<BenchRow>& rows,
                       const std::function<std::optional<double>(const BenchRow&)>& speed);

/// The table for a terminal, line for line, so that rows can be shown as they come.
std::string table_heading(const BenchRun& run);
std::string table_row(const BenchRow& row);
std::string table_summary(const BenchRun& run);

/// The whole table as Markdown, with what made it.
std::string markdown(const BenchRun& run);

/// The same as JSON, numbers unrounded.
std::string json(const BenchRun& run);

}  // namespace warpwright::cli
