// Tokens by index: the lanes of the load warp gather them into the ring, four rows a copy
// (tile::gather4), to where the swizzle of a box of many rows would put them. Rows past the
// group's end, and numbers that name no token, come as zeros: a stage of a tile always has as many
// bytes as the tile is wide.
#pragma once

#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel::blackwell {

/// As BoxColumns, or, where the launch has an index, by the numbers of tokens: all lanes of a warp
/// load then.
template <class Tag>
class TokenColumns : public BoxColumns<Tag> {
 public:
  using Slice = ColumnSlice<Tag>;
  using Box = BoxColumns<Tag>;
  using Box::Box;

  /// Looks up the tokens: those of rows 4 l to 4 l + 3 of the slice are lane l's.
  WW_DEVICE void place(const tile::Work& work) {
    static_assert(Tag::config.tile_n <= 4 * 32, "a lane has one copy of a stage");
    Box::place(work);
    const tile::TokenIndex& index = Slice::p_.scales.index;
    if (!index.is_there()) return;
    WW_UNROLL for (int i = 0; i < 4; ++i) {
      const int in_slice = first_row() + i;
      const int row = Slice::row_ + in_slice;
      const bool inside = in_slice < Slice::rows_ && row < work.end_token;
      tokens_[i] = inside ? index.token(row) : tile::TokenIndex::none;
    }
  }

  /// k_tile `k_tile` into `stage`, which lane 0 has waited for.
  WW_DEVICE void load(bool mine, isa::SharedAddress full, const tile::Work& work, int stage,
                      int k_tile) const {
    if (!Slice::p_.scales.index.is_there()) return Box::load(mine, full, work, stage, k_tile);
    isa::sync_warp();
    if (first_row() >= Slice::rows_) return;
    isa::tensor_gather4_to<Slice::ctas>(Slice::to_, Slice::place(stage) + first_row() * Slice::span,
                                        Slice::p_.operands.b, full, k_tile * tile_k(Tag::config),
                                        tokens_);
  }

 private:
  WW_DEVICE static int first_row() { return 4 * isa::lane_index(); }

  int tokens_[4] = {};
};

template <class Tag>
using ColumnsOf = std::conditional_t<takes_index(Tag::config), TokenColumns<Tag>, BoxColumns<Tag>>;

}  // namespace warpwright::kernel::blackwell
