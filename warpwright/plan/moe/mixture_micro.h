// The rules of a mixture whose scales the tensor core multiplies. Internal to plan/.
#pragma once

#include <optional>

#include "warpwright/plan/moe/mixture.h"

namespace warpwright {

/// Why tokens cannot become what they would beside such weights, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_tokens_fault(const MixtureProblem& problem);
/// Why factors of whole tensors are none of this mixture, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_factors_fault(const MixtureProblem& problem);

}  // namespace warpwright
