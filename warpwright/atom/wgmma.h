// The wgmma atoms of sm_90a: which shapes and types exist, and which thread holds which element.
//
// A warpgroup (128 threads) multiplies A (64 x k) by B (n x k, transposed) into D (64 x n). D, and
// A when it does not come from shared memory, are spread over the registers of the 128 threads.
// Each of the four warps holds 16 rows as one mma.sync would (fragment.h).
// Facts: PTX ISA 9.7.15 (shapes, register fragments), the same as CuTe's CLayout_64xN and
// ALayout_64x{8,16,32} (CUTLASS mma_traits_sm90_gmma.hpp).
#pragma once

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/fragment.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {

inline constexpr int kWarpgroupThreads = 128;

/// One wgmma instruction: D[m x n] (+)= A[m x k] * B[n x k]^T.
struct WgmmaAtom {
  int m = 64;
  int n = 0;
  int k = 0;
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType d = DType::f32;

  friend constexpr bool operator==(const WgmmaAtom&, const WgmmaAtom&) = default;
};

/// K of one instruction on elements of this type: always 32 bytes.
constexpr int wgmma_k(DType type) {
  return k_block_bytes * 8 / numeric::bits(type);
}

/// The atom of these types with `n` columns.
constexpr WgmmaAtom wgmma_atom(DType a, DType b, DType d, int n) {
  return {64, n, wgmma_k(a), a, b, d};
}

/// Why there is no such instruction, as a sentence; null when there is. `a_in_registers` is the
/// form whose A operand comes from registers (it has no major of its own).
constexpr const char* wgmma_fault(const WgmmaAtom& atom, Major a_major = Major::k,
                                  Major b_major = Major::k, bool a_in_registers = false) {
  const auto fp8 = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  const bool half = atom.a == DType::f16 || atom.a == DType::bf16;
  if (!half && !fp8(atom.a)) return "wgmma multiplies f16, bf16, e4m3 or e5m2 operands";
  if (fp8(atom.a) ? !fp8(atom.b) : atom.b != atom.a) {
    return "wgmma's A and B have the same type, except that e4m3 and e5m2 may be mixed";
  }
  if (atom.m != 64) return "wgmma computes 64 rows";
  if (atom.n < 8 || atom.n > 256 || atom.n % 8 != 0) {
    return "wgmma's N is a multiple of 8 from 8 to 256";
  }
  if (atom.k != wgmma_k(atom.a)) return "wgmma's K is 32 bytes: 16 for f16 and bf16, 32 for fp8";
  if (atom.d != DType::f32 && atom.d != DType::f16) return "wgmma accumulates in f32 or f16";
  if (atom.a == DType::bf16 && atom.d != DType::f32) return "wgmma accumulates bf16 in f32 only";
  if (!half && (b_major == Major::mn || (!a_in_registers && a_major == Major::mn))) {
    return "wgmma transposes only f16 and bf16: fp8 operands must be K-major";
  }
  return nullptr;
}

/// Who holds which element of D (64 x n): (thread, value) -> (row, column). Warp w owns rows 16 w
/// to 16 w + 15; its values alternate between a row and the eighth below it, by pairs, four threads
/// to 8 columns.
constexpr layout::Layout c_coordinates(int n) {
  const layout::Layout beside = layout::make_layout(n / 8, layout::along(8, 1));
  return stacked_fragment(fragment_coordinates(16, 8, 2), 4, 16, &beside);
}

/// Row and column of D held by `thread` (0..127 in the warpgroup) as accumulator value `value`, of
/// any n.
constexpr int c_row(int thread, int value) {
  return layout::offset_of<layout::component(c_coordinates(256), 0)>(thread, value);
}
constexpr int c_col(int thread, int value) {
  return layout::offset_of<layout::component(c_coordinates(256), 1)>(thread, value);
}

/// Values of A one thread holds when A comes from registers: 64 x k over 128 threads, always four
/// 32-bit registers.
constexpr int a_values(int element_bits) {
  return 128 / element_bits;
}

/// Who holds which element of A when it comes from registers: (thread, value) -> (row, k), elements
/// of 8, 16 or 32 bits. A register holds 32 bits of one row; registers alternate between a row and
/// the eighth below it.
constexpr layout::Layout a_coordinates(int element_bits) {
  return stacked_fragment(
      fragment_coordinates(16, k_block_bytes * 8 / element_bits, 32 / element_bits), 4, 16);
}

/// Row and position along K of A's value `value` in `thread`.
template <int element_bits>
constexpr int a_row(int thread, int value) {
  return layout::offset_of<layout::component(a_coordinates(element_bits), 0)>(thread, value);
}
template <int element_bits>
constexpr int a_k(int thread, int value) {
  return layout::offset_of<layout::component(a_coordinates(element_bits), 1)>(thread, value);
}

}  // namespace warpwright::atom
