// Where the threads of a register kernel copy to and load from, as values: the TiledCopy that fills
// a stage, and those of ldmatrix, made from the TiledMMA of the tile. The kernels' addresses are
// their parts of a stage.
#pragma once

#include "warpwright/atom/copy_atoms.h"
#include "warpwright/atom/tiled_mma.h"
#include "warpwright/kernel/registers/config.h"

namespace warpwright::kernel {

/// Threads that copy `rows` rows of `row_bytes` bytes, 16 bytes at a time, side by side along the
/// rows: (thread, turn) -> (row, byte).
constexpr layout::Layout copied_places(int rows, int row_bytes, int threads) {
  using layout::make_layout;
  using layout::tuple;
  const int chunks = row_bytes / 16;
  const layout::TiledCopy copy = layout::make_tiled_copy(
      layout::vector_copy(128, 8), make_layout(tuple(threads / chunks, chunks), tuple(chunks, 1)),
      make_layout(tuple(1, 16)));
  const layout::Layout part = copy.tidfrg_s(layout::identity(tuple(rows, row_bytes)));
  return make_layout(layout::mode(part, 0), layout::mode(layout::mode(part, 2), 0));
}

/// The MMAs of a tile's k_blocks by 32-bit words, whatever their elements are: 32 bytes of K lie in
/// a lane's registers as m16n8k8 of words has them. A warp has neighbouring rows and columns.
constexpr atom::TiledMma word_mmas(const RegisterConfig& c) {
  using layout::make_layout;
  using layout::tuple;
  constexpr atom::Mma words{atom::MmaKind::warp, 16, 8, 8, DType::tf32, DType::tf32};
  const int rows = c.tile_m / c.warps_m;
  const int columns = c.tile_n / c.warps_n;
  return atom::make_tiled_mma(
      words, make_layout(tuple(c.warps_m, c.warps_n), tuple(c.warps_n, 1)),
      layout::Tiler(make_layout(tuple(16, c.warps_m, rows / 16), tuple(1, rows, 16)),
                    make_layout(tuple(8, c.warps_n, columns / 8), tuple(1, columns, 8))));
}

/// Where lanes point in the rows of A, and of B, for ldmatrix of four matrices, in words: (thread,
/// ldmatrix, k_block) -> (row, word). One is of 16 rows of A, or of 16 of B, two MMAs' columns.
constexpr layout::Layout matrix_places(const layout::TiledCopy& copy, int rows, int row_bytes) {
  const layout::Layout part = copy.tidfrg_s(layout::identity(layout::tuple(rows, row_bytes / 4)));
  return layout::make_layout(layout::mode(part, 0), layout::mode(layout::mode(part, 1), 1),
                             layout::mode(layout::mode(part, 2), 1));
}
constexpr layout::Layout matrix_places_a(const RegisterConfig& c) {
  return matrix_places(atom::make_tiled_copy_a(atom::ldmatrix_atom(4, 32), word_mmas(c)), c.tile_m,
                       row_bytes(c));
}
constexpr layout::Layout matrix_places_b(const RegisterConfig& c) {
  return matrix_places(atom::make_tiled_copy_b(atom::ldmatrix_atom(4, 32), word_mmas(c)), c.tile_n,
                       row_bytes(c));
}

}  // namespace warpwright::kernel
