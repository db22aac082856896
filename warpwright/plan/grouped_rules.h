// The rules of grouped products. Internal to plan/.
#pragma once

#include <optional>

#include "warpwright/plan/grouped.h"

namespace warpwright {

/// Why no kernel could ever serve `problem`, or nothing.
[[nodiscard]] std::optional<Refusal> grouped_fault(const GroupedProblem& problem);

}  // namespace warpwright
