// Where the scales of blocks along K lie in memory: as cuBLASLt and PyTorch have them, whatever the
// format, in tiles of 128 rows x 4 scales, which one after the other fill rows of tiles. A tile's
// rows 32 apart stand side by side, four bytes each: what four lanes of a register hold lies in
// one piece.
#pragma once

#include <cstdint>

namespace warpwright::block_scales {

inline constexpr int kTileRows = 128;
inline constexpr int kTileColumns = 4;
inline constexpr int kTileBytes = kTileRows * kTileColumns;

/// Extents of the scales of a rows x k operand, whole tiles.
constexpr std::int64_t padded_rows(std::int64_t rows) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows;
}
constexpr std::int64_t padded_columns(std::int64_t k, int block) {
  const std::int64_t each = std::int64_t{block} * kTileColumns;
  return (k + each - 1) / each * kTileColumns;
}
/// Rows of the scales of `rows` rows in `groups` groups, of which each begins at a tile of its own:
/// where the lengths are known only by the device, as many as there can be.
constexpr std::int64_t grouped_rows(std::int64_t rows, std::int64_t groups) {
  return (rows + (kTileRows - 1) * groups) / kTileRows * kTileRows;
}
/// The byte of a row of a tile where its four scales begin.
constexpr int row_in_tile(int row) {
  return row % 32 * 16 + row / 32 * kTileColumns;
}
/// The byte of the scale of a row and a block, of `columns` in all (a multiple of 4).
constexpr std::int64_t place(std::int64_t row, std::int64_t block, std::int64_t columns) {
  return (row / kTileRows * columns + block / kTileColumns * kTileColumns) * kTileRows +
         row_in_tile(static_cast<int>(row % kTileRows)) + block % kTileColumns;
}

}  // namespace warpwright::block_scales
