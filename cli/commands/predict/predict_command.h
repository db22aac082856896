// `warpwright predict gemm` and `predict grouped`: how long a product will take on a device that
// need not be here.
#pragma once

#include <ostream>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// Plans the product for the device (--as or --machine, an H200 where nothing is said), samples its
/// kernel on the model and composes, by the numbers of that device. Returns 0; 1 when the model
/// found a fault; 2 for bad input.
/// With --configs it lists so many ways to run the product instead, those first
/// that the plan would take, each by the counts that are kept of its kernel.
int predict_command(const GemmOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
