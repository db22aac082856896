// What `bench moe` says of its measurements: a table for people, and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/moe_bench.h"
#include "cli/compute/expert_shapes.h"
#include "cli/reports/bench_report.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright::cli {

/// A layer for so many tokens: its times, or why there are none.
struct MoeBenchRow {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> lengths;  ///< tokens of each expert
  std::optional<MixturePlan> plan;
  bench::Roof roof;
  std::optional<bench::MoeTimes> times;
  std::string refusal;
};

/// A layer with one kind of weights.
struct MoeBenchSection {
  ExpertModel model;
  std::string kind;  ///< the word of --dtype
  std::vector<MoeBenchRow> rows;
};

struct MoeBenchRun : BenchOrigin {
  std::vector<MoeBenchSection> sections;
};

/// The table for a terminal, in parts that can be shown as they come.
std::string moe_title(const MoeBenchRun& run);
std::string moe_heading(const MoeBenchSection& section);
/// A row, and below it one for each step that was timed.
std::string moe_row(const MoeBenchRow& row);

/// All of it as JSON, numbers unrounded.
std::string moe_json(const MoeBenchRun& run);

}  // namespace warpwright::cli
