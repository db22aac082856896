// What `bench` says of its measurements: a table for people, one for documents, JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "cli/compute/bench_shapes.h"

namespace warpwright::cli {

/// One shape: its times, or why there are none.
struct BenchRow {
  Shape shape;
  std::vector<std::int64_t> lengths;  ///< of its groups
  std::optional<bench::GemmTimes> times;
  std::string refusal;
};

/// All shapes of one kind of operands.
struct BenchSection {
  std::string word;   ///< of --dtype
  std::string types;  ///< see `types_name` and, of groups, `operands_name`
  std::vector<BenchRow> rows;
};

/// Where, when and by what something was measured.
struct BenchOrigin {
  std::string date;  ///< UTC, as "2026-11-21T09:37:04Z"
  std::string gpu, driver, cuda, cublaslt;
  std::string commit;
  std::string command;
  std::uint64_t seed = 1;
  bool dependent = false;
};

/// That in a line.
std::string provenance(const BenchOrigin& origin);

/// What was measured, and how.
struct BenchRun : BenchOrigin {
  BenchKind kind = BenchKind::dense;
  bool counted = false;                ///< some rows have counters
  std::string uncounted;               ///< why there are none that were asked for
  std::vector<BenchSection> sections;  ///< several only for groups
};

/// The table for a terminal, in parts that can be shown as they come.
std::string table_title(const BenchRun& run);
std::string table_heading(const BenchRun& run, const BenchSection& section);
std::string table_row(const BenchRun& run, const BenchRow& row);
std::string table_summary(const BenchRun& run, const BenchSection& section);

/// The whole table as Markdown, with what made it.
std::string markdown(const BenchRun& run);

/// The same as JSON, numbers unrounded.
std::string json(const BenchRun& run);

/// A time for JSON, null for none.
nlohmann::ordered_json timing_json(const std::optional<bench::Timing>& timing);

}  // namespace warpwright::cli
