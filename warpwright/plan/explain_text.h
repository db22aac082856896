// How plans are put into words. Internal to plan/.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "warpwright/plan/family.h"

namespace warpwright {

/// printf into a string.
template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int n = std::snprintf(nullptr, 0, pattern, args...);  // NOLINT
  std::string text(static_cast<std::size_t>(n), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, args...);  // NOLINT
  return text;
}

/// The line of the cluster: `more` follows its shape, and B goes to `sharing_b` CTAs.
std::string cluster_line(const Plan& plan, int sharing_b, const std::string& more);

/// Why the first of these plans for groups is the first.
std::string group_reason(const std::vector<Plan>& all);

}  // namespace warpwright
