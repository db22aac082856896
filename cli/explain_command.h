// `warpwright explain gemm`: how a product would be computed, on a device that need not be here.
#pragma once

#include <ostream>

#include "cli/gemm_job.h"

namespace warpwright::cli {

/// Prints the plan for the product on `out`. Returns 0, or 2 with one sentence on `err` where there
/// is no plan.
int explain_gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
