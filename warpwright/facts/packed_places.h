// Where each weight, scale and zero point lies in a packed tile, as layouts; that of the weights is
// derived from wgmma's registers of A.
#pragma once

#include "warpwright/atom/wgmma_layout.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/facts/packed_weights.h"
#include "warpwright/layout/layout.h"

namespace warpwright::packed {

/// (row, k) of a tile -> its four bits among all, the low ones of byte 0 first (see word_of):
/// `((8,2,4),(4,4,2,2,2)):((128,1,1024),(2,32,8,16,4096))`. For a thread's values of a k_block
/// (4 along K, row + 8, k + 16) the neighbours are 2, 1 and 8 apart; the steps of a half follow
/// each other in a thread's bytes, the halves in the tile's.
constexpr layout::Layout nibble_layout(int token_bits = 8) {
  using layout::make_layout;
  using layout::tuple;
  const bool wide = token_bits == 16;
  const layout::Layout words = wide ? make_layout(tuple(atom::kWarpgroupThreads, tuple(2, 2, 2)),
                                                  tuple(2 * kLaneBytes, tuple(2, 1, 4)))
                                    : make_layout(tuple(atom::kWarpgroupThreads, tuple(4, 2, 2)),
                                                  tuple(2 * kLaneBytes, tuple(2, 1, 8)));
  // row + 64 k of one step -> nibble
  const layout::Layout step = layout::composition(
      words, layout::right_inverse(atom::wgmma_layout_a_register_tv(token_bits)));
  const layout::Layout rows = layout::composition(step, make_layout(kTileRows));
  const layout::Layout k =
      layout::composition(step, make_layout(tuple(256 / token_bits), tuple(kTileRows)));
  const layout::Layout steps = wide ? make_layout(tuple(4, 2), tuple(8, 2 * kHalfBytes))
                                    : make_layout(tuple(2, 2), tuple(16, 2 * kHalfBytes));
  return make_layout(rows, layout::flatten(make_layout(k, steps)));
}
inline constexpr layout::Layout kNibbles = nibble_layout();
/// The same for tokens of 16 bits, whose steps have 16 of K; for a thread's values (2 along K, row
/// + 8, k + 8) the neighbours are 2, 1 and 4 apart.
inline constexpr layout::Layout kNibbles16 = nibble_layout(16);

/// (row, slice) of a tile -> its scale among all: `((8,2,4),4):((2,1,16),64)`. A row and the eighth
/// below it, which one thread multiplies, are neighbours.
inline constexpr layout::Layout kScales = layout::make_layout(
    layout::tuple(layout::tuple(8, 2, 4), 4), layout::tuple(layout::tuple(2, 1, 16), kTileRows));

/// (row, slice) of a tile -> its four bits of zero point among all:
/// `((8,2,4),4):((8,1,64),2)`.
inline constexpr layout::Layout kZeroPoints = layout::make_layout(
    layout::tuple(layout::tuple(8, 2, 4), 4), layout::tuple(layout::tuple(8, 1, 64), 2));

/// Four bits -> row + 64 k: `(2,4,4,4,8,4,2):(8,64,1024,256,1,16,4096)`.
inline constexpr layout::Layout kPlaces = layout::right_inverse(kNibbles);
inline constexpr layout::Layout kPlaces16 = layout::right_inverse(kNibbles16);

/// Where a lane word's codes come from: four along K from (row, k) on (neighbours, or as
/// `quad_step` says), and the same of the eighth row below.
struct WordPlace {
  int row;
  int k;
};
constexpr WordPlace word_place(int word) {
  const int place = layout::offset_of<kPlaces>(8 * word);
  return {place % kTileRows, place / kTileRows};
}
constexpr WordPlace word_place(const PackedFormat& f, int word) {
  if (!is_wide(f)) return word_place(word);
  const int place = layout::offset_of<kPlaces16>(8 * word);
  return {place % kTileRows, place / kTileRows};
}

}  // namespace warpwright::packed
