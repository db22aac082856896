// Groups that are cut evenly: a group of T tokens has as many tiles as in steps of the widest, and
// these are of nearly equal width. So a group that is a little longer than a tile is not cut into a
// full one and a sliver, which would read the same weights and multiply hardly anything.
#pragma once

#include <array>
#include <cstdint>

#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// The widths along the tokens that tiles of one kernel may have.
struct TileWidths {
  static constexpr int most = 6;
  /// In ascending order, the last one the kernel's tile; then zeros. All zeros: only that tile.
  std::array<std::int16_t, most> of = {};

  friend constexpr bool operator==(const TileWidths&, const TileWidths&) = default;
};

constexpr int count(const TileWidths& widths) {
  int n = 0;
  while (n < TileWidths::most && widths.of[n] > 0) ++n;
  return n;
}
constexpr int widest(const TileWidths& widths) {
  return count(widths) == 0 ? 0 : widths.of[count(widths) - 1];
}

/// The number of the narrowest of the first `kinds` that takes `tokens`; the last where none does.
/// Written out, as is the next: a loop that a device does not unroll would read its widths from
/// memory.
constexpr int narrowest_for(const TileWidths& widths, int kinds, int tokens) {
  const auto beyond = [&](int i) { return i < kinds && tokens > widths.of[i - 1] ? 1 : 0; };
  static_assert(TileWidths::most == 6);
  return beyond(1) + beyond(2) + beyond(3) + beyond(4) + beyond(5);
}
/// Tokens of width `number` of the first `kinds`.
constexpr int width_of(const TileWidths& widths, int kinds, int number) {
  int width = widths.of[0];
  const auto take = [&](int i) {
    if (i < kinds && number == i) width = widths.of[i];
  };
  static_assert(TileWidths::most == 6);
  take(1);
  take(2);
  take(3);
  take(4);
  take(5);
  return width;
}

/// From one tile of a group of `tokens`, 1 or more, to the next: all its tiles but the last have
/// this width. They are ceil(tokens / widest).
constexpr int even_step(const TileWidths& widths, int kinds, int tokens) {
  const int most = widths.of[kinds - 1];
  const int tiles = (tokens + most - 1) / most;
  const int each = tiles == 1 ? tokens : (tokens + tiles - 1) / tiles;
  return width_of(widths, kinds, narrowest_for(widths, kinds, each));
}

/// The tiles of `Tiles`, whose columns are tokens, with the groups cut evenly: column, end and
/// width of a tile are its own. Not `Evenly`, all but the last tile of a group are the widest.
template <class Tiles, TileWidths tile_widths, bool Evenly = true>
class EvenTiles {
 public:
  /// `whole`: all tokens of a product without groups; 0 of one with groups.
  WW_DEVICE explicit EvenTiles(const Tiles& tiles, int whole = 0) : tiles_(tiles), whole_(whole) {}

  /// The CTA's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    if (!tiles_.next(work)) return false;
    if (whole_ > 0) work.end_token = whole_;
    constexpr TileWidths widths = tile_widths;
    constexpr int kinds = count(tile_widths);
    const int step =
        Evenly ? even_step(widths, kinds, work.end_token - work.first_token) : widths.of[kinds - 1];
    work.column = work.first_token + work.tile.n * step;
    if (work.end_token > work.column + step) work.end_token = work.column + step;
    work.width = narrowest_for(widths, kinds, work.end_token - work.column);
    return true;
  }

  WW_DEVICE const auto& scheduler() const { return tiles_.scheduler(); }
  WW_DEVICE auto& scheduler() { return tiles_.scheduler(); }

 private:
  Tiles tiles_;
  int whole_;
};

}  // namespace warpwright::tile
