// A dense product for the commands that run its kernel.
#pragma once

#include "cli/commands/gemm_job.h"
#include "cli/commands/product.h"

namespace warpwright::cli {

/// Seconds that the model takes for a plan, roughly.
double model_seconds(const Plan& plan);

/// Plans the product that `options` describe.
ProductMaker gemm_product(const GemmOptions& options);

/// Carries out a plan through the memory of CUDA device `index`: packed operands in host memory, D
/// among them. Throws InputError or RunError.
void run_on_gpu(const Plan& plan, const GemmOperands& operands, int index);

}  // namespace warpwright::cli
