// What a calibration has to be before it may take the place of an older one. Internal to cli/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpwright/facts/machine_numbers.h"

namespace warpwright {

/// Rounds of one measurement (device::MeasuredNumber), as a value and how far they differ.
struct Spread {
  double median = 0;
  double share = 0;  ///< of the median: the span of all rounds but the highest and the lowest
};
Spread spread_of(std::vector<double> rounds);

/// The number's rule: of a plain number or of a curve; null where no machine has such a number.
std::optional<NumberRule> rule_of(const std::string& name);

/// Rounds may differ so much, as a share: above it somebody else has a part of the card.
inline constexpr double kCalmSpread = 0.06;

/// Why a measurement may not be kept, in a sentence, or nothing.
std::optional<std::string> measurement_fault(const std::string& name, const Spread& spread);

}  // namespace warpwright
