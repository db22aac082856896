// The ring of operand tiles between TMA and an MMA of tcgen05, of one CTA or of a pair.
//
// Declared by who takes part, everything else follows:
//   full[s]   1 arrival (the thread that loads, which also expects the bytes). With a pair only the
//             even CTA's is used: it expects the bytes of both CTAs, and the loads of both signal
//             it
//   empty[s]  one arrival from every MMA issuer whose MMA reads what this CTA's loads write: those
//             of its cluster column (they share its A) and row (they share its B). A commit of the
//             issuer arrives at all of them at once (atom::masks)
// A commit counts when the MMAs before it are complete, so an issuer releases a stage right after
// it has issued its MMAs.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/ring_barriers.h"

namespace warpwright::pipeline {

/// What a pipeline from TMA to MMAs is made of.
struct UmmaPipelineShape {
  int stages = 0;
  int stage_bytes = 0;  ///< of A and B together, arriving in one CTA's stage
  bool pair = false;    ///< an MMA reads the stages of two CTAs
};

/// Transaction bytes a phase of a full barrier: those of all CTAs whose loads signal it.
constexpr int full_bytes(const UmmaPipelineShape& shape) {
  return shape.stage_bytes * (shape.pair ? 2 : 1);
}

/// Arrivals a phase on an empty barrier.
constexpr int empty_arrivals(const UmmaPipelineShape& shape, atom::ClusterShape cluster) {
  return cluster.m / (shape.pair ? 2 : 1) + cluster.n - 1;
}

/// The declaration's own consistency: as many commits reach a CTA as its barrier expects, and all
/// CTAs that receive one of its slices are among their issuers' CTAs.
constexpr bool counts_match(const UmmaPipelineShape& shape, atom::ClusterShape cluster) {
  for (int to = 0; to < atom::cluster_size(cluster); ++to) {
    const atom::Masks own = atom::masks(cluster, to, shape.pair);
    int arrivals = 0;
    for (int from = 0; from < atom::cluster_size(cluster); ++from) {
      const bool reads = ((own.a | own.b) >> from & 1) != 0;
      const int issuer = shape.pair ? from & ~1 : from;
      const bool signals = (atom::masks(cluster, issuer, shape.pair).commit >> to & 1) != 0;
      if (reads && !signals) return false;
      if (from == issuer && signals) ++arrivals;
    }
    if (arrivals != empty_arrivals(shape, cluster)) return false;
  }
  return true;
}

/// The barriers of the pipeline as rows of the table that `explain` prints.
constexpr BarrierRow full_row(const UmmaPipelineShape& shape) {
  return {"full",
          shape.stages,
          1,
          full_bytes(shape),
          shape.pair ? "load thread of the even CTA (expects the bytes of both CTAs)"
                     : "load thread (expects the bytes of A and B)",
          shape.pair ? "MMA thread of the even CTA" : "MMA thread",
          0};
}
constexpr BarrierRow empty_row(const UmmaPipelineShape& shape, atom::ClusterShape cluster) {
  return {"empty",
          shape.stages,
          empty_arrivals(shape, cluster),
          0,
          shape.pair ? "commits of the pairs in its cluster columns and row"
                     : "commits of the CTAs in its cluster column and row",
          "load thread",
          1};
}

/// Bytes of shared memory that the barriers take.
constexpr int barrier_bytes(const UmmaPipelineShape& shape) {
  return barrier_bytes(shape.stages);
}

/// The pipeline as one thread uses it. `Shape` is a type with a static constexpr UmmaPipelineShape
/// named `value`. `barriers` is 8-byte aligned shared memory of `barrier_bytes` bytes at the same
/// offset in all CTAs; `rank` the CTA's in its cluster; `commit_mask` that of its MMA issuer.
template <class Shape>
class UmmaPipeline {
 public:
  static constexpr UmmaPipelineShape shape = Shape::value;
  static constexpr int ctas = shape.pair ? 2 : 1;
  static_assert(shape.stages >= 1 && shape.stages <= 32);
  static_assert(full_bytes(shape) > 0 && full_bytes(shape) < (1 << 20),
                "an mbarrier counts at most 2^20 - 1 transaction bytes");

  WW_DEVICE UmmaPipeline(isa::SharedAddress barriers, atom::ClusterShape cluster, int rank,
                         std::uint16_t commit_mask)
      : ring_{barriers}, cluster_(cluster), rank_(rank), commit_mask_(commit_mask) {}

  /// Initialises the barriers (see TmaPipeline::initialise). One thread of the CTA calls it.
  WW_DEVICE void initialise() const {
    constexpr UmmaPipelineShape declared = Shape::value;
    WW_UNROLL for (int s = 0; s < declared.stages; ++s) {
      isa::mbarrier_init(ring_.full(s), 1, {"full", s}, "the load thread of the MMA's first CTA");
      isa::mbarrier_init(ring_.empty(s), empty_arrivals(declared, cluster_), {"empty", s},
                         "the MMAs of the CTAs or pairs in the same cluster column or row");
    }
  }

  // --- loads: one thread a CTA -----------------------------------------------------------------
  /// Waits until all MMAs that read the stage are complete; then the first CTA of the MMA expects
  /// the bytes, and `more` in each of its CTAs. Returns the barrier that the copies of this stage
  /// must signal.
  WW_DEVICE isa::SharedAddress acquire(const PipelineState& state, int more = 0,
                                       isa::Site site = isa::Site::sync()) const {
    constexpr UmmaPipelineShape declared = Shape::value;
    ring_.acquire(state, site);
    const int bytes = full_bytes(declared) + more * ctas;
    if (!declared.pair || atom::is_pair_leader(rank_)) {
      isa::mbarrier_arrive_expect(ring_.full(state.stage), bytes, site);
    }
    return full(state);
  }

  /// The same barrier, for copies that follow behind.
  WW_DEVICE isa::SharedAddress full(const PipelineState& state) const {
    const isa::SharedAddress own = ring_.full(state.stage);
    return shape.pair ? atom::pair_leader_address(own) : own;
  }

  /// Waits until every stage is released, so that no peer signals this CTA after its end. `state`
  /// is where the next tile would have gone.
  WW_DEVICE void producer_tail(const PipelineState& state,
                               isa::Site site = isa::Site::sync()) const {
    ring_.producer_tail(state, site);
  }

  // --- MMAs: the thread that issues them -------------------------------------------------------
  /// Waits until the stage has landed, in both CTAs of a pair.
  WW_DEVICE void wait(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                        {"full", state.stage}, site);
  }

  /// Tells every CTA that writes into this stage when the MMAs issued so far have read it.
  WW_DEVICE void release(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    if (shape.pair || atom::cluster_size(cluster_) > 1) {
      isa::tcgen05_commit_multicast<ctas>(ring_.empty(state.stage), commit_mask_, site);
    } else {
      isa::tcgen05_commit<ctas>(ring_.empty(state.stage), site);
    }
  }

 private:
  RingBarriers<shape.stages, first_parity(full_row(shape)), first_parity(empty_row(shape, {}))>
      ring_;
  atom::ClusterShape cluster_;
  int rank_;
  std::uint16_t commit_mask_;
};

}  // namespace warpwright::pipeline
