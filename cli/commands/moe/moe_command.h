// `warpwright moe`: a layer of experts, planned, run and checked.
#pragma once

#include <functional>
#include <ostream>

#include "cli/commands/gemm/check_command.h"
#include "cli/commands/moe/moe_job.h"

namespace warpwright::cli {

/// Runs a loaded mixture where the options say: what the model found; a GPU finds nothing.
using MoeRunner = std::function<model::Report(const MoeJob&, const MoeOptions&, std::ostream& err)>;
model::Report run_moe_on_device(const MoeJob& job, const MoeOptions& options, std::ostream& err);

/// Runs the command; another `run` is for tests. Returns 0; 1 when a check failed; 2 for bad input.
int moe_command(const MoeOptions& options, std::ostream& out, std::ostream& err,
                const MoeRunner& run = run_moe_on_device);

/// `check moe`: all of its launches under many schedules of the model, or with one statement
/// broken. Returns 0 when nothing was found (with `mutate`: when no mutant survived), 1 otherwise,
/// 2 for bad input.
int check_moe_command(const MoeOptions& options, const CheckCommandOptions& how, std::ostream& out,
                      std::ostream& err);

/// `explain moe`: the plan as a table of kernels.
int explain_moe_command(const MoeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
