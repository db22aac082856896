// MMA instructions as data: which there are, on which targets, and who holds which element.
//
// An `Mma` is one instruction of any generation: Volta's m8n8k4 by quad pairs, mma.sync by a warp,
// wgmma by a warpgroup, tcgen05.mma by one CTA or two. Its layouts (thread, value) -> element are
// CuTe's: an element (i, j) of a tile of I rows is numbered i + j*I, A being M x K, B N x K, C M x
// N. Facts: PTX ISA 9.7.14.5 (mma.sync), 9.7.15, 9.7.16; what ptxas 13.0 accepts for a target and
// what it makes of it was read off its output. CuTe's layouts agree (tests/oracle).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "warpwright/atom/fragment.h"
#include "warpwright/atom/tcgen05_layout.h"
#include "warpwright/atom/umma.h"
#include "warpwright/atom/wgmma_layout.h"
#include "warpwright/layout/layout.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {

/// The family of an instruction: who issues it, and what its operands are.
enum class MmaKind : std::uint8_t {
  quad_pair,        ///< m8n8k4: eight threads; a warp does four of them at a time
  warp,             ///< mma.sync: 32 threads, everything in registers
  f8f6f4,           ///< mma.sync.kind::f8f6f4: 8-bit containers of 8, 6 or 4 bits
  mxf8f6f4,         ///< the same, with a scale each 32 elements of K
  mxf4,             ///< packed e2m1, a ue8m0 scale each 32
  mxf4nvf4,         ///< packed e2m1, a ue8m0 scale each 32 or a ue4m3 scale each 16
  wgmma,            ///< a warpgroup; A and B in shared memory
  wgmma_registers,  ///< a warpgroup; A in registers
  tcgen05,          ///< one CTA: the "thread" of its layouts is the CTA
  tcgen05_pair,     ///< a pair of CTAs
};

/// One instruction: C[m x n] += A[m x k] * B[n x k]^T.
struct Mma {
  MmaKind kind = MmaKind::warp;
  int m = 16;
  int n = 8;
  int k = 16;
  DType a = DType::f16;
  DType b = DType::f16;
  DType sums = DType::f32;
  /// How an operand stands in memory. In registers only m8n8k4 knows another than K-major.
  Major a_major = Major::k;
  Major b_major = Major::k;
  int scale_block = 0;            ///< elements of K that share a scale; 0: there are no scales
  DType scale = DType::ue8m0;     ///< of the scales, where there are
  UmmaKind umma = UmmaKind::f16;  ///< of a tcgen05 with scales: its kind

  friend constexpr bool operator==(const Mma&, const Mma&) = default;
};

/// Targets, as N of sm_N, of which something is known here.
inline constexpr int kMmaTargets[] = {70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121};

namespace detail {

/// Sets of types and of targets, a bit each.
template <class... T>
constexpr std::uint32_t types(T... type) {
  return ((1U << static_cast<int>(type)) | ...);
}
constexpr std::uint32_t target_bit(int target) {
  std::uint32_t bit = 1;
  for (const int t : kMmaTargets) {
    if (t == target) return bit;
    bit <<= 1;
  }
  return 0;
}
template <class... T>
constexpr std::uint32_t only(T... target) {
  return (target_bit(target) | ...);
}
constexpr std::uint32_t since(int target) {
  return ~(target_bit(target) - 1);
}

inline constexpr std::uint32_t kF8 = types(DType::e4m3, DType::e5m2);
inline constexpr std::uint32_t kF8F6F4 = kF8 | types(DType::e2m3, DType::e3m2, DType::e2m1);
inline constexpr std::uint32_t kBothSums = types(DType::f16, DType::f32);

}  // namespace detail

/// Instructions of one shape, held in registers: A and B of any types of `operands` (of one type
/// where they may not be `mixed`).
struct MmaRow {
  MmaKind kind;
  int m, n, k;
  std::uint32_t operands;
  bool mixed;
  std::uint32_t sums;
  std::uint32_t targets;  ///< that assemble it
  std::uint32_t native;   ///< whose tensor cores do it; others convert, or call a routine
  int scale_block = 0;
  DType scale = DType::ue8m0;
};

