// What a kernel family says of itself for Plan::explain. Internal to plan/.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "warpwright/plan/plan.h"

namespace warpwright {

/// printf into a string.
template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int n = std::snprintf(nullptr, 0, pattern, args...);  // NOLINT
  std::string text(static_cast<std::size_t>(n), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, args...);  // NOLINT
  return text;
}

/// The rows as a table for a reader, with what the first wait's parity means.
std::string barrier_table(const std::vector<pipeline::BarrierRow>& rows);

/// A part of shared memory.
struct SmemRegion {
  const char* what;
  int begin;
  int end;
};

/// The lines that differ from family to family.
struct ExplainParts {
  std::string kernel;  ///< kernel, tile, cluster and stages
  std::vector<SmemRegion> regions;
  std::string roles;   ///< the table of roles
  std::string beside;  ///< what the family has beside these, after the barriers
  bool persistent = true;
};

ExplainParts hopper_parts(const Plan& plan);
ExplainParts blackwell_parts(const Plan& plan);

/// Plan::name and Plan::barriers of a Blackwell plan.
std::string blackwell_name(const Plan& plan);
std::vector<pipeline::BarrierRow> blackwell_barriers(const Plan& plan);

}  // namespace warpwright
