// Items of a layer in one launch by warps (warp_layer.h): which block and which tokens a number
// means, and what of it a warp multiplies.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/hopper/layer_units.h"
#include "warpwright/kernel/moe/slot_tiles.h"
#include "warpwright/tile/numbers.h"

namespace warpwright::kernel {

/// An item: a block of the first product with the tokens of an expert, or a block of the second.
struct WarpItem {
  bool is_second = false;
  int block = 0;
  int expert = 0;
  int row = 0;        ///< the first of its tokens' rows
  int rows = 0;       ///< of them, block_tokens at most
  int tiles = 0;      ///< of tokens, of the expert
  int last_rows = 0;  ///< of the last of these
};

/// What a warp multiplies without a break: units of one block, or of gates and ups.
template <class Units>
struct WarpJob {
  typename Units::Source source;
  int unit = 0;
  int end = 0;
  int part = 0;  ///< of K
  bool is_second = false;
};

template <class Units>
class WarpItems {
 public:
  using Slots = SlotTiles<block_tokens, few_slots>;
  using Job = WarpJob<Units>;

  /// Keeps a reference to `p`.
  WW_DEVICE WarpItems(const WarpLayerParams& p, const Slots& slots, int warp, int warps)
      : p_(p), slots_(slots), warp_(warp), warps_(warps) {}

  /// Items of the first product, and of both.
  [[nodiscard]] WW_DEVICE int firsts() const { return slots_.tiles() * of(p_.first_items); }
  [[nodiscard]] WW_DEVICE int count() const { return firsts() + p_.second_items; }

  /// The next item; false when there is none.
  template <class Tickets>
  WW_DEVICE bool next(Tickets& tickets, WarpItem& item) const {
    const int number = tickets.number();
    if (number == pipeline::no_tile) return false;
    const int before = firsts();
    item.is_second = number >= before;
    if (item.is_second) {
      item.block = number - before;
    } else {
      const int tile = p_.first_items.quotient(number);
      item.block = number - tile * of(p_.first_items);
      place_tokens(item, tile);
    }
    return true;
  }

  /// The `turn`-th job of this warp in an item; false when it has none.
  WW_DEVICE bool find(WarpItem& item, int turn, Job& job) const {
    job.is_second = item.is_second;
    const int first = item.block * block_rows;
    if (!item.is_second) {
      if (turn > 0) return false;
      share(job, warp_, p_.first);
      job.source = Units::source(p_.first, item.expert, first);
      return true;
    }
    const int at = warp_ + turn * warps_;
    const int tile = p_.by_parts.quotient(at);
    if (tile >= slots_.tiles()) return false;
    place_tokens(item, tile);
    share(job, at - tile * of(p_.by_parts), p_.second);
    job.source = Units::source(p_.second, item.expert, first);
    return true;
  }

  /// How often warps count for the rows of an expert: each for two rows of a block.
  [[nodiscard]] WW_DEVICE std::uint32_t counts(const WarpItem& item) const {
    const int pairs = (item.tiles - 1) * (block_tokens / 2) + (item.last_rows + 1) / 2;
    return static_cast<std::uint32_t>(pairs * of(p_.first_items));
  }

 private:
  [[nodiscard]] WW_DEVICE static int of(const tile::Divisor& items) {
    return static_cast<int>(items.value);
  }

  /// A share of K, in units.
  WW_DEVICE static void share(Job& job, int part, const WarpProduct& p) {
    job.part = part;
    job.unit = part * p.share;
    job.end = job.unit + p.share < p.k_units ? job.unit + p.share : p.k_units;
  }

  /// The tokens of tile `i`.
  WW_DEVICE void place_tokens(WarpItem& item, int i) const {
    const ExpertTiles e = slots_.expert_of(i);
    item.expert = e.expert;
    item.row = e.first_row + (i - e.first_tile) * block_tokens;
    const int left = e.end_row - item.row;
    item.rows = left < block_tokens ? left : block_tokens;
    item.tiles = e.tiles;
    item.last_rows = e.end_row - e.first_row - (e.tiles - 1) * block_tokens;
  }

  const WarpLayerParams& p_;
  Slots slots_;
  int warp_;
  int warps_;
};

}  // namespace warpwright::kernel
