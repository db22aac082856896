// The shapes and types of UMMA, the MMAs of sm_100a (tcgen05.mma): kinds, atoms, and which there
// are. Their words and where they find their operands: umma.h, umma_scaled.h.
//
// One CTA multiplies A (m x k) by B (n x k, transposed) into D (m x n); a pair of CTAs shares one
// instruction of twice the height: each holds half of A's rows, half of B's columns and, in its own
// tensor memory, half of D's rows. The block-scaled kinds multiply the elements of each block of K
// by a scale of A's row and one of B's column.
// Facts: PTX ISA 9.7.16 (kinds and shapes), the same as CuTe's atoms.
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {

/// The `.kind` of a tcgen05.mma: which types its operands may have.
enum class UmmaKind : std::uint8_t {
  f16,       ///< f16 or bf16, both operands of one type
  tf32,      ///< tf32, 32 bits each in memory
  f8f6f4,    ///< e4m3, e5m2, e2m3, e3m2 and e2m1, mixed as one likes, a byte each in memory
  i8,        ///< s8 and u8, mixed as one likes, to s32; only sm_100a and sm_110a have it
  mxf8f6f4,  ///< the same with scales, ue8m0 each 32
  mxf4,      ///< packed e2m1, ue8m0 each 32
  mxf4nvf4,  ///< packed e2m1, ue8m0 each 32, or ue4m3 or ue8m0 each 16
};

/// Does the kind take scales?
constexpr bool is_block_scaled(UmmaKind kind) {
  return kind >= UmmaKind::mxf8f6f4;
}

/// Has the kind packed e2m1 operands?
constexpr bool is_packed(UmmaKind kind) {
  return kind >= UmmaKind::mxf4;
}

/// The kind without scales that multiplies elements of this type.
constexpr UmmaKind umma_kind(DType type) {
  if (type == DType::tf32) return UmmaKind::tf32;
  if (type == DType::s8 || type == DType::u8) return UmmaKind::i8;
  return type == DType::f16 || type == DType::bf16 ? UmmaKind::f16 : UmmaKind::f8f6f4;
}

constexpr const char* name(UmmaKind kind) {
  switch (kind) {
    case UmmaKind::f16:
      return "f16";
    case UmmaKind::tf32:
      return "tf32";
    case UmmaKind::f8f6f4:
      return "f8f6f4";
    case UmmaKind::i8:
      return "i8";
    case UmmaKind::mxf8f6f4:
      return "mxf8f6f4";
    case UmmaKind::mxf4:
      return "mxf4";
    case UmmaKind::mxf4nvf4:
      return "mxf4nvf4";
  }
  return "unknown";
}

/// One tcgen05.mma: D[m x n] (+)= A[m x k] * B[n x k]^T, m and n those of both CTAs together.
struct UmmaAtom {
  UmmaKind kind = UmmaKind::f16;
  int m = 128;
  int n = 0;
  int k = 0;
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType d = DType::f32;
  bool pair = false;  ///< cta_group::2
  Major a_major = Major::k;
  Major b_major = Major::k;
  int scale_block = 0;         ///< elements of K that share a scale, 16 or 32; 0: there are none
  DType scale = DType::ue8m0;  ///< of the scales, where there are: ue8m0 or ue4m3
  bool saturates = false;      ///< sums of s32 that are too large become the largest, or least
  /// tcgen05.mma.ws: B stays in a buffer. Where D has few rows parts of N lie side by side in the
  /// lanes.
  bool weights_stay = false;

  friend constexpr bool operator==(const UmmaAtom&, const UmmaAtom&) = default;
};

/// K of one instruction: 32 bytes of shared memory. sm_103 has K 96 of the packed kinds too.
constexpr int umma_k(UmmaKind kind) {
  if (is_packed(kind)) return 64;
  return kind == UmmaKind::f16 ? 16 : kind == UmmaKind::tf32 ? 8 : 32;
}
inline constexpr int kUmmaLongK = 96;

/// Bits that an element of an operand takes in shared memory. Where types are mixed each has 8: 16
/// elements of 4 or 6 bits lie together in 8 or 12 bytes, and padding fills them up to 16.
constexpr int umma_operand_bits(UmmaKind kind, DType type) {
  return kind == UmmaKind::f8f6f4 || kind == UmmaKind::mxf8f6f4 ? 8 : numeric::bits(type);
}

/// The tile of such an operand as TMA brings it: packed, padded or plain.
constexpr OperandTile umma_tile(UmmaKind kind, DType type, int rows, int depth,
                                Major major = Major::k, SmemSwizzle swizzle = SmemSwizzle::b128) {
  const bool padded = umma_operand_bits(kind, type) > numeric::bits(type);
  return {rows, depth, numeric::bits(type), major, swizzle, padded};
}

/// The atom of these types, K-major.
constexpr UmmaAtom umma_atom(DType a, DType b, DType d, int m, int n, bool pair) {
  const UmmaKind kind = umma_kind(a);
  return {kind, m, n, umma_k(kind), a, b, d, pair, Major::k, Major::k};
}

/// The block-scaled atom of these types, K-major, with a scale each `scale_block` of K.
constexpr UmmaAtom scaled_umma_atom(UmmaKind kind, DType a, DType b, int m, int n, bool pair,
                                    int scale_block = 32, DType scale = DType::ue8m0) {
  return {kind, m, n, umma_k(kind), a, b, DType::f32, pair, Major::k, Major::k, scale_block, scale};
}

/// Does this kind multiply elements of this type?
constexpr bool multiplies(UmmaKind kind, DType type) {
  switch (kind) {
    case UmmaKind::f16:
      return type == DType::f16 || type == DType::bf16;
    case UmmaKind::tf32:
      return type == DType::tf32;
    case UmmaKind::f8f6f4:
    case UmmaKind::mxf8f6f4:
      return type == DType::e4m3 || type == DType::e5m2 || type == DType::e2m3 ||
             type == DType::e3m2 || type == DType::e2m1;
    case UmmaKind::i8:
      return type == DType::s8 || type == DType::u8;
    case UmmaKind::mxf4:
    case UmmaKind::mxf4nvf4:
      return type == DType::e2m1;
  }
  return false;
}

/// The step of N: 8, twice that with pairs, and twice that again for a transposed B whose elements
/// take 8 bits, and for i8 of pairs or behind 32. With K 96 it is 16.
constexpr int umma_n_step(const UmmaAtom& atom) {
  if (atom.k == kUmmaLongK) return 16;
  const bool integers = atom.kind == UmmaKind::i8;
  const bool bytes = integers || atom.kind == UmmaKind::f8f6f4 || atom.kind == UmmaKind::mxf8f6f4;
  const bool wide =
      (bytes && atom.b_major == Major::mn) || (integers && (atom.pair || atom.n > 32));
  return 8 * (atom.pair ? 2 : 1) * (wide ? 2 : 1);
}

namespace detail {

/// Why there is no such block-scaled instruction, but for its types and N; null when there is.
constexpr const char* scaled_umma_fault(const UmmaAtom& atom) {
  const bool sixteen = atom.scale_block == 16;
  if (!sixteen && atom.scale_block != 32) {
    return "a block-scaled MMA has a scale each 32 elements of K, or each 16";
  }
  if (sixteen && atom.kind != UmmaKind::mxf4nvf4) {
    return "only kind mxf4nvf4 has a scale each 16 elements";
  }
  if (atom.scale != DType::ue8m0 && (atom.scale != DType::ue4m3 || !sixteen)) {
    return "scales each 32 elements are ue8m0, those each 16 ue4m3 or ue8m0";
  }
  if (!atom.pair && atom.m != 128) {
    return "a block-scaled MMA of one CTA computes 128 rows (few rows belong on N, which begins "
           "at 8)";
  }
  if (atom.pair && atom.m != 128 && atom.m != 256) {
    return "a block-scaled MMA of a CTA pair computes 128 or 256 rows";
  }
  if (is_packed(atom.kind) && (atom.a_major != Major::k || atom.b_major != Major::k)) {
    return "kinds mxf4 and mxf4nvf4 take only K-major A and B";
  }
  if (atom.d != DType::f32) return "a block-scaled MMA accumulates in f32";
  if (is_packed(atom.kind) && atom.k == kUmmaLongK) {
    return atom.pair && atom.m != 256 ? "an MMA of K 96 of a CTA pair computes 256 rows" : nullptr;
  }
  if (atom.k != umma_k(atom.kind)) {
    return "K of a block-scaled MMA is 32 of kind mxf8f6f4, 64 of mxf4 and mxf4nvf4 (on sm_103 96 "
           "too)";
  }
  return nullptr;
}

/// Why D cannot have its type, of those without scales.
constexpr const char* umma_sums_fault(const UmmaAtom& atom) {
  if (atom.kind == UmmaKind::i8) {
    return atom.d == DType::s32 ? nullptr : "an MMA of kind i8 accumulates in s32";
  }
  if (atom.d != DType::f32 && atom.d != DType::f16) return "an MMA accumulates in f32 or f16";
  if (atom.d == DType::f16 && (atom.a == DType::bf16 || atom.kind == UmmaKind::tf32)) {
    return "bf16 and tf32 accumulate in f32 only";
  }
  return atom.saturates ? "only kind i8 saturates" : nullptr;
}

/// Why D cannot have its rows.
constexpr const char* umma_rows_fault(const UmmaAtom& atom) {
  const bool is_tall = atom.m == 64 || atom.m == 128;
  if (atom.weights_stay) {
    return !atom.pair && (is_tall || atom.m == 32)
               ? nullptr
               : "tcgen05.mma.ws computes 32, 64 or 128 rows, in one CTA";
  }
  if (atom.pair) {
    return atom.m == 128 || atom.m == 256 ? nullptr
                                          : "an MMA of a CTA pair computes 128 or 256 rows";
  }
  return is_tall ? nullptr : "an MMA of one CTA computes 64 or 128 rows";
}

/// The same of those without scales.
constexpr const char* plain_umma_fault(const UmmaAtom& atom) {
  if (atom.scale_block != 0) return "kinds f16, tf32, f8f6f4 and i8 take no scales";
  if (atom.kind == UmmaKind::f16 && atom.a != atom.b) {
    return "A and B of kind f16 are both f16 or both bf16";
  }
  if (const char* fault = umma_rows_fault(atom)) return fault;
  if (atom.k != umma_k(atom.kind)) {
    return "K of an MMA is 32 bytes: 16 for f16 and bf16, 8 for tf32, 32 for 8 bits and less";
  }
  return umma_sums_fault(atom);
}

/// Why D cannot have its columns.
constexpr const char* umma_columns_fault(const UmmaAtom& atom) {
  if (atom.weights_stay) {
    return atom.n == 64 || atom.n == 128 || atom.n == 256 ? nullptr
                                                          : "N of tcgen05.mma.ws is 64, 128 or 256";
  }
  const int step = umma_n_step(atom);
  if (atom.n >= step && atom.n <= 256 && atom.n % step == 0) return nullptr;
  if (atom.k == kUmmaLongK) return "N of an MMA of K 96 is a multiple of 16 from 16 to 256";
  if (atom.kind == UmmaKind::i8) {
    return atom.pair ? "N of a CTA pair's MMA of kind i8 is a multiple of 32 from 32 to 256"
                     : "N of one CTA's MMA of kind i8 is 8, 24 or a multiple of 16 from 16 to 256 "
                       "(only the multiples where B is MN-major)";
  }
  return atom.pair ? "N of a CTA pair's MMA is a multiple of 16 from 16 to 256 (of 32 where an "
                     "8-bit B is MN-major)"
                   : "N of one CTA's MMA is a multiple of 8 from 8 to 256 (of 16 where an 8-bit B "
                     "is MN-major)";
}

}  // namespace detail

/// Why there is no such instruction, as a sentence; null when there is.
constexpr const char* umma_fault(const UmmaAtom& atom) {
  if (!multiplies(atom.kind, atom.a) || !multiplies(atom.kind, atom.b)) {
    return "the kind does not multiply these types: f16 takes f16 and bf16, tf32 tf32, f8f6f4 and "
           "mxf8f6f4 e4m3, e5m2, e2m3, e3m2 and e2m1, i8 s8 and u8, mxf4 and mxf4nvf4 e2m1";
  }
  const char* const fault =
      is_block_scaled(atom.kind) ? detail::scaled_umma_fault(atom) : detail::plain_umma_fault(atom);
  return fault != nullptr ? fault : detail::umma_columns_fault(atom);
}

/// The same of an instruction that takes A from tensor memory.
constexpr const char* umma_tmem_fault(const UmmaAtom& atom) {
  if (const char* fault = umma_fault(atom)) return fault;
  if (atom.a_major != Major::k) return "A in tensor memory is K-major";
  if (atom.weights_stay && atom.m != 128) {
    return "tcgen05.mma.ws takes A of 128 rows from tensor memory: where it would find 32 or 64, "
           "which it needs in several lanes, is not known here";
  }
  if (is_block_scaled(atom.kind) || atom.m == 64) return nullptr;
  if (atom.n % (atom.pair ? 32 : 16) == 0) return nullptr;
  return atom.pair ? "with A in tensor memory N of a CTA pair's MMA is a multiple of 32"
                   : "with A in tensor memory N of an MMA of 128 rows is a multiple of 16";
}

}  // namespace warpwright::atom
