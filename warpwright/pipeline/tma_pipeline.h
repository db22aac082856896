// The ring of operand tiles between TMA and the tensor core.
//
// Declared by who takes part, everything else follows:
//   full[s]   1 arrival (the CTA's producer thread, which also expects the bytes of A and B, and of
//             what it has copied beside them; the copies of A and B may be issued by any CTA of the
//             row and column), one from every warp that writes its part of a stage itself, and one
//             for every lane that copies its part there by cp.async: it comes by itself, when these
//             copies are complete
//   empty[s]  one arrival from every reader of every CTA that reads what this CTA's producer
//             writes: the CTAs of its cluster column (they share its A) and row (they share its B),
//             (cm + cn - 1) x readers. Where only wgmma reads the stages a reader is a warpgroup,
//             for all of which a wait for its wgmmas speaks; elsewhere a warp.
// Lane r signals the CTA of rank r: of each consumer warp, or of warp r % 4 of the warpgroup. So a
// release costs one instruction.
//
// All scopes are CTA, also for signals across the cluster: what travels over `full` are bytes of
// copies, whose completion is released to the cluster by TMA, and what travels over
// `empty` is the end of reads: the tensor core's, which wgmma_wait has already established, and of
// scales, whose values are there. No generic write is handed on, and a cluster-scope release costs
// a memory barrier (5 times the time of the whole main loop, measured on an H200).
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/ring_barriers.h"

namespace warpwright::pipeline {

/// What a TMA pipeline is made of.
struct TmaPipelineShape {
  int stages = 0;
  int consumer_warps = 0;  ///< of one CTA
  /// For A and B together, arriving in one CTA's stage; without those that `acquire` is told.
  int stage_bytes = 0;
  int writer_warps = 0;     ///< of one CTA, that write to a stage beside the copies
  int copying_lanes = 0;    ///< of one CTA, that copy to a stage by cp.async
  bool wgmma_only = false;  ///< nobody but wgmma reads a stage
};

/// Arrivals with which one CTA says that it has read a stage.
constexpr int readers(const TmaPipelineShape& shape) {
  return shape.wgmma_only ? shape.consumer_warps / 4 : shape.consumer_warps;
}

/// Arrivals a phase on a full barrier.
constexpr int full_arrivals(const TmaPipelineShape& shape) {
  return 1 + shape.writer_warps + shape.copying_lanes;
}

/// Who arrives there, for reports.
constexpr const char* full_arrivers(const TmaPipelineShape& shape) {
  if (shape.copying_lanes > 0 && shape.writer_warps > 0) {
    return "the producer of this CTA, each lane that copies tokens to the stage, warps that write "
           "scales";
  }
  if (shape.copying_lanes > 0) {
    return "the producer of this CTA, and each lane that copies tokens to the stage";
  }
  return "the producer of this CTA, and the warps that write to the stage";
}

/// Arrivals a phase on an empty barrier.
constexpr int empty_arrivals(const TmaPipelineShape& shape, atom::ClusterShape cluster) {
  return (cluster.m + cluster.n - 1) * readers(shape);
}

/// The CTAs whose empty barriers a consumer of CTA `rank` signals: those whose producers write into
/// its stages. The relation is symmetric, so it is also the set of those that signal `rank`.
constexpr std::uint16_t released_ctas(atom::ClusterShape cluster, int rank) {
  return atom::masks(cluster, rank, false).commit;
}

/// The declaration's own consistency: as many readers signal a CTA as its barrier expects.
constexpr bool counts_match(const TmaPipelineShape& shape, atom::ClusterShape cluster) {
  for (int to = 0; to < atom::cluster_size(cluster); ++to) {
    int arrivals = 0;
    for (int from = 0; from < atom::cluster_size(cluster); ++from) {
      if (((released_ctas(cluster, from) >> to) & 1) != 0) arrivals += readers(shape);
    }
    if (arrivals != empty_arrivals(shape, cluster)) return false;
  }
  return true;
}

/// The barriers of the pipeline as rows of the table that `explain` prints.
constexpr BarrierRow full_row(const TmaPipelineShape& shape) {
  return {"full",
          shape.stages,
          full_arrivals(shape),
          shape.stage_bytes,
          shape.copying_lanes > 0 && shape.writer_warps > 0
              ? "producer (expects the bytes of the weights), each lane that copies tokens, warps "
                "that write scales"
          : shape.copying_lanes > 0
              ? "producer (expects the bytes of the weights), each lane that copies tokens"
          : shape.writer_warps > 0
              ? "producer (expects the bytes of A and B), warps that write scales"
              : "producer (expects the bytes of A and B)",
          "consumer warps",
          0};
}
constexpr BarrierRow empty_row(const TmaPipelineShape& shape, atom::ClusterShape cluster) {
  return {"empty",
          shape.stages,
          empty_arrivals(shape, cluster),
          0,
          shape.wgmma_only
              ? "one lane of each consumer warpgroup of the CTAs in its cluster row and column"
              : "one lane of each consumer warp of the CTAs in its cluster row and column",
          "producer",
          1};
}

/// The pipeline as one thread uses it. `Shape` is a type with a static constexpr TmaPipelineShape
/// named `value`. `barriers` is 8-byte aligned shared memory of `barrier_bytes(stages)` bytes.
template <class Shape>
class TmaPipeline {
 public:
  static constexpr TmaPipelineShape shape = Shape::value;
  static_assert(shape.stages >= 1 && readers(shape) >= 1);
  static_assert(!shape.wgmma_only || shape.consumer_warps % 4 == 0, "warpgroups are whole");
  static_assert(shape.stage_bytes >= 0 && shape.stage_bytes < (1 << 20),
                "an mbarrier counts at most 2^20 - 1 transaction bytes");

