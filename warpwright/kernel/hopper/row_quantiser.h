// Tokens of 16 bits that become e4m3 on their way to a stage: two warps read rows by number, find
// the scale of each 128 elements and write codes to where the swizzle of a box of rows would put
// them, and the scales, with those of the weights, behind the stages.
//
// Half a warp has a row of a k_tile, eight elements a lane. The loads of some k_tiles are on their
// way, in registers, while those before are handed out. The bits are those of a launch that
// quantises (moe/token_rows.h). All writes are generic: consumers fence behind their wait for the
// stage. Rows past the expert's end are not written. Their scales are 0, and their sums not stored.
#pragma once

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

  /// For warp `first_row_warp` + `warp`; `base` is where shared memory begins.
  WW_DEVICE RowQuantiser(isa::SharedAddress base, int warp)
      : first_row_(warp * warp_rows + isa::lane_index() / row_lanes),
        column_(isa::lane_index() % row_lanes * each),
        brings_weights_(warp == 0),
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

  /// All k_tiles of `work`, from stage to stage of the ring.
  WW_DEVICE void run(const MainloopPipeline<Tag>& ring, const TokenParams& /*p*/,
                     const tile::Work& work, pipeline::PipelineState& state) {
    Batch next;
    fetch(next, work.first, work.end);
    WW_NO_UNROLL for (int first = work.first; first < work.end; first += ahead) {
      const Batch current = next;
      if (first + ahead < work.end) fetch(next, first + ahead, work.end);
      WW_UNROLL for (int j = 0; j < ahead; ++j) {
        if (first + j < work.end) {
          ring.warp_acquire(state);
          put(current, j, state.stage);
          ring.lane_commit(state);
          // The ring counts a warp for scales beside these lanes.
          if (brings_weights_ && isa::lane_index() == 0) ring.lane_commit(state);
          state.advance(config.stages);
        }
      }
    }
  }

  WW_DEVICE static void drain() {}

 private:
  static constexpr int each = 8;                // elements of a lane
  static constexpr int row_lanes = 128 / each;  // lanes of a row
  static constexpr int warp_rows = 32 / row_lanes;
  static constexpr int pass_rows = row_warps * warp_rows;
  static constexpr int passes = (tile.rows + pass_rows - 1) / pass_rows;
  static constexpr int ahead = passes < 8 ? 8 / passes : 1;  // k_tiles in registers
  static constexpr int weights = weight_scales(config);
  static constexpr int span = atom::span_bytes(tile.swizzle);
  static_assert(tile.rows % pass_rows == 0 && passes <= 32);

  struct Batch {
    Eight chunk[ahead][passes];
    float weight[ahead];
  };

  /// Starts the loads of the k_tiles from `first` on, before `end`.
  WW_DEVICE void fetch(Batch& to, int first, int end) {
    WW_UNROLL for (int j = 0; j < ahead; ++j) {
      WW_UNROLL for (int i = 0; i < passes; ++i) {
        const int column = (first + j) * 128 + column_;
        const bool reads = (absent_ >> i & 1) == 0 && first + j < end && column < k_;
        to.chunk[j][i] =
            reads ? isa::global_view<const Eight>(from_[i] + 2 * column).load() : Eight{};
      }
      const bool has_weight = brings_weights_ && isa::lane_index() < weights && first + j < end;
      to.weight[j] =
          has_weight ? isa::GlobalView<const float>{weight_}.load((first + j) * weight_step_) : 0;
    }
  }

  WW_DEVICE void put(const Batch& from, int j, int stage) const {
    const isa::SharedAddress codes = codes_ + stage * atom::tile_bytes(tile);
    const isa::SharedView<float> scales{scales_ + stage * scale_bytes(config)};
    if (first_row_ == 0 && column_ == 0 && in_tile_ < tile.rows) {
      isa::leave_unwritten(codes + in_tile_ * span, (tile.rows - in_tile_) * span);
    }
    WW_UNROLL for (int i = 0; i < passes; ++i) {
      const int row = i * pass_rows + first_row_;
      float scale = 0;
      if (i * pass_rows < in_tile_) {
        float value[each];
        WW_UNROLL for (int w = 0; w < each / 2; ++w) {
          const isa::Pair pair = isa::unpack<DType::bf16>(&from.chunk[j][i].word[w]);
          value[2 * w] = pair.low;
          value[2 * w + 1] = pair.high;
        }
        const E4m3Divisor by(e4m3_scale(largest_of_lanes<1, row_lanes>(larger_finite(0, value))));
        const std::uint64_t made = codes_of(by, value);
        if (row < in_tile_) {
          scale = by.scale;
          const isa::SharedAddress at =
              atom::apply_swizzle(tile.swizzle, codes + row * span + column_);
          isa::SharedView<isa::Words<2>>{at}.store(
              0, {{static_cast<std::uint32_t>(made), static_cast<std::uint32_t>(made >> 32)}});
        }
      }
      if (column_ == 0) scales.store(row, scale);
    }
    if (brings_weights_ && isa::lane_index() < weights) {
      scales.store(copied_scales(config) + isa::lane_index(), from.weight[j]);
    }
  }

  int first_row_;  // of this lane, in a tile
  int column_;     // its first element of a k_tile
  bool brings_weights_;
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
