// Copy instructions as values (layout/copy.h): ldmatrix, cp.async, plain loads and stores.
#pragma once

#include "warpwright/atom/fragment.h"
#include "warpwright/layout/copy.h"

namespace warpwright::atom {

/// ldmatrix of 1, 2 or 4 matrices of 8 rows of 16 bytes, elements of `bits` bits, 8 to 32; with
/// `transposed` (.trans) of 16 bits. An element's number is its place in the rows, one row behind
/// the other. src is the row that a lane points to (lanes past the rows repeat them), dst and ref
/// what it receives. CuTe's SM75_U32x4_LDSM_N, SM75_U16x8_LDSM_T and so on.
constexpr layout::CopyAtom ldmatrix_atom(int matrices, int bits, bool transposed = false) {
  using layout::tuple;
  if (matrices != 1 && matrices != 2 && matrices != 4)
    layout::refuse("ldmatrix loads 1, 2 or 4 matrices, and {} are asked for.", matrices);
  if (transposed ? bits != 16 : bits != 8 && bits != 16 && bits != 32)
    layout::refuse(
        "ldmatrix loads elements of 8, 16 or 32 bits, with .trans of 16, and these have {}.", bits);
  const int row = 128 / bits;
  const int each = 32 / bits;
  layout::Layout of_matrix = fragment_coordinates(8, row, each);
  if (transposed)
    for (int i = 0; i < of_matrix.count; ++i) of_matrix.stride[i].basis ^= 1;
  const layout::Layout held =
      layout::composition(layout::make_layout(tuple(8, row), tuple(row, 1)), of_matrix);
  layout::CopyAtom atom;
  atom.bits = bits;
  atom.thr_id = layout::make_layout(32);
  const layout::Layout lanes =
      matrices == 4 ? layout::make_layout(32, row)
                    : layout::make_layout(tuple(8 * matrices, 4 / matrices), tuple(row, 0));
  atom.src = layout::make_layout(lanes, layout::make_layout(row));
  const layout::Layout threads = layout::coalesce(layout::mode(held, 0));
  layout::detail::Builder<layout::Layout> values;
  if (each > 1 || matrices == 1) values.add(layout::mode(held, 1));
  if (matrices > 1) values.add(layout::make_layout(matrices, 8 * row));
  atom.dst = layout::make_layout(threads, values.unwrapped());
  atom.ref = atom.dst;
  return atom;
}

/// cp.async of 4, 8 or 16 bytes.
constexpr layout::CopyAtom copy_async_atom(int bytes, int bits) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    layout::refuse("cp.async copies 4, 8 or 16 bytes, and {} are asked for.", bytes);
  return layout::vector_copy(8 * bytes, bits);
}

}  // namespace warpwright::atom
