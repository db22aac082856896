// Tokens by index, as the producer warp loads them: a one-row tensor copy for every row of the
// CTA's slice of a k_tile. Rows of 128 bytes lie one behind the other in a K-major tile, and the
// swizzle is of address bits, so that a row by itself lands where a box of many would put it.
//
// Lane l has the rows l, l + 32, ... of the slice, and keeps their tokens for the whole tile. Rows
// past the group's end are not copied: each would cost as much as one that is wanted. What lies in
// their places is multiplied, and never stored.
#pragma once

#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel {

template <class Tag>
class RowsByIndex {
 public:
  static constexpr bool is_a = !is_swapped(Tag::config);
  static constexpr atom::OperandTile tile = is_a ? tile_a(Tag::config) : tile_b(Tag::config);

  WW_DEVICE explicit RowsByIndex(const Cta<Tag>& cta) : index_(cta.p.scales.index) {}

  /// All lanes: looks up the tokens of `rows` rows of the tile at hand, from its row `in_tile` on.
  WW_DEVICE void place(const tile::Work& work, int in_tile, int rows) {
    const int first = is_a ? work.row : work.column;
    const int left = work.end_token - first;
    in_tile_ = left < tile.rows ? (left < 0 ? 0 : left) : tile.rows;
    const int mine = in_tile_ - in_tile;
    count_ = mine < rows ? mine : rows;
    WW_UNROLL for (int i = 0; i < each; ++i) {
      const int row = isa::lane_index() + 32 * i;
      if (row < count_) token_[i] = index_.token(first + in_tile + row);
    }
  }

  /// Bytes of a stage that nobody copies.
  [[nodiscard]] WW_DEVICE int missing_bytes() const {
    constexpr int row = atom::tile_bytes(tile) / tile.rows;
    return (tile.rows - in_tile_) * row;
  }

  /// All lanes: starts the copies of a k_tile from coordinate `k` on, to the slice at `to` of every
  /// CTA of `ctas` (0: this one).
  WW_DEVICE void load(std::uint16_t ctas, isa::SharedAddress to, const isa::TensorMap& map,
                      isa::SharedAddress full, int k) const {
    constexpr int span = atom::span_bytes(tile.swizzle);
    WW_UNROLL for (int i = 0; i < each; ++i) {
      const int row = isa::lane_index() + 32 * i;
      if (row >= count_) continue;
      WW_UNROLL for (int s = 0; s < atom::box_count(tile); ++s) {
        isa::tensor_load_to(ctas, to + s * atom::box_bytes(tile) + row * span, map, full,
                            isa::Coords{k + s * span_k(Tag::config), token_[i], 0});
      }
    }
  }

 private:
  static constexpr int each = (tile.rows + 31) / 32;  // rows of a lane, at most

  const tile::TokenIndex& index_;
  int token_[each] = {};
  int in_tile_ = 0;  // rows of the whole tile that are in the group
  int count_ = 0;    // of the slice
};

}  // namespace warpwright::kernel
