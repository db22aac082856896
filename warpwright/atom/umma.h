// The words of an UMMA atom (umma_atom.h): how the instruction and its operands are described to
// the tensor core, and where the accumulator lies in tensor memory.
//
// Operands come from shared memory; how they are laid out there, and what a descriptor's fields
// mean, is as for wgmma (descriptor.h), the 64-bit word is another.
// Facts: PTX ISA 9.7.16 (instruction and matrix descriptors, data path layouts), the same as CuTe's
// UMMA::InstrDescriptor, UMMA::InstrDescriptorBlockScaled, UMMA::SmemDescriptor and tmem_frg
// (tests/oracle).
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/umma_atom.h"
#include "warpwright/numeric/types.h"

namespace warpwright::atom {

// --- the instruction descriptor -----------------------------------------------------------------

namespace detail {

/// The code of a type of A or B in the word, and back: f16 0, bf16 1; tf32 2; for the kinds that
/// mix e4m3 0, e5m2 1, e2m3 3, e3m2 4, e2m1 5; u8 0, s8 1; for the packed kinds e2m1 1.
constexpr std::uint32_t type_code(UmmaKind kind, DType type) {
  if (is_packed(kind)) return 1;
  switch (type) {
    case DType::bf16:
    case DType::e5m2:
    case DType::s8:
      return 1;
    case DType::tf32:
      return 2;
    case DType::e2m3:
      return 3;
    case DType::e3m2:
      return 4;
    case DType::e2m1:
      return 5;
    default:
      return 0;
  }
}
constexpr DType type_of_code(UmmaKind kind, std::uint32_t code) {
  if (is_packed(kind)) return DType::e2m1;
  if (kind == UmmaKind::tf32) return DType::tf32;
  if (kind == UmmaKind::f16) return code == 1 ? DType::bf16 : DType::f16;
  if (kind == UmmaKind::i8) return code == 1 ? DType::s8 : DType::u8;
  constexpr DType types[] = {DType::e4m3, DType::e5m2, DType::e4m3, DType::e2m3,
                             DType::e3m2, DType::e2m1, DType::e4m3, DType::e4m3};
  return types[code & 7];
}

}  // namespace detail

/// The 32-bit word that says types, majors and shape (PTX ISA 9.7.16.4.2): [9:7] A, [12:10] B, 15
/// and 16 A and B MN-major, [22:17] N >> 3, [28:24] M >> 4. Without scales [5:4] is D (0 f16, 1
/// f32, 2 s32), and 3 is set where s32 saturates; with scales D is f32, 23 is set where they are
/// ue8m0, 31 where K is 96, and the ids of `with_scale_ids` are 0. Everything else, which we do not
/// use, is 0: sparsity, signs, shift. The kind, the block of the scales, the CTA group and whether
/// weights stay are the instruction's, not the word's.
constexpr std::uint32_t encode_instruction(const UmmaAtom& atom) {
  const std::uint32_t word =
      detail::type_code(atom.kind, atom.a) << 7 | detail::type_code(atom.kind, atom.b) << 10 |
      (atom.a_major == Major::mn ? 1U : 0U) << 15 | (atom.b_major == Major::mn ? 1U : 0U) << 16 |
      static_cast<std::uint32_t>(atom.n >> 3) << 17 | static_cast<std::uint32_t>(atom.m >> 4) << 24;
  if (!is_block_scaled(atom.kind)) {
    const std::uint32_t d = atom.d == DType::f32 ? 1 : atom.d == DType::s32 ? 2 : 0;
    return word | d << 4 | (atom.saturates ? 1U : 0U) << 3;
  }
  return word | (atom.scale == DType::ue8m0 ? 1U : 0U) << 23 |
         (atom.k == kUmmaLongK ? 1U : 0U) << 31;
}

/// Which of the bytes of its words of scales an instruction takes first (umma_scaled.h).
struct ScaleIds {
  int a = 0;
  int b = 0;

