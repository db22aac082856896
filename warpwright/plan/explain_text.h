// How plans are put into words. Internal to plan/.
#pragma once

#include <string>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/plan/family.h"

namespace warpwright {

/// The line of the cluster: `more` follows its shape, and B goes to `sharing_b` CTAs.
std::string cluster_line(const Plan& plan, int sharing_b, const std::string& more);

/// Why the first of these plans for groups is the first.
std::string group_reason(const std::vector<Plan>& all);

}  // namespace warpwright
