// `warpwright gemm` and `warpwright grouped`: multiply matrices of files, or random ones, on the
// model or on a GPU. `explain gemm` and `explain grouped`: how they would.
#pragma once

#include <functional>
#include <ostream>

#include "cli/commands/gemm/product.h"

namespace warpwright::cli {

/// Carries out a loaded product; D is complete when it returns. Throws InputError or RunError.
using GemmRunner =
    std::function<RunOutput(const Product& product, const GemmOptions& options, std::ostream& err)>;

/// Runs on the device that `options` name, with all checks on the model, on a GPU through its
/// memory.
RunOutput run_on_device(const Product& product, const GemmOptions& options, std::ostream& err);

/// Runs the command: messages go to `err`, times and (with `json`) everything as JSON to `out`.
/// Returns the exit status: 0; 1 when the check failed, the model found faults, the offsets are out
/// of order (with `check_offsets`) or the run went wrong; 2 for bad input, with one sentence on
/// `err`. The output is written last, and only at status 0.
int gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err,
                 const GemmRunner& run = run_on_device);

/// Prints the plan for the product on `out`, for a device that need not be here. Returns 0, or 2
/// with one sentence on `err` where there is no plan.
int explain_command(const GemmOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
