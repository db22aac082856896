// Words that the reports of all benches have in common.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/gemm_bench.h"
#include "cli/reports/format.h"

namespace warpwright::cli {

/// Where, when and by what was measured.
struct BenchHead {
  std::string date;  ///< UTC, as "2026-11-21T09:37:04Z"
  std::string gpu, driver, cuda, cublaslt;
  std::string commit;
  std::string command;
  std::uint64_t seed = 1;
  bool dependent = false;
};

/// "1.050", "87%" and "12.34": a number, a share and a median in microseconds; "-" for nothing.
std::string number(const std::optional<double>& value);
std::string percent(const std::optional<double>& value);
std::string microseconds(const std::optional<bench::Timing>& timing);

/// Half the distance of the quartiles, as a share of the median: "0.4%".
std::string spread(const bench::Timing& timing);

const char* bound_name(Bound bound);

/// Date, GPU and versions, in a line.
std::string provenance(const BenchHead& head);

/// For JSON: null for nothing.
nlohmann::ordered_json timing_json(const bench::Timing& timing);
nlohmann::ordered_json timing_json(const std::optional<bench::Timing>& timing);
nlohmann::ordered_json number_json(const std::optional<double>& value);

/// What every document begins with.
nlohmann::ordered_json head_json(const char* format_name, const BenchHead& head);

}  // namespace warpwright::cli
