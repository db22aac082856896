// How a warp holds a matrix in registers: the rule that ldmatrix, mma.sync and wgmma share.
//
// A register holds 32 bits of one row. Lane l stands at row l / 4, and four lanes side by side fill
// 16 bytes of it; further registers hold the eighth row below, then the 16 bytes beside.
// Facts: PTX ISA 9.7.14.5 ("ldmatrix", matrix fragments of mma.sync) and 9.7.15 (wgmma), the same
// as CuTe's layouts (tests/oracle).
#pragma once

#include "warpwright/layout/value.h"

namespace warpwright::atom {

/// Who holds which element of `rows` x `columns`, `each` to a register: (lane, value) -> (row,
/// column). Rows are 8 or 16, columns a multiple of four registers. Extents of 1 are left out, as
/// CuTe leaves them.
constexpr layout::Layout fragment_coordinates(int rows, int columns, int each) {
  using layout::along;
  layout::Tuple extents[3] = {};
  layout::Tuple strides[3] = {};
  int modes = 0;
  const auto add = [&](int extent, const layout::Tuple& stride) {
    if (extent == 1) return;
    extents[modes] = extent;
    strides[modes++] = stride;
  };
  add(each, along(1, 1));
  add(rows / 8, along(8, 0));
  add(columns / (4 * each), along(4 * each, 1));
  layout::detail::Builder<layout::Tuple> shape;
  layout::detail::Builder<layout::Tuple> stride;
  for (int i = 0; i < modes; ++i) {
    shape.add(extents[i]);
    stride.add(strides[i]);
  }
  const layout::Tuple lanes = layout::tuple(along(each, 1), along(1, 0));
  if (modes == 0)
    return layout::make_layout(layout::tuple(layout::tuple(4, 8), 1), layout::tuple(lanes, 0));
  return layout::make_layout(layout::tuple(layout::tuple(4, 8), shape.unwrapped()),
                             layout::tuple(lanes, stride.unwrapped()));
}

/// The fragment that warps hold together, each its rows below those of the last: a warp's, with a
/// mode of warps behind its lanes and a mode of `more` values (if any) behind its own.
constexpr layout::Layout stacked_fragment(const layout::Layout& warp, int warps, int rows,
                                          const layout::Layout* more = nullptr) {
  layout::detail::Builder<layout::Layout> threads;
  threads.add_modes_of(layout::mode(warp, 0));
  threads.add(layout::make_layout(warps, layout::along(rows, 0)));
  layout::detail::Builder<layout::Layout> values;
  values.add_modes_of(layout::mode(warp, 1));
  if (more != nullptr) values.add(*more);
  return layout::make_layout(threads.tuple(), values.tuple());
}

}  // namespace warpwright::atom
