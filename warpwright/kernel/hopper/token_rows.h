// Tokens by index: two warps beside the producer copy the rows of a tile's tokens into the ring by
// cp.async, 16 bytes a lane, to where the swizzle of a box of many rows would put them. (A tensor
// copy of each row takes its warp 61 clocks, and four warps 22 together, measured on an H200.)
//
// A lane has one place in a row, and the same in every eighth (of narrower spans: sixteenth, ...)
// row of the tile, so the place in shared memory follows from the lane once. No lane waits for its
// copies: when those of a k_tile are complete, they arrive at the stage's full barrier themselves,
// while the lane is stages ahead. cp.async belongs to the generic proxy, and wgmma reads through
// the async one: the consumers fence, behind their wait for that barrier. (A fence here would wait
// for the newest copies too.) Rows past the group's end are not copied. What lies in their places
// is multiplied, and never stored.
#pragma once

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel {

/// What one of the warps copies: the rows of a tile at hand. Which they are, and when, says the
/// walk of the kernel.
template <class Tag>
class RowCopier {
 public:
  static constexpr SmemMap smem = smem_map(Tag::config);
  static constexpr bool is_a = !is_swapped(Tag::config);
  static constexpr atom::OperandTile tile = is_a ? tile_a(Tag::config) : tile_b(Tag::config);

  /// For warp `first_row_warp` + `warp`; `base` is where shared memory begins.
  WW_DEVICE RowCopier(isa::SharedAddress base, int warp)
      : first_row_(warp * warp_rows + isa::lane_index() / row_lanes),
        first_of_warp_(warp * warp_rows),
        column_(isa::lane_index() % row_lanes * 16) {
    const isa::SharedAddress at = base + (is_a ? smem.a : smem.b) + first_row_ * span + column_;
    to_ = atom::apply_swizzle(tile.swizzle, at);
  }

  /// Looks up the tokens of the tile at hand, whose rows go from `first` to `end` at most:
  /// `token_of(row)` is one of `p`, or negative for none. Lane l keeps where the warp's rows l,
  /// l + 32, ... begin.
  template <class TokenOf>
  WW_DEVICE void place(const TokenParams& p, int first, int end, const TokenOf& token_of) {
    const int left = end - first;
    in_tile_ = left < tile.rows ? left : tile.rows;
    WW_UNROLL for (int i = 0; i < each; ++i) {
      const int mine = isa::lane_index() + 32 * i;
      const int row = mine / warp_rows * pass_rows + first_of_warp_ + mine % warp_rows;
      const int token = row < in_tile_ ? token_of(first + row) : tile::TokenIndex::none;
      begin_[i] = token < 0 ? none : static_cast<std::uint32_t>(token * p.pitch_pieces);
    }
  }

  /// All k_tiles of `work`, from stage to stage of the ring.
  WW_DEVICE void run(const MainloopPipeline<Tag>& ring, const TokenParams& p,
                     const tile::Work& work, pipeline::PipelineState& state) const {
    WW_NO_UNROLL for (int block = work.first; block != work.end; ++block) {
      ring.warp_acquire(state);
      copy(p, state.stage, block);
      ring.copy_commit(state);
      state.advance(Tag::config.stages);
    }
  }

  /// At the end: nothing may be on its way to shared memory when the thread ends.
  WW_DEVICE static void drain() {
    isa::copy_async_commit();
    isa::copy_async_wait<0>();
  }

 private:
  /// Starts the copies of k_tile `block` into `stage`.
  WW_DEVICE void copy(const TokenParams& p, int stage, int block) const {
    isa::SharedAddress to = to_ + stage * atom::tile_bytes(tile);
    WW_UNROLL for (int s = 0; s < atom::box_count(tile); ++s) {
      leave_rest(to);
      const std::int64_t at = std::int64_t{block * atom::box_count(tile) + s} * span;
      if (at + span <= p.row_bytes) {
        copy_whole(to, p.data + at + column_);
      } else {
        copy_end(p, to, at + column_);
      }
      to += atom::box_bytes(tile);
    }
  }

  static constexpr int span = atom::span_bytes(tile.swizzle);
  static constexpr int row_lanes = span / 16;              // lanes of a row
  static constexpr int warp_rows = 32 / row_lanes;         // rows that a warp copies at once
  static constexpr int pass_rows = row_warps * warp_rows;  // and all
  static constexpr int passes = (tile.rows + pass_rows - 1) / pass_rows;
  static constexpr std::uint32_t none = ~0U;
  static constexpr int each = (passes * warp_rows + 31) / 32;  // rows that a lane keeps
  static_assert(pass_rows % 8 == 0, "the swizzle of a lane's place is that of all its rows");

  static constexpr int per_register = 32 / warp_rows;  // passes whose rows a register has

  /// Where this lane's row of pass `in` of those of register `begin` begins, in pieces of 16 bytes.
  /// All lanes call it.
  WW_DEVICE static std::uint32_t begin_of(std::uint32_t begin, int in) {
    return isa::shuffle(begin, in * warp_rows + isa::lane_index() / row_lanes);
  }

  /// Rows past the group's end are not copied, and their sums not stored: those of a box at `to`,
  /// which one lane of all says.
  WW_DEVICE void leave_rest(isa::SharedAddress to) const {
    const int in = in_tile_ < 0 ? 0 : in_tile_;  // a pair's second tile may lie past the end
    if (first_row_ == 0 && column_ == 0 && in < tile.rows) {
      isa::leave_unwritten(to + in * span, (tile.rows - in) * span);
    }
  }

  /// A span of which all bytes are of the rows. What is in no row, or of no token, becomes zeros.
  /// Several passes at once: their shuffles and addresses take longer one after the other.
  WW_DEVICE void copy_whole(isa::SharedAddress to, const std::byte* from) const {
    constexpr int at_once = passes < 4 ? passes : 4;
    WW_UNROLL for (int first = 0; first < passes; first += at_once) {
      if (first * pass_rows >= in_tile_) break;
      std::uint32_t begin[at_once];
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        begin[i] = begin_of(begin_[(first + i) / per_register], (first + i) % per_register);
      }
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const bool is_none = begin[i] == none;
        const std::uint64_t bytes = std::uint64_t{is_none ? 0 : begin[i]} * 16;
        isa::copy_async_or_zeros(to + (first + i) * pass_rows * span, from + bytes, is_none);
      }
    }
  }

  /// The last span, which ends behind the rows' last byte. This lane's bytes begin `at` into a row.
  WW_DEVICE void copy_end(const TokenParams& p, isa::SharedAddress to, std::int64_t at) const {
    const std::int64_t left = p.row_bytes - at;
    const int bytes = left >= 16 ? 16 : left > 0 ? static_cast<int>(left) : 0;
    WW_UNROLL for (int i = 0; i < each; ++i) {
      WW_NO_UNROLL for (int in = 0; in < per_register; ++in) {
        const int pass = i * per_register + in;
        if (pass * pass_rows >= in_tile_) return;
        const std::uint32_t begin = begin_of(begin_[i], in);
        const bool reads = begin != none && bytes > 0;
        isa::copy_async<16>(to + pass * pass_rows * span,
                            p.data + (reads ? std::int64_t{begin} * 16 + at : 0),
                            reads ? bytes : 0);
      }
    }
  }

  int first_row_;          // of this lane, in a tile
  int first_of_warp_;      // of its warp
  int column_;             // bytes into a row's span
  isa::SharedAddress to_;  // in stage 0
  std::uint32_t begin_[each] = {};
  int in_tile_ = 0;  // rows of the tile that are in the group
};

template <class Tag>
class RowLoader {
 public:
  /// For warp `first_row_warp` + `warp`.
  WW_DEVICE RowLoader(const Cta<Tag>& cta, int warp)
      : p_(cta.p.operands.tokens),
        index_(cta.p.scales.index),
        ring_(cta.ring),
        walk_(make_walk<Tag>(cta)),
        rows_(cta.base, warp) {}

  /// One whole warp: all tiles of this CTA.
  WW_DEVICE void run() {
    pipeline::PipelineState state;
    while (walk_.next(work_)) {
      rows_.place(p_, RowCopier<Tag>::is_a ? work_.row : work_.column, work_.end_token,
                  [&](int row) { return index_.token(row); });
      rows_.run(ring_, p_, work_, state);
    }
    RowCopier<Tag>::drain();
  }

 private:
  const TokenParams& p_;
  const tile::TokenIndex& index_;
  MainloopPipeline<Tag> ring_;
  Walk<Tag> walk_;
  RowCopier<Tag> rows_;
  tile::Work work_;
};

}  // namespace warpwright::kernel
