// Register GEMM with a producer: TMA copies fill a ring of stages, out of which warps multiply
// by ldmatrix and mma.sync. Made for GeForce Blackwell (sm_120: 99 KB of shared memory a CTA, no
// multicast); it runs on sm_90 too. One source for the GPU and the model.
//
//   role         warps   does
//   producer     0       one lane: TMA loads of A and B, and of their scales, into the stages
//   scheduler    3       one lane asks CLC for tiles, where the tiles come from there
//   (idle)       1, 2    and all of these give their registers away; warp 1 initialises the
//                        barriers before; warp 2 of the first CTA looks at the offsets of groups,
//                        where that is asked for
//   consumer g   4..     ldmatrix and mma.sync, then the epilogue of its part of the tile
//
//   barrier      copies          arrivals a phase           waits      arrives
//   full         stages          1 + bytes of a stage       consumer   producer, copies
//   empty        stages          one a warp of a tile       producer   consumer warps
//   c_full       buffers a warp  1 + bytes of a buffer      consumer   its leader, copies
//   turn         2 (ping-pong)   4                          consumer   the other consumer
//   tile_full    4               1 + 16 bytes               all        scheduler, answers
//   tile_empty   4               all roles                  scheduler  all
//
// Cooperative: all consumer warps share every tile. Ping-pong: two groups take tiles in turn, and
// the epilogue of one hides behind the multiplications of the other.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/ping_pong.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/kernel/registers/ring_mainloop.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/tile/clc_tiles.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr RegisterConfig with a producer.
template <class Tag>
struct RingGemm {
  using Params = std::conditional_t<is_block_scaled(Tag::config), BlockScaledParams, GemmParams>;
  static constexpr RegisterConfig config = Tag::config;
  static constexpr RegisterSmemMap smem = smem_map(config);
  static_assert(config_fault(config) == nullptr);

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr RegisterConfig cfg = Tag::config;
    const isa::SharedAddress base = isa::shared_base();
    const int warp = isa::warp_index();
    if (warp == 1) initialise(p, base);
    isa::sync_threads(threads(cfg));
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    if (warp < first_consumer_warp(cfg)) {
      give_registers<Tag>();
      isa::set_role("idle");
      if (warp == 0) {
        isa::set_role("producer");
        if (isa::elect_one()) produce(p, base, ready);
      } else if (controlled && warp == asking_warp) {
        isa::set_role("scheduler");
        if (isa::elect_one()) tile_ring(p, base).schedule(answers(p), 0);
      }
      if constexpr (is_grouped(cfg)) {
        if (warp == 2 && isa::cta_index() == 0 && p.walk.offsets_status != nullptr) {
          isa::set_role("checker of offsets");
          tile::check_offsets(p.walk.groups.offsets, ready, p.walk.offsets_status);
        }
      }
    } else {
      take_registers<Tag>();
      consume(p, base, warp - first_consumer_warp(cfg), ready);
    }
  }

 private:
  static constexpr bool controlled = asks_for_tiles(config);

  using TileRing = TileRingOf<Tag, tile::CanceledClusters>;
  using Loop = RingMainloop<Tag>;
  using Ring = typename Loop::Ring;
  using Epilogue = kernel::Epilogue<Tag>;

  /// A cluster is a CTA.
  WW_DEVICE static tile::CanceledClusters answers(const Params& p) { return {p.walk.cluster_m}; }
  WW_DEVICE static TileRing tile_ring(const Params& p, isa::SharedAddress base) {
    return TileRing(base + smem.tiles, answers(p));
  }

  /// The tiles of this CTA, for a role that is one thread or a whole warp.
  template <pipeline::Reader Who>
  WW_DEVICE static auto make_walk(const Params& p, isa::SharedAddress base,
                                  [[maybe_unused]] const isa::Prerequisites& ready) {
    constexpr RegisterConfig cfg = Tag::config;
    if constexpr (is_grouped(cfg)) {
      return tile::cta_tiles<cfg.tile_m, cfg.tile_n, false>(
          tile::LinearScanGroups(p.walk.groups, p.walk.k_tiles, ready), p.walk.cluster, {0, 0});
    } else {
      return walk_tiles<Tag, Who>(p.walk, {0, 0}, tile_ring(p, base));
    }
  }
  /// Which row of tiles of scales those of a tile's rows are: of a group one of its own.
  WW_DEVICE static int scale_tile(const tile::Work& work) {
    static_assert(!is_grouped(config) || config.tile_m == block_scales::kTileRows);
    return is_grouped(config) ? work.tiles_before + work.tile.m
                              : work.row / block_scales::kTileRows;
  }

  /// One warp: makes the barriers.
  WW_DEVICE static void initialise(const Params& p, isa::SharedAddress base) {
    initialise_barriers([&] {
      if (p.operands.k > 0) {
        isa::prefetch_map(p.operands.a);
        isa::prefetch_map(p.operands.b);
        if constexpr (is_block_scaled(config)) {
          isa::prefetch_map(p.sfa);
          isa::prefetch_map(p.sfb);
        }
      }
      Ring(base + smem.barriers, p.walk.cluster).initialise();
      if (p.output.c_by_tma) Epilogue::initialise(base + smem.c_barriers);
      Turns<Tag>::initialise(base);
      if constexpr (controlled) tile_ring(p, base).initialise(p.walk.cluster);
    });
  }

  /// One thread: fills stage after stage, tile after tile.
  WW_DEVICE static void produce(const Params& p, isa::SharedAddress base,
                                const isa::Prerequisites& ready) {
    constexpr RegisterConfig cfg = Tag::config;
    const Ring ring(base + smem.barriers, p.walk.cluster);
    auto walk = make_walk<pipeline::Reader::thread>(p, base, ready);
    tile::Work work;
    pipeline::PipelineState state;
    while (walk.next(work)) {
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      WW_NO_UNROLL for (int k_tile = 0; k_tile < work.end; ++k_tile) {
        const isa::Mark block_mark("k_tile %", k_tile);
        const isa::SharedAddress full = ring.acquire(state);
        const isa::SharedAddress a = base + state.stage * stage_bytes(cfg);
        const int k = k_tile * copied_k(cfg);
        isa::tensor_load(a, p.operands.a, full,
                         isa::Coords{k, work.row, work.tile.batch * p.operands.a_batch});
        isa::tensor_load(a + cfg.tile_m * row_bytes(cfg), p.operands.b, full,
                         isa::Coords{k, work.column, work.tile.batch * p.operands.b_batch});
        if constexpr (is_block_scaled(cfg)) {
          constexpr int rows = block_scales::kTileRows;
          const isa::SharedAddress scales = a + (cfg.tile_m + cfg.tile_n) * row_bytes(cfg);
          const int word = k_tile * scale_words(cfg);
          isa::tensor_load(scales, p.sfa, full,
                           isa::Coords{word, scale_tile(work), work.tile.batch * p.sfa_batch});
          isa::tensor_load(scales + scale_bytes(cfg, cfg.tile_m), p.sfb, full,
                           isa::Coords{word, work.column / rows, work.tile.batch * p.sfb_batch});
        }
        state.advance(cfg.stages);
      }
    }
    isa::launch_dependents();
  }

  /// A warp, number `consumer` of those that multiply: its part of tile after tile.
  WW_DEVICE static void consume(const Params& p, isa::SharedAddress base, int consumer,
                                const isa::Prerequisites& ready) {
    constexpr RegisterConfig cfg = Tag::config;
    const int group = consumer / tile_warps(cfg);
    const int warp = consumer % tile_warps(cfg);
    isa::set_role(group == 0 ? "consumer 0" : "consumer 1");
    const Ring ring(base + smem.barriers, p.walk.cluster, 1);
    Loop loop(ring, base, 32 * warp + isa::lane_index());
    Turns<Tag> turns(base, group);
    Epilogue store(p.output, p.scales, base + smem.epilogue, base + smem.c_barriers, consumer);
    auto walk = make_walk<pipeline::Reader::warp>(p, base, ready);
    tile::Work work;
    turns.begin(walk, loop.state);
    while (walk.next(work)) {
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      work.column += warp % cfg.warps_n * (cfg.tile_n / cfg.warps_n);
      store.begin(work, warp / cfg.warps_n * (cfg.tile_m / cfg.warps_m));
      WarpSums<Tag> sums;
      turns.enter();
      loop.run(work.end, sums.mmas, [&] { turns.leave(); });
      turns.skip(walk, loop.state);
      store.write(sums, {true, 0, cfg.tile_n});
      if (warp == 0 && isa::lane_index() == 0) isa::count_tile();
    }
    store.drain();
  }
};

}  // namespace warpwright::kernel
