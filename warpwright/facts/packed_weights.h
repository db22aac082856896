// The packed form of weights of 4 bits, as values: what its tiles hold, and how many bytes they
// take. docs/packing.md describes it byte by byte; packed_places.h says where each weight lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpwright/numeric/types.h"

namespace warpwright {

/// How the four bits of a code stand for its value.
enum class Int4Encoding : std::uint8_t {
  sm,  ///< sign and magnitude: -7..7 (there is no -8)
  ex,  ///< sign, and the magnitude less 1 of a negative value: -8..7
};

/// Whether the value of a weight is scale * code, or scale * (code + 8 - zero point).
enum class ZeroPoints : std::uint8_t {
  none,
  groups,  ///< 0..15 for every scale, as checkpoints of unsigned codes have them
};

/// How the scales of e2m1 weights are stored.
enum class Exponents : std::uint8_t {
  own,      ///< as they are
  of_rows,  ///< of ue8m0, beside a unit that the row counts in: kernels fold them into the codes
};

/// What a packed tensor is made of.
struct PackedFormat {
  Int4Encoding encoding = Int4Encoding::ex;  ///< of s4
  int group = 128;  ///< weights along K that share a scale: 32, 64 or 128; for nvf4 16
  DType scale =
      DType::bf16;  ///< as stored: bf16, fp16 or f32; for e2m1 ue8m0 (mxf4) or ue4m3 (nvf4)
  ZeroPoints zero_points = ZeroPoints::none;
  DType code = DType::s4;      ///< or e2m1 (packed_e2m1.h)
  DType tokens = DType::e4m3;  ///< whose registers the codes lie for: or bf16, f16
  Exponents exponents = Exponents::own;

