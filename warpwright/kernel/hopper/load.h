// The producer of the Hopper kernels: one thread that fills the ring of stages with tiles of A and
// B, and with the tokens' scales where they are copied, k_tile after k_tile, tile after tile.
#pragma once

#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/hopper/packed.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

template <class Tag>
class Loader {
 public:
  static constexpr SmemMap smem = smem_map(Tag::config);
  /// Whether the first tile is found before the CTA is ready: where only the parameters say which
  /// it is, and the search is short enough to stand in the code twice.
  static constexpr bool finds_early = !is_grouped(Tag::config) && !splits_k(Tag::config);

  WW_DEVICE explicit Loader(const Cta<Tag>& cta)
      : operands_(cta.p.operands),
        scales_(cta.p.scales),
        ring_(cta.ring),
        walk_(first_walk(cta)),
        scales_at_(cta.base + smem.scales),
        a_(first_of(cta)),
        b_(operand<false>(cta)),
        widths_(cta),
        early_(asks_early(Tag::config) && cta.p.walk.weights_early) {}

  /// Fetches the maps that the first loads need. One thread is enough.
  WW_DEVICE static void prefetch_maps(const GemmParams& p) {
    constexpr GemmConfig cfg = Tag::config;
    const bool of_tokens = !gathers(cfg);  // by index they have no map
    if (!packed_a(cfg) && (of_tokens || is_swapped(cfg))) isa::prefetch_map(p.operands.a);
    if (of_tokens || !is_swapped(cfg)) isa::prefetch_map(p.operands.b);
    if (copies_scales(cfg) && p.scales.copies_tokens) isa::prefetch_map(p.operands.token_scales);
  }

  /// Before the CTA is ready, of packed weights: asks L2 for those of the first tile, which depend
  /// on no grid before. For groups it is not known yet, and guessed: the one that is this CTA's
  /// where each group has a tile of tokens. One thread is enough.
  WW_DEVICE static void prefetch_weights(const GemmParams& p, atom::ClusterCoord at) {
    constexpr GemmConfig cfg = Tag::config;
    if constexpr (packed_a(cfg) && is_grouped(cfg)) {
      const tile::Divisor& weights = p.walk.groups.by_weights;
      const int number = isa::cluster_index();
      tile::Work work;
      work.tile.batch = weights.quotient(number);
      if (p.operands.packed.ahead == 0 || work.tile.batch >= p.walk.groups.offsets.groups()) return;
      const int tile = number - work.tile.batch * static_cast<int>(weights.value);
      work.row = (tile * p.walk.cluster.m + at.x) * result_rows(cfg);
      WeightLoader<Tag> loader(p.operands, 0);
      loader.place(work);
      loader.prefetch(0);
    }
  }
  /// Without groups the first tile has been found.
  WW_DEVICE void prefetch_weights() const {
    if constexpr (packed_a(Tag::config)) {
      if (found_) a_.prefetch(work_.first);
    }
  }

  /// Looks for the next tile; false when there is none. Where a whole warp looks for the tiles all
  /// lanes call it.
  WW_DEVICE bool find() {
    found_ = walk_.next(work_);
    if (!found_) return false;
    block_ = work_.first;
    if constexpr (packed_a(Tag::config)) {
      a_.place(work_);
    } else {
      place<true>(a_);
    }
    place<false>(b_);
    if constexpr (has_widths(Tag::config)) widths_.narrow(b_, work_);
    return true;
  }

  /// Loads all k_tiles of all tiles, each as soon as its stage is free; with `finds_early` the
  /// first has been found. All lanes call it, or one, as `find`.
  WW_DEVICE void run(bool mine) {
    if constexpr (finds_early) {
      for (; found_; find()) load_tile(mine);
    } else {
      while (find()) {
        if (early_) load_early(mine);
        load_tile(mine);
      }
      if constexpr (asks_early(Tag::config)) {
        if (early_) wait_early();  // there was no tile
      }
    }
  }

  /// Waits until every stage is released, so that no peer signals this CTA after its end.
  WW_DEVICE void producer_tail() const { ring_.producer_tail(state_); }

 private:
  /// One operand's part of a stage that this CTA loads: a slice of its rows, for all CTAs that
  /// share them. What can be worked out once is: a k_tile is short.
  struct Slice {
    isa::SharedAddress to = 0;  ///< in stage 0
    int in_tile = 0;            ///< its first row
    std::uint16_t ctas = 0;     ///< to whom it goes, or 0: only to this CTA
    int row = 0;                ///< in the map, of the tile at hand
    int batch = 0;
  };

  /// The tokens of a tile that is as wide as all others.
  struct OneWidth {
    WW_DEVICE explicit OneWidth(const Cta<Tag>& /*cta*/) {}
    WW_DEVICE static const isa::TensorMap& tokens(const OperandParams& p,
                                                  const tile::Work& /*work*/) {
      return p.b;
    }
  };

