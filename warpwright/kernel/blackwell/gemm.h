// Blackwell GEMM: warp-specialised, accumulators in tensor memory. One source for the GPU and the
// model, and for MMAs of one SM and of a pair of SMs.
//
//   role         warps   does
//   load         0       one lane: TMA loads of A and B into a ring of stages
//   mma          1       one lane (of a pair: of the even CTA) issues the MMAs; the warp owns the
//                        tensor memory
//   scheduler    2       one lane asks CLC for tiles, where the tiles come from there
//   (idle)       3
//   epilogue     4..7    tensor memory -> registers -> shared memory -> D, 32 rows a warp
//
//   barrier      copies        arrivals a phase                    waits      arrives
//   full         stages        1 + bytes of A and B, of a pair     mma        load, copies
//                              of both CTAs in the even one
//   empty        stages        (cm+cn-1), with pairs (cm/2+cn-1)   load       commits of the
//                                                                             cluster's row, column
//   acc_full     accumulators  1                                   epilogue   commit
//   acc_empty    accumulators  4, with pairs 8 in the even CTA     mma        epilogue warps
//   tmem_done    1 with pairs  1, in the odd CTA                   mma        mma of the even CTA
//   c_full       2 a warp      1 + bytes of a buffer               epilogue   its leader, copies
//   tile_full    2             1 + 16 bytes                        all        scheduler, answers
//   tile_empty   2             all roles of the cluster, in its    scheduler  all
//                              first CTA
//
// A tile of a CTA has 128 rows. The CTAs of a pair are neighbours along M: each loads its rows of A
// and half of the columns of B, and the even one's MMAs multiply 256 rows by all columns.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/tile/clc_tiles.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr BlackwellConfig.
template <class Tag>
class BlackwellGemm {
 public:
  using Params = BlackwellGemmParams;
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr BlackwellSmemMap smem = smem_map(config);
  static_assert(config_fault(config) == nullptr);

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr BlackwellConfig cfg = Tag::config;
    const Cta cta(p);
    const int warp = isa::warp_index();
    if (warp == load_warp) initialise(p, cta);
    if (atom::cluster_size(p.walk.cluster) > 1) {
      await_cluster();
    } else {
      isa::sync_threads(threads(cfg));
    }
    isa::wait_for_prerequisites();
    isa::set_role("idle");
    if (warp == load_warp) {
      if (isa::elect_one()) load(p, cta);
    } else if (warp == mma_warp) {
      mma(p, cta);
    } else if (warp >= first_epilogue_warp) {
      epilogue(p, cta);
    } else if (controlled && warp == scheduler_warp && isa::elect_one()) {
      isa::set_role("scheduler");
      cta.tiles.schedule(tile::CanceledClusters{p.cluster_size}, cta.rank);
    }
  }

 private:
  static constexpr int ctas = ctas_of_mma(config);
  static constexpr bool controlled = asks_for_tiles(config);
  static constexpr int tmem_barrier = 1;  // the named barrier that publishes the tensor memory

  struct Accumulators {
    static constexpr pipeline::UmmaAccumulatorShape value = accumulator_shape(Tag::config);
  };
  using TileRing = TileRingOf<Tag, tile::CanceledClusters>;
  using Epilogue = kernel::Epilogue<Tag>;

  // Where this CTA stands, and its pipelines.
  struct Cta {
    WW_DEVICE explicit Cta(const Params& p)
        : base(isa::shared_base()),
          rank(isa::cluster_rank()),
          at(p.walk.coord_of(rank)),
          mainloop(base + smem.barriers, p.walk.cluster, rank, commit_mask(p, at)),
          accumulators(base + smem.accumulators, rank),
          tiles(base + smem.tiles, tile::CanceledClusters{p.cluster_size}) {}

    isa::SharedAddress base;
    int rank;
    atom::ClusterCoord at;
    pipeline::UmmaPipeline<StagesOf<Tag>> mainloop;
    pipeline::UmmaAccumulator<Accumulators> accumulators;
    TileRing tiles;
  };

  // The CTAs whose stages the MMAs of this CTA (of its pair) read: atom::Masks::commit.
  WW_DEVICE static std::uint16_t commit_mask(const Params& p, const atom::ClusterCoord& at) {
    const int first = config.pair ? at.x & ~1 : at.x;
    return static_cast<std::uint16_t>(p.commit_column_mask << first |
                                      p.commit_row_mask << (at.y * p.walk.cluster.m));
  }

  // The tiles of this CTA, for a role that is one thread or a whole warp.
  template <pipeline::Reader Who>
  WW_DEVICE static auto tiles(const Params& p, const Cta& cta) {
    return walk_tiles<Tag, Who>(p.walk, cta.at, cta.tiles);
  }

  // One warp: makes the barriers and publishes them.
  WW_DEVICE static void initialise(const Params& p, const Cta& cta) {
    initialise_barriers([&] {
      if (p.operands.k > 0) {
        isa::prefetch_map(p.operands.a);
        isa::prefetch_map(p.operands.b);
      }
      cta.mainloop.initialise();
      cta.accumulators.initialise();
      if constexpr (controlled) cta.tiles.initialise(p.walk.cluster);
      if (p.output.c_by_tma) Epilogue::initialise(cta.base + smem.c_barriers);
    });
  }

  // One thread: fills stage after stage, tile after tile.
  WW_DEVICE static void load(const Params& p, const Cta& cta) {
    constexpr BlackwellConfig cfg = Tag::config;
    constexpr int a_bytes = atom::tile_bytes(tile_a(cfg));
    constexpr int b_bytes = atom::tile_bytes(tile_b(cfg));
    constexpr int span = atom::span_bytes(atom::SmemSwizzle::b128);
    isa::set_role("load");
    const atom::ClusterCoord at = cta.at;
    // Which half of B, and which of the MMAs that share it along M.
    const int half = cfg.pair ? at.x & 1 : 0;
    const int mma = cfg.pair ? at.x / 2 : at.x;
    const bool shares_a = p.walk.cluster.n > 1;
    const bool shares_b = p.walk.cluster.m > ctas;
    const auto a_ctas = static_cast<std::uint16_t>(shares_a ? p.operands.a_ctas(at) : 0);
    const auto b_ctas =
        static_cast<std::uint16_t>(shares_b ? p.operands.b_ctas(at, p.walk.cluster) << half : 0);
    const int a_slice = at.y * p.operands.a_slice_rows;
    const int b_slice = mma * p.operands.b_slice_rows;
    auto tiles = BlackwellGemm::tiles<pipeline::Reader::thread>(p, cta);
    tile::Work work;
    pipeline::PipelineState state;
    while (tiles.next(work)) {
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      const int row_a = work.row + a_slice;
      const int row_b = work.column + half * tile_b(cfg).rows + b_slice;
      for (int k_tile = 0; k_tile < p.walk.k_tiles; ++k_tile) {
        const isa::Mark block_mark("k_tile %", k_tile);
        const isa::SharedAddress full = cta.mainloop.acquire(state);
        const isa::SharedAddress a = cta.base + smem.a + state.stage * a_bytes + a_slice * span;
        const isa::SharedAddress b = cta.base + smem.b + state.stage * b_bytes + b_slice * span;
        const int k = k_tile * tile_k(cfg);
        isa::tensor_load_to<ctas>(a_ctas, a, p.operands.a, full,
                                  isa::Coords{k, row_a, work.tile.batch * p.operands.a_batch});
        isa::tensor_load_to<ctas>(b_ctas, b, p.operands.b, full,
                                  isa::Coords{k, row_b, work.tile.batch * p.operands.b_batch});
        state.advance(cfg.stages);
      }
    }
    isa::launch_dependents();
    cta.mainloop.producer_tail(state);
  }

  // One warp: allocates the tensor memory, multiplies, and frees it when nobody needs it any more.
  WW_DEVICE static void mma(const Params& p, const Cta& cta) {
    constexpr BlackwellConfig cfg = Tag::config;
    isa::set_role("mma");
    // An allocation of a pair waits for the peer's, so both must run: the cluster barrier is behind
    // us.
    isa::tcgen05_allocate<ctas>(cta.base + smem.tmem, tmem_columns(cfg));
    isa::tcgen05_relinquish<ctas>();
    const isa::TmemAddress tmem = published_tmem(cta);
    if (!cfg.pair || atom::is_pair_leader(cta.rank)) {
      if (isa::elect_one()) multiply(p, cta, tmem);
      isa::sync_warp();
    } else {
      cta.accumulators.wait_for_issuer();
    }
    isa::tcgen05_deallocate<ctas>(tmem, tmem_columns(cfg));
  }

  // The address of the tensor memory, once it is allocated: for the warp that owns it and the
  // epilogue.
  WW_DEVICE static isa::TmemAddress published_tmem(const Cta& cta) {
    isa::named_barrier_sync(tmem_barrier, 32 * (1 + epilogue_warps));
    return isa::SharedView<std::uint32_t>{cta.base + smem.tmem}.load();
  }

  // One thread: the MMAs of tile after tile, an accumulator for each in turn.
  WW_DEVICE static void multiply(const Params& p, const Cta& cta, isa::TmemAddress tmem) {
    constexpr BlackwellConfig cfg = Tag::config;
    auto tiles = BlackwellGemm::tiles<pipeline::Reader::thread>(p, cta);
    tile::Work work;
    pipeline::PipelineState state;
    pipeline::PipelineState accumulator;
    while (tiles.next(work)) {
      if (p.walk.k_tiles == 0) continue;
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      cta.accumulators.acquire(accumulator);
      const isa::TmemAddress d = tmem + accumulator.stage * accumulator_columns(cfg);
      for (int k_tile = 0; k_tile < p.walk.k_tiles; ++k_tile) {
        const isa::Mark block_mark("k_tile %", k_tile);
        cta.mainloop.wait(state);
        multiply_k_tile(p, cta, d, state, k_tile > 0);
        cta.mainloop.release(state);
        state.advance(cfg.stages);
      }
      cta.accumulators.commit(accumulator);
      accumulator.advance(cfg.accumulators);
    }
    cta.accumulators.producer_tail(accumulator);
  }

  // One k_tile: the MMAs on the operands of a stage. The first of a tile overwrites D.
  WW_DEVICE static void multiply_k_tile(const Params& p, const Cta& cta, isa::TmemAddress d,
                                        const pipeline::PipelineState& state, bool accumulate) {
    constexpr BlackwellConfig cfg = Tag::config;
    constexpr atom::OperandTile a = tile_a(cfg);
    constexpr atom::OperandTile b = tile_b(cfg);
    const std::uint64_t a0 = atom::encode_umma(
        atom::descriptor(a, cta.base + smem.a + state.stage * atom::tile_bytes(a)));
    const std::uint64_t b0 = atom::encode_umma(
        atom::descriptor(b, cta.base + smem.b + state.stage * atom::tile_bytes(b)));
    WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(a); ++k_block) {
      isa::tcgen05_mma<cfg.kind, ctas>(d, atom::advance(a0, atom::k_block_offset<a>(k_block)),
                                       atom::advance(b0, atom::k_block_offset<b>(k_block)),
                                       p.instruction, accumulate || k_block > 0);
    }
  }

  // Four warps: each takes its 32 lanes of tile after tile to D.
  WW_DEVICE static void epilogue(const Params& p, const Cta& cta) {
    constexpr BlackwellConfig cfg = Tag::config;
    isa::set_role("epilogue");
    const int warp = isa::warp_index() - first_epilogue_warp;
    const isa::TmemAddress tmem = published_tmem(cta) + atom::tmem_address(32 * warp, 0);
    Epilogue store(p.output, p.scales, cta.base + smem.epilogue, cta.base + smem.c_barriers, warp);
    auto tiles = BlackwellGemm::tiles<pipeline::Reader::warp>(p, cta);
    tile::Work work;
    pipeline::PipelineState accumulator;
    while (tiles.next(work)) {
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      store.begin(work, 32 * warp);
      if (p.operands.k > 0) cta.accumulators.wait(accumulator);
      const isa::TmemAddress from = tmem + accumulator.stage * accumulator_columns(cfg);
      store.write_from([&](int subtile, int /*half*/, float(&value)[Epilogue::values]) {
        fetch(from, subtile, value);
      });
      if (p.operands.k > 0) {
        cta.accumulators.release(accumulator);
        accumulator.advance(cfg.accumulators);
      }
      if (isa::thread_index() == 32 * first_epilogue_warp) isa::count_tile();
    }
    store.drain();
  }

  // A thread's accumulator values of a subtile of 16 rows. The registers of a load are spread like
  // those of a wgmma, which is what the epilogue expects.
  WW_DEVICE static void fetch(isa::TmemAddress from, int subtile, float (&value)[Epilogue::values],
                              isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    isa::Fragment<float, Epilogue::values> loaded;
    isa::tcgen05_load<isa::TmemShape::lanes16>(
        loaded, from + atom::tmem_address(warp_rows * (subtile / Epilogue::row_subtiles),
                                          subtile % Epilogue::row_subtiles * Epilogue::columns));
    isa::tcgen05_wait_load(loaded);
    WW_UNROLL for (int i = 0; i < Epilogue::values; ++i) value[i] = loaded[i];
  }
};

}  // namespace warpwright::kernel
