// The producer of the Hopper kernels: one thread that fills the ring of stages with tiles of A and
// B, and with the tokens' scales where they are copied, k_tile after k_tile, tile after tile. What
// it loads are sources (sources.h). Here are the ring, the walk over the tiles, and what is asked
// for before the grid before has ended.
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/kernel/hopper/sources.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

template <class Tag>
class Loader {
  static constexpr GemmConfig config = Tag::config;
  using A = std::conditional_t<is_swapped(config), WeightSource<Tag>, TokenSource<Tag>>;
  using B = std::conditional_t<is_swapped(config), TokenSource<Tag>, WeightSource<Tag>>;

 public:
  /// Whether the first tile is found before the CTA is ready: where only the parameters say which
  /// it is, and the search is short enough to stand in the code twice.
  static constexpr bool finds_early = !is_grouped(config) && !splits_k(config);

  WW_DEVICE explicit Loader(const Cta<Tag>& cta)
      : operands_(cta.p.operands),
        params_(cta.p.scales),
        ring_(cta.ring),
        walk_(first_walk(cta)),
        scales_at_(cta.base + smem_map(config).scales),
        a_(A::of(cta)),
        b_(B::of(cta)),
        scales_(cta),
        early_(asks_early(config) && cta.p.walk.weights_early) {}

  /// Fetches the maps that the first loads need. One thread is enough.
  WW_DEVICE static void prefetch_maps(const GemmParams& p) {
    A::prefetch_map(p.operands);
    B::prefetch_map(p.operands);
    CopiedScales<Tag>::prefetch_map(p);
  }

  /// Before the CTA is ready: asks L2 for weights of the first tile, which depend on no grid
  /// before. It is guessed; with `finds_early` the other one is called when it has been found. One
  /// thread is enough.
  WW_DEVICE static void prefetch_guessed(const GemmParams& p, atom::ClusterCoord at) {
    A::prefetch_guessed(p, at);
  }
  WW_DEVICE void prefetch_found() const {
    if (found_) a_.prefetch(work_);
  }

  /// Looks for the next tile; false when there is none. Where a whole warp looks for the tiles all
  /// lanes call it.
  WW_DEVICE bool find() {
    found_ = walk_.next(work_);
    if (!found_) return false;
    k_tile_ = work_.first;
    a_.place(operands_, work_);
    b_.place(operands_, work_);
    return true;
  }

  /// Loads all k_tiles of all tiles, each as soon as its stage is free; with `finds_early` the
  /// first has been found. All lanes call it, or one, as `find`.
  WW_DEVICE void run(bool mine) {
    if constexpr (finds_early) {
      for (; found_; find()) load_tile(mine);
    } else {
      while (find()) {
        if (is_early()) load_early(mine);
        load_tile(mine);
      }
      if (is_early()) wait_early();  // there was no tile
    }
  }

  /// Waits until every stage is released, so that no peer signals this CTA after its end.
  WW_DEVICE void producer_tail() const { ring_.producer_tail(state_); }

 private:
  /// The tiles, which are found ahead of the sort of slots where the launch says of which ids.
  WW_DEVICE static auto first_walk(const Cta<Tag>& cta) {
    if constexpr (asks_early(config)) {
      constexpr SmemMap smem = smem_map(config);
      // Consumers write there when the first tile is multiplied.
      static_assert(smem.scales - smem.epilogue >= tile::OffsetsAhead::bytes);
      const WalkParams& p = cta.p.walk;
      return make_walk<Tag, loading<Tag>>(
          cta, tile::SpansAhead(p.groups.offsets, cta.ready, p.ahead, cta.base + smem.epilogue));
    } else {
      return make_walk<Tag, loading<Tag>>(cta);
    }
  }

  /// May the grid before still run, and are the first tile's weights asked for?
  [[nodiscard]] WW_DEVICE bool is_early() const { return asks_early(config) && early_; }

  /// All lanes: until the grid before has ended. (Only a launch of a mixture comes here.)
  WW_DEVICE void wait_early() {
    isa::wait_for_prerequisites();
    if constexpr (asks_early(config)) walk_.scheduler().spans().written();
  }

  /// All lanes, of the first tile, before the grid before has ended: asks for the weights of as
  /// many k_tiles as there are stages, waits, and asks for their tokens.
  WW_DEVICE void load_early(bool mine) {
    constexpr int stages = config.stages;
    early_ = false;
    isa::sync_warp();  // all have read offsets counted ahead, before a consumer may write there
    const pipeline::PipelineState first = state_;
    const int begin = k_tile_;
    const int end = work_.end - begin < stages ? work_.end : begin + stages;
    WW_NO_UNROLL for (; k_tile_ != end; ++k_tile_) {
      if (mine) load_first();
      state_.advance(stages);
    }
    state_ = first;
    wait_early();
    WW_NO_UNROLL for (k_tile_ = begin; k_tile_ != end; ++k_tile_) {
      if (mine) load_second(ring_.full(state_));
      state_.advance(stages);
    }
  }

  WW_DEVICE void load_tile(bool mine) {
    mark_tile<is_grouped(config), is_swapped(config)>(work_.tile);
    WW_NO_UNROLL for (; k_tile_ != work_.end; ++k_tile_) {
      if (mine) load_stage();
      state_.advance(config.stages);
    }
    isa::mark_end();
  }

  WW_DEVICE void load_stage() const {
    const isa::Mark mark("k_tile %", k_tile_);
    load_second(load_first());
  }

  /// Waits until the stage is free, expects its bytes, and starts the loads of A. Returns the
  /// barrier that all loads of the stage signal.
  WW_DEVICE isa::SharedAddress load_first() const {
    const int more = scales_.more(params_) + b_.more() + a_.more();
    const isa::SharedAddress full = ring_.acquire(state_, more);
    a_.load(operands_, state_.stage, k_tile_, full);
    return full;
  }

  /// Starts the loads of B, and of the tokens' scales.
  WW_DEVICE void load_second(isa::SharedAddress full) const {
    b_.load(operands_, state_.stage, k_tile_, full);
    scales_.load(operands_, params_, scales_at_ + state_.stage * scale_bytes(config), work_,
                 k_tile_, full);
  }

  const OperandParams& operands_;
  const ScaleParams& params_;
  MainloopPipeline<Tag> ring_;
  std::conditional_t<asks_early(config), WalkAhead<Tag>, Walk<Tag, loading<Tag>>> walk_;
  isa::SharedAddress scales_at_;  // of stage 0
  A a_;
  B b_;
  CopiedScales<Tag> scales_;
  tile::Work work_;
  int k_tile_ = 0;
  bool found_ = false;
  bool early_;
  pipeline::PipelineState state_;
};

}  // namespace warpwright::kernel
