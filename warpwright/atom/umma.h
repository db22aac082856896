// The UMMA atoms of sm_100a (tcgen05.mma): which shapes and types exist, how the instruction and
// its operands are described to the tensor core, and where the accumulator lies in tensor memory.
//
// One CTA multiplies A (m x k) by B (n x k, transposed) into D (m x n); a pair of CTAs shares one
// instruction of twice the height: each holds half of A's rows, half of B's columns and, in its own
// tensor memory, half of D's rows. Operands come from shared memory; how they are laid out there,
// and what a descriptor's fields mean, is as for wgmma (descriptor.h), the 64-bit word is another.
// Facts: PTX ISA 9.7.16 (kinds and shapes, instruction and matrix descriptors, data path layouts),
// the same as CuTe's UMMA::InstrDescriptor, UMMA::SmemDescriptor and tmem_frg (tests/oracle).
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {

/// The `.kind` of a tcgen05.mma: which types its operands may have.
enum class UmmaKind : std::uint8_t {
  f16,     ///< f16 or bf16, both operands of one type
  tf32,    ///< tf32, 32 bits each in memory
  f8f6f4,  ///< 8 bits or less; here e4m3 and e5m2, mixed as one likes
};

/// The kind that multiplies elements of this type; nothing else multiplies them.
constexpr UmmaKind umma_kind(DType type) {
  if (type == DType::tf32) return UmmaKind::tf32;
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

  friend constexpr bool operator==(const UmmaAtom&, const UmmaAtom&) = default;
};

/// K of one instruction on elements of this type: always 32 bytes.
constexpr int umma_k(DType type) {
  return k_block_bytes * 8 / numeric::bits(type);
}

/// The atom of these types, K-major.
constexpr UmmaAtom umma_atom(DType a, DType b, DType d, int m, int n, bool pair) {
  return {umma_kind(a), m, n, umma_k(a), a, b, d, pair, Major::k, Major::k};
}

/// Does this kind multiply elements of this type?
constexpr bool multiplies(UmmaKind kind, DType type) {
  switch (kind) {
    case UmmaKind::f16:
      return type == DType::f16 || type == DType::bf16;
    case UmmaKind::tf32:
      return type == DType::tf32;
    case UmmaKind::f8f6f4:
      return type == DType::e4m3 || type == DType::e5m2;
  }
  return false;
}

/// The step of N: 8, twice that with pairs, and twice that again for a transposed 8-bit B.
constexpr int umma_n_step(const UmmaAtom& atom) {
  const bool transposed_bytes = atom.kind == UmmaKind::f8f6f4 && atom.b_major == Major::mn;
  return 8 * (atom.pair ? 2 : 1) * (transposed_bytes ? 2 : 1);
}

/// Why there is no such instruction, as a sentence; null when there is.
constexpr const char* umma_fault(const UmmaAtom& atom) {
  if (!multiplies(atom.kind, atom.a) || !multiplies(atom.kind, atom.b)) {
    return "the kind does not multiply these types: f16 takes f16 and bf16, tf32 tf32, f8f6f4 e4m3 "
           "and e5m2";
  }
  if (atom.kind == UmmaKind::f16 && atom.a != atom.b) {
    return "A and B of kind f16 are both f16 or both bf16";
  }
  if (!atom.pair && atom.m != 64 && atom.m != 128) {
    return "an MMA of one CTA computes 64 or 128 rows";
  }
  if (atom.pair && atom.m != 128 && atom.m != 256) {
    return "an MMA of a CTA pair computes 128 or 256 rows";
  }
  const int step = umma_n_step(atom);
  if (atom.n < step || atom.n > 256 || atom.n % step != 0) {
    return atom.pair
               ? "N of a CTA pair's MMA is a multiple of 16 from 16 to 256 (of 32 where an "
                 "8-bit B is MN-major)"
               : "N of one CTA's MMA is a multiple of 8 from 8 to 256 (of 16 where an 8-bit B "
                 "is MN-major)";
  }
  if (atom.k != umma_k(atom.a)) {
    return "K of an MMA is 32 bytes: 16 for f16 and bf16, 8 for tf32, 32 for e4m3 and e5m2";
  }
  if (atom.d != DType::f32 && atom.d != DType::f16) return "an MMA accumulates in f32 or f16";
  if (atom.d == DType::f16 && (atom.a == DType::bf16 || atom.kind == UmmaKind::tf32)) {
    return "bf16 and tf32 accumulate in f32 only";
  }
  return nullptr;
}

// --- the instruction descriptor -----------------------------------------------------------------

/// The 32-bit word that says types, majors and shape (PTX ISA 9.7.16.4.2): [5:4] D (0 f16, 1 f32),
/// [9:7] A, [12:10] B (kind f16: 0 f16, 1 bf16; tf32: 2; f8f6f4: 0 e4m3, 1 e5m2), 15 and 16 A and B
/// MN-major, [22:17] N >> 3, [28:24] M >> 4. Everything else, which we do not use, is 0: sparsity,
/// saturation, signs, shift. The kind and the CTA group are the instruction's, not the word's.
constexpr std::uint32_t encode_instruction(const UmmaAtom& atom) {
  const auto code = [](DType type) {
    if (type == DType::tf32) return 2U;
    return type == DType::bf16 || type == DType::e5m2 ? 1U : 0U;
  };
  return (atom.d == DType::f32 ? 1U : 0U) << 4 | code(atom.a) << 7 | code(atom.b) << 10 |
         (atom.a_major == Major::mn ? 1U : 0U) << 15 | (atom.b_major == Major::mn ? 1U : 0U) << 16 |
         static_cast<std::uint32_t>(atom.n >> 3) << 17 |
         static_cast<std::uint32_t>(atom.m >> 4) << 24;
}

/// The same word for another N.
constexpr std::uint32_t with_n(std::uint32_t instruction, int n) {
  return (instruction & ~(63U << 17)) | static_cast<std::uint32_t>(n >> 3) << 17;
}

/// Bits of an instruction descriptor that mean something we use. The others must be 0.
inline constexpr std::uint32_t kInstructionBits =
    3U << 4 | 7U << 7 | 7U << 10 | 3U << 15 | 63U << 17 | 31U << 24;

/// The atom that a word describes to an instruction of this kind and group. `umma_fault` and
/// `instruction_fault` tell whether the tensor core has it.
constexpr UmmaAtom decode_instruction(std::uint32_t word, UmmaKind kind, bool pair) {
  const auto type = [kind](std::uint32_t code) {
    switch (kind) {
      case UmmaKind::f16:
        return code == 1 ? DType::bf16 : DType::f16;
      case UmmaKind::tf32:
        return DType::tf32;
      case UmmaKind::f8f6f4:
        break;
    }
    return code == 1 ? DType::e5m2 : DType::e4m3;
  };
  UmmaAtom atom;
  atom.kind = kind;
  atom.pair = pair;
  atom.d = (word >> 4 & 3) == 1 ? DType::f32 : DType::f16;
  atom.a = type(word >> 7 & 7);
  atom.b = type(word >> 10 & 7);
  atom.a_major = (word >> 15 & 1) != 0 ? Major::mn : Major::k;
  atom.b_major = (word >> 16 & 1) != 0 ? Major::mn : Major::k;
  atom.n = static_cast<int>(word >> 17 & 63) * 8;
  atom.m = static_cast<int>(word >> 24 & 31) * 16;
  atom.k = umma_k(atom.a);
  return atom;
}

/// Why an instruction of this kind and group cannot take the word, as a sentence; null when it can.
constexpr const char* instruction_fault(std::uint32_t word, UmmaKind kind, bool pair) {
  if ((word & ~kInstructionBits) != 0) {
    return "the instruction descriptor sets a reserved bit, or one for sparsity, saturation, signs "
           "or shifts, which are not used here";
  }
  const UmmaAtom atom = decode_instruction(word, kind, pair);
  // A code that names no type of the kind, or of D, does not come back when the word is made anew.
  if (encode_instruction(atom) != word) {
    return "the instruction descriptor names a type that its kind does not multiply";
  }
  return umma_fault(atom);
}

// --- the shared-memory descriptor ---------------------------------------------------------------

/// The 64-bit word (PTX ISA 9.7.16.4.1): [13:0] start >> 4, [29:16] LBO >> 4, [45:32] SBO >> 4,
/// [48:46] 001, [51:49] base offset, 52 LBO mode (0: relative), [63:61] swizzle (0 none, 2 128B,
/// 4 64B, 6 32B). The fields mean what they mean to wgmma; `advance` moves the start.
constexpr std::uint64_t encode_umma(const Descriptor& d) {
  const std::uint64_t fields = encode(d) & ~(std::uint64_t{3} << 62);
  // The code runs 2 128B, 4 64B, 6 32B where ours runs 1 32B .. 3 128B.
  const int code = d.swizzle == SmemSwizzle::none ? 0 : 2 * (4 - swizzle_bits(d.swizzle));
  return fields | std::uint64_t{1} << 46 | static_cast<std::uint64_t>(code) << 61;
}

/// The fields of the word.
constexpr Descriptor decode_umma(std::uint64_t word) {
  const int code = static_cast<int>(word >> 61) / 2;
  return decode((word & ~(std::uint64_t{7} << 61)) | static_cast<std::uint64_t>(code) << 62);
}

/// Why the tensor core could not read through the word, as a sentence; null when it can.
constexpr const char* umma_descriptor_fault(std::uint64_t word) {
  if ((word >> 46 & 7) != 1) return "bits 46 to 48 of a matrix descriptor must be 001";
  if ((word >> 61 & 1) != 0) {
    return "the swizzle of a matrix descriptor must be none, 32B, 64B or 128B";
  }
  if ((word >> 14 & 3) != 0 || (word >> 30 & 3) != 0 || (word >> 52 & 0x1ff) != 0) {
    return "a matrix descriptor sets a bit that is not used here";
  }
  return descriptor_fault(decode_umma(word));
}

// --- tensor memory ------------------------------------------------------------------------------

/// Tensor memory of one SM: lanes of columns of 32 bits.
inline constexpr int kTmemLanes = 128;
inline constexpr int kTmemColumns = 512;

/// An address in tensor memory: lane << 16 | column.
constexpr std::uint32_t tmem_address(int lane, int column) {
  return static_cast<std::uint32_t>(lane) << 16 | static_cast<std::uint32_t>(column);
}
constexpr int tmem_lane(std::uint32_t address) {
  return static_cast<int>(address >> 16);
}
constexpr int tmem_column(std::uint32_t address) {
  return static_cast<int>(address & 0xffff);
}

/// A 32-bit cell of tensor memory, relative to where the accumulator begins.
struct TmemCell {
  int lane = 0;
  int column = 0;

  friend constexpr bool operator==(const TmemCell&, const TmemCell&) = default;
};

/// Rows of D that one CTA holds.
constexpr int umma_cta_rows(const UmmaAtom& atom) {
  return atom.pair ? atom.m / 2 : atom.m;
}

/// Do the two halves of N lie side by side in the lanes? So it is where a CTA of a pair holds 64
/// rows only (data path layout B).
constexpr bool umma_folds_columns(const UmmaAtom& atom) {
  return atom.pair && atom.m == 128;
}

/// Columns of tensor memory that the accumulator of one CTA takes, an f16 one too: it has one value
/// a cell, in the lower half.
constexpr int umma_columns(const UmmaAtom& atom) {
  return umma_folds_columns(atom) ? atom.n / 2 : atom.n;
}

/// Where a CTA holds D(row, col), `row` counted from its own first one. 128 rows: lane = row
/// (layouts A and D); 64 rows of one CTA: 16 of each 32 lanes (F); 64 rows of each CTA of a pair:
/// the left half of the columns in lanes 0 to 63, the right half in 64 to 127 (B).
constexpr TmemCell umma_cell(const UmmaAtom& atom, int row, int col) {
  if (umma_folds_columns(atom)) {
    const int half = atom.n / 2;
    return {row + 64 * (col / half), col % half};
  }
  if (atom.m == 64) return {row % 16 + 32 * (row / 16), col};
  return {row, col};
}

/// Columns to allocate for `wanted` ones: a power of two from 32 to 512; 0 when there are not so
/// many.
constexpr int tmem_allocation(int wanted) {
  int columns = 32;
  while (columns < wanted) columns *= 2;
  return columns <= kTmemColumns ? columns : 0;
}

}  // namespace warpwright::atom
