// Block-scaled UMMA (tcgen05.mma.block_scale): where its scales lie in tensor memory, which of them
// a k_block takes, the copies that bring them there, and the operands of K 96.
//
// Four consecutive scales of K of one row are the bytes of a 32-bit word. An atom of 128 rows is 4
// columns: row r lies in lane r % 32, in column r / 32. The next 128 rows are the next 4 columns;
// behind all rows come the next four scales of K. Every quarter of the lanes holds a copy. A tile
// that begins with row 64 of an atom begins 2 columns further.
// In memory and shared memory the same atom is 512 bytes: row r % 32 of 16 bytes, word r / 32.
// Facts: PTX ISA 9.7.16.10.7 (scale factors), CuTe's tmem_sf_frg and its SM103 main loop (K 96).
#pragma once

#include <cstdint>

#include "warpwright/atom/umma.h"

namespace warpwright::atom {

/// An atom of scales: 128 rows, and four of K.
inline constexpr int kScaleAtomRows = 128;
inline constexpr int kScaleAtomDepth = 4;
inline constexpr int kScaleAtomBytes = kScaleAtomRows * kScaleAtomDepth;
inline constexpr int kScaleAtomColumns = 4;

/// Columns of tensor memory that `scales` scales along K of `rows` rows take.
constexpr int scale_columns(int rows, int scales = kScaleAtomDepth) {
  return (rows + kScaleAtomRows - 1) / kScaleAtomRows *
         ((scales + kScaleAtomDepth - 1) / kScaleAtomDepth) * kScaleAtomColumns;
}

/// Scales of a row that one instruction takes.
constexpr int umma_scales(const UmmaAtom& atom) {
  return atom.k / atom.scale_block;
}

/// Rows of A, and columns of D, whose scales a CTA holds: of a pair's B all, though only half of B
/// itself.
constexpr int scale_rows_a(const UmmaAtom& atom) {
  return umma_cta_rows(atom);
}
constexpr int scale_rows_b(const UmmaAtom& atom) {
  return atom.n;
}

/// For the columns that an instruction reads its scales from: four scales of K of all rows lie
/// together in so many columns, and the next four begin so many further. Where the halves of N lie
/// side by side in the lanes (umma_folds_columns), so do their scales.
constexpr int scale_word_columns(const UmmaAtom& atom, bool of_b) {
  const int rows = !of_b                      ? scale_rows_a(atom)
                   : umma_folds_columns(atom) ? scale_rows_b(atom) / 2
                                              : scale_rows_b(atom);
  return (rows + 31) / 32;
}
constexpr int scale_word_step(const UmmaAtom& atom, bool of_b) {
  return scale_columns(scale_word_columns(atom, of_b) * 32);
}
/// How many times four scales it reads, beginning at byte `id`.
constexpr int scale_words(const UmmaAtom& atom, int id) {
  return (id + umma_scales(atom) + kScaleAtomDepth - 1) / kScaleAtomDepth;
}

/// The scales that k_block `step` takes, counted from where scale 0 of K lies: the ids of its
/// instruction, which are the same for A and B, and the columns to add to both addresses.
struct ScaleStep {
  int id = 0;
  int column_a = 0;
  int column_b = 0;

  friend constexpr bool operator==(const ScaleStep&, const ScaleStep&) = default;
};
constexpr ScaleStep scale_step(const UmmaAtom& atom, int step) {
  const int first = step * umma_scales(atom);
  const int word = first / kScaleAtomDepth;
  return {first % kScaleAtomDepth, word * scale_word_step(atom, false),
          word * scale_word_step(atom, true)};
}

/// A scale in tensor memory: a byte of a cell.
struct ScaleCell {
  int lane = 0;
  int column = 0;
  int byte = 0;

