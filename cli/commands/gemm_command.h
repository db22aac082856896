// `warpwright gemm`: multiplies matrices of files, or random ones, on the model or on a GPU.
#pragma once

#include <functional>
#include <ostream>

#include "cli/commands/gemm_job.h"

namespace warpwright::cli {

/// Carries out a plan on packed operands in host memory; D is complete when it returns what the
/// model found: nothing on a GPU. Throws InputError or RunError.
using GemmRunner = std::function<model::Report(const Plan& plan, const GemmOperands& operands,
                                               const GemmOptions& options, std::ostream& err)>;

/// Runs on the device that `options` name, with all checks on the model, on a GPU through its
/// memory.
model::Report run_on_device(const Plan& plan, const GemmOperands& operands,
                            const GemmOptions& options, std::ostream& err);

/// Runs the command. Returns the exit status: 0; 1 when the check failed or the run went wrong; 2
/// for bad input, with one sentence on `err`. The output is written last, and only at status 0.
int gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err,
                 const GemmRunner& run = run_on_device);

}  // namespace warpwright::cli
