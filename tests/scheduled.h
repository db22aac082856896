// How a plan is run on the model, or checked in many runs.
#pragma once

#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"

namespace warpwright::tests {

/// A schedule of the model.
inline device::ModelOptions scheduled(model::Mode mode, std::uint64_t seed = 1) {
  device::ModelOptions how;
  how.mode = mode;
  how.seed = seed;
  return how;
}

/// A check in so many schedules.
inline device::CheckOptions in_schedules(int schedules, int jobs = 1) {
  device::CheckOptions how;
  how.schedules = schedules;
  how.jobs = jobs;
  return how;
}

}  // namespace warpwright::tests
