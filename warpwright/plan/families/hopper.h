// The Hopper family's own. Internal to plan/ and to tests of kernels.
#pragma once

#include <string>
#include <vector>

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/plan/families/ask.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {

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

/// The floor of a plan whose kernel has this configuration; with its features only where these are
/// asked for.
Floor hopper_floor(const Plan& plan, const kernel::GemmConfig& config, const FloorBasis& basis,
                   bool with_features);

/// Clocks in which the warps of an SM make what is multiplied of a k_tile of packed weights, and
/// scale its sums.
double convert_clocks(const kernel::GemmConfig& config, const PackedFormat& format);

/// Bytes of packed weights in those that as many elements of the tokens' type take.
double packed_share(const GemmProblem& problem);

/// How its warps work together, and find groups.
std::string hopper_schedule_text(const kernel::GemmConfig& config);
/// Where sums are kept, and what becomes of them besides alpha and beta.
std::string hopper_sums_text(const kernel::GemmConfig& config);
/// How packed weights come into the registers.
std::string hopper_weights_text(const Plan& plan);

}  // namespace warpwright
