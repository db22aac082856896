// Swizzles, and layouts of coordinates.
#pragma once

#include "warpwright/layout/division.h"

namespace warpwright::layout {

// ---------------------------------------------------------------- swizzle

/// `Sw<bits,base,shift>`: XORs the `bits` bits at base + shift onto those at base (for a negative
/// shift, the other way up).
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;

  constexpr std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    if (shift >= 0) return offset ^ ((offset & (mask << (base + shift))) >> shift);
    return offset ^ ((offset & (mask << base)) << -shift);
  }
  friend constexpr bool operator==(const Swizzle&, const Swizzle&) = default;
};

/// A swizzle whose numbers make sense together.
constexpr Swizzle make_swizzle(std::int64_t bits, std::int64_t base, std::int64_t shift) {
  if (bits < 0 || base < 0)
    refuse("Sw<{},{},{}>: the number of bits and the base must not be negative.", bits, base,
           shift);
  if (bits > 31 || base > 31 || detail::abs(shift) > 31)
    refuse("Sw<{},{},{}> reaches past 31 bits.", bits, base, shift);
  if (detail::abs(shift) < bits)
    refuse("Sw<{},{},{}>: the shift must be at least the number of bits, or the bits overlap.",
           bits, base, shift);
  if (bits + base + detail::abs(shift) > 62)
    refuse("Sw<{},{},{}> reaches past 62 bits.", bits, base, shift);
  return {static_cast<int>(bits), static_cast<int>(base), static_cast<int>(shift)};
}

/// A swizzle after a layout: `Sw<3,4,3> o 0 o (8,64):(64,1)` is swizzle(offset + layout(c)).
struct ComposedLayout {
  Swizzle swizzle;
  std::int64_t offset = 0;
  Layout layout;

  constexpr std::int64_t operator()(std::int64_t index) const {
    return swizzle(offset + layout(index));
  }
  constexpr std::int64_t operator()(const Tuple& coordinate) const {
    return swizzle(offset + layout(coordinate));
  }
  friend constexpr bool operator==(const ComposedLayout&, const ComposedLayout&) = default;
};

constexpr ComposedLayout composition(const Swizzle& swizzle, const Layout& layout) {
  return {swizzle, 0, layout};
}
constexpr ComposedLayout composition(const ComposedLayout& a, const Layout& b) {
  return {a.swizzle, a.offset, composition(a.layout, b)};
}

// ---------------------------------------------------------------- coordinate tensors

/// An origin plus a layout of basis strides: what TMA takes in place of addresses. In text
/// `ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)`.
struct CoordinateTensor {
  Tuple origin;
  Layout layout;

  /// The coordinate in the tensor map of an element.
  constexpr Tuple operator()(const Tuple& at) const {
    Tuple sum = origin;
    if (detail::basis_count(layout) == 0) {
      if (layout(at) != 0) refuse("{} yields offsets, not coordinates.", layout);
      return sum;
    }
    const Tuple step = coordinate(layout, at);
    if (step.count > sum.count)
      refuse("an origin of {} components is too short for {}.", origin.count, layout);
    for (int i = 0; i < step.count; ++i)
      sum.leaf[i].value = detail::add(sum.leaf[i].value, step.leaf[i].value);
    return sum;
  }
  friend constexpr bool operator==(const CoordinateTensor&, const CoordinateTensor&) = default;
};

}  // namespace warpwright::layout
