// How values become codes of e4m3 and a float32 scale that they share: one recipe for the host, for
// kernels that quantise and for epilogues that do.
#pragma once

#include <limits>

namespace warpwright {

/// The largest value of e4m3.
inline constexpr float largest_e4m3 = 448.0F;

/// The scale of elements whose largest finite magnitude is `largest`.
constexpr float e4m3_scale(float largest) {
  if (largest == 0) return 1;
  const float scale = largest / largest_e4m3;
  return scale < std::numeric_limits<float>::min() ? std::numeric_limits<float>::min() : scale;
}

/// What is rounded to the code of x, the quotient of x and a scale; NaN where x is infinite, so
/// that no code stands for it that is a number's.
constexpr float unless_infinite(float quotient, float x) {
  return quotient - (x - x);  // less +0 of any number: a -0 stays
}

/// A magnitude that counts for a scale: 0 for infinities and NaN.
constexpr float finite_magnitude(float x) {
  const float size = x < 0 ? -x : x;
  return size <= std::numeric_limits<float>::max() ? size : 0;
}

}  // namespace warpwright
