// Plans, kernels and devices for programs: what `--json` prints of them.
#pragma once

#include <nlohmann/json.hpp>

#include "warpwright/plan/product/plan.h"

namespace warpwright::cli {

/// A plan with all that `explain` says of it.
nlohmann::ordered_json plan_json(const Plan& plan);

/// What a kernel is, and whether this build has it.
nlohmann::ordered_json kernel_json(const KernelFacts& kernel);

/// A device. Rates and sizes that nobody knows are null.
nlohmann::ordered_json device_json(const DeviceFacts& device);

}  // namespace warpwright::cli
