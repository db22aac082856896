// `warpwright grouped`: a grouped product of random tensors, on the model or on a GPU.
#pragma once

#include <functional>
#include <ostream>

#include "cli/commands/grouped_job.h"
#include "cli/commands/grouped_product.h"

namespace warpwright::cli {

/// Carries out a plan on packed operands in host memory; Y is complete when it returns. Throws
/// InputError or RunError.
using GroupedRunner = std::function<GroupedOutput(
    const GroupedJob& job, const GroupedPlan& plan, const GroupedOperands& operands,
    const GroupedOptions& options, std::ostream& err)>;

/// Runs on the device that `options` name, with all checks on the model, on a GPU through its
/// memory.
GroupedOutput run_grouped_on_device(const GroupedJob& job, const GroupedPlan& plan,
                                    const GroupedOperands& operands, const GroupedOptions& options,
                                    std::ostream& err);

/// Runs the command: messages go to `err`, times and (with `json`) everything as JSON to `out`.
/// Returns the exit status: 0; 1 when the check failed, the model found faults, the offsets are out
/// of order (with `check_offsets`) or the run went wrong; 2 for bad input, with one sentence on
/// `err`.
int grouped_command(const GroupedOptions& options, std::ostream& out, std::ostream& err,
                    const GroupedRunner& run = run_grouped_on_device);

}  // namespace warpwright::cli
