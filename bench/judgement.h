// Whether a measured product is right up to rounding. Internal to bench/.
#pragma once

#include <optional>
#include <string>

#include "bench/device_math.h"
#include "warpwright/plan/plan.h"

namespace warpwright::bench {

/// What rounding may do to an element of `p`'s result.
Tolerance tolerance(const GemmProblem& p);

/// The norm of a right result's difference over its norm, at most. The bound of an element holds in
/// the worst case and is wide for long sums; over all elements the error is far smaller, and a tile
/// or a scale that is wrong stands out.
double relative_limit(const GemmProblem& p);

/// Why `found`, of a result made by `ours` compared with one by `theirs`, is beyond the limits of
/// `p`, as a sentence; nothing when it is not.
std::optional<std::string> fault(const Comparison& found, const GemmProblem& p,
                                 const std::string& ours, const std::string& theirs);

}  // namespace warpwright::bench
