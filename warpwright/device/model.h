// The machine model as a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "warpwright/model/machine.h"
#include "warpwright/plan/plan.h"

namespace warpwright::device {

/// How a plan is run on the model.
struct ModelOptions {
  model::Mode mode = model::Mode::latest;
  std::uint64_t seed = 1;
  /// Called after every finished CTA tile with the number of tiles so far.
  std::function<void(std::int64_t)> on_tile;
};

/// Runs `plan` on the model, with all checks. The report says what they found: with findings D is
/// not to be trusted. Refuses operands that are not those of the plan.
Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options = {});

}  // namespace warpwright::device
