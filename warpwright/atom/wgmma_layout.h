// The wgmma fragments as layout values: (thread, value) -> element, as CuTe prints them.
//
// An element (i, j) of a tile of I rows is numbered i + j*I.
#pragma once

#include "warpwright/atom/wgmma.h"
#include "warpwright/layout/layout.h"

namespace warpwright::atom {

/// Accumulator D (64 x n): `((4,8,4),(2,2,n/8)):((128,1,16),(64,8,512))`.
constexpr layout::Layout wgmma_layout_c_tv(int n) {
  return layout::composition(layout::make_layout(layout::tuple(64, n)), c_coordinates(n));
}

/// A (64 x k) from registers, elements of 8, 16 or 32 bits. 16 bits:
/// `((4,8,4),(2,2,2)):((128,1,16),(64,8,512))`; 8 bits:
/// `((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))`; 32 bits, one element to a register,
/// `((4,8,4),(2,2)):((64,1,16),(8,256))`.
constexpr layout::Layout wgmma_layout_a_register_tv(int element_bits) {
  const int k = k_block_bytes * 8 / element_bits;
  return layout::composition(layout::make_layout(layout::tuple(64, k)),
                             a_coordinates(element_bits));
}

/// An operand (rows x k) in shared memory: every thread sees all of it,
/// `(128,(rows,k)):(0,(1,rows))`. rows = 64 for A, n for B.
constexpr layout::Layout wgmma_layout_shared_tv(int rows, int k) {
  using layout::tuple;
  return layout::make_layout(tuple(kWarpgroupThreads, tuple(rows, k)), tuple(0, tuple(1, rows)));
}

}  // namespace warpwright::atom