  /// For a thread that initialises, produces or writes, but does not release.
  WW_DEVICE TmaPipeline(isa::SharedAddress barriers, atom::ClusterShape cluster)
      : ring_{barriers}, cluster_(cluster) {}

  /// For a consumer that signals the CTAs of `released`, as `released_ctas` gives them.
  /// `first_rank` is the rank, in the cluster of the launch, of the first CTA of `cluster`.
  WW_DEVICE TmaPipeline(isa::SharedAddress barriers, atom::ClusterShape cluster,
                        std::uint16_t released, int first_rank = 0)
      : ring_{barriers}, cluster_(cluster) {
    // Whom this lane signals is settled once: a release in the main loop is then one predicated
    // instruction.
    const int lane = isa::lane_index();
    signals_ = lane < 16 && (released >> lane & 1) != 0 &&
               (!shape.wgmma_only || isa::thread_index() / 32 % 4 == lane % 4);
    signalled_ = signals_ ? isa::map_rank(ring_.empty(0), first_rank + lane) : 0;
  }

  /// Initialises the barriers. One thread of the CTA calls it; then its `isa::fence_mbarrier_init`
  /// and the cluster barrier (or a CTA barrier without clusters) publish them. (One thread, because
  /// the instruction takes a uniform address: lanes would go one after the other through a loop.)
  WW_DEVICE void initialise() const {
    constexpr TmaPipelineShape declared = Shape::value;
    WW_UNROLL for (int s = 0; s < declared.stages; ++s) {
      isa::mbarrier_init(ring_.full(s), full_arrivals(declared), {"full", s},
                         full_arrivers(declared));
      isa::mbarrier_init(
          ring_.empty(s), empty_arrivals(declared, cluster_), {"empty", s},
          declared.wgmma_only
              ? "each consumer warpgroup of the CTAs in the same cluster row or column"
              : "each consumer warp of the CTAs in the same cluster row or column");
    }
  }

  // --- producer: one thread a CTA ---------------------------------------------------------------
  /// Waits until all readers have released the stage, then expects its bytes, and `more` beside A
  /// and B. Returns the barrier that the copies of this stage must signal.
  WW_DEVICE isa::SharedAddress acquire(const PipelineState& state, int more = 0,
                                       isa::Site site = isa::Site::sync()) const {
    ring_.acquire(state, site);
    isa::mbarrier_arrive_expect(ring_.full(state.stage), shape.stage_bytes + more, site);
    return ring_.full(state.stage);
  }

  /// The same barrier, for loads that follow behind other `acquire`s.
  WW_DEVICE isa::SharedAddress full(const PipelineState& state) const {
    return ring_.full(state.stage);
  }

  // --- warps that write their part of a stage ---------------------------------------------------
  /// Waits until all readers have released the stage. All lanes call it.
  WW_DEVICE void warp_acquire(const PipelineState& state,
                              isa::Site site = isa::Site::sync()) const {
    ring_.acquire(state, site);
  }

  /// Hands the warp's writes to the readers of the stage. All lanes call it.
  WW_DEVICE void warp_commit(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    isa::sync_warp(site);
    if (isa::lane_index() == 0)
      isa::mbarrier_arrive<isa::Scope::cta>(ring_.full(state.stage), site);
  }

  // --- lanes that copy their part of a stage by cp.async, or write it, behind `warp_acquire` -----
  /// Hands the lane's copies so far to the readers of the stage when they are complete. Every lane
  /// of `copying_lanes` calls it for every stage. Readers by the asynchronous proxy fence behind
  /// their wait.
  WW_DEVICE void copy_commit(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    isa::copy_async_arrive(ring_.full(state.stage), site);
  }
  /// The same of what the lane has written itself.
  WW_DEVICE void lane_commit(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    isa::mbarrier_arrive<isa::Scope::cta>(ring_.full(state.stage), site);
  }

  /// Waits until every stage is released, so that no peer signals this CTA after its end. `state`
  /// is where the next tile would have gone.
  WW_DEVICE void producer_tail(const PipelineState& state,
                               isa::Site site = isa::Site::sync()) const {
    ring_.producer_tail(state, site);
  }

  // --- consumer: all threads of the consumer warps ----------------------------------------------
  /// Asks without commitment whether the stage has landed; the token goes to `wait`.
  WW_DEVICE bool try_wait(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    return isa::mbarrier_try_wait<isa::Scope::cta>(ring_.full(state.stage),
                                                   ring_.full_parity(state), site);
  }

  /// Waits until the stage has landed, unless `token` says that it has.
  WW_DEVICE void wait(const PipelineState& state, bool token = false,
                      isa::Site site = isa::Site::sync()) const {
    if (!token) {
      isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                          {"full", state.stage}, site);
    }
  }

  /// Tells every CTA that writes into this stage that this warp, or with `wgmma_only` its
  /// warpgroup, has read it. All lanes call it, after the wait that covers those reads.
  WW_DEVICE void release(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    if (signals_) {
      isa::mbarrier_arrive<isa::Scope::cta>(
          signalled_ + static_cast<isa::SharedAddress>(state.stage) * 8, site);
    }
  }

 private:
  RingBarriers<shape.stages, first_parity(full_row(shape)), first_parity(empty_row(shape, {}))>
      ring_;
  atom::ClusterShape cluster_;
  bool signals_ = false;              // does this lane signal a CTA on release?
  isa::SharedAddress signalled_ = 0;  // that CTA's empty[0]
};

}  // namespace warpwright::pipeline
