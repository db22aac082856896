// Division by the scale of e4m3 codes (facts/e4m3_scale.h), with the quotients of IEEE 754 as far
// as codes can tell, in a few instructions instead of a division.
#pragma once

#include <limits>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/isa/numeric.h"

namespace warpwright::kernel {

/// Divides by `scale`, a positive number.
struct E4m3Divisor {
  float scale = 1;
  float inverse =
      1;  ///< rounded to nearest, as quotients are unless the compiler is told otherwise

  E4m3Divisor() = default;
  WW_DEVICE explicit E4m3Divisor(float by) : scale(by), inverse(1.0F / by) {}

  /// x / scale, where nothing leaves the range of floats, or a NaN: a product that is off by its
  /// last bits, and a correction that rounds it rightly (Markstein). What loses bits below the
  /// least normal one is 0 as a code. The sign is x's: the correction of -0 is +0.
  [[nodiscard]] WW_DEVICE float usual_quotient(float x) const {
    const float near = x * inverse;
    return isa::with_sign(isa::multiply_add(isa::multiply_add(-near, scale, x), inverse, near), x);
  }

  /// The same of x that is infinite, too, or at most 448 scales large: what is beyond all codes is
  /// corrected to no number.
  [[nodiscard]] WW_DEVICE float quotient(float x) const {
    const float near = x * inverse;
    const float size = near < 0 ? -near : near;
    return size < 2 * largest_e4m3 ? usual_quotient(x) : near;
  }
};

}  // namespace warpwright::kernel
