// What is told of mixtures of experts: their plans for programs, and in few words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright::cli {

/// "9 tokens x 512, bf16 by e4m3 (block), top-2 of 8 experts, inner 256".
std::string mixture_words(const MixtureProblem& problem);

/// A plan with its steps, their kernels and floors, and the plans of its two products.
nlohmann::ordered_json mixture_json(const MixturePlan& plan);

}  // namespace warpwright::cli