  /// Those of tiles of several widths. A narrower one leaves the end of a stage's part as it is.
  struct Widths {
    WW_DEVICE explicit Widths(const Cta<Tag>& cta)
        : p(cta.p), x(cta.at.x), stages(cta.base + smem.b) {}

    /// What this CTA loads of them, with `slice` placed at the tile's first row.
    WW_DEVICE void narrow(Slice& slice, const tile::Work& work) {
      constexpr GemmConfig cfg = Tag::config;
      constexpr int span = atom::span_bytes(tile_b(cfg).swizzle);
      constexpr tile::TileWidths widths = tile_widths(cfg);
      const int width = tile::width_of(widths, tile::count(widths), work.width);
      missing = (cfg.tile_n - width) * (atom::tile_bytes(tile_b(cfg)) / cfg.tile_n);
      const int before = slice.in_tile;
      slice.in_tile = x * p.walk.cluster_m.quotient(width);
      slice.to = stages + slice.in_tile * span;
      slice.row += slice.in_tile - before;
    }
    WW_DEVICE const isa::TensorMap& tokens(const OperandParams& operands,
                                           const tile::Work& work) const {
      constexpr int last = tile::count(tile_widths(Tag::config)) - 1;
      return work.width == last ? operands.b : p.narrower[work.width];
    }

    const WidthsGemmParams& p;
    int x;
    isa::SharedAddress stages;
    int missing = 0;  ///< bytes, of a stage of the tile at hand
  };

  /// The tiles, which are found ahead of the sort of slots where the launch says of which ids.
  WW_DEVICE static auto first_walk(const Cta<Tag>& cta) {
    if constexpr (asks_early(Tag::config)) {
      // Consumers write there when the first tile is multiplied.
      static_assert(smem.scales - smem.epilogue >= tile::OffsetsAhead::bytes);
      const WalkParams& p = cta.p.walk;
      return make_walk<Tag, loading<Tag>>(
          cta, tile::SpansAhead(p.groups.offsets, cta.ready, p.ahead, cta.base + smem.epilogue));
    } else {
      return make_walk<Tag, loading<Tag>>(cta);
    }
  }

  /// A: a slice, or packed tiles, which are not shared.
  WW_DEVICE static auto first_of(const Cta<Tag>& cta) {
    if constexpr (packed_a(Tag::config)) {
      return WeightLoader<Tag>(cta.p.operands, cta.base + smem.a);
    } else {
      return operand<true>(cta);
    }
  }

  template <bool IsA>
  WW_DEVICE static Slice operand(const Cta<Tag>& cta) {
    constexpr int span =
        atom::span_bytes((IsA ? tile_a(Tag::config) : tile_b(Tag::config)).swizzle);
    const OperandParams& p = cta.p.operands;
    const atom::ClusterShape& cluster = cta.p.walk.cluster;
    const std::uint16_t ctas = IsA ? p.a_ctas(cta.at) : p.b_ctas(cta.at, cluster);
    Slice slice;
    slice.in_tile = IsA ? cta.at.y * p.a_slice_rows : cta.at.x * p.b_slice_rows;
    slice.to = cta.base + (IsA ? smem.a : smem.b) + slice.in_tile * span;
    slice.ctas = (IsA ? cluster.n : cluster.m) > 1 ? ctas : std::uint16_t{0};
    return slice;
  }

  /// Where the slice lies in the map, of the tile at hand.
  template <bool IsA>
  WW_DEVICE void place(Slice& slice) const {
    slice.row = (IsA ? work_.row : work_.column) + slice.in_tile;
    slice.batch = work_.tile.batch * (IsA ? operands_.a_batch : operands_.b_batch);
  }

  /// All lanes: until the grid before has ended. (Only a launch of a mixture comes here.)
  WW_DEVICE void wait_early() {
    isa::wait_for_prerequisites();
    walk_.scheduler().spans().written();
  }

  /// All lanes, of the first tile, before the grid before has ended: asks for the weights of as
  /// many k_tiles as there are stages, waits, and asks for their tokens.
  WW_DEVICE void load_early(bool mine) {
    if constexpr (asks_early(Tag::config)) {
      constexpr int stages = Tag::config.stages;
      early_ = false;
      isa::sync_warp();  // all have read offsets counted ahead, before a consumer may write there
      const pipeline::PipelineState first = state_;
      const int begin = block_;
      const int end = work_.end - begin < stages ? work_.end : begin + stages;
      WW_NO_UNROLL for (; block_ != end; ++block_) {
        if (mine) load_first();
        state_.advance(stages);
      }
      state_ = first;
      wait_early();
      WW_NO_UNROLL for (block_ = begin; block_ != end; ++block_) {
        if (mine) load_second(ring_.full(state_));
        state_.advance(stages);
      }
    }
  }

