// The Hopper family's own. Internal to plan/ and to tests of kernels.
#pragma once

#include <string>
#include <vector>

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/plan/families/ask.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {

struct Machine;

/// The configuration of a Hopper plan's kernel.
const kernel::GemmConfig& hopper_config(const Plan& plan);

/// Bytes from a row of A or of B, or a column where those are contiguous, to the next.
std::int64_t pitch_of_a(const GemmProblem& problem);
std::int64_t pitch_of_b(const GemmProblem& problem);

/// Does the kernel compute what the problem asks, whatever its extents?
bool hopper_serves(const kernel::GemmConfig& config, const Ask& ask);

/// Family::complete.
void hopper_ways(Plan& plan, const KernelFacts& kernel, const kernel::GemmConfig& config,
                 const Ask& ask, std::vector<Candidate>& all);

/// Seconds that a Hopper plan will take on an H200-like device, by roofs and by what was measured
/// of each way of multiplying (Machine); it orders candidates. On the model the same with an H200's
/// rates. `lengths` are those of groups.
double predicted_cost(const Plan& plan, const kernel::GemmConfig& config,
                      const GroupLengths& lengths);

/// Do CTAs of clusters that share a tile along K meet on an SM that runs two? Where more clusters
/// of packed weights' kernels were launched than fit with a CTA an SM, they took as long as if all
/// had (docs/log/w4a8.md).
bool packed_ctas_meet(const Plan& plan);
/// CTAs of a plan's launch that have an SM in common.
double ctas_on_an_sm(const Plan& plan, int ctas_per_sm);
/// Bytes of packed weights in those that as many elements of the tokens' type take.
double packed_share(const GemmProblem& problem);
/// Clocks of 128 bytes of K of packed weights on one SM; `a_share`: their packed_share, `sharing`:
/// CTAs of the launch that have an SM in common.
double packed_clocks(const kernel::GemmConfig& config, const PackedFormat& format, double a_share,
                     const Machine& machine, double sharing);

/// How its warps work together, and find groups.
std::string hopper_schedule_text(const kernel::GemmConfig& config);
/// Where sums are kept, and what becomes of them besides alpha and beta.
std::string hopper_sums_text(const kernel::GemmConfig& config);
/// How packed weights come into the registers.
std::string hopper_weights_text(const Plan& plan);

}  // namespace warpwright
