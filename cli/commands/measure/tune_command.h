// `warpwright tune`: measures every way to compute a product and keeps the fastest for later.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/measure/bench_command.h"
#include "cli/compute/bench_shapes.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct TuneOptions : MeasureOptions {
  std::vector<std::int64_t> extents;  ///< M, N and K
  std::string shapes;                 ///< a file instead
  bool grouped = false;               ///< of products in groups
  TypeOptions types;
  bool all = false;
  bool json = false;
};

/// Those of a shape's plans that are measured when not all are asked for: the most promising ones.
inline constexpr int kTunedPlans = 32;

/// Runs the command. Returns 0; 1 when a shape could not be measured or the cache not be written; 2
/// for bad input or where the GPU is missing, with one sentence on `err`.
int tune_command(const TuneOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
