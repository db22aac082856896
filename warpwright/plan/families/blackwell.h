// The Blackwell family's own. Internal to plan/.
#pragma once

#include <vector>

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/plan/families/ask.h"

namespace warpwright {

/// The kernel as it runs for operands that lie like the problem's.
kernel::BlackwellConfig with_majors(kernel::BlackwellConfig config, const GemmProblem& problem);

/// Does the kernel compute what the problem asks, whatever its extents?
bool blackwell_serves(const kernel::BlackwellConfig& config, const Ask& ask);

/// Family::complete.
void blackwell_ways(Plan& plan, const KernelFacts& kernel, const kernel::BlackwellConfig& config,
                    const Ask& ask, std::vector<Candidate>& all);

/// Seconds that a Blackwell plan would take by the counts of its kernel: nobody measured any. It
/// orders candidates and is shown to nobody. `lengths` are those of groups.
double blackwell_cost(const Plan& plan, const kernel::BlackwellConfig& config,
                      const KernelFacts& kernel, const GroupLengths& lengths,
                      const MachineClocks& clocks);

}  // namespace warpwright
