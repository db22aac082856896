// The producer of the Hopper kernels: one thread that fills the ring of stages with tiles of A and
// B, and with the tokens' scales where they are copied, K block after K block, tile after tile.
#pragma once

#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

template <class Tag>
class Loader {
 public:
  static constexpr SmemMap smem = smem_map(Tag::config);

  WW_DEVICE explicit Loader(const Cta<Tag>& cta)
      : operands_(cta.p.operands),
        scales_(cta.p.scales),
        cluster_(cta.p.walk.cluster),
        ring_(cta.ring),
        walk_(make_walk<Tag, loading<Tag>>(cta)),
        a_(cta.base + smem.a),
        b_(cta.base + smem.b),
        scales_at_(cta.base + smem.scales),
        at_(cta.at),
        // The masks come ready from the host: the first load should not wait for arithmetic.
        a_mask_(static_cast<std::uint16_t>(operands_.column_mask << at_.x)),
        b_mask_(static_cast<std::uint16_t>(operands_.row_mask << (at_.y * cluster_.m))) {}

  /// Starts the loads of the next K block, as soon as its stage is free; false when all are done.
  /// Where a whole warp looks for the tiles all lanes call it, and one of them, `mine`, loads.
  WW_DEVICE bool step(bool mine = true) {
    constexpr GemmConfig cfg = Tag::config;
    while (block_ == work_.end) {
      if (in_tile_) isa::mark_end();
      in_tile_ = walk_.next(work_);
      if (!in_tile_) return false;
      block_ = work_.first;
      mark_tile<Tag>(work_.tile);
      if constexpr (keeps_slices) {
        a_slice_ = slice_of<true>();
        b_slice_ = slice_of<false>();
      }
      if constexpr (has_group_maps(cfg)) {
        if (mine) acquire_map();
      }
    }
    if (mine) {
      const isa::Mark mark("k block %", block_);
      const bool scales = copies_scales(cfg) && scales_.copies_tokens;
      const isa::SharedAddress full = ring_.acquire(state_, scales ? 4 * copied_scales(cfg) : 0);
      load<true>(a_ + state_.stage * atom::tile_bytes(tile_a(cfg)), full);
      load<false>(b_ + state_.stage * atom::tile_bytes(tile_b(cfg)), full);
      if (scales) {
        // One matrix serves groups, and may serve a whole batch.
        const int matrix = scales_.tokens.batch_stride > 0 ? work_.tile.batch : 0;
        isa::tensor_load(scales_at_ + state_.stage * scale_bytes(cfg), operands_.token_scales, full,
                         isa::Coords{work_.row - work_.row % 4, block_, matrix});
      }
    }
    state_.advance(cfg.stages);
    ++block_;
    return true;
  }

  /// Waits until every stage is released, so that no peer signals this CTA after its end.
  WW_DEVICE void drain() const { ring_.drain(state_); }

 private:
  /// The map of the tokens of the tile's group, for the copies of this thread.
  WW_DEVICE void acquire_map() {
    if (work_.tile.batch == group_) return;
    group_ = work_.tile.batch;
    isa::fence_proxy_tensormap_acquire(operands_.group_maps[2 * group_]);
  }

  /// Where this CTA's slice of one operand's tile lies.
  struct Slice {
    int in_tile = 0;  ///< its first row
    int row = 0;      ///< the same in the map
    int batch = 0;
    bool is_shared = false;  ///< with other CTAs, to whom it goes too
  };

  /// A K block is short beside the arithmetic of a slice, so that is done once a tile, but where
  /// the producer has given its registers away.
  static constexpr bool keeps_slices = producer_registers(Tag::config) >= 80;

  template <bool IsA>
  WW_DEVICE Slice slice_of() const {
    // The map of a group begins with its tokens.
    constexpr bool of_group = has_group_maps(Tag::config) && IsA != Tag::config.swapped;
    const int origin = (IsA ? work_.row : work_.column) - (of_group ? work_.first_token : 0);
    const int in_tile = IsA ? at_.y * operands_.a_slice_rows : at_.x * operands_.b_slice_rows;
    return {in_tile, origin + in_tile,
            work_.tile.batch * (IsA ? operands_.a_batch : operands_.b_batch),
            (IsA ? cluster_.n : cluster_.m) > 1};
  }

  /// This CTA's slice of one operand's tile, `to` a stage: a box of each half, or K-deep boxes of
  /// a span of rows.
  template <bool IsA>
  WW_DEVICE void load(isa::SharedAddress to, isa::SharedAddress full) const {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile = IsA ? tile_a(cfg) : tile_b(cfg);
    constexpr int parts = (IsA ? gated_rows(cfg) : gated_columns(cfg)) ? 2 : 1;
    constexpr int span = atom::span_bytes(tile.swizzle);
    constexpr bool of_group = has_group_maps(cfg) && IsA != cfg.swapped;  // the tokens
    const isa::TensorMap& map = of_group ? operands_.group_maps[2 * work_.tile.batch]
                                : IsA    ? operands_.a
                                         : operands_.b;
    const Slice slice = !keeps_slices ? slice_of<IsA>() : IsA ? a_slice_ : b_slice_;
    const std::uint16_t mask = IsA ? a_mask_ : b_mask_;
    const int k = block_ * tile_k(cfg);
    const auto copy = [&](int in_tile, isa::Coords<3> at) {
      if (slice.is_shared) {
        isa::tensor_load_multicast(to + in_tile * span, map, full, mask, at);
      } else {
        isa::tensor_load(to + in_tile * span, map, full, at);
      }
    };
    WW_UNROLL for (int part = 0; part < parts; ++part) {
      const int in_tile = part * (tile.rows / parts) + slice.in_tile;
      const int row = slice.row + part * operands_.half;
      if constexpr (tile.major == atom::Major::k) {
        copy(in_tile, isa::Coords{k, row, slice.batch});
      } else {
        // A box is `span` rows wide and tile_k deep, as many bytes as a K-major box of them.
        constexpr int box = atom::span_elements(tile);
        static_assert(atom::box_bytes(tile) == box * span);
        const int rows = IsA ? operands_.a_slice_rows : operands_.b_slice_rows;
        for (int r = 0; r < rows; r += box) {
          copy(in_tile + r, isa::Coords{row + r, k, slice.batch});
        }
      }
    }
  }

  const OperandParams& operands_;
  const ScaleParams& scales_;
  const atom::ClusterShape& cluster_;
  const MainloopPipeline<Tag>& ring_;
  Walk<Tag, loading<Tag>> walk_;
  isa::SharedAddress a_;
  isa::SharedAddress b_;
  isa::SharedAddress scales_at_;
  atom::ClusterCoord at_;
  std::uint16_t a_mask_;
  std::uint16_t b_mask_;
  tile::Work work_;
  Slice a_slice_;  // with keeps_slices
  Slice b_slice_;
  int block_ = 0;
  int group_ = -1;  // whose map this thread has acquired last
  bool in_tile_ = false;
  pipeline::PipelineState state_;
};

}  // namespace warpwright::kernel
