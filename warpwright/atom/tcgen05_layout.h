// How a tcgen05 MMA is divided between its CTAs, as layout values: (CTA, value) -> element.
//
// In CuTe's print of such a TiledMMA the "thread" is the CTA of the pair: each CTA holds its half
// of A's rows, of B's columns and of D's rows. An element (i, j) of a tile of I rows is numbered i
// + j*I. Facts: CUTLASS mma_traits_sm100.hpp (SM100_MMA_F16BF16_{SS,2x1SM_SS}).
#pragma once

#include "warpwright/layout/layout.h"

namespace warpwright::atom {

/// The CTAs of one MMA: `1:0`, or `2:1` for a pair.
constexpr layout::Layout tcgen05_thr_id(bool pair) {
  return layout::make_layout(pair ? 2 : 1);
}

/// A tile of `rows` x `columns` divided along its rows among the CTAs of one MMA; for a pair and
/// 256 x 16, `(2,(128,16)):(128,(1,256))`.
constexpr layout::Layout tcgen05_layout_tv(int rows, int columns, bool pair) {
  using layout::tuple;
  const int share = pair ? rows / 2 : rows;
  return layout::make_layout(tuple(pair ? 2 : 1, tuple(share, columns)),
                             tuple(pair ? share : 0, tuple(1, rows)));
}

/// A (m x k): the CTA of parity v holds rows v*m/2 and up.
constexpr layout::Layout tcgen05_layout_a_tv(int m, int k, bool pair) {
  return tcgen05_layout_tv(m, k, pair);
}
/// B (n x k): the CTA of parity v holds columns v*n/2 of the output and up.
constexpr layout::Layout tcgen05_layout_b_tv(int n, int k, bool pair) {
  return tcgen05_layout_tv(n, k, pair);
}
/// D (m x n): the CTA of parity v holds rows v*m/2 and up, and all columns.
constexpr layout::Layout tcgen05_layout_c_tv(int m, int n, bool pair) {
  return tcgen05_layout_tv(m, n, pair);
}

}  // namespace warpwright::atom
