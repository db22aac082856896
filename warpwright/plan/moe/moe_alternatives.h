// Weights of experts that a caller has in two forms: which of them a mixture takes, as
// plan/search/alternatives.h has it for products.
#pragma once

#include <cstddef>
#include <span>

#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

/// One of several plans: its number, and the plan, whose reason says what it was chosen among.
struct ChosenMixture {
  std::size_t index = 0;
  MixturePlan plan;
};

/// The plan with the least predicted time (MixturePlan::cost), the first of equals. All are of
/// mixtures that differ only in w13 and w2, their types, scales and factors: packed weights, say,
/// and fp8 ones with the same values (weights/fp8.h), both weights alike. Refuses mixtures that
/// differ in more, or devices. Which it is depends on the number of tokens, and so then do the bits
/// of a row.
Result<ChosenMixture> fastest(std::span<const MixturePlan> plans);

/// The same of mixtures that have no plans yet: those that no kernel of the device serves are left
/// out, unless there is no other. With MixtureChoices::batch_invariant the first one that has a
/// plan is taken.
Result<ChosenMixture> plan_fastest(std::span<const MixtureProblem> mixtures,
                                   const DeviceFacts& device, const MixtureChoices& choices = {});
/// `describe` each, of one without memory without its addresses, then the same.
Result<ChosenMixture> plan_fastest(std::span<const MixtureOperands> mixtures,
                                   const DeviceFacts& device, const MixtureChoices& choices = {});

}  // namespace warpwright
