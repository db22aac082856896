// ldmatrix and stmatrix (.m8n8.b16): which lane points where, and which lane receives what.
//
// A warp moves 1, 2 or 4 matrices of 8 rows x 8 16-bit elements. Each row is 16 contiguous bytes
// that one lane points to: lane l to row l % 8 of matrix l / 8. Each matrix then fills one 32-bit
// register of every lane.
// Facts: PTX ISA 9.7.14.5, "ldmatrix" and "stmatrix".
#pragma once

#include "warpwright/atom/fragment.h"

namespace warpwright::atom {

/// Who holds which element of a matrix: (lane, half of its register) -> (row, column). With
/// `.trans` rows and columns change places.
inline constexpr layout::Layout matrix_coordinates = fragment_coordinates(8, 8, 2);

constexpr int matrix_row(int lane, int half) {
  return layout::offset_of<layout::component(matrix_coordinates, 0)>(lane, half);
}
constexpr int matrix_col(int lane, int half) {
  return layout::offset_of<layout::component(matrix_coordinates, 1)>(lane, half);
}

/// Where lanes point in a warp's 16 rows of a wgmma fragment, so that the registers of the matrices
/// are pairs of its values in their order: lane -> (row, column). With `.trans` what lies side by
/// side in memory are rows.
constexpr layout::Layout fragment_lanes(bool transposed) {
  using layout::along;
  return layout::make_layout(layout::tuple(8, 2, 2),
                             layout::tuple(along(1, transposed ? 1 : 0), along(8, 0), along(8, 1)));
}

}  // namespace warpwright::atom
