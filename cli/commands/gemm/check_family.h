// `check --family` and `check kernel`: a product and its companions under many schedules, until
// every synchronising statement of the kernel has run.
#pragma once

#include <ostream>

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/simulation/check.h"

namespace warpwright::cli {

/// Checks the product of `given` and its companions (companions.h) by the same kernel, and says
/// which statements never ran. Stops at the first product with a finding. With `mutate` breaks
/// every statement in every product that executes it until one of them shows it. Returns the exit
/// status: 0 when nothing was found and, with `mutate`, no mutant survived. Throws InputError.
int check_family(const GemmOptions& given, const device::CheckOptions& options, bool mutate,
                 bool json, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
