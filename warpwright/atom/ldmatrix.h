// ldmatrix and stmatrix (.m8n8.b16): which lane points where, and which lane receives what.
//
// A warp moves 1, 2 or 4 matrices of 8 rows x 8 16-bit elements. Each row is 16 contiguous bytes
// that one lane points to; each matrix then fills one 32-bit register of every lane.
// Facts: PTX ISA 9.7.14.5, "ldmatrix" and "stmatrix".
#pragma once

namespace warpwright::atom {

/// Lanes whose addresses an instruction of `count` (1, 2 or 4) matrices reads: lanes 0..8*count-1.
constexpr int ldmatrix_address_lanes(int count) {
  return 8 * count;
}

/// The matrix to which lane `lane` gives a row address.
constexpr int ldmatrix_matrix(int lane) {
  return lane / 8;
}

/// The row of `ldmatrix_matrix(lane)` that lane `lane` points to: 16 bytes, aligned to 16.
constexpr int ldmatrix_row(int lane) {
  return lane % 8;
}

/// The lane that points to row `row` of matrix `matrix`.
constexpr int ldmatrix_address_lane(int matrix, int row) {
  return 8 * matrix + row;
}

/// A place in an 8 x 8 matrix as it lies in shared memory.
struct MatrixElement {
  int row = 0;
  int col = 0;

  friend constexpr bool operator==(const MatrixElement&, const MatrixElement&) = default;
};

/// The element in half `half` (0 low, 1 high) of register j of lane `lane`, where j is the number
/// of the matrix: lane l has row l/4, elements 2(l%4) and the next; with `.trans` rows and columns
/// change places.
constexpr MatrixElement ldmatrix_element(int lane, int half, bool transposed = false) {
  const int major = lane / 4;
  const int minor = 2 * (lane % 4) + half;
  return transposed ? MatrixElement{minor, major} : MatrixElement{major, minor};
}

/// A lane and which half of its register.
struct LaneHalf {
  int lane = 0;
  int half = 0;

  friend constexpr bool operator==(const LaneHalf&, const LaneHalf&) = default;
};

/// Who holds element (row, col) of a matrix: the inverse of `ldmatrix_element`.
constexpr LaneHalf ldmatrix_holder(MatrixElement at, bool transposed = false) {
  const int major = transposed ? at.col : at.row;
  const int minor = transposed ? at.row : at.col;
  return {4 * major + minor / 2, minor % 2};
}

}  // namespace warpwright::atom
