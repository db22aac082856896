// `warpwright bench`: our plans beside cuBLASLt on many shapes, in one run on one GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "cli/commands/gemm/run.h"
#include "cli/compute/bench_shapes.h"
#include "cli/compute/expert_shapes.h"
#include "cli/reports/bench_report.h"

namespace warpwright::cli {

/// What `bench` and `tune` are told of how to measure, as it was typed.
struct MeasureOptions : DeviceFiles {
  int rounds = 21;
  std::uint64_t seed = 1;  ///< of the operands, of --sample, and of routed lengths
  std::string device = "cuda:0";
  std::optional<int> clusters;  ///< the most CTAs of the clusters that are tried
};

/// The arguments as they were typed; empty texts were not given.
struct BenchOptions : MeasureOptions {
  BenchKind kind = BenchKind::dense;
  std::string shapes;            ///< a file
  TypeOptions types;             ///< for groups only the dtype: see `parse_kinds`
  std::string expected_lengths;  ///< by plans of groups
  RoutedOptions routed;          ///< only for groups: a layer of experts instead
  std::string weights = "int4";  ///< of `w4a8`: or mxf4, mxf4-bf16, nvf4
  int group = 128;               ///< of int4 weights: see `packed_kinds`
  std::string encoding = "ex";   ///< of their codes
  std::optional<int> sample;     ///< this many random shapes instead
  bool gated = false;
  bool by_index = false;  ///< only for groups
  bool dependent = false;
  bool batch_invariant = false;  ///< the plans; the configurations beside them are any
  bool counters = false;         ///< as well, by ncu
  bool under_ncu = false;        ///< this is the process that ncu runs
  std::string configs = "8";
  std::string kernel;  ///< a kernel's name; empty: any
  bool wants_json = false;
  std::string json;  ///< a file; empty with wants_json: printed instead of the table
  bool markdown = false;
  std::string record;                  ///< a file of measured times; empty: none
  std::string command;                 ///< the whole command line
  std::vector<std::string> arguments;  ///< its words behind the program's name
};

/// Where and by what a measurement on a device is made now, for its report.
BenchOrigin origin_of(const std::string& command, std::uint64_t seed, bool dependent,
                      const DeviceFacts& facts);

/// What the plans that are measured are made by. Throws InputError where it is out of range.
PlanChoices measured_choices(const MeasureOptions& options);

/// Those of these options that bench/ takes. Throws InputError where they are out of range.
bench::TimeOptions time_options(const MeasureOptions& options);

/// The GPU of --device for `command`. Throws InputError for the model.
int measured_device(const MeasureOptions& options, const std::string& command);

/// Runs the command. Returns 0; 1 when a shape could not be measured; 2 for bad input or where the
/// GPU is missing, with one sentence on `err`.
int bench_command(const BenchOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