  friend constexpr bool operator==(const PackedFormat&, const PackedFormat&) = default;
};

/// How the sums of packed weights meet the scales of their groups.
enum class GroupSums : std::uint8_t {
  exact,    ///< each group's products are summed, scaled, and added to float32 registers
  chained,  ///< in the tensor core's accumulator, which is rescaled from group to group
  folded,   ///< scales are multiplied to the weights, and rounded to e4m3
  table,    ///< the same by a table of a group's row, of codes without -8
  open,     ///< exact, or folded where that rounds no weight: the plan has the faster
};

/// The word for it.
constexpr const char* name(GroupSums sums) {
  constexpr const char* names[] = {"exact", "chained", "folded", "table", "open"};
  return names[static_cast<std::size_t>(sums)];
}
/// Whether weights are rounded with their scales.
constexpr bool folds(GroupSums sums) {
  return sums == GroupSums::folded || sums == GroupSums::table;
}

namespace packed {

/// Are the tokens of 16 bits? Then codes become floats of their type.
constexpr bool is_wide(const PackedFormat& f) {
  return f.tokens == DType::bf16 || f.tokens == DType::f16;
}

inline constexpr int kTileRows = 64;  ///< rows of a tile (wgmma's M)
inline constexpr int kTileK = 128;
inline constexpr int kTileCodeBytes = kTileRows * kTileK / 2;
/// A thread of a warpgroup reads 16 bytes of each half of a tile's K: four words, each of them two
/// of wgmma's registers of A.
inline constexpr int kLaneBytes = 16;
inline constexpr int kHalfBytes = 128 * kLaneBytes;
/// Stored scales are this many times the scales: a code's bits, read as e4m3, are code / 512.
inline constexpr int kScaleFactor = 512;
/// Zero points of a tile, whatever its groups: a word for each pair of rows.
inline constexpr int kZeroPointBytes = 128;

/// Groups along the K of a tile: one slice of scales each.
constexpr int slices(const PackedFormat& f) {
  return kTileK / f.group;
}
/// Bytes of one slice: a scale for each row.
constexpr int slice_bytes(const PackedFormat& f) {
  return kTileRows * numeric::bits(f.scale) / 8;
}
/// Where a tile's scales begin, its zero points, and its end: all multiples of 128.
constexpr int scales_begin() {
  return kTileCodeBytes;
}
constexpr int zero_points_begin(const PackedFormat& f) {
  return scales_begin() + slices(f) * slice_bytes(f);
}
constexpr int tile_bytes(const PackedFormat& f) {
  return zero_points_begin(f) + (f.zero_points == ZeroPoints::groups ? kZeroPointBytes : 0);
}

/// Where a thread's 16 bytes of a half (K 64 half .. 64 half + 63) begin. Word 2 s + p of the four
/// belongs to the k_block 2 half + s: its first values are register 2 p of wgmma's A, its second
/// ones register 2 p + 1.
constexpr int lane_begin(int half, int thread) {
  return kHalfBytes * half + kLaneBytes * thread;
}
/// Where a thread's two scales of a slice begin: of its row and of the eighth below it, side by
/// side. Rows 16 warp + lane / 4 and + 8 are what wgmma's A and D have in a thread.
constexpr int scale_pair_begin(const PackedFormat& f, int slice, int thread) {
  return scales_begin() + slice * slice_bytes(f) + thread / 4 * (numeric::bits(f.scale) / 4);
}
/// The least code; the largest is 7.
constexpr int least_code(Int4Encoding encoding) {
  return encoding == Int4Encoding::sm ? -7 : -8;
}
/// The four bits of a code: its sign in bit 3.
constexpr std::uint32_t code_bits(int code, Int4Encoding encoding) {
  if (code >= 0) return static_cast<std::uint32_t>(code);
  return 8U | static_cast<std::uint32_t>(encoding == Int4Encoding::sm ? -code : -code - 1);
}
/// The code of four bits (of sm, 8 is a second 0).
constexpr int code_of(std::uint32_t bits, Int4Encoding encoding) {
  const int magnitude = static_cast<int>(bits & 7U);
  if ((bits & 8U) == 0) return magnitude;
  return encoding == Int4Encoding::sm ? -magnitude : -magnitude - 1;
}
/// The bits of eight codes of four bits, 0 to 15 for -8 to 7 or two's complement. The encoding sm
/// has no code -8.
constexpr std::uint32_t bits_of_codes(std::uint32_t codes, bool is_unsigned,
                                      Int4Encoding encoding) {
  const std::uint32_t x = is_unsigned ? codes ^ 0x88888888U : codes;
  const std::uint32_t negative = x >> 3 & 0x11111111U;
  return (x ^ negative * 7U) + (encoding == Int4Encoding::sm ? negative : 0U);
}
/// Is a code of these -8?
constexpr bool has_least_code(std::uint32_t codes, bool is_unsigned) {
  const std::uint32_t x = is_unsigned ? codes : codes ^ 0x88888888U;
  return ((x | x >> 1 | x >> 2 | x >> 3) & 0x11111111U) != 0x11111111U;
}
/// Four bits each of the lower half of `eight`, the lowest in the lowest byte.
constexpr std::uint32_t bytes_of_four(std::uint32_t eight) {
  const std::uint32_t pairs = (eight & 0xffU) | (eight & 0xff00U) << 8;
  return (pairs | pairs << 4) & 0x0f0f0f0fU;
}

/// A lane's word of the bits of eight codes, the first lowest: each sign moves on to bit 3 of the
/// next four bits, the last one round to the first. Then one rotation by 4 brings the four upper
/// ones to where the four lower ones are.
constexpr std::uint32_t word_of(std::uint32_t bits) {
  return (bits & 0x77777777U) | (bits & 0x88888888U) << 4 | (bits & 0x88888888U) >> 28;
}
/// And back.
constexpr std::uint32_t bits_of(std::uint32_t word) {
  return (word & 0x77777777U) | (word & 0x88888888U) >> 4 | (word & 0x88888888U) << 28;
}

/// Where the signs of a word's first four codes are, and of its other four behind `second_half`.
inline constexpr std::uint32_t signs = 0x80808080U;
constexpr std::uint32_t second_half(std::uint32_t word) {
  return word >> 4 | word << 28;
}

/// Signs that add 1 to their magnitude: all of ex, which stores negative magnitudes less 1. One
/// code serves both encodings by it, of which a kernel learns when it runs.
constexpr std::uint32_t carries_of(Int4Encoding encoding) {
  return encoding == Int4Encoding::ex ? signs : 0U;
}
/// A word's first four values as bytes of e4m3 (times 512 they are the codes), K upwards.
constexpr std::uint32_t first_values(std::uint32_t word, std::uint32_t carries) {
  const std::uint32_t x = word & 0x87878787U;
  return x + ((x & carries) >> 7);
}
/// Its other four: of the eighth row below.
constexpr std::uint32_t second_values(std::uint32_t word, std::uint32_t carries) {
  return first_values(second_half(word), carries);
}

/// The same of weights with zero points (of ex): code + 8 - `zero`, -15..15, as bytes of e4m3,
/// times 512: as exact. Each byte adds up to a sign in bit 4 and four bits, without a carry to the
/// next.
constexpr std::uint32_t first_differences(std::uint32_t word, std::uint32_t zero) {
  const std::uint32_t x = word & 0x87878787U;
  // A negative code, plus 32; then plus 24 - zero.
  const std::uint32_t sum = (x ^ ((x & 0x80808080U) >> 7) * 0x9fU) + (24 - zero) * 0x01010101U;
  const std::uint32_t below = (~sum & 0x10101010U) >> 4;
  return ((sum & 0x0f0f0f0fU) ^ below * 0x0fU) + below * 0x81U;
}
constexpr std::uint32_t second_differences(std::uint32_t word, std::uint32_t zero) {
  return first_differences(second_half(word), zero);
}

/// A tensor of weights: `experts` matrices of n rows (columns of D) and k.
struct Extents {
  std::int64_t experts = 1;
  std::int64_t n = 0;
  std::int64_t k = 0;

