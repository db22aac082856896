#include "warpwright/reference/verdict.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <optional>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/facts/micro_scale.h"

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
    if (!std::isfinite(x.value)) continue;
    if (may_overflow(x)) return true;
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

bool is_micro_scale_of(QuantiseD way, std::uint32_t scale, float tensor,
                       std::span<const Expected> block) {
  const QuantisedForm form = form_of(way);
  double low = 0;
  double high = 0;
  bool is_lost = false;  // it has what there is no code for
  for (const Expected& x : block) {
    if (!std::isfinite(x.value)) {
      is_lost |= !micro::has_nan(form.codes);
      continue;
    }
    if (may_overflow(x)) return true;
    low = std::max(low, std::abs(x.value) - x.bound);
    high = std::max(high, std::abs(x.value) + x.bound);
  }
  if (is_lost) return scale == micro::nan_scale(form.scale);
  // Both recipes give larger blocks no smaller scales.
  const auto code_of = [&](double largest) {
    const auto bits = std::bit_cast<std::uint32_t>(
        static_cast<float>(std::min(largest, static_cast<double>(FLT_MAX))));
    return form.scale == DType::ue8m0 ? micro::power_scale(Recipe::up, form.codes, bits)
                                      : micro::nested_scale(bits, tensor);
  };
  if (low <= 0 && scale == micro::neutral_scale(form.scale)) return true;  // all may be 0
  constexpr double rounding = 0x1p-22;
  const double least = std::max(low * (1 - rounding), static_cast<double>(FLT_MIN));
  return scale >= code_of(least) && scale <= code_of(high * (1 + rounding));
}

// What has no distance: NaN where there is no number, or may be none on the way. Nothing otherwise.
static std::optional<Verdict> code_of_none(double code, const Expected& want) {
  if (!std::isfinite(want.value)) return right_if(std::isnan(code), Kind::nan);
  if (!std::isnan(code)) return std::nullopt;
  return right_if(may_overflow(want), Kind::overflowed);
}

Verdict judge_micro_code(DType type, double code, double scale, const Expected& want) {
  if (std::isnan(scale)) return right_if(true, Kind::nan);  // the whole block is lost
  if (const auto none = code_of_none(code, want)) return *none;
  const double most = numeric::format_of(type).max() * scale;
  const double size = std::abs(want.value) + want.bound;
  const double beyond = std::max(0.0, size - most);
  const double step = scale > 0 ? numeric::ulp(type, std::min(most, size) / scale) * scale : 0;
  Verdict verdict;
  verdict.error = std::abs(code * scale - want.value);
  // A scale of 0 stands for blocks below the least of them.
  verdict.allowed = want.bound + beyond + step * (0.5 + 0x1p-20) + static_cast<double>(FLT_MIN);
  verdict.passed = verdict.error <= verdict.allowed;
  verdict.ratio = verdict.error / verdict.allowed;
  return verdict;
}

Verdict judge_code(double code, double scale, const Expected& want) {
  if (const auto none = code_of_none(code, want)) return *none;
  constexpr auto most = static_cast<double>(largest_e4m3);
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
