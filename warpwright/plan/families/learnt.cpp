#include "warpwright/plan/families/learnt.h"

#include <algorithm>
#include <stdexcept>

#include "warpwright/plan/cost/correction_texts.h"

namespace warpwright {

const Correction& built_correction() {
  static const Correction built = [] {
    auto read = Correction::parse(correction_texts.front(), floor_features);
    if (!read) throw std::logic_error(read.reason());
    return *std::move(read);
  }();
  return built;
}

double learnt_seconds(const Floor& floor) {
  return floor.seconds * built_correction().factor(floor.features);
}

std::optional<double> learnt_seconds(const Plan& plan) {
  const auto floor = floor_of(plan);
  if (!floor) return std::nullopt;
  return learnt_seconds(*floor);
}

std::string shape_text(const GemmProblem& p) {
  return std::to_string(p.m()) + "x" + std::to_string(p.n()) + "x" + std::to_string(p.k());
}

bool is_held_out(const GemmProblem& problem) {
  const std::vector<std::string>& held = built_correction().held_out();
  return std::find(held.begin(), held.end(), shape_text(problem)) != held.end();
}

}  // namespace warpwright
