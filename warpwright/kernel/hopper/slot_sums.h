// The last product of a mixture of experts adds up the slots of its tokens itself, where these are
// few: no launch behind it.
//
// A warp stores 16 columns of the rows of a tile, and then counts, for the token of each row, in a
// word of that token and these columns. Whoever counts the last of the token's rows adds them all
// up, as slot_adder.h does it: in the order of the rows, so that the bits do not depend on who it
// is. Counting releases the stores and acquires those of who counted before. Nobody waits, so no
// schedule can hang; the words are 0 before the launch (the sort clears them) and nobody's
// afterwards. Tokens without a slot, which no tile has, become 0 by an idle warp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/moe/slot_adder.h"

namespace warpwright::kernel {

/// For a CTA, as warp `first_row` / 16 of those that share a tile sees it.
template <class Tag>
class SlotSums {
 public:
  static constexpr GemmConfig config = Tag::config;
  static_assert(warp_rows == CountedSlots::strip);

  WW_DEVICE explicit SlotSums(const Cta<Tag>& cta)
      : p_(cta.p.slots), ready_(cta.ready), adder_(cta.p.slots.sums, cta.p.slots.team) {}

  /// One warp, when it has stored its rows of the kernel, from `first_row` of each atom of the tile
  /// on, which are columns of D.
  WW_DEVICE void add(const tile::Work& work, int first_row) const {
    const int lane = isa::lane_index();
    WW_NO_UNROLL for (int first = 0; first < config.tile_n; first += 32) {
      const int row = work.column + first + lane;
      const bool inside = first + lane < config.tile_n && row < work.end_token;
      // While the stores are on their way.
      const int token = inside ? token_of(row) : 0;
      const std::uint32_t rows = inside ? rows_of(token) : 0;
      isa::sync_warp();  // all lanes have stored
      WW_NO_UNROLL for (int i = 0; i < row_atoms(config); ++i) {
        const int column = work.row + first_row + 64 * i;
        if (column >= p_.sums.k) break;
        const bool is_last = inside && isa::flag_count(count_of(token, column)) + 1 == rows;
        add_tokens(isa::ballot(is_last), token, column);
      }
    }
  }

  /// One warp of every CTA.
  WW_DEVICE void clear() const {
    const int lane = isa::lane_index();
    for (int token = isa::cta_index(); token < p_.sums.tokens; token += isa::cta_count()) {
      const bool has_row = lane < p_.sums.top_k && row_of(token, lane) >= 0;
      if (isa::ballot(has_row) != 0) continue;
      for (int column = lane * SlotAdder::each; column < p_.sums.k;
           column += 32 * SlotAdder::each) {
        adder_.clear(token, column);
      }
    }
  }

 private:
  WW_DEVICE int token_of(int row) const {
    return p_.by_top_k.quotient(isa::GlobalView<const std::int32_t>{p_.slots}.load(row));
  }
  WW_DEVICE int row_of(int token, int j) const {
    return isa::GlobalView<const std::int32_t>{p_.sums.rows}.load(
        std::int64_t{token} * p_.sums.top_k + j);
  }
  WW_DEVICE std::uint32_t rows_of(int token) const {
    std::uint32_t rows = 0;
    for (int j = 0; j < p_.sums.top_k; ++j) rows += row_of(token, j) >= 0 ? 1 : 0;
    return rows;
  }
  WW_DEVICE std::uint32_t* count_of(int token, int column) const {
    return p_.counts + token * p_.strips + column / warp_rows;
  }

  /// The tokens of those `lanes`, in 16 columns from `column` on: two lanes of a team each.
  WW_DEVICE void add_tokens(std::uint32_t lanes, int token, int column) const {
    if (lanes == 0) return;
    isa::sync_warp();  // what a lane has acquired, all have
    const int mine = adder_.lane_of_team();
    const int at = mine < warp_rows / SlotAdder::each ? column + mine * SlotAdder::each : p_.sums.k;
    while (lanes != 0) {
      int from = -1;  // the lane whose token is my team's
      for (int first = 0; first < 32; first += p_.team) {
        const bool is_mine = first == isa::lane_index() - mine;
        if (is_mine && lanes != 0) from = isa::lowest_lane(lanes);
        lanes &= lanes - 1;
      }
      const auto its =
          static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(token), from < 0 ? 0 : from));
      adder_.add<config.result>(ready_, from < 0 ? -1 : its, at);
    }
  }

  const CountedSlots& p_;
  isa::Prerequisites ready_;
  SlotAdder adder_;
};

/// In the place of one, where rows are not added up.
template <class Tag>
struct NoSlotSums {
  WW_DEVICE explicit NoSlotSums(const Cta<Tag>& /*cta*/) {}
  WW_DEVICE void add(const tile::Work& /*work*/, int /*first_row*/) const {}
};

template <class Tag>
using SlotSumsOf = std::conditional_t<Tag::config.sums_slots, SlotSums<Tag>, NoSlotSums<Tag>>;

}  // namespace warpwright::kernel
