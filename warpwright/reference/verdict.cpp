#include "warpwright/reference/verdict.h"

#include <cfloat>
#include <cmath>
#include <limits>

namespace warpwright::reference {

Verdict judge(DType d, double got, const Expected& want) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Verdict wrong{false, infinity, 0, infinity};
  const auto right_if = [&wrong](bool right, Kind kind) {
    return right ? Verdict{true, 0, 0, 0, kind} : wrong;
  };
  const bool may_overflow = !(want.magnitude <= static_cast<double>(FLT_MAX));
  if (std::isnan(want.value)) return right_if(std::isnan(got), Kind::nan);
  if (std::isinf(want.value)) {
    if (std::isnan(got)) return right_if(true, Kind::overflowed);
    return right_if(got == rounded(d, want.value), saturates(d) ? Kind::saturated : Kind::infinite);
  }
  if (std::isnan(got)) return right_if(may_overflow, Kind::overflowed);
  const double low = rounded(d, want.value - want.bound);
  const double high = rounded(d, want.value + want.bound);
  if (std::isinf(got)) {
    if (got == low || got == high) return right_if(true, Kind::infinite);
    return right_if(may_overflow, Kind::overflowed);
  }
  // Finite where even the nearest is infinite.
  if (low == infinity || high == -infinity) return wrong;

  const double target = saturated(d, want.value);
  if (target != want.value && got == target) return right_if(true, Kind::saturated);
  Verdict verdict;
  verdict.error = std::abs(got - target);
  verdict.allowed = want.bound + numeric::ulp(d, std::abs(want.value) + want.bound) / 2;
  verdict.passed = verdict.error <= verdict.allowed;
  verdict.ratio = verdict.error / verdict.allowed;
  return verdict;
}

}  // namespace warpwright::reference
