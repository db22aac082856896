// `warpwright trace gemm`: the timeline of a product.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "cli/gemm_job.h"

namespace warpwright::cli {

/// What `trace gemm` takes beyond the product.
struct TraceOptions {
  std::string svg;               ///< where the picture goes; empty for none
  std::string grid_svg;          ///< where the picture of all SMs goes; empty for none
  std::optional<int> occupy_sm;  ///< an SM of the model that another grid holds
};

/// Runs the product that `options` describe on its device, writes a Perfetto trace to `options.out`
/// and, when asked, a picture of the first tiles, and says on `out` what is in them. On the model
/// times are nominal. Returns 0; 1 when the run went wrong; 2 for bad input, with one sentence on
/// `err`.
int trace_gemm_command(const GemmOptions& options, const TraceOptions& how, std::ostream& out,
                       std::ostream& err);

}  // namespace warpwright::cli
