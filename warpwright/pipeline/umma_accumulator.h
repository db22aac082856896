// The accumulators in tensor memory, from the MMAs that fill them to the epilogue that empties
// them, and the end of the tensor memory itself.
//
//   acc_full[a]   1 arrival: the commit behind the last MMA of a tile, in both CTAs of a pair
//   acc_empty[a]  one arrival from every epilogue warp of the MMA's CTAs; with a pair only the
//                 even CTA's is used, where the issuer waits
//   acc_read      where two accumulators share columns: the same arrivals, at the end
//   tmem_done     only with pairs, in the odd CTA: 1 arrival, the issuer's, when both epilogues
//                 have read their last accumulators and the tensor memory may be freed
//
// Two accumulators that share columns are one to acc_full and acc_empty. The epilogue empties the
// columns they share first and gives only those back: the MMAs of the next tile touch no others of
// this one, and those of the tile after it wait for the next one's, whose epilogue follows this
// tile's. That all has been read is said once, at the end.
//
// What is handed on is tensor memory, ordered by the fences of tcgen05, and the end of reads, so
// all scopes are CTA.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/ring_barriers.h"

namespace warpwright::pipeline {

/// What a pipeline from MMAs to the epilogue is made of.
struct UmmaAccumulatorShape {
  int accumulators = 0;
  int epilogue_warps = 0;  ///< of one CTA
  bool pair = false;       ///< an MMA writes the tensor memory of two CTAs
  bool overlaps = false;   ///< the one is two that share columns
};

/// Epilogue warps of all CTAs of one MMA.
constexpr int epilogue_arrivals(const UmmaAccumulatorShape& shape) {
  return shape.epilogue_warps * (shape.pair ? 2 : 1);
}

/// The barriers of the pipeline as rows of the table that `explain` prints.
constexpr BarrierRow acc_full_row(const UmmaAccumulatorShape& shape) {
  return {"acc_full",
          shape.accumulators,
          1,
          0,
          shape.pair ? "commit of the pair's MMAs" : "commit of the MMAs",
          "epilogue warps",
          0};
}
constexpr BarrierRow acc_empty_row(const UmmaAccumulatorShape& shape) {
  return {"acc_empty",
          shape.accumulators,
          epilogue_arrivals(shape),
          0,
          shape.pair ? "epilogue warps of both CTAs" : "epilogue warps",
          shape.pair ? "MMA thread of the even CTA" : "MMA thread",
          1};
}
constexpr BarrierRow acc_read_row(const UmmaAccumulatorShape& shape) {
  BarrierRow row = acc_empty_row(shape);
  row.name = "acc_read";
  row.first_wait_parity = 0;
  return row;
}
constexpr BarrierRow tmem_done_row() {
  return {"tmem_done", 1, 1, 0, "MMA thread of the even CTA", "MMA warp of the odd CTA", 0};
}

/// Bytes of shared memory that the barriers take.
constexpr int barrier_bytes(const UmmaAccumulatorShape& shape) {
  return barrier_bytes(shape.accumulators) + (shape.pair ? 8 : 0) + (shape.overlaps ? 8 : 0);
}

/// The pipeline as one thread uses it. `Shape` is a type with a static constexpr
/// UmmaAccumulatorShape named `value`; `barriers` as for UmmaPipeline.
template <class Shape>
class UmmaAccumulator {
 public:
  static constexpr UmmaAccumulatorShape shape = Shape::value;
  static constexpr int ctas = shape.pair ? 2 : 1;
  static_assert(shape.accumulators >= 1 && shape.epilogue_warps >= 1);

  WW_DEVICE UmmaAccumulator(isa::SharedAddress barriers, int rank) : ring_{barriers}, rank_(rank) {}

  /// Initialises the barriers (see UmmaPipeline::initialise).
  WW_DEVICE void initialise() const {
    constexpr UmmaAccumulatorShape declared = Shape::value;
    WW_UNROLL for (int a = 0; a < declared.accumulators; ++a) {
      isa::mbarrier_init(ring_.full(a), 1, {"acc_full", a}, "the commit of the tile's MMAs");
      isa::mbarrier_init(ring_.empty(a), epilogue_arrivals(declared), {"acc_empty", a},
                         "each epilogue warp of the MMA's CTAs");
    }
    if (declared.overlaps) {
      isa::mbarrier_init(read(), epilogue_arrivals(declared), {"acc_read", 0},
                         "each epilogue warp of the MMA's CTAs");
    }
    if (declared.pair) {
      isa::mbarrier_init(done(), 1, {"tmem_done", 0}, "the MMA thread of the even CTA");
    }
  }

