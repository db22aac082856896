#pragma once

/// One element of a narrow type as a C++ value: a code with explicit conversions.

#include <cstdint>
#include <type_traits>

#include "warpwright/numeric/float_format.h"

namespace warpwright::numeric {

/// A code of type `T` in a `Storage` word. It converts explicitly and exactly to float and double,
/// and from them with one rounding to nearest even, overflow giving infinity (or NaN). There is no
/// arithmetic and no comparison: widen first.
template <DType T, class Storage>
struct Scalar {
  static constexpr DType dtype = T;
  static_assert(sizeof(Storage) * 8 >= static_cast<unsigned>(bits(T)));

  Storage code;

  Scalar() = default;
  constexpr explicit Scalar(double x) : code(static_cast<Storage>(encode(format_of(T), x))) {}
  /// The element with this very code.
  static constexpr Scalar from_code(Storage c) {
    Scalar s{};
    s.code = c;
    return s;
  }
  /// Rounded to nearest even, what lies beyond the largest value clamped to it (.satfinite).
  static constexpr Scalar saturated(double x) {
    return from_code(
        static_cast<Storage>(encode(format_of(T), x, Rounding::nearest_even, Overflow::saturate)));
  }
  constexpr explicit operator double() const { return decode(format_of(T), code); }
  constexpr explicit operator float() const {
    return static_cast<float>(decode(format_of(T), code));
  }
};

using fp16_t = Scalar<DType::f16, std::uint16_t>;
using bf16_t = Scalar<DType::bf16, std::uint16_t>;
using e4m3_t = Scalar<DType::e4m3, std::uint8_t>;
using e5m2_t = Scalar<DType::e5m2, std::uint8_t>;
using ue8m0_t = Scalar<DType::ue8m0, std::uint8_t>;

static_assert(std::is_trivial_v<bf16_t> && std::is_standard_layout_v<bf16_t>);
static_assert(sizeof(fp16_t) == 2 && sizeof(bf16_t) == 2);
static_assert(sizeof(e4m3_t) == 1 && sizeof(e5m2_t) == 1);

}  // namespace warpwright::numeric
