// Whether one element of D is right.
#pragma once

#include <cstdint>
#include <span>

#include "warpwright/reference/tile.h"

namespace warpwright::reference {

/// What an element was compared as.
enum class Kind : std::uint8_t {
  finite,      ///< by its distance from the reference
  infinite,    ///< infinite, as a reference beyond D's type asks for
  nan,         ///< NaN, as the reference is
  saturated,   ///< the largest number, for a reference beyond it
  overflowed,  ///< infinite or NaN, because fp32 may overflow on the way
};

/// How one element compares.
struct Verdict {
  bool passed = true;
  double error = 0;    ///< |got - want|
  double allowed = 0;  ///< the most that is right
  double ratio = 0;    ///< error / allowed; infinite for a wrong NaN or infinity
  Kind kind = Kind::finite;
};

/// Judges D's value `got` against what it should be, R, within a bound E.
///
/// A finite element passes when
///     |D - R| <= E + ulp(|R| + E) / 2
/// with ulp that of D's type; the half ulp is the final rounding, taken where that happens at the
/// latest, so that no right kernel fails for standing on the other side of a power of two.
///
/// Beyond D's range: an R that rounds past the largest value, whatever the error within E, requires
/// infinity of R's sign; fp8 requires the largest value, as its conversions saturate. A NaN R
/// requires NaN. Where fp32 may overflow on the way (the magnitude is above its largest value) an
/// infinity or NaN passes too.
Verdict judge(DType d, double got, const Expected& want);

/// Is it the scale of a block of D whose values should be these? It is that of their largest finite
/// magnitude, which may be off by their bounds; any positive number where fp32 may overflow.
bool is_scale_of(double scale, std::span<const Expected> block);

/// The same of a D quantised to mxf8 or nvf4, by the code of the scale; `tensor` is the scale of
/// all of D, 1 of mxf8. That of a block with an infinity or a NaN is NaN where codes have none.
/// Where fp32 may overflow it may be anything.
bool is_micro_scale_of(QuantiseD way, std::uint32_t scale, float tensor,
                       std::span<const Expected> block);

/// `judge_code` of a code of `type` that a scale of it may have left beyond its largest number,
/// which it is then: what that loses is no error. A NaN scale has been judged: all codes are right.
Verdict judge_micro_code(DType type, double code, double scale, const Expected& want);

/// The same as `judge` for a code of e4m3 with a scale that is_scale_of: the value is their
/// product, the ulp that of the code times the scale. An infinite R requires NaN.
Verdict judge_code(double code, double scale, const Expected& want);

}  // namespace warpwright::reference
