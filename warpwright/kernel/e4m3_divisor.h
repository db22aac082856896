// Division by the scale of e4m3 codes (facts/e4m3_scale.h), with the quotients of IEEE 754 as far
// as codes can tell, in a few instructions instead of a division.
#pragma once

#include <cstdint>
#include <limits>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"

namespace warpwright::kernel {

/// The largest of what lanes hold whose numbers differ in a bit from `first` to before `end`:
/// magnitudes, which the four lanes of a row share, or lanes side by side.
template <int first, int end>
WW_DEVICE float largest_of_lanes(float largest) {
  WW_UNROLL for (int other = first; other < end; other *= 2) {
    const std::uint32_t theirs = isa::shuffle(isa::float_bits(largest), isa::lane_index() ^ other);
    largest = isa::larger_magnitude(largest, isa::float_of(theirs));
  }
  return largest;
}

/// The same of lanes with a block of 128, 64 or 32 neighbours, `each` a lane: a launch's number.
template <int each>
WW_DEVICE float largest_of_block(float largest, int block) {
  WW_UNROLL for (int other = 1; other < 128 / each; other *= 2) {
    if (other * each >= block) break;
    const std::uint32_t theirs = isa::shuffle(isa::float_bits(largest), isa::lane_index() ^ other);
    largest = isa::larger_magnitude(largest, isa::float_of(theirs));
  }
  return largest;
}
/// The number of the block that has element k.
WW_DEVICE int block_number(int k, int block) {
  return k >> (block == 128 ? 7 : block == 64 ? 6 : 5);
}

/// The largest magnitude; NaN does not count, infinity does.
template <int N>
WW_DEVICE float largest_magnitude(const float (&value)[N]) {
  float largest = 0;
  WW_UNROLL
  for (int i = 0; i < N; ++i) largest = isa::larger_magnitude(largest, value[i]);
  return largest;
}

/// The largest of what counts for a scale, and `before`.
template <int N>
WW_DEVICE float larger_finite(float before, const float (&value)[N]) {
  const float size = largest_magnitude(value);
  if (size <= std::numeric_limits<float>::max()) return isa::larger_magnitude(before, size);
  WW_UNROLL
  for (int i = 0; i < N; ++i) {
    before = isa::larger_magnitude(before, finite_magnitude(value[i]));
  }
  return before;
}

/// Divides by `scale`, a positive number.
struct E4m3Divisor {
  float scale;
  float inverse;  ///< rounded to nearest, as quotients are unless the compiler is told otherwise

  WW_DEVICE explicit E4m3Divisor(float by) : scale(by), inverse(1.0F / by) {}
  WW_DEVICE E4m3Divisor(float by, float inverse_of_it) : scale(by), inverse(inverse_of_it) {}

  /// Is usual_quotient right for an x that is at most 448 scales large, or infinite? What loses
  /// bits is 0 as a code then.
  [[nodiscard]] WW_DEVICE bool is_usual() const { return scale >= 0x1p-60F; }

  /// x / scale, where nothing leaves the range of floats, or a NaN: a product that is off by its
  /// last bits, and a correction that rounds it rightly (Markstein). What loses bits below the
  /// least normal one is 0 as a code. The sign is x's: the correction of -0 is +0.
  [[nodiscard]] WW_DEVICE float usual_quotient(float x) const {
    const float near = x * inverse;
    return isa::with_sign(isa::multiply_add(isa::multiply_add(-near, scale, x), inverse, near), x);
  }

  /// A small scale is lifted, and x with it, by a power of two, so that the correction keeps its
  /// bits: usual_quotient(x * lift()) of lifted().
  [[nodiscard]] WW_DEVICE float lift() const { return is_usual() ? 1.0F : 0x1p64F; }
  [[nodiscard]] WW_DEVICE E4m3Divisor lifted() const {
    return {scale * lift(), inverse * (1 / lift())};
  }

  /// The same by any scale, of an x that is at most 448 scales large, or infinite: that becomes
  /// NaN.
  [[nodiscard]] WW_DEVICE float quotient(float x) const {
    return lifted().usual_quotient(x * lift());
  }
};

}  // namespace warpwright::kernel
