#include "warpwright/reference/verdict.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "warpwright/facts/e4m3_scale.h"

namespace warpwright::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Verdict wrong{false, infinity, 0, infinity};

Verdict right_if(bool right, Kind kind) {
  return right ? Verdict{true, 0, 0, 0, kind} : wrong;
}
bool may_overflow(const Expected& want) {
  return !(want.magnitude <= static_cast<double>(FLT_MAX));
}

}  // namespace

Verdict judge(DType d, double got, const Expected& want) {
  if (std::isnan(want.value)) return right_if(std::isnan(got), Kind::nan);
  if (std::isinf(want.value)) {
    if (std::isnan(got)) return right_if(true, Kind::overflowed);
    return right_if(got == rounded(d, want.value), saturates(d) ? Kind::saturated : Kind::infinite);
  }
  if (std::isnan(got)) return right_if(may_overflow(want), Kind::overflowed);
  const double low = rounded(d, want.value - want.bound);
  const double high = rounded(d, want.value + want.bound);
  if (std::isinf(got)) {
    if (got == low || got == high) return right_if(true, Kind::infinite);
    return right_if(may_overflow(want), Kind::overflowed);
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

bool is_scale_of(double scale, std::span<const Expected> block) {
  if (!(scale > 0) || std::isinf(scale)) return false;
  double low = 0;
  double high = 0;
  for (const Expected& x : block) {
    if (may_overflow(x)) return true;
    if (!std::isfinite(x.value)) continue;
    low = std::max(low, std::abs(x.value) - x.bound);
    high = std::max(high, std::abs(x.value) + x.bound);
  }
  if (low == 0 && scale == 1) return true;  // all of them may be 0
  constexpr double rounding = 0x1p-23;      // of the values and of the division
  constexpr auto least = static_cast<double>(FLT_MIN);
  const auto most = static_cast<double>(largest_e4m3);
  return scale >= std::max(least, low / most) * (1 - rounding) &&
         scale <= std::max(least, high / most) * (1 + rounding);
}

Verdict judge_code(double code, double scale, const Expected& want) {
  constexpr auto most = static_cast<double>(largest_e4m3);
  if (std::isnan(want.value)) return right_if(std::isnan(code), Kind::nan);
  if (std::isinf(want.value)) {
    if (std::isnan(code)) return right_if(true, Kind::overflowed);
    return right_if(code == (want.value > 0 ? most : -most), Kind::saturated);
  }
  if (may_overflow(want) && (std::isnan(code) || std::abs(code) == most)) {
    return right_if(true, Kind::overflowed);
  }
  if (std::isnan(code)) return wrong;
  Verdict verdict;
  verdict.error = std::abs(code * scale - want.value);
  verdict.allowed =
      want.bound +
      scale *
          numeric::ulp(DType::e4m3, std::min(most, (std::abs(want.value) + want.bound) / scale)) /
          2;
  verdict.passed = verdict.error <= verdict.allowed;
  verdict.ratio = verdict.error / verdict.allowed;
  return verdict;
}

}  // namespace warpwright::reference
