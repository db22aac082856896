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

/// The floor of a plan whose kernel has this configuration.
Floor blackwell_floor(const Plan& plan, const kernel::BlackwellConfig& config,
                      const FloorBasis& basis);

}  // namespace warpwright
