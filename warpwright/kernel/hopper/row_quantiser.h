// Tokens of 16 bits that become e4m3 on their way to a stage: two warps read rows by number, find
// the scale of each 128 elements and write codes to where the swizzle of a box of rows would put
// them, and the scales, with those of the weights, behind the stages.
//
// Each warp has every second k_tile, half a warp a row of it, eight elements a lane. Rows come by
// cp.async to a place of their own beside each stage, and a lane reads there only what it has
// copied: the copies of a warp's next k_tile are on their way while it makes codes. The bits are
// those of a launch that quantises (moe/token_rows.h). Codes are written by the generic proxy:
// consumers fence behind their wait for the stage. Rows past the expert's end are not written.
// Their scales are 0, and their sums not stored.
#pragma once

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/quantise/codes.h"
#include "warpwright/kernel/quantise/row_pieces.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel {

/// What one of the warps makes: rows of a tile at hand, as RowCopier copies them.
template <class Tag>
class RowQuantiser {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr atom::OperandTile tile = tile_b(config);
  static_assert(is_swapped(config) && is_blockwise(config) && scale_parts(config) == 1);
  static_assert(atom::box_count(tile) == 1 && tile_k(config) == 128);

  /// Bytes of a stage's rows before they are codes.
  static constexpr int stage_bytes = tile.rows * 256;

  /// For warp `first_row_warp` + `warp`; `base` is where shared memory begins, `rows` where rows of
  /// all stages have their place.
  WW_DEVICE RowQuantiser(isa::SharedAddress base, isa::SharedAddress rows, int warp)
      : warp_(warp),
        first_row_(isa::lane_index() / row_lanes),
        column_(isa::lane_index() % row_lanes * each),
        brings_weights_(isa::lane_index() < weights),
        rows_(rows + first_row_ * 256 + column_ * 2),
        codes_(base + smem_map(config).b),
        scales_(base + smem_map(config).scales) {}

  /// Looks up the tokens of the tile at hand, as RowCopier does.
  template <class TokenOf>
  WW_DEVICE void place(const TokenParams& p, int first, int end, const TokenOf& token_of) {
    const int left = end - first;
    in_tile_ = left < tile.rows ? left : tile.rows;
    k_ = static_cast<int>(p.row_bytes / 2);
    WW_UNROLL for (int i = 0; i < passes; ++i) {
      const int row = i * pass_rows + first_row_;
      const int token = row < in_tile_ ? token_of(first + row) : tile::TokenIndex::none;
      const std::int64_t pieces = token < 0 ? 0 : token * p.pitch_pieces;
      from_[i] = p.data + pieces * 16;
      if (token < 0) absent_ |= 1U << i;
      if (token >= 0) absent_ &= ~(1U << i);
    }
  }

  /// This lane's scales of the tile's weights: at `weight`, and each `step`-th float behind.
  WW_DEVICE void weigh(const float* weight, std::int64_t step) {
    weight_ = weight;
    weight_step_ = step;
  }

  /// Does this warp read rows of an item?
  [[nodiscard]] WW_DEVICE bool reads(const tile::Work& work) const {
    return work.first + warp_ < work.end;
  }

  /// All k_tiles of `work`, from stage to stage of the ring.
  WW_DEVICE void run(const MainloopPipeline<Tag>& ring, const TokenParams& p,
                     const tile::Work& work, pipeline::PipelineState& state) {
    pipeline::PipelineState mine = state;
    mine.skip(warp_, config.stages);
    pipeline::PipelineState ahead = mine;
    WW_NO_UNROLL for (int k_tile = work.first + warp_; k_tile < work.end + row_warps;
                      k_tile += row_warps) {
      if (k_tile < work.end) {
        ring.warp_acquire(ahead);
        copy(p, k_tile, ahead.stage);
        ahead.skip(row_warps, config.stages);
      }
      isa::copy_async_commit();  // of no copies at the end, so that the wait stays the same
      if (k_tile - row_warps < work.first) continue;
      isa::copy_async_wait<1>();
      put(mine.stage);
      // The ring counts all lanes of all warps, and a warp for scales beside them.
      WW_UNROLL for (int i = 0; i < row_warps; ++i) ring.lane_commit(mine);
      if (isa::lane_index() == 0) ring.lane_commit(mine);
      mine.skip(row_warps, config.stages);
    }
    state.skip(work.end - work.first, config.stages);
  }

