// One search for all families: which kernels serve a product, in which clusters and grids, and what
// each of these ways costs. Internal to plan/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/families/ask.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {

class Family;

/// Every way by kernels of `rows` that `choices` leave, in the order of the table; refuses, where
/// there is none, with what would be legal. The product and the device of `start` are legal.
Result<std::vector<Candidate>> search(const Family& family, const Plan& start,
                                      const PlanChoices& choices, Rows rows);

/// The same, which may be none; for choices that the family knows.
Result<std::vector<Candidate>> ways_of(const Family& family, const Ask& ask, Rows rows);

/// Why none was found, of kernels of this build.
Refusal none_found(const Family& family, const Ask& ask);

/// Why these choices are none of the family's on that device, or nothing.
std::optional<Refusal> choices_fault(const Family& family, const Plan& start,
                                     const PlanChoices& choices);

/// Why a plan for groups is the best, before the next one.
std::string group_reason(const Plan& plan, const std::optional<Plan>& next);

}  // namespace warpwright
