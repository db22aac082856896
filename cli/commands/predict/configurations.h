// Ways to run a product, the first of all that serve it: what `bench`, `tune` and `predict` go
// over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright::cli {

/// How many candidates "8" or "all" means: nothing for all. Throws InputError.
std::optional<int> parse_configs(const std::string& text);

/// What is timed for a row: the first of the problem's `candidates`, `limit` of them or all. A
/// batch-invariant plan stands before them, who need not be that, so that the best of all shows
/// what the contract costs.
Result<std::vector<Plan>> bench_plans(const GemmProblem& problem, const DeviceFacts& facts,
                                      PlanChoices choices, std::optional<int> limit);

}  // namespace warpwright::cli