  WW_DEVICE static void drain() {}

 private:
  static constexpr int each = 8;                // elements of a lane
  static constexpr int row_lanes = 128 / each;  // lanes of a row
  static constexpr int warp_rows = 32 / row_lanes;
  static constexpr int pass_rows = warp_rows;
  static constexpr int passes = (tile.rows + pass_rows - 1) / pass_rows;
  static constexpr int weights = weight_scales(config);
  static constexpr int span = atom::span_bytes(tile.swizzle);
  static_assert(tile.rows % pass_rows == 0 && passes <= 32);

  /// Starts the copies of a k_tile.
  WW_DEVICE void copy(const TokenParams& p, int k_tile, int stage) const {
    const int column = k_tile * 128 + column_;
    WW_UNROLL for (int i = 0; i < passes; ++i) {
      if (i * pass_rows >= in_tile_) break;
      const bool is_none = (absent_ >> i & 1) != 0 || column >= k_;
      isa::copy_async_or_zeros(rows_ + stage * stage_bytes + i * pass_rows * 256,
                               is_none ? p.data : from_[i] + 2 * column, is_none);
    }
    if (!brings_weights_) return;
    isa::copy_async<4>(
        scales_ + stage * scale_bytes(config) + 4 * (copied_scales(config) + isa::lane_index()),
        weight_ + k_tile * weight_step_);
  }

  /// Codes of the rows that have come to `stage`, and their scales.
  WW_DEVICE void put(int stage) const {
    const isa::SharedAddress codes = codes_ + stage * atom::tile_bytes(tile);
    const isa::SharedView<float> scales{scales_ + stage * scale_bytes(config)};
    if (first_row_ == 0 && column_ == 0 && in_tile_ < tile.rows) {
      isa::leave_unwritten(codes + in_tile_ * span, (tile.rows - in_tile_) * span);
    }
    constexpr int at_once = passes < 4 ? passes : 4;
    WW_NO_UNROLL for (int first = 0; first < passes; first += at_once) {
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const int row = (first + i) * pass_rows + first_row_;
        const bool is_there = row < in_tile_;
        float scale = 0;
        if ((first + i) * pass_rows < in_tile_) scale = put_row(codes, stage, row, is_there);
        if (column_ == 0) scales.store(row, is_there ? scale : 0);
      }
    }
  }

  /// This lane's codes of a row, where it is there; returns the scale.
  WW_DEVICE float put_row(isa::SharedAddress codes, int stage, int row, bool is_there) const {
    const Eight eight =
        isa::SharedView<Eight>{rows_ + stage * stage_bytes + (row - first_row_) * 256}.load();
    float value[each];
    WW_UNROLL for (int w = 0; w < each / 2; ++w) {
      const isa::Pair pair = isa::unpack<DType::bf16>(&eight.word[w]);
      value[2 * w] = pair.low;
      value[2 * w + 1] = pair.high;
    }
    const E4m3Divisor by(e4m3_scale(largest_of_lanes<1, row_lanes>(larger_finite(0, value))));
    const std::uint64_t made = codes_of(by, value);
    if (is_there) {
      const isa::SharedAddress at = atom::apply_swizzle(tile.swizzle, codes + row * span + column_);
      isa::SharedView<isa::Words<2>>{at}.store(
          0, {{static_cast<std::uint32_t>(made), static_cast<std::uint32_t>(made >> 32)}});
    }
    return by.scale;
  }

  int warp_;
  int first_row_;              // of this lane, in a tile
  int column_;                 // its first element of a k_tile
  bool brings_weights_;        // this lane
  isa::SharedAddress rows_;    // this lane's first place in those of stage 0
  isa::SharedAddress codes_;   // of stage 0
  isa::SharedAddress scales_;  // likewise
  const std::byte* from_[passes] = {};
  std::uint32_t absent_ = 0;  // bit i: from_[i] is no token's
  int in_tile_ = 0;           // rows of the tile that are the expert's
  int k_ = 0;                 // elements of a row, a multiple of 8
  const float* weight_ = nullptr;
  std::int64_t weight_step_ = 0;
};

}  // namespace warpwright::kernel