  // --- MMAs: the thread that issues them -------------------------------------------------------
  /// Waits until the epilogue has read what the accumulator held.
  WW_DEVICE void acquire(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    isa::mbarrier_wait<isa::Scope::cta>(ring_.empty(state.stage), ring_.empty_parity(state),
                                        {"acc_empty", state.stage}, site);
    isa::tcgen05_fence_after_sync(site);
  }

  /// Tells the epilogue of every CTA of the MMA when the MMAs issued so far are complete.
  WW_DEVICE void commit(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    if constexpr (ctas == 2) {
      const auto both = static_cast<std::uint16_t>(3U << rank_);  // the issuer's rank is even
      isa::tcgen05_commit_multicast<ctas>(ring_.full(state.stage), both, site);
    } else {
      isa::tcgen05_commit<ctas>(ring_.full(state.stage), site);
    }
  }

  /// Waits until the epilogue has read every accumulator, and tells the other CTA of a pair.
  /// `state` is where the next tile would have gone.
  WW_DEVICE void producer_tail(PipelineState state, isa::Site site = isa::Site::sync()) const {
    for (int a = 0; a < shape.accumulators; ++a) {
      acquire(state, site);
      state.advance(shape.accumulators);
    }
    if constexpr (shape.overlaps) {
      isa::mbarrier_wait<isa::Scope::cta>(read(), read_parity, {"acc_read", 0}, site);
      isa::tcgen05_fence_after_sync(site);
    }
    if constexpr (ctas == 2) {
      isa::tcgen05_fence_before_sync(site);
      isa::mbarrier_arrive<isa::Scope::cta>(isa::map_rank(done(), atom::pair_peer(rank_)), site);
    }
  }

  /// In the odd CTA of a pair: waits until the issuer has drained. All lanes of a warp call it.
  WW_DEVICE void wait_for_issuer(isa::Site site = isa::Site::sync()) const {
    isa::mbarrier_wait<isa::Scope::cta>(done(), done_parity, {"tmem_done", 0}, site);
    isa::tcgen05_fence_after_sync(site);
  }

  // --- epilogue: all lanes of its warps --------------------------------------------------------
  /// Waits until the accumulator is complete. One lane asks; the others must not fall behind it, or
  /// they would look for a phase that is long over.
  WW_DEVICE void wait(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    if (isa::lane_index() == 0) {
      isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                          {"acc_full", state.stage}, site);
    }
    isa::sync_warp(site);
    isa::tcgen05_fence_after_sync(site);
  }

  /// Gives the accumulator back, or of two that share columns these. All loads of it must have been
  /// waited for, which the lanes do together.
  WW_DEVICE void release(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    tell(ring_.empty(state.stage), site);
  }

  /// At the end: all of every accumulator has been read.
  WW_DEVICE void consumer_tail(isa::Site site = isa::Site::sync()) const {
    if constexpr (shape.overlaps) tell(read(), site);
  }

 private:
  WW_DEVICE static void tell(isa::SharedAddress own, isa::Site site) {
    if (isa::lane_index() == 0) {
      isa::tcgen05_fence_before_sync(site);
      isa::mbarrier_arrive<isa::Scope::cta>(shape.pair ? atom::pair_leader_address(own) : own,
                                            site);
    }
  }

  WW_DEVICE isa::SharedAddress read() const { return ring_.end() + (shape.pair ? 8 : 0); }
  WW_DEVICE isa::SharedAddress done() const { return ring_.end(); }

  static constexpr int read_parity = first_parity(acc_read_row(shape));
  static constexpr int done_parity = first_parity(tmem_done_row());

  RingBarriers<shape.accumulators, first_parity(acc_full_row(shape)),
               first_parity(acc_empty_row(shape))>
      ring_;
  int rank_;
};

}  // namespace warpwright::pipeline