/// All of them. A row's first type is what a shape means where none is named.
inline constexpr MmaRow kMmaRows[] = {
    {MmaKind::quad_pair, 8, 8, 4, detail::types(DType::f16), false, detail::kBothSums,
     detail::since(70), detail::only(70, 75)},
    {MmaKind::warp, 16, 8, 8, detail::types(DType::f16), false, detail::kBothSums,
     detail::since(75), detail::since(75)},
    {MmaKind::warp, 16, 8, 16, detail::types(DType::f16), false, detail::kBothSums,
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 8, detail::types(DType::bf16), false, detail::types(DType::f32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 16, detail::types(DType::bf16), false, detail::types(DType::f32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 4, detail::types(DType::tf32), false, detail::types(DType::f32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 8, detail::types(DType::tf32), false, detail::types(DType::f32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 8, 8, 16, detail::types(DType::s8, DType::u8), true, detail::types(DType::s32),
     detail::since(75), detail::since(75)},
    {MmaKind::warp, 16, 8, 16, detail::types(DType::s8, DType::u8), true, detail::types(DType::s32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 32, detail::types(DType::s8, DType::u8), true, detail::types(DType::s32),
     detail::since(80), detail::since(80)},
    {MmaKind::warp, 16, 8, 64, detail::types(DType::s4), false, detail::types(DType::s32),
     detail::since(80), detail::only(80, 86, 89)},
    {MmaKind::warp, 16, 8, 16, detail::kF8, true, detail::kBothSums, detail::since(89),
     detail::only(89, 120, 121)},
    {MmaKind::warp, 16, 8, 32, detail::kF8, true, detail::kBothSums, detail::since(89),
     detail::only(89, 120, 121)},
    {MmaKind::f8f6f4, 16, 8, 32, detail::kF8, true, detail::kBothSums, detail::since(100),
     detail::only(120, 121)},
    {MmaKind::f8f6f4, 16, 8, 32, detail::kF8F6F4, true, detail::kBothSums, detail::only(120, 121),
     detail::only(120, 121)},
    {MmaKind::mxf8f6f4, 16, 8, 32, detail::kF8F6F4, true, detail::types(DType::f32),
     detail::only(120, 121), detail::only(120, 121), 32, DType::ue8m0},
    {MmaKind::mxf4, 16, 8, 64, detail::types(DType::e2m1), false, detail::types(DType::f32),
     detail::only(120, 121), detail::only(120, 121), 32, DType::ue8m0},
    {MmaKind::mxf4nvf4, 16, 8, 64, detail::types(DType::e2m1), false, detail::types(DType::f32),
     detail::only(120, 121), detail::only(120, 121), 16, DType::ue4m3},
    {MmaKind::mxf4nvf4, 16, 8, 64, detail::types(DType::e2m1), false, detail::types(DType::f32),
     detail::only(120, 121), detail::only(120, 121), 32, DType::ue8m0},
};

/// Is the instruction one of the row's?
constexpr bool is_of(const Mma& mma, const MmaRow& row) {
  const auto has = [](std::uint32_t set, DType type) {
    return (set >> static_cast<int>(type) & 1) != 0;
  };
  return mma.kind == row.kind && mma.m == row.m && mma.n == row.n && mma.k == row.k &&
         has(row.operands, mma.a) && has(row.operands, mma.b) && (row.mixed || mma.a == mma.b) &&
         has(row.sums, mma.sums) && mma.scale_block == row.scale_block &&
         (mma.scale_block == 0 || mma.scale == row.scale);
}

/// Are its operands and sums held in registers, as the rows above say?
constexpr bool is_register_mma(MmaKind kind) {
  return kind < MmaKind::wgmma;
}

constexpr WgmmaAtom wgmma_of(const Mma& mma) {
  return {mma.m, mma.n, mma.k, mma.a, mma.b, mma.sums};
}
constexpr UmmaAtom umma_of(const Mma& mma) {
  return {mma.scale_block > 0 ? mma.umma : umma_kind(mma.a),
          mma.m,
          mma.n,
          mma.k,
          mma.a,
          mma.b,
          mma.sums,
          mma.kind == MmaKind::tcgen05_pair,
          mma.a_major,
          mma.b_major,
          mma.scale_block,
          mma.scale};
}

/// How a target executes an instruction.
enum class MmaSupport : std::uint8_t {
  absent,    ///< it cannot be assembled
  emulated,  ///< it is made of others: the same products, sums of other rounding, and slow
  native,
};

constexpr MmaSupport mma_support(const Mma& mma, int target) {
  const std::uint32_t bit = detail::target_bit(target);
  if (!is_register_mma(mma.kind)) {
    const bool integers = mma.a == DType::s8 || mma.a == DType::u8;
    const bool blackwell = mma.k == kUmmaLongK
                               ? target == 103
                               : target >= 100 && target < 120 && (!integers || target != 103);
    const bool has = mma.kind >= MmaKind::tcgen05 ? blackwell : target == 90;
    return bit != 0 && has ? MmaSupport::native : MmaSupport::absent;
  }
  for (const MmaRow& row : kMmaRows) {
    if (!is_of(mma, row) || (row.targets & bit) == 0) continue;
    return (row.native & bit) != 0 ? MmaSupport::native : MmaSupport::emulated;
  }
  return MmaSupport::absent;
}

/// Why no target has the instruction, as a sentence; null when one does.
constexpr const char* mma_fault(const Mma& mma) {
  if (mma.kind == MmaKind::tcgen05 || mma.kind == MmaKind::tcgen05_pair)
    return umma_fault(umma_of(mma));
  if (!is_register_mma(mma.kind))
    return wgmma_fault(wgmma_of(mma), mma.a_major, mma.b_major, mma.kind != MmaKind::wgmma);
  if (mma.kind != MmaKind::quad_pair && (mma.a_major != Major::k || mma.b_major != Major::k))
    return "mma.sync knows only K-major A and B (TN), but for m8n8k4";
  bool has_shape = false;
  bool has_types = false;
  for (const MmaRow& row : kMmaRows) {
    if (is_of(mma, row)) return nullptr;
    Mma other = mma;
    other.scale_block = row.scale_block;
    other.scale = row.scale;
    has_types = has_types || is_of(other, row);
    has_shape =
        has_shape || (mma.kind == row.kind && mma.m == row.m && mma.n == row.n && mma.k == row.k);
  }
  if (has_types)
    return "the MMA's scales are each of 32 elements (ue8m0) or, for mxf4nvf4, 16 (ue4m3)";
  if (has_shape) return "an MMA of that shape does not multiply these types into these sums";
  return "there is no MMA of that shape and kind";
}

/// Why `target` (N of sm_N) has no such instruction, as a sentence; null when it has, if only as a
/// routine of others (see mma_support). mma_text.h says what it has.
constexpr const char* mma_fault(const Mma& mma, int target) {
  if (const char* fault = mma_fault(mma)) return fault;
  if (detail::target_bit(target) == 0)
    return "targets are sm_70, 75, 80, 86, 89, 90, 100, 103, 110, 120 and 121";
  if (mma_support(mma, target) != MmaSupport::absent) return nullptr;
  if (mma.kind >= MmaKind::tcgen05 && mma.k == kUmmaLongK)
    return "only sm_103 (b300) has MMAs of K 96";
  return "the target has no such MMA";
}

/// Bits that an element of an operand takes in a register: sub-byte elements of f8f6f4 lie in
/// bytes.
constexpr int register_bits(const Mma& mma, DType type) {
  const int bits = numeric::bits(type);
  return (mma.kind == MmaKind::f8f6f4 || mma.kind == MmaKind::mxf8f6f4) && bits < 8 ? 8 : bits;
}

/// The bit of its place in a register where an element begins: e2m1 of f8f6f4 stands in the middle
/// of its byte, with two bits of 0 on either side; all others at the lowest bit. (ldmatrix leaves
/// it there: CUTLASS shifts it by as much before its MMAs of sm_120, mma_traits_sm120.hpp.)
constexpr int register_shift(const Mma& mma, DType type) {
  return register_bits(mma, type) == 8 && numeric::bits(type) == 4 ? 2 : 0;
}

/// Threads that hold an instruction in their registers, and the registers of each, of 32 bits, for
/// A, B and the sums.
constexpr int mma_threads(const Mma& mma) {
  return mma.kind == MmaKind::quad_pair ? 8 : 32;
}
constexpr int mma_registers_a(const Mma& mma) {
  return mma.m * mma.k * register_bits(mma, mma.a) / 32 / mma_threads(mma);
}
constexpr int mma_registers_b(const Mma& mma) {
  return mma.n * mma.k * register_bits(mma, mma.b) / 32 / mma_threads(mma);
}
constexpr int mma_registers_c(const Mma& mma) {
  return mma.m * mma.n * numeric::bits(mma.sums) / 32 / mma_threads(mma);
}

// --- who holds what ------------------------------------------------------------------------------

/// Threads of an instruction -> lanes: a quad pair is lanes 0 to 3 and 16 to 19, and four more
/// each. For tcgen05 the threads are CTAs.
constexpr layout::Layout mma_thr_id(const Mma& mma) {
  switch (mma.kind) {
    case MmaKind::quad_pair:
      return layout::make_layout(layout::tuple(4, 2), layout::tuple(1, 16));
    case MmaKind::wgmma:
    case MmaKind::wgmma_registers:
      return layout::make_layout(kWarpgroupThreads);
    case MmaKind::tcgen05:
    case MmaKind::tcgen05_pair:
      return tcgen05_thr_id(mma.kind == MmaKind::tcgen05_pair);
    default:
      return layout::make_layout(32);
  }
}

namespace detail {

/// A quad pair's operand of 8 rows x 4: a thread has a row, or (MN-major) four rows of one column.
constexpr layout::Layout quad_pair_operand(Major major) {
  using layout::along;
  using layout::tuple;
  if (major == Major::k) return layout::make_layout(tuple(8, 4), tuple(along(1, 0), along(1, 1)));
  return layout::make_layout(tuple(tuple(4, 2), 4),
                             tuple(tuple(along(1, 1), along(4, 0)), along(1, 0)));
}

/// A quad pair's sums of 8 x 8. As f16 a thread has a row; as f32 a square of pairs.
constexpr layout::Layout quad_pair_sums(DType type) {
  using layout::along;
  using layout::tuple;
  if (type == DType::f16) return layout::make_layout(tuple(8, 8), tuple(along(1, 0), along(1, 1)));
  return layout::make_layout(tuple(tuple(2, 2, 2), tuple(2, 2, 2)),
                             tuple(tuple(along(1, 0), along(2, 1), along(4, 0)),
                                   tuple(along(1, 1), along(2, 0), along(4, 1))));
}

/// Coordinates as numbers i + rows * j.
constexpr layout::Layout numbered(int rows, int columns, const layout::Layout& coordinates) {
  return layout::composition(layout::make_layout(layout::tuple(rows, columns)), coordinates);
}

constexpr layout::Layout register_operand(const Mma& mma, int rows, DType type, Major major) {
  const int each = 32 / register_bits(mma, type);
  return numbered(rows, mma.k,
                  mma.kind == MmaKind::quad_pair ? quad_pair_operand(major)
                                                 : fragment_coordinates(rows, mma.k, each));
}

}  // namespace detail

/// A: (thread, value) -> m + M k.
constexpr layout::Layout mma_layout_a(const Mma& mma) {
  switch (mma.kind) {
    case MmaKind::wgmma:
      return wgmma_layout_shared_tv(mma.m, mma.k);
    case MmaKind::wgmma_registers:
      return wgmma_layout_a_register_tv(numeric::bits(mma.a));
    case MmaKind::tcgen05:
    case MmaKind::tcgen05_pair:
      return tcgen05_layout_a_tv(mma.m, mma.k, mma.kind == MmaKind::tcgen05_pair);
    default:
      return detail::register_operand(mma, mma.m, mma.a, mma.a_major);
  }
}

/// B: (thread, value) -> n + N k.
constexpr layout::Layout mma_layout_b(const Mma& mma) {
  switch (mma.kind) {
    case MmaKind::wgmma:
    case MmaKind::wgmma_registers:
      return wgmma_layout_shared_tv(mma.n, mma.k);
    case MmaKind::tcgen05:
    case MmaKind::tcgen05_pair:
      return tcgen05_layout_b_tv(mma.n, mma.k, mma.kind == MmaKind::tcgen05_pair);
    default:
      return detail::register_operand(mma, mma.n, mma.b, mma.b_major);
  }
}

/// C and D: (thread, value) -> m + M n.
constexpr layout::Layout mma_layout_c(const Mma& mma) {
  switch (mma.kind) {
    case MmaKind::wgmma:
    case MmaKind::wgmma_registers:
      return wgmma_layout_c_tv(mma.n);
    case MmaKind::tcgen05:
    case MmaKind::tcgen05_pair:
      return tcgen05_layout_c_tv(mma.m, mma.n, mma.kind == MmaKind::tcgen05_pair);
    case MmaKind::quad_pair:
      return detail::numbered(mma.m, mma.n, detail::quad_pair_sums(mma.sums));
    default:
      return detail::numbered(mma.m, mma.n, fragment_coordinates(mma.m, mma.n, 2));
  }
}

/// The scales of a block-scaled MMA, (thread, k) -> element of A (or B) that the thread's register
/// scales: two lanes of four hold those of A's rows (which two, the instruction says), one of four
/// those of B's columns; the others' registers are not read.
constexpr layout::Layout mma_layout_scales_a(const Mma& mma) {
  using layout::tuple;
  return layout::make_layout(tuple(tuple(2, 2, 8), mma.k), tuple(tuple(8, 0, 1), mma.m));
}
constexpr layout::Layout mma_layout_scales_b(const Mma& mma) {
  using layout::tuple;
  return layout::make_layout(tuple(tuple(4, 8), mma.k), tuple(tuple(0, 1), mma.n));
}

/// What a block-scaled MMA takes of the lanes' registers of scales, each four along K: the scales
/// from a byte on, out of the lanes that are named (PTX's byte-id and thread-id).
struct MmaScaleSource {
  int byte_a = 0;
  int lanes_a = 0;  ///< lanes 0 and 1 of each four, or 2 and 3
  int byte_b = 0;
  int lanes_b = 0;  ///< one of each four
  friend constexpr bool operator==(const MmaScaleSource&, const MmaScaleSource&) = default;
};
/// Scales of a row of A, or of a column of B, that one instruction takes.
constexpr int mma_scales(const Mma& mma) {
  return mma.k / mma.scale_block;
}
/// Why a block-scaled MMA takes no scales from there, as a sentence; null when it does.
constexpr const char* mma_scales_fault(const Mma& mma, const MmaScaleSource& from) {
  for (const int byte : {from.byte_a, from.byte_b}) {
    if (byte < 0 || byte > 4 - mma_scales(mma) || byte % mma_scales(mma) != 0)
      return "scales begin at a byte of their register that is a multiple of how many are taken";
  }
  if (from.lanes_a < 0 || from.lanes_a > 1)
    return "scales of A come from pair 0 or 1 of four lanes";
  if (from.lanes_b < 0 || from.lanes_b > 3)
    return "scales of B come from one of four lanes, 0 to 3";
  return nullptr;
}
/// Is this lane's register read?
constexpr bool gives_scales_a(int lane, const MmaScaleSource& from) {
  return lane / 2 % 2 == from.lanes_a;
}
constexpr bool gives_scales_b(int lane, const MmaScaleSource& from) {
  return lane % 4 == from.lanes_b;
}

}  // namespace warpwright::atom
