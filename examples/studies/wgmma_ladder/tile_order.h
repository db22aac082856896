// In which order clusters take tiles: along a Hilbert curve, so that tiles of one time share rows
// and columns in L2. Made on the host, as in the original.
#pragma once

#include <cstddef>
#include <vector>

#include "ladder_gemm.h"

namespace study::ladder {

struct Cell {
  int m = 0;
  int n = 0;
};

/// The cell at `index` of the Hilbert curve through a square of `side` x `side`, a power of two.
inline Cell hilbert(int side, int index) {
  if (side == 1) return {};
  const int half = side / 2, quarter = half * half;
  const Cell inner = hilbert(half, index % quarter);
  switch (index / quarter) {
    case 0:
      return {inner.n, inner.m};
    case 1:
      return {inner.m, inner.n + half};
    case 2:
      return {inner.m + half, inner.n + half};
    default:
      return {side - 1 - inner.n, half - 1 - inner.m};
  }
}

/// The lists of `clusters` clusters over tiles_m x tiles_n tiles, dealt in turn along the curve;
/// empty where one of them does not fit into list_length words.
inline std::vector<int> tile_lists(int tiles_m, int tiles_n, int clusters) {
  int side = 1;
  while (side < tiles_m || side < tiles_n) side *= 2;
  std::vector<int> lists(static_cast<std::size_t>(clusters) * list_length, -1);
  int dealt = 0;
  for (int i = 0; i < side * side; ++i) {
    const Cell cell = hilbert(side, i);
    if (cell.m >= tiles_m || cell.n >= tiles_n) continue;
    const int place = dealt / clusters;
    if (place >= list_length) return {};
    const auto list = static_cast<std::size_t>(dealt % clusters) * list_length;
    lists[list + static_cast<std::size_t>(place)] = cell.m << 16 | cell.n;
    ++dealt;
  }
  return lists;
}

}  // namespace study::ladder
