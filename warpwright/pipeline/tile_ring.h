// Which tile next, as a pipeline: a ring of answers, from the one CTA of a cluster that asks to
// everybody in the cluster who must know.
//
//   tile_full[q]   1 arrival (the CTA's scheduler, which also expects the 16 bytes of the answer),
//                  in every CTA: an answer lands in all of them
//   tile_empty[q]  one arrival from every reader of every CTA; only that of the cluster's first CTA
//                  is used, whose scheduler asks
//
// An answer is the number of a tile in a line of them, or no_tile. Where it comes from is a policy
// (tile/numbers.h, tile/clc_tiles.h).
#pragma once

#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/ring_barriers.h"

namespace warpwright::pipeline {

/// The number behind the last tile: there is no more.
inline constexpr int no_tile = 0x7fffffff;

/// Bytes of one answer.
inline constexpr int answer_bytes = 16;

/// What the ring is made of.
struct TileRingShape {
  int answers = 0;      ///< that may be on their way or unread
  int readers = 0;      ///< in every CTA, its scheduler among them
  int mma_readers = 0;  ///< beside them, where MMAs are issued: in every CTA, or in one of a pair
  bool pair = false;
};

/// Arrivals a phase on the first CTA's tile_empty barrier.
constexpr int reader_arrivals(const TileRingShape& shape, atom::ClusterShape cluster) {
  const int ctas = atom::cluster_size(cluster);
  return ctas * shape.readers + ctas / (shape.pair ? 2 : 1) * shape.mma_readers;
}

/// The barriers of the ring as rows of the table that `explain` prints.
constexpr BarrierRow tile_full_row(const TileRingShape& shape) {
  return {"tile_full",
          shape.answers,
          1,
          answer_bytes,
          "scheduler (expects the bytes of the answer)",
          "all roles",
          0};
}
constexpr BarrierRow tile_empty_row(const TileRingShape& shape, atom::ClusterShape cluster) {
  return {"tile_empty",
          shape.answers,
          reader_arrivals(shape, cluster),
          0,
          "all roles of all CTAs of the cluster",
          "scheduler of the cluster's first CTA",
          1};
}

/// Bytes of shared memory that the ring takes, 16-byte aligned: barriers, then answers.
constexpr int ring_bytes(const TileRingShape& shape) {
  return barrier_bytes(shape.answers) + shape.answers * answer_bytes;
}

/// Who reads an answer: only a thread, or a whole warp: one lane for all, or each lane for itself.
/// Where it is late, one lane that waits parts the warp, which then meets in some 0.3 us.
enum class Reader : std::uint8_t { thread, warp, lanes };

/// The ring as one thread uses it. `Shape` is a type with a static constexpr TileRingShape named
/// `value`; `Source` reads an answer, and says at which scope the end of reading is handed back.
/// `base` is shared memory of ring_bytes.
template <class Shape, class Source>
class TileRing {
 public:
  static constexpr TileRingShape shape = Shape::value;
  static_assert(shape.answers >= 1 && shape.answers <= 32);

  WW_DEVICE TileRing(isa::SharedAddress base, Source source) : ring_{base}, source_(source) {}

  /// Initialises the barriers (see UmmaPipeline::initialise).
  WW_DEVICE void initialise(atom::ClusterShape cluster) const {
    constexpr TileRingShape declared = Shape::value;
    WW_UNROLL for (int q = 0; q < declared.answers; ++q) {
      isa::mbarrier_init(ring_.full(q), 1, {"tile_full", q}, "the scheduler of this CTA");
      isa::mbarrier_init(ring_.empty(q), reader_arrivals(declared, cluster), {"tile_empty", q},
                         "every role of every CTA of the cluster");
    }
  }

  /// One thread in every CTA: asks for tile after tile until there is none, in the cluster's first
  /// CTA by `scheduler`. The others expect the answers and read them.
  template <class Scheduler>
  WW_DEVICE void schedule(Scheduler scheduler, int rank, isa::Site site = isa::Site::sync()) const {
    PipelineState state;
    for (bool more = true; more;) {
      if (rank == 0) wait_for_readers(state, site);
      isa::mbarrier_arrive_expect(ring_.full(state.stage), answer_bytes, site);
      if (rank == 0) scheduler.ask(slot(state.stage), ring_.full(state.stage), site);
      more = read<Reader::thread>(state, site) != no_tile;
      state.advance(shape.answers);
    }
    if (rank != 0) return;
    // Peers signal this CTA until they have read the last answer.
    for (int q = 0; q < shape.answers; ++q) {
      wait_for_readers(state, site);
      state.advance(shape.answers);
    }
  }

  /// One thread, of a CTA without peers: tells all readers what it has drawn, as schedule() does
  /// for one tile.
  template <class Scheduler>
  WW_DEVICE void tell(Scheduler& scheduler, const PipelineState& state,
                      isa::Site site = isa::Site::sync()) const {
    wait_for_readers(state, site);
    const isa::SharedAddress full = ring_.full(state.stage);
    isa::mbarrier_arrive_expect(full, answer_bytes, site);
    scheduler.tell(slot(state.stage), full, site);
  }

  /// Waits for the answer and gives its place back. Each role reads every answer once; where it is
  /// a warp, one lane gives the place back.
  template <Reader Who>
  WW_DEVICE int read(const PipelineState& state, isa::Site site = isa::Site::sync()) const {
    if constexpr (Who == Reader::lanes) {
      isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                          {"tile_full", state.stage}, site);
      const int number = source_.load(slot(state.stage), site);
      isa::sync_warp(site);
      if (isa::lane_index() == 0) give_back(state, site);
      return number;
    }
    int number = 0;
    if (Who == Reader::thread || isa::lane_index() == 0) {
      isa::mbarrier_wait<isa::Scope::cta>(ring_.full(state.stage), ring_.full_parity(state),
                                          {"tile_full", state.stage}, site);
      number = source_.load(slot(state.stage), site);
      give_back(state, site);
    }
    if constexpr (Who == Reader::warp) {
      number = static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(number), 0, site));
    }
    return number;
  }

 private:
  WW_DEVICE void wait_for_readers(const PipelineState& state, isa::Site site) const {
    isa::mbarrier_wait<Source::reading>(ring_.empty(state.stage), ring_.empty_parity(state),
                                        {"tile_empty", state.stage}, site);
  }

  WW_DEVICE void give_back(const PipelineState& state, isa::Site site) const {
    isa::mbarrier_arrive<Source::reading>(isa::map_rank(ring_.empty(state.stage), 0), site);
  }

  WW_DEVICE isa::SharedAddress slot(int answer) const {
    return ring_.end() + static_cast<isa::SharedAddress>(answer) * answer_bytes;
  }

  RingBarriers<shape.answers, first_parity(tile_full_row(shape)),
               first_parity(tile_empty_row(shape, {}))>
      ring_;
  Source source_;
};

}  // namespace warpwright::pipeline
