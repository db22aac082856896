// `warpwright trace gemm` and `trace grouped`: the timeline of a product.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// What the command takes beyond the product.
struct TraceOptions {
  std::string out;               ///< where the Perfetto trace goes; empty for none
  std::string svg;               ///< where the picture goes; empty for none
  std::string grid_svg;          ///< where the picture of all SMs goes; empty for none
  std::optional<int> occupy_sm;  ///< an SM of the model that another grid holds
};

/// Runs the product on its device, writes the trace and pictures that are asked for, and says on
/// `out` what is in them. Times on the model are nominal. Returns 0; 1 when the run went wrong; 2
/// for bad input, with one sentence on `err`.
int trace_command(const GemmOptions& product, const TraceOptions& options, std::ostream& out,
                  std::ostream& err);

}  // namespace warpwright::cli