  friend constexpr bool operator==(const ScaleCell&, const ScaleCell&) = default;
};

/// Where an instruction that begins at byte `id` finds scale `scale` of a row of A (of this CTA),
/// or of a column of D, relative to the address: in this lane and those of the other quarters (of
/// folded columns, in the other quarter of the same half).
constexpr ScaleCell scale_cell_a(const UmmaAtom& atom, int id, int row, int scale) {
  const int at = id + scale;
  return {row % 32, row / 32 + at / kScaleAtomDepth * scale_word_step(atom, false),
          at % kScaleAtomDepth};
}
constexpr ScaleCell scale_cell_b(const UmmaAtom& atom, int id, int column, int scale) {
  const int at = id + scale;
  const int half = umma_folds_columns(atom) ? column / (atom.n / 2) : 0;
  const int row = umma_folds_columns(atom) ? column % (atom.n / 2) : column;
  return {row % 32 + 64 * half, row / 32 + at / kScaleAtomDepth * scale_word_step(atom, true),
          at % kScaleAtomDepth};
}

// --- copies from shared to tensor memory --------------------------------------------------------

/// What a tcgen05.cp copies: lanes x bits, and to which quarters of the lanes.
enum class TmemCopy : std::uint8_t {
  b32x128_warpx4,        ///< 32 rows of 16 bytes to 4 columns of all four quarters: scales
  b128x256,              ///< 128 rows of 32 bytes to 8 columns
  b128x128,              ///< 128 rows of 16 bytes to 4 columns
  b4x256,                ///< 4 rows of 32 bytes to 8 columns, of the first lane of each quarter
  b64x128_warpx2_02_13,  ///< 64 rows of 16 bytes, the first 32 to quarters 0 and 2
  b64x128_warpx2_01_23,  ///< 64 rows of 16 bytes, the first 32 to quarters 0 and 1
};

/// How it widens elements of less than 8 bits to a byte each, 16 of them in 16 bytes.
enum class TmemWiden : std::uint8_t {
  none,
  from_b4x16_p64,  ///< 16 of 4 bits in 8 bytes, and 8 of padding
  from_b6x16_p32,  ///< 16 of 6 bits in 12 bytes, and 4 of padding
};

/// Rows of what it copies, and the bytes of each in tensor memory: of less than 8 bits as many
/// elements, which take as many bytes in shared memory, padding included.
constexpr int copy_rows(TmemCopy shape) {
  switch (shape) {
    case TmemCopy::b32x128_warpx4:
      return 32;
    case TmemCopy::b4x256:
      return 4;
    case TmemCopy::b64x128_warpx2_02_13:
    case TmemCopy::b64x128_warpx2_01_23:
      return 64;
    default:
      return 128;
  }
}
constexpr int copy_bytes(TmemCopy shape) {
  return shape == TmemCopy::b128x256 || shape == TmemCopy::b4x256 ? 32 : 16;
}
/// How often a row is written, and the lane of copy `copy` of it, from the address on.
constexpr int copy_count(TmemCopy shape) {
  return shape == TmemCopy::b32x128_warpx4 ? 4 : copy_rows(shape) == 64 ? 2 : 1;
}
constexpr int copy_lane(TmemCopy shape, int row, int copy) {
  switch (shape) {
    case TmemCopy::b32x128_warpx4:
      return row + 32 * copy;
    case TmemCopy::b4x256:
      return 32 * row;
    case TmemCopy::b64x128_warpx2_02_13:
      return row + 64 * copy;
    case TmemCopy::b64x128_warpx2_01_23:
      return row % 32 + 64 * (row / 32) + 32 * copy;
    default:
      return row;
  }
}
/// Elements of what a copy widens, or bytes.
constexpr DType copied_type(TmemWiden widen) {
  return widen == TmemWiden::none             ? DType::u8
         : widen == TmemWiden::from_b4x16_p64 ? DType::e2m1
                                              : DType::e2m3;
}

/// The descriptor of an atom of scales at byte `start`, a multiple of 16, for a copy of
/// b32x128_warpx4.
constexpr Descriptor scale_descriptor(std::uint32_t start) {
  Descriptor d;
  d.start = start;
  d.leading = 16;  // not read
  d.stride = 128;
  return d;
}

// --- K 96 ---------------------------------------------------------------------------------------

/// Bytes of K of one instruction of K 96; eight of them are three spans of 128 bytes.
inline constexpr int kLongStepBytes = 48;

/// The descriptor of k_block `step` of K 96 of a stored K-major tile in the 128B swizzle, which
/// begins at byte `start`: the step may begin in one box of 128 bytes and end in the next. The
/// boxes that it names must be there; `next` is where the box behind the tile's last one lies, as
/// the first of the next stage.
constexpr Descriptor long_descriptor(const OperandTile& tile, std::uint32_t start, int step,
                                     std::uint32_t next) {
  const int at = step * kLongStepBytes;
  const int box = at / 128;
  const auto bytes = static_cast<std::uint32_t>(box_bytes(tile));
  Descriptor d = descriptor(
      tile, start + static_cast<std::uint32_t>(box) * bytes + static_cast<std::uint32_t>(at % 128));
  d.leading =
      box + 1 < box_count(tile) ? start + static_cast<std::uint32_t>(box + 1) * bytes : next;
  d.leading_is_address = true;
  return d;
}

}  // namespace warpwright::atom
