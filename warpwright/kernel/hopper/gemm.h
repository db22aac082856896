// Hopper GEMM: persistent, warp-specialised. One source for the GPU and the model.
//
//   role                   warps        does
//   producer               0            one lane: TMA loads of A and B into a ring of stages
//                                       (packed weights: bulk loads of their tiles)
//   scales                 1            block scales into the same stages, but for copied ones
//   tokens                 2, 3         those read by index, by cp.async into the same stages
//   scheduler              3            one lane: draws tiles for the cluster, where they are drawn
//   (idle)                 the rest     of the first warpgroup give their registers away; the
//                                       second of them initialises the barriers before
//   consumer w             4+4w..7+4w   wgmma, then the epilogue of its rows
//
//   barrier      copies          arrivals a phase                waits    arrives
//   full         stages          1 (+1, +2) + bytes of A and B   consumer producer, copies (scales,
//                                  (and of the tokens' scales)            tokens)
//   empty        stages          (cm+cn-1) * readers of a stage  producer consumer warpgroups,
//                                  (warpgroups; with scales      (scales) with scales warps, of the
//                                  their warps)                           cluster's row and column
//   c_full       buffers a warp  1 + bytes of a buffer           consumer its leader, copies
//   turn         2 (ping-pong)   4                               consumer the other consumer
//   tile_full    4               1 + 16 bytes                    all      scheduler, answers
//   tile_empty   4               all roles, in the first CTA     scheduler all
//   parts        consumer warps  1 + bytes of parts (cluster_k)  consumer its leader, copies
//
// Cooperative: consumer w multiplies its share of the rows of every tile, or of its columns.
// Ping-pong: the consumers take tiles in turn, and the epilogue of one hides behind the
// multiplications of the other.
//
// In a cluster the CTAs of one column share their rows of A: each loads a slice and multicasts it
// to all of them; the CTAs of one row share their columns of B likewise.
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/kernel/hopper/fixup.h"
#include "warpwright/kernel/hopper/load.h"
#include "warpwright/kernel/hopper/scales.h"
#include "warpwright/kernel/hopper/tile_sums.h"
#include "warpwright/kernel/hopper/token_rows.h"
#include "warpwright/kernel/ping_pong.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr GemmConfig. (A tag, because a struct cannot be
/// a template argument of a __global__ function.)
template <class Tag>
struct HopperGemm {
  using Params = ParamsOf<Tag>;
  static constexpr GemmConfig config = Tag::config;
  static constexpr SmemMap smem = smem_map(config);
  static_assert(config_fault(config) == nullptr && signals_match(config));

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr GemmConfig cfg = Tag::config;
    const isa::SharedAddress base = isa::shared_base();
    const int warp = isa::warp_index();
    // Among the CTAs that share operands.
    const int rank = shares_cluster_k(cfg) ? 0 : isa::cluster_rank();
    if constexpr (Loader<Tag>::finds_early) {
      play(p, base, rank, warp, [&] {
        if (warp == initialiser) initialise(p, base);
        return start(p, base);
      });
    } else {
      // Once in the code: a table of groups is filled on the way.
      if (warp == initialiser) initialise(p, base);
      const isa::Prerequisites ready = start(p, base);
      play(p, base, rank, warp, [&] { return ready; });
    }
  }

 private:
  using Ring = MainloopPipeline<Tag>;
  using Epilogue = kernel::Epilogue<Tag>;

  /// The warp that initialises the barriers: not the producer, who has its first tile to find.
  static constexpr int initialiser = 2;

  /// Each warp its part. `begin` ends when the CTA is ready.
  template <class Begin>
  WW_DEVICE static void play(const Params& p, isa::SharedAddress base, int rank, int warp,
                             const Begin& begin) {
    if (warp < loading_warps) {
      give_registers<Tag>();
      if (warp == 0) {
        produce(p, base, rank, begin);
      } else {
        assist(p, base, rank, warp, begin());
      }
    } else {
      const isa::Prerequisites ready = begin();
      take_registers<Tag>();
      const atom::ClusterCoord at = p.walk.coord_of(rank);
      const int first_rank = isa::cluster_rank() - rank;
      const Ring ring(base + smem.barriers, sharing(p), released(p, at), first_rank);
      consume(Cta<Tag>{p, base, rank, at, ready, ring}, ready, (warp - loading_warps) / 4);
    }
  }

  /// ring_cluster of the launch.
  WW_DEVICE static atom::ClusterShape sharing(const Params& p) {
    constexpr bool own_a = gathers(config) && !is_swapped(config);
    constexpr bool own_b = gathers(config) && is_swapped(config);
    return {own_b ? 1 : p.walk.cluster.m, own_a ? 1 : p.walk.cluster.n};
  }

  /// The CTAs that write into the stages of the one at `at`.
  WW_DEVICE static std::uint16_t released(const Params& p, atom::ClusterCoord at) {
    const std::uint16_t a = p.operands.a_ctas(at);
    const std::uint16_t b = p.operands.b_ctas(at, p.walk.cluster);
    if constexpr (gathers(config)) return is_swapped(config) ? a : b;
    return static_cast<std::uint16_t>(a | b);
  }

  WW_DEVICE static void initialise(const Params& p, isa::SharedAddress base) {
    initialise_barriers([&] {
      Ring(base + smem.barriers, sharing(p)).initialise();
      if (p.output.c_by_tma) Epilogue::initialise(base + smem.c_barriers);
      Turns<Tag>::initialise(base);
      if constexpr (shares_cluster_k(config)) ClusterFixup<Tag>::initialise(base);
      if constexpr (is_dynamic_persistent(config)) tile_ring<Tag>(base).initialise(p.walk.cluster);
    });
  }

  /// All threads: until the barriers may be used and the grid before has ended, or what the
  /// producer reads is there.
  WW_DEVICE static isa::Prerequisites start(const Params& p, isa::SharedAddress base) {
    constexpr GemmConfig cfg = Tag::config;
    if (!shares_cluster_k(cfg) && atom::cluster_size(p.walk.cluster) > 1) {
      await_cluster();
    } else if (grouping(cfg) != Grouping::binary_search) {  // the barriers of its table are enough
      isa::sync_threads(threads(cfg));
    }
    if constexpr (shares_cluster_k(cfg)) {  // consumers wait before they send
      if (p.walk.cluster_k > 1) isa::cluster_arrive_relaxed();
    }
    if constexpr (asks_early(cfg)) {  // the producer waits when its first weights are on their way
      if (p.walk.weights_early && isa::warp_index() == 0) {
        return isa::Prerequisites::of_earlier_grids();
      }
    }
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    if constexpr (grouping(cfg) == Grouping::binary_search) {
      tile::GroupTable(p.walk.groups, base + smem.groups, threads(cfg)).fill(ready);
    }
    return ready;
  }

  /// The CTA as those see it who release no stage.
  WW_DEVICE static Cta<Tag> cta_of(const Params& p, isa::SharedAddress base, int rank,
                                   const TilesAwait<Tag>& ready) {
    return {p, base, rank, p.walk.coord_of(rank), ready, Ring(base + smem.barriers, sharing(p))};
  }

  /// One warp, of which a lane fills stage after stage.
  template <class Begin>
  WW_DEVICE static void produce(const Params& p, isa::SharedAddress base, int rank,
                                const Begin& begin) {
    isa::set_role("producer");
    const bool mine = isa::elect_one();
    if (mine && p.operands.k > 0) {
      Loader<Tag>::prefetch_maps(p);
      Loader<Tag>::prefetch_guessed(p, p.walk.coord_of(rank));
    }
    if constexpr (Loader<Tag>::finds_early) {
      Loader<Tag> loader(cta_of(p, base, rank, {}));
      loader.find();
      if (mine && p.operands.k > 0) loader.prefetch_found();
      begin();
      if (mine) {
        loader.run(true);
        finish(loader);
      }
    } else {
      Loader<Tag> loader(cta_of(p, base, rank, begin()));
      if (loading<Tag> == pipeline::Reader::warp || mine) loader.run(mine);
      if (mine) finish(loader);
    }
  }

  WW_DEVICE static void finish(const Loader<Tag>& loader) {
    isa::launch_dependents();
    loader.producer_tail();
  }

  /// The warps beside the producer.
  WW_DEVICE static void assist(const Params& p, isa::SharedAddress base, int rank, int warp,
                               const isa::Prerequisites& ready) {
    constexpr GemmConfig cfg = Tag::config;
    isa::set_role("idle");
    if constexpr (is_blockwise(cfg)) {
      if (warp == 1) {
        isa::set_role("scales");
        ScaleLoader<Tag>(cta_of(p, base, rank, ready)).run();
      }
    }
    if constexpr (is_dynamic_persistent(cfg)) {
      if (warp == drawing_warp) {
        isa::set_role(role_of_warp(cfg, drawing_warp));
        schedule(cta_of(p, base, rank, ready), ready);
      }
    }
    if constexpr (gathers(cfg)) {
      if (warp >= first_row_warp && p.operands.k > 0) {
        isa::set_role(role_of_warp(cfg, warp));
        RowLoader<Tag>(cta_of(p, base, rank, ready), warp - first_row_warp).run();
      }
    }
    if constexpr (is_grouped(cfg)) {
      if (warp == 2 && isa::cta_index() == 0 && p.walk.offsets_status != nullptr) {
        isa::set_role("checker of offsets");
        tile::check_offsets(p.walk.groups.offsets, ready, p.walk.offsets_status);
      }
    }
  }

  /// One warpgroup: multiplies its rows of its tiles and hands them to the epilogue.
  WW_DEVICE static void consume(const Cta<Tag>& cta, const isa::Prerequisites& ready,
                                int warpgroup) {
    constexpr GemmConfig cfg = Tag::config;
    isa::set_role(role_of_warp(cfg, loading_warps + 4 * warpgroup));
    const int warp = isa::warp_index() - loading_warps;
    const int first_row = atom_row(cfg, warpgroup, 0) + warp_rows * (warp % 4);
    const int column = first_column(cfg, warpgroup);
    const bool counts = (takes_turns(cfg) || warpgroup == 0) && isa::thread_index() % 128 == 0;
    MainloopOf<Tag> mainloop(cta, warpgroup);
    Epilogue store(cta.p.output, cta.p.scales, cta.base + smem.epilogue, cta.base + smem.c_barriers,
                   warp);
    Turns<Tag> turns(cta.base, warpgroup);
    Fixup<Tag> fixup(cta, warp, ready);
    TileSums<Tag> sums;
    Walk<Tag> walk = make_walk<Tag>(cta);
    tile::Work work;
    turns.begin(walk, mainloop.state);
    while (walk.next(work)) {
      mark_tile<is_grouped(Tag::config), is_swapped(Tag::config)>(work.tile);
      if (fixup.stores(work)) store.begin(work, first_row, column);
      turns.enter();
      sums.run(mainloop, work, [&] { turns.leave(); });
      turns.skip(walk, mainloop.state);
      if (const CompleteSums complete = fixup.finish(sums.values(), work, walk)) {
        store.write(sums.values(), complete);
        if (counts) isa::count_tile();
      }
      isa::mark_end();
    }
    fixup.drain();
    store.drain();
  }
};

}  // namespace warpwright::kernel
