#include "bench/judgement.h"

#include <cmath>
#include <cstdio>

namespace warpwright::bench {
namespace {

bool promotes(const GemmProblem& p) {
  return p.accumulation == Accumulation::promoted || p.scaling == Scaling::block;
}

}  // namespace

// The loss of a sum as a share of the sum of |a b|: float32 additions lose 2^-24 each. A Hopper
// tensor core adds 32 products of 8-bit elements and what it has so far with 13 bits below the
// largest: K/32 such steps, or, promoted, the 4 of each 128 of K, which lose no more than their
// share.
Tolerance tolerance(const GemmProblem& p) {
  Tolerance t;
  t.loss = 0x1p-24 * (static_cast<double>(p.k) + 1);
  if (numeric::is_8bit(p.a)) {
    const double steps = promotes(p) ? 4 : std::ceil(static_cast<double>(p.k) / 32);
    t.loss += steps * 0x1p-13;
  }
  return t;
}

double relative_limit(const GemmProblem& p) {
  const auto rounding = [](DType t) {
    switch (t) {
      case DType::f32:
        return 1e-4;
      case DType::f16:
        return 0x1p-10;
      case DType::bf16:
        return 0x1p-8;
      case DType::e4m3:
        return 0x1p-4;
      default:
        return 0x1p-3;
    }
  };
  double limit = rounding(p.d);
  if (numeric::is_8bit(p.a)) limit += promotes(p) ? 2e-3 : 1e-2;
  return p.epilogue.gated ? 2 * limit : limit;
}

std::optional<std::string> fault(const Comparison& found, const GemmProblem& p,
                                 const std::string& ours, const std::string& theirs) {
  if (found.wrong == 0 && found.relative <= relative_limit(p)) return std::nullopt;
  char text[320];
  if (found.wrong == 0) {
    std::snprintf(text, sizeof(text),
                  "the results differ, so nothing is timed: D of %s is %.3g from that of %s "
                  "(norm of the difference over norm), more than %.3g",
                  ours.c_str(), found.relative, theirs.c_str(), relative_limit(p));
  } else {
    std::snprintf(text, sizeof(text),
                  "the results differ, so nothing is timed: D[%lld, %lld, %lld] of %s is %.9g, "
                  "and %.9g by %s; %lld elements are beyond the bound",
                  static_cast<long long>(found.batch), static_cast<long long>(found.row),
                  static_cast<long long>(found.column), ours.c_str(), found.ours, found.theirs,
                  theirs.c_str(), static_cast<long long>(found.wrong));
  }
  return text;
}

}  // namespace warpwright::bench
