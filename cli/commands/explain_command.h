// `warpwright explain gemm` and `explain grouped`: how a product would be computed, on a device
// that need not be here.
#pragma once

#include <ostream>

#include "cli/commands/product.h"

namespace warpwright::cli {

/// Prints the plan for the product on `out`. Returns 0, or 2 with one sentence on `err` where there
/// is no plan.
int explain_command(const RunOptions& options, const ProductMaker& product, std::ostream& out,
                    std::ostream& err);

}  // namespace warpwright::cli
