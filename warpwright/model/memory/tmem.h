// Tensor memory of one CTA: 128 lanes x 512 columns of 32 bits. Internal to model/.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "warpwright/atom/umma.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

struct Thread;

/// Some columns of some lanes. Lanes count by halves of a warp's: bit 2*quarter + half, 16 each.
struct TmemRegion {
  std::uint8_t halves = 0xff;
  int column = 0;
  int columns = 0;
};

/// Region's bookkeeping goes by pieces of 32 lanes x 8 columns, numbered quarter * 64 + column / 8,
/// with a bit for each column and half of the lanes.
inline constexpr int tmem_piece_columns = 8;
inline constexpr int tmem_pieces = 4 * atom::kTmemColumns / tmem_piece_columns;

/// Calls visit(number of the piece, mask of its bits) for every piece that the region touches.
template <class Visit>
void for_each_tmem_piece(const TmemRegion& region, const Visit& visit) {
  const int end = region.column + region.columns;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const unsigned halves = region.halves >> 2 * quarter & 3U;
    if (halves == 0) continue;
    for (int at = region.column; at < end;) {
      const int piece = at / tmem_piece_columns;
      const int stop = std::min(end, (piece + 1) * tmem_piece_columns);
      unsigned mask = 0;
      for (; at < stop; ++at) mask |= halves << 2 * (at % tmem_piece_columns);
      visit(quarter * (tmem_pieces / 4) + piece, static_cast<std::uint16_t>(mask));
    }
  }
}

struct Tmem {
  struct Block {
    int column = 0;
    int columns = 0;
    Site site;
  };

  std::vector<float> cells;                          // by lanes; empty until the first allocation
  std::array<std::uint16_t, tmem_pieces> defined{};  // bits of pieces that something has written
  std::vector<Block> blocks;                         // allocated, in the order of allocation
  int granted = atom::kTmemColumns;                  // columns of the latest allocation
  bool relinquished = false;
  int ctas = 0;  // the cta_group that the CTA uses; 0 before its first tcgen05 instruction
  std::vector<Thread*> waiting;  // for room, or for the pair's other CTA
  // A call that waits for the same of the pair's other CTA.
  struct Call {
    const char* what = nullptr;
    int columns = 0;
    int column = -1;  // the result
    bool done = false;
  };
  Call call;

  float* at(int lane, int column) {
    return cells.data() + static_cast<std::size_t>(lane) * atom::kTmemColumns + column;
  }
  [[nodiscard]] bool free(int column, int columns) const {
    return column + columns <= atom::kTmemColumns &&
           std::none_of(blocks.begin(), blocks.end(), [&](const Block& b) {
             return b.column < column + columns && column < b.column + b.columns;
           });
  }
  [[nodiscard]] bool allocated(const TmemRegion& region) const {
    return std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) {
      return region.column >= b.column && region.column + region.columns <= b.column + b.columns;
    });
  }
  /// Is there a part of it that nothing has written?
  [[nodiscard]] bool lacks(const TmemRegion& region) const {
    bool undefined = false;
    for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
      undefined = undefined || (mask & ~defined[static_cast<std::size_t>(piece)]) != 0;
    });
    return undefined;
  }
  void define(const TmemRegion& region) {
    for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
      defined[static_cast<std::size_t>(piece)] |= mask;
    });
  }
};

}  // namespace warpwright::model
