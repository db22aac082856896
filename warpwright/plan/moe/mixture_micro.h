// The rules of a mixture that are by themselves: scales that the tensor core multiplies, how many
// experts and rows there are (mixture_micro.cpp); tokens that come as codes, what becomes of router
// weights and of slots, activations (mixture_forms.cpp). Internal to plan/.
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
/// Why scales of small blocks are not those of both weights, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_blocks_fault(const MixtureProblem& problem);
/// Why gates and ups have no such number of rows, as the first product has it of its N, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_gate_fault(const MixtureProblem& problem);

/// Why x, where it is e4m3, or its scales are none of this mixture, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_codes_fault(const MixtureProblem& problem);
/// Why a mixture without a router is none, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_router_fault(const MixtureProblem& problem);
/// Why router weights, the rows of slots and a shared output do not go together, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_combine_fault(const MixtureProblem& problem);
/// Why a tensor that may be left out, and has an address, is none, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_presence_fault(const MixtureOperands& operands,
                                                            const MatrixView& tensor,
                                                            const char* name);
/// Why what no plan has, the factor of router weights, is none of a launch, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_launch_fault(const MixtureOperands& operands);
/// Why its gate, or what there is without one, has no such activation, or nothing.
[[nodiscard]] std::optional<Refusal> mixture_activation_fault(const MixtureProblem& problem);

}  // namespace warpwright
