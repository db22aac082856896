// What `bench grouped` says of its measurements: a table for people, one for documents, JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/grouped_bench.h"
#include "cli/compute/bench_grouped_shapes.h"
#include "cli/reports/bench_words.h"

namespace warpwright::cli {

/// One shape: its times, or why there are none.
struct GroupedRow {
  GroupedShape shape;
  std::vector<std::int64_t> lengths;
  std::optional<bench::GroupedTimes> times;
  std::string refusal;
  bench::GroupedWork work;  ///< of these lengths
  double compute_us = 0;    ///< what the roofs allow for it; 0 where unknown
  double memory_us = 0;
};

/// All shapes of one kind of operands.
struct GroupedSection {
  GroupedKind kind;
  std::vector<GroupedRow> rows;
};

/// What was measured, and how.
struct GroupedRun : BenchHead {
  std::vector<GroupedSection> sections;
};

/// Speeds of a row, as ratios of times: more than 1 is faster than the loop; the last, at most 1,
/// is what the plan's choice keeps of the fastest configuration's speed. Nothing where there is no
/// such time.
std::optional<double> plan_over_loop(const GroupedRow& row);
std::optional<double> config_over_loop(const GroupedRow& row);
std::optional<double> plan_over_config(const GroupedRow& row);

/// The time that the roofs allow over that of the plan, or of the fastest configuration.
std::optional<double> plan_over_roof(const GroupedRow& row);
std::optional<double> config_over_roof(const GroupedRow& row);

/// The table for a terminal, in parts that can be shown as they come.
std::string table_title(const GroupedRun& run);
std::string table_heading(const GroupedSection& section);
std::string table_row(const GroupedRow& row);
std::string table_summary(const GroupedSection& section);

/// The whole table as Markdown, with what made it.
std::string markdown(const GroupedRun& run);

/// The same as JSON, numbers unrounded.
std::string json(const GroupedRun& run);

}  // namespace warpwright::cli
