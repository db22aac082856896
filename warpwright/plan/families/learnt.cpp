#include "warpwright/plan/families/learnt.h"

#include <stdexcept>

#include "warpwright/plan/cost/correction_texts.h"
#include "warpwright/plan/families/floor.h"

namespace warpwright {

const Correction& built_correction() {
  static const Correction built = [] {
    auto read = Correction::parse(correction_texts.front(), floor_features);
    if (!read) throw std::logic_error(read.reason());
    return *std::move(read);
  }();
  return built;
}

std::optional<double> learnt_seconds(const Plan& plan, const PredictionMachine& machine) {
  const auto floor = floor_of(plan, machine);
  if (!floor) return std::nullopt;
  return floor->seconds * built_correction().factor(floor->features);
}

std::optional<double> learnt_seconds(const Plan& plan) {
  return learnt_seconds(plan, prediction_machine(plan.device));
}

}  // namespace warpwright
