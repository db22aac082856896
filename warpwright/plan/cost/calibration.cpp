#include "warpwright/plan/cost/calibration.h"

#include <algorithm>
#include <cstdio>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/product/refusal.h"

namespace warpwright {
namespace {

std::string number_text(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

Spread spread_of(std::vector<double> rounds) {
  if (rounds.empty()) return {};
  std::sort(rounds.begin(), rounds.end());
  const double median = rounds[rounds.size() / 2];
  const std::size_t out = rounds.size() > 3 ? 1 : 0;
  const double span = rounds[rounds.size() - 1 - out] - rounds[out];
  return {median, median > 0 ? span / median : 0};
}

std::optional<NumberRule> rule_of(const std::string& name) {
  const MachineNumbers machine;
  std::optional<NumberRule> found;
  const auto look = [&](const NumberRule& rule, const auto& /*number*/) {
    if (name == rule.name) found = rule;
  };
  for_each_number(machine, look);
  for_each_curve(machine, look);
  return found;
}

std::optional<std::string> measurement_fault(const std::string& name, const Spread& spread) {
  const std::optional<NumberRule> rule = rule_of(name);
  if (!rule) return "no machine has a number " + name;
  // A NaN is within no bounds.
  if (!(spread.median >= rule->lowest && spread.median <= rule->highest)) {
    return name + " came out as " + number_text(spread.median) + ", and it lies between " +
           number_text(rule->lowest) + " and " + number_text(rule->highest);
  }
  if (spread.share > kCalmSpread) {
    return "rounds of " + name + " differ by " + number_text(100 * spread.share) +
           "%: the card is busy with something else, or its clock moves";
  }
  return std::nullopt;
}

}  // namespace warpwright
