// What layouts and tensors of any kind yield at a coordinate.
#pragma once

#include "warpwright/layout/expression.h"

namespace warpwright::layout {

/// An offset, a coordinate, or a byte address: the value at a coordinate that is known to lie
/// inside.
inline Value at_coordinate(const Layout& layout, const Tuple& c) {
  if (has_basis(layout)) return coordinate(layout, c);
  return layout(c);
}
template <class T>
Value at_coordinate(const T& tensor, const Tuple& c) {
  return tensor(c);
}

}  // namespace warpwright::layout
