// How plans are put into words. Internal to plan/.
#pragma once

#include <optional>
#include <string>

#include "warpwright/facts/format.h"
#include "warpwright/plan/families/family.h"

namespace warpwright {

/// The line of the cluster: `more` follows its shape, and B goes to `sharing_b` CTAs.
std::string cluster_line(const Plan& plan, int sharing_b, const std::string& more);

/// Why a plan for groups is the best, before the next one.
std::string group_reason(const Plan& plan, const std::optional<Plan>& next);

}  // namespace warpwright
