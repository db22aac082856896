// Launch control as a pipeline: the answers to a cluster's requests, from the machine to everybody
// in the cluster who must know the next tile.
//
//   tile_full[q]   1 arrival (the CTA's scheduler, which also expects the 16 bytes of the answer),
//                  in every CTA: an answer lands in all of them
//   tile_empty[q]  one arrival from every reader of every CTA; that of the cluster's first CTA
//   alone
//                  is used, whose scheduler asks
//
// The readers' ends of reading are handed to another CTA for an asynchronous write, so those
// arrivals and that wait are at cluster scope.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/launch_control.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/ring_barriers.h"

namespace warpwright::pipeline {

/// Bytes of one answer.
inline constexpr int launch_answer_bytes = 16;

/// What the pipeline of answers is made of.
struct LaunchControlShape {
  int answers = 0;      ///< that may be on their way or unread
  int readers = 0;      ///< in every CTA
  int mma_readers = 0;  ///< beside them, where MMAs are issued: in every CTA, or in one of a pair
  bool pair = false;
};

/// Arrivals a phase on the first CTA's tile_empty barrier.
constexpr int reader_arrivals(const LaunchControlShape& shape, atom::ClusterShape cluster) {
  const int ctas = atom::cluster_size(cluster);
  return ctas * shape.readers + ctas / (shape.pair ? 2 : 1) * shape.mma_readers;
}

/// The barriers of the pipeline as rows of the table that `explain` prints.
constexpr BarrierRow tile_full_row(const LaunchControlShape& shape) {
  return {"tile_full",
          shape.answers,
          1,
          launch_answer_bytes,
          "scheduler (expects the bytes of the answer)",
          "all roles",
          0};
}
constexpr BarrierRow tile_empty_row(const LaunchControlShape& shape, atom::ClusterShape cluster) {
  return {"tile_empty",
          shape.answers,
          reader_arrivals(shape, cluster),
          0,
          "all roles of all CTAs of the cluster",
          "scheduler of the cluster's first CTA",
          1};
}

/// Bytes of shared memory that the barriers take.
constexpr int barrier_bytes(const LaunchControlShape& shape) {
  return barrier_bytes(shape.answers);
}

/// Who reads an answer: a thread alone, or a whole warp.
enum class Reader : std::uint8_t { thread, warp };

/// The pipeline as one thread uses it. `Shape` is a type with a static constexpr LaunchControlShape
/// named `value`; `barriers` as for UmmaPipeline, `answers` 16-byte aligned shared memory of
/// 16 bytes an answer.
template <class Shape>
class LaunchControl {
 public:
  static constexpr LaunchControlShape shape = Shape::value;
  static_assert(shape.answers >= 1 && shape.answers <= 32);

  WW_DEVICE LaunchControl(isa::SharedAddress barriers, isa::SharedAddress answers,
                          atom::ClusterShape cluster, int rank)
      : ring_{barriers}, answers_(answers), cluster_(cluster), rank_(rank) {}

  /// Initialises the barriers (see UmmaPipeline::initialise).
  WW_DEVICE void initialise() const {
    constexpr LaunchControlShape declared = Shape::value;
    WW_UNROLL for (int q = 0; q < declared.answers; ++q) {
      isa::mbarrier_init(ring_.full(q), 1, {"tile_full", q}, "the scheduler of this CTA");
      isa::mbarrier_init(ring_.empty(q), reader_arrivals(declared, cluster_), {"tile_empty", q},
                         "every role of every CTA of the cluster");
    }
  }

  /// One thread in every CTA: asks for tile after tile until there is none.
  WW_DEVICE void schedule(isa::Site site = isa::Site::here()) const {
    PipelineState state;
    for (bool more = true; more;) {
      if (rank_ == 0) wait_for_readers(state, site);
      isa::mbarrier_arrive_expect(ring_.full(state.stage), launch_answer_bytes, site);
      if (rank_ == 0) request(state, site);
      more = isa::cluster_canceled(read<Reader::thread>(state, site), site);
      state.advance(shape.answers);
    }
    if (rank_ != 0) return;
    // Peers signal this CTA until they have read the last answer.
    for (int q = 0; q < shape.answers; ++q) {
      wait_for_readers(state, site);
      state.advance(shape.answers);
    }
  }

  /// Waits for the answer and gives its place back. Each role reads every answer once.
  template <Reader Who>
  WW_DEVICE isa::LaunchAnswer read(const PipelineState& state,
                                   isa::Site site = isa::Site::here()) const {
    isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                        {"tile_full", state.stage}, site);
    const isa::LaunchAnswer answer = isa::load_launch_answer(slot(state.stage), site);
    // The next answer is written by the asynchronous proxy.
    isa::fence_proxy_async_shared(site);
    if constexpr (Who == Reader::warp) isa::sync_warp(site);
    if (Who == Reader::thread || isa::lane_index() == 0) {
      isa::mbarrier_arrive<isa::Scope::cluster>(isa::map_rank(ring_.empty(state.stage), 0), site);
    }
    return answer;
  }

 private:
  WW_DEVICE void wait_for_readers(const PipelineState& state, isa::Site site) const {
    isa::mbarrier_wait<isa::Scope::cluster>(ring_.empty(state.stage), ring_.empty_parity(state),
                                            {"tile_empty", state.stage}, site);
  }

  WW_DEVICE void request(const PipelineState& state, isa::Site site) const {
    if (atom::cluster_size(cluster_) > 1) {
      isa::try_cancel_multicast(slot(state.stage), ring_.full(state.stage), site);
    } else {
      isa::try_cancel(slot(state.stage), ring_.full(state.stage), site);
    }
  }

  WW_DEVICE isa::SharedAddress slot(int answer) const {
    return answers_ + static_cast<isa::SharedAddress>(answer) * launch_answer_bytes;
  }

  RingBarriers<shape.answers, first_parity(tile_full_row(shape)),
               first_parity(tile_empty_row(shape, {}))>
      ring_;
  isa::SharedAddress answers_;
  atom::ClusterShape cluster_;
  int rank_;
};

}  // namespace warpwright::pipeline
