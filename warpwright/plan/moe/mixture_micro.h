// The rules of a mixture whose scales the tensor core multiplies, and of how many experts and rows
// there are. Internal to plan/.
#pragma once

#include <optional>

#include "warpwright/plan/moe/mixture.h"

namespace warpwright {

/// Why tokens cannot become what they would beside such weights, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_tokens_fault(const MixtureProblem& problem);
/// Why factors of whole tensors are none of this mixture, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_factors_fault(const MixtureProblem& problem);
/// Why so many experts, or slots, are none of a mixture, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_experts_fault(const MixtureProblem& problem);
/// Why gates and ups have no such number of rows, as the first product has it of its N, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_gate_fault(const MixtureProblem& problem);

}  // namespace warpwright