  friend constexpr bool operator==(const ScaleIds&, const ScaleIds&) = default;
};

/// The word of a block-scaled instruction with these ids, each 0 to 3: [30:29] A's, [5:4] B's.
constexpr std::uint32_t with_scale_ids(std::uint32_t word, int id_a, int id_b) {
  constexpr std::uint32_t bits = 3U << 29 | 3U << 4;
  return (word & ~bits) | static_cast<std::uint32_t>(id_a) << 29 |
         static_cast<std::uint32_t>(id_b) << 4;
}
constexpr ScaleIds scale_ids(std::uint32_t word) {
  return {static_cast<int>(word >> 29 & 3), static_cast<int>(word >> 4 & 3)};
}

/// The same word for another N.
constexpr std::uint32_t with_n(std::uint32_t instruction, int n) {
  return (instruction & ~(63U << 17)) | static_cast<std::uint32_t>(n >> 3) << 17;
}

/// Bits of an instruction descriptor that mean something we use. The others must be 0.
constexpr std::uint32_t instruction_bits(UmmaKind kind) {
  constexpr std::uint32_t all = 3U << 4 | 7U << 7 | 7U << 10 | 3U << 15 | 63U << 17 | 31U << 24;
  if (kind == UmmaKind::i8) return all | 1U << 3;
  if (!is_block_scaled(kind)) return all;
  constexpr std::uint32_t scaled = (all & ~(7U << 24)) | 1U << 23 | 3U << 29;
  return is_packed(kind) ? scaled | 1U << 31 : scaled;
}

/// The atom that a word describes to an instruction of this kind, group and block of scales (0
/// without). `umma_fault` and `instruction_fault` tell whether the tensor core has it.
constexpr UmmaAtom decode_instruction(std::uint32_t word, UmmaKind kind, bool pair,
                                      int scale_block = 0, bool weights_stay = false) {
  UmmaAtom atom;
  atom.kind = kind;
  atom.pair = pair;
  atom.weights_stay = weights_stay;
  atom.a = detail::type_of_code(kind, word >> 7 & 7);
  atom.b = detail::type_of_code(kind, word >> 10 & 7);
  atom.a_major = (word >> 15 & 1) != 0 ? Major::mn : Major::k;
  atom.b_major = (word >> 16 & 1) != 0 ? Major::mn : Major::k;
  atom.n = static_cast<int>(word >> 17 & 63) * 8;
  atom.m = static_cast<int>(word >> 24 & 31) * 16;
  atom.k = umma_k(kind);
  if (!is_block_scaled(kind)) {
    const std::uint32_t d = word >> 4 & 3;
    atom.d = d == 1 ? DType::f32 : d == 2 ? DType::s32 : DType::f16;
    atom.saturates = (word >> 3 & 1) != 0;
    return atom;
  }
  atom.scale_block = scale_block;
  atom.scale = (word >> 23 & 1) != 0 ? DType::ue8m0 : DType::ue4m3;
  if (is_packed(kind) && word >> 31 != 0) atom.k = kUmmaLongK;
  return atom;
}

/// Why a block-scaled instruction cannot begin at these bytes of its words of scales, as a
/// sentence; null when it can.
constexpr const char* scale_ids_fault(const UmmaAtom& atom, ScaleIds ids) {
  if (atom.scale_block <= 0) return "the kind takes no scales";
  const int scales = atom.k / atom.scale_block;
  const int step = scales == 3 ? 1 : scales == 6 ? 2 : scales;
  for (const int id : {ids.a, ids.b}) {
    if (id >= 0 && id < 4 && id % step == 0) continue;
    switch (step) {
      case 1:
        return "a scale id is 0 to 3";
      case 2:
        return "the scale ids of an MMA that takes two or six scales of a row are 0 or 2";
      default:
        return "the scale ids of an MMA that takes four scales of a row are 0";
    }
  }
  return nullptr;
}

/// Why an instruction of this kind, group and block of scales cannot take the word, as a sentence;
/// null when it can.
constexpr const char* instruction_fault(std::uint32_t word, UmmaKind kind, bool pair,
                                        int scale_block = 0, bool weights_stay = false) {
  if ((word & ~instruction_bits(kind)) != 0) {
    return "the instruction descriptor sets a reserved bit, or one for sparsity, saturation of "
           "floats, signs or shifts, which are not used here";
  }
  const UmmaAtom atom = decode_instruction(word, kind, pair, scale_block, weights_stay);
  // A code that names no type of the kind, or of D, does not come back when the word is made anew.
  const std::uint32_t plain = is_block_scaled(kind) ? with_scale_ids(word, 0, 0) : word;
  if (encode_instruction(atom) != plain) {
    return "the instruction descriptor names a type that its kind does not multiply";
  }
  if (const char* fault = umma_fault(atom)) return fault;
  return is_block_scaled(kind) ? scale_ids_fault(atom, scale_ids(word)) : nullptr;
}

// --- the shared-memory descriptor ---------------------------------------------------------------

/// The 64-bit word (PTX ISA 9.7.16.4.1): [13:0] start >> 4, [29:16] LBO >> 4, [45:32] SBO >> 4,
/// [48:46] 001, [51:49] base offset, 52 LBO mode (1: an address), [63:61] swizzle (0 none, 2 128B,
/// 4 64B, 6 32B). The fields mean what they mean to wgmma; `advance` moves the start.
constexpr std::uint64_t encode_umma(const Descriptor& d) {
  const std::uint64_t fields = encode(d) & ~(std::uint64_t{3} << 62);
  // The code runs 2 128B, 4 64B, 6 32B where ours runs 1 32B .. 3 128B.
  const int code = d.swizzle == SmemSwizzle::none ? 0 : 2 * (4 - swizzle_bits(d.swizzle));
  return fields | std::uint64_t{1} << 46 |
         static_cast<std::uint64_t>(d.leading_is_address ? 1 : 0) << 52 |
         static_cast<std::uint64_t>(code) << 61;
}

/// The fields of the word.
constexpr Descriptor decode_umma(std::uint64_t word) {
  const int code = static_cast<int>(word >> 61) / 2;
  Descriptor d =
      decode((word & ~(std::uint64_t{7} << 61)) | static_cast<std::uint64_t>(code) << 62);
  d.leading_is_address = (word >> 52 & 1) != 0;
  return d;
}

/// Why the tensor core could not read an operand of `k` elements through the word, as a sentence;
/// null when it can.
constexpr const char* umma_descriptor_fault(std::uint64_t word, int k = 0) {
  if ((word >> 46 & 7) != 1) return "bits 46 to 48 of a matrix descriptor must be 001";
  if ((word >> 61 & 1) != 0) {
    return "the swizzle of a matrix descriptor must be none, 32B, 64B or 128B";
  }
  if ((word >> 14 & 3) != 0 || (word >> 30 & 3) != 0 || (word >> 53 & 0xff) != 0) {
    return "a matrix descriptor sets a bit that is not used here";
  }
  const Descriptor d = decode_umma(word);
  if (k != kUmmaLongK && d.leading_is_address) {
    return "only operands of K 96 have an address as leading offset (bit 52 of their descriptor)";
  }
  if (k == kUmmaLongK && (!d.leading_is_address || d.swizzle != SmemSwizzle::b128)) {
    return "an operand of K 96 lies in the 128B swizzle, and the leading offset of its descriptor "
           "is the address of the next 128 bytes (bit 52)";
  }
  return descriptor_fault(d);
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

/// Parts of N that lie side by side in the lanes. A CTA of a pair that holds only 64 rows has two
/// (data path layout B); where weights stay 64 rows have two, and 32 rows four (E, G).
constexpr int umma_folds(const UmmaAtom& atom) {
  if (atom.weights_stay) return 128 / atom.m;
  return atom.pair && atom.m == 128 ? 2 : 1;
}
constexpr bool umma_folds_columns(const UmmaAtom& atom) {
  return umma_folds(atom) > 1;
}

/// Columns of tensor memory that the accumulator of one CTA takes, an f16 one too: it has one value
/// a cell, in the lower half.
constexpr int umma_columns(const UmmaAtom& atom) {
  return atom.n / umma_folds(atom);
}

/// Where a CTA holds D(row, col), `row` counted from its own first one. 128 rows: lane = row
/// (layouts A and D); 64 rows of one CTA: 16 of each 32 lanes (F); 64 rows of each CTA of a pair:
/// the left half of the columns in lanes 0 to 63, the right half in 64 to 127 (B).
constexpr TmemCell umma_cell(const UmmaAtom& atom, int row, int col) {
  if (umma_folds_columns(atom)) {
    const int part = umma_columns(atom);
    return {row + umma_cta_rows(atom) * (col / part), col % part};
  }
  if (atom.m == 64) return {row % 16 + 32 * (row / 16), col};
  return {row, col};
}

/// Where a CTA holds its rows of A, where A lies in tensor memory: the lanes of D's, K along the
/// columns, 32 bits a column. Two rows of lanes hold the same where the halves of N lie side by
/// side: copy 1 is the second. Elements of less than 8 bits of the kinds that mix have a byte each,
/// in its low bits.
constexpr int umma_a_lane(const UmmaAtom& atom, int row, int copy = 0) {
  return umma_cell(atom, row, 0).lane + 64 * copy;
}
constexpr int umma_a_copies(const UmmaAtom& atom) {
  return umma_folds_columns(atom) ? 2 : 1;
}
constexpr int umma_a_columns(const UmmaAtom& atom) {
  return atom.k * umma_operand_bits(atom.kind, atom.a) / 32;
}

/// Columns to allocate for `wanted` ones: a power of two from 32 to 512; 0 when there are not so
/// many.
constexpr int tmem_allocation(int wanted) {
  int columns = 32;
  while (columns < wanted) columns *= 2;
  return columns <= kTmemColumns ? columns : 0;
}

}  // namespace warpwright::atom