  WW_DEVICE void load_tile(bool mine) {
    mark_tile<is_grouped(Tag::config), is_swapped(Tag::config)>(work_.tile);
    WW_NO_UNROLL for (; block_ != work_.end; ++block_) {
      if (mine) load_block();
      state_.advance(Tag::config.stages);
    }
    isa::mark_end();
  }

  WW_DEVICE void load_block() const {
    const isa::Mark mark("k_tile %", block_);
    load_second(load_first());
  }

  [[nodiscard]] WW_DEVICE bool brings_scales() const {
    return copies_scales(Tag::config) && scales_.copies_tokens;
  }

  /// Waits until the stage is free, expects its bytes, and starts the loads of A. Returns the
  /// barrier that all loads of the stage signal.
  WW_DEVICE isa::SharedAddress load_first() const {
    constexpr GemmConfig cfg = Tag::config;
    int more = brings_scales() ? 4 * copied_scales(cfg) : 0;
    if constexpr (has_widths(cfg)) more -= widths_.missing;
    if constexpr (packed_a(cfg)) more += a_.bytes();
    const isa::SharedAddress full = ring_.acquire(state_, more);
    // Tokens by index are copied by other warps.
    if constexpr (packed_a(cfg)) {
      a_.load(state_.stage, block_, full);
    } else if constexpr (!gathers(cfg) || is_swapped(cfg)) {
      load<true>(a_, full);
    }
    return full;
  }

  /// Starts the loads of B, and of the tokens' scales.
  WW_DEVICE void load_second(isa::SharedAddress full) const {
    constexpr GemmConfig cfg = Tag::config;
    if constexpr (!gathers(cfg) || !is_swapped(cfg)) load<false>(b_, full);
    if (brings_scales()) {
      // One matrix serves groups, and may serve a whole batch.
      const int matrix = scales_.tokens.batch_stride > 0 ? work_.tile.batch : 0;
      isa::tensor_load(scales_at_ + state_.stage * scale_bytes(cfg), operands_.token_scales, full,
                       isa::Coords{work_.row - work_.row % 4, block_, matrix});
    }
  }

  /// The k_tile's slice of one operand: a box of each part and span along K, or K-deep boxes of a
  /// span of rows.
  template <bool IsA>
  WW_DEVICE void load(const Slice& slice, isa::SharedAddress full) const {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile = IsA ? tile_a(cfg) : tile_b(cfg);
    constexpr int parts = (IsA ? gated_rows(cfg) : gated_columns(cfg)) ? 2 : 1;
    constexpr int span = atom::span_bytes(tile.swizzle);
    const isa::TensorMap& map = IsA ? operands_.a : widths_.tokens(operands_, work_);
    const isa::SharedAddress to = slice.to + state_.stage * atom::tile_bytes(tile);
    const int k = block_ * tile_k(cfg);
    WW_UNROLL for (int part = 0; part < parts; ++part) {
      const isa::SharedAddress at = to + part * (tile.rows / parts) * span;
      // The part is a dimension of weights that are gates and ups.
      const auto load_box = [&](isa::SharedAddress box, int inner, int outer) {
        if constexpr (parts == 2) {
          isa::tensor_load_to(slice.ctas, box, map, full,
                              isa::Coords{inner, outer, part, slice.batch});
        } else {
          isa::tensor_load_to(slice.ctas, box, map, full, isa::Coords{inner, outer, slice.batch});
        }
      };
      if constexpr (tile.major == atom::Major::k) {
        WW_UNROLL for (int s = 0; s < atom::box_count(tile); ++s) {
          load_box(at + s * atom::box_bytes(tile), k + s * span_k(cfg), slice.row);
        }
      } else {
        // A box is `span` rows wide and tile_k deep, as many bytes as a K-major box of them.
        constexpr int box = atom::span_elements(tile);
        static_assert(atom::box_bytes(tile) == box * span);
        const int rows = IsA ? operands_.a_slice_rows : operands_.b_slice_rows;
        for (int r = 0; r < rows; r += box) {
          load_box(at + r * span, slice.row + r, k);
        }
      }
    }
  }

  const OperandParams& operands_;
  const ScaleParams& scales_;
  MainloopPipeline<Tag> ring_;
  std::conditional_t<asks_early(Tag::config), WalkAhead<Tag>, Walk<Tag, loading<Tag>>> walk_;
  isa::SharedAddress scales_at_;
  std::conditional_t<packed_a(Tag::config), WeightLoader<Tag>, Slice> a_;
  Slice b_;
  std::conditional_t<has_widths(Tag::config), Widths, OneWidth> widths_;
  tile::Work work_;
  int block_ = 0;
  bool found_ = false;
  bool early_;  // the grid before may still run, and the first tile's weights are asked for
  pipeline::PipelineState state_;
};

}  // namespace warpwright::kernel