  friend constexpr bool operator==(const Extents&, const Extents&) = default;
};

/// Tiles along the rows and along K. What hangs over has codes 0; behind K the scale of its row's
/// last group, in rows of its own 1 (stored: 512).
constexpr std::int64_t row_tiles(const Extents& e) {
  return (e.n + kTileRows - 1) / kTileRows;
}
constexpr std::int64_t k_tiles(const Extents& e) {
  return (e.k + kTileK - 1) / kTileK;
}
/// Tiles lie in this order: those along K side by side, then rows, then experts.
constexpr std::int64_t tile_index(const Extents& e, std::int64_t expert, std::int64_t row_tile,
                                  std::int64_t k_tile) {
  return (expert * row_tiles(e) + row_tile) * k_tiles(e) + k_tile;
}
constexpr std::int64_t tiles(const Extents& e) {
  return e.experts * row_tiles(e) * k_tiles(e);
}
/// Bytes of all tiles, which follow the header.
constexpr std::int64_t data_bytes(const PackedFormat& f, const Extents& e) {
  return tiles(e) * tile_bytes(f);
}

/// Are there more weights than any memory holds? Then their bytes would leave an int64.
constexpr bool too_many(const Extents& e) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  return e.n > 0 && e.k > 0 && e.experts > most / e.n / e.k;
}

/// A packed tensor begins with a header of this size (weights/header.h); the tiles follow.
inline constexpr int kHeaderBytes = 128;

/// A part of the sum that tells damage (weights::sum_of): a word of the tiles, mixed with its
/// number.
constexpr std::uint64_t mixed(std::uint64_t word, std::uint64_t number) {
  const std::uint64_t x = (word ^ (number * 0x9e3779b97f4a7c15U)) * 0xbf58476d1ce4e5b9U;
  return x ^ x >> 32;
}

}  // namespace packed
}  // namespace warpwright
