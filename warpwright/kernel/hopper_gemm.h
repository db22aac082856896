// Hopper GEMM: warp-specialised and persistent. One source for the GPU and the model.
//
//   role                   warps        does
//   producer               0            one lane: TMA loads of A and B into a ring of stages
//   (idle)                 1..3         give their registers away
//   consumer w             4+4w..7+4w   wgmma, then the epilogue of its rows
//
//   barrier      copies          arrivals a phase                waits    arrives
//   full         stages          1 + bytes of A and B            consumer producer, copies
//   empty        stages          (cm+cn-1) * warps of a stage    producer consumer warps of the
//                                                                         cluster's row and column
//   c_full       2 a warp        1 + bytes of a buffer           consumer its leader, copies
//   turn         2 (ping-pong)   4                               consumer the other consumer
//
// Cooperative: consumer w multiplies its share of the rows of every tile. Ping-pong: the consumers
// take tiles in turn, and the epilogue of one hides behind the multiplications of the other.
//
// In a cluster the CTAs of one column share their rows of A: each loads a slice and multicasts it
// to all of them; the CTAs of one row share their columns of B likewise.
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/hopper_epilogue.h"
#include "warpwright/kernel/hopper_gemm_params.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr GemmConfig. (A tag, because a struct cannot be
/// a template argument of a __global__ function.)
template <class Tag>
struct HopperGemm {
  using Params = HopperGemmParams;
  static constexpr GemmConfig config = Tag::config;
  static constexpr SmemMap smem = smem_map(config);
  static_assert(config_fault(config) == nullptr);

  struct Ring {
    static constexpr pipeline::TmaPipelineShape value = mainloop_shape(Tag::config);
  };
  using Mainloop = pipeline::TmaPipeline<Ring>;
  using Accumulator = isa::Fragment<float, config.tile_n / 2>;

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr GemmConfig cfg = Tag::config;
    const isa::SharedAddress base = isa::shared_base();
    const int rank = isa::cluster_rank();
    const Mainloop mainloop(base + smem.barriers, p.cluster, coord(p, rank));
    const int warp = isa::warp_index();
    const int warpgroup = warp / 4;

    if (warp == 0) {
      isa::set_role("initialiser");
      if (p.k > 0 && isa::elect_one()) {
        isa::prefetch_map(p.a);
        isa::prefetch_map(p.b);
      }
      mainloop.initialise();
      Epilogue::initialise(base + smem.c_barriers);
      if constexpr (cfg.schedule == Schedule::pingpong) {
        pipeline::OrderedSequence::initialise(base + smem.turns);
      }
      isa::fence_mbarrier_init();
    }
    if (atom::cluster_size(p.cluster) > 1) {
      // Relaxed: the fence publishes the barriers, and nothing else was written.
      isa::cluster_arrive_relaxed();
      isa::cluster_wait();
    } else {
      isa::sync_threads(threads(cfg));
    }
    isa::wait_for_prerequisites();

    if (warpgroup == 0) {
      isa::decrease_registers<cfg.producer_registers>();
      isa::set_role("idle");
      if (warp == 0 && isa::elect_one()) produce(p, base, mainloop, rank);
    } else {
      isa::increase_registers<cfg.consumer_registers>();
      consume(p, base, mainloop, rank, warpgroup - 1);
    }
  }

 private:
  using Epilogue = HopperEpilogue<Tag>;

  /// The epilogue of consumer warp `warp`, counted from 0.
  WW_DEVICE static Epilogue epilogue(isa::SharedAddress base, int warp) {
    return Epilogue(base + smem.epilogue, base + smem.c_barriers, warp);
  }

  /// The turns of the consumer warpgroups, seen by warpgroup `warpgroup`.
  WW_DEVICE static pipeline::OrderedSequence turns(isa::SharedAddress base, int warpgroup) {
    return pipeline::OrderedSequence(base + smem.turns, warpgroup);
  }

  /// Where CTA `rank` stands in its cluster.
  WW_DEVICE static atom::ClusterCoord coord(const Params& p, int rank) {
    const int y = p.cluster_m.quotient(rank);
    return {rank - y * p.cluster.m, y};
  }

  /// K blocks of the problem; the last may reach past K, where the copy engine fills zeros.
  WW_DEVICE static int k_blocks(const Params& p) {
    return (p.k + config.tile_k - 1) / config.tile_k;
  }

  /// One thread: fills stage after stage, tile after tile.
  WW_DEVICE static void produce(const Params& p, isa::SharedAddress base, const Mainloop& mainloop,
                                int rank) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr int a_bytes = atom::tile_bytes(tile_a(cfg));
    constexpr int b_bytes = atom::tile_bytes(tile_b(cfg));
    isa::set_role("producer");
    const atom::ClusterCoord at = coord(p, rank);
    // The masks come ready from the host: the first load should not wait for arithmetic.
    const auto a_mask = static_cast<std::uint16_t>(p.column_mask << at.x);
    const auto b_mask = static_cast<std::uint16_t>(p.row_mask << (at.y * p.cluster.m));
    const bool multicast_a = p.cluster.n > 1;
    const bool multicast_b = p.cluster.m > 1;
    // This CTA's slices: rows of its A tile shared along its column, of its B tile along its row.
    const int a_slice = at.y * p.a_slice_rows;
    const int b_slice = at.x * p.b_slice_rows;
    const int span = atom::span_bytes(atom::SmemSwizzle::b128);
    const int blocks = k_blocks(p);

    tile::StaticPersistent scheduler(p.raster);
    tile::TilePosition tile;
    pipeline::PipelineState state;
    while (scheduler.next(tile)) {
      const isa::Mark tile_mark("tile m % n %", tile.m * p.cluster.m + at.x,
                                tile.n * p.cluster.n + at.y);
      const int row_a = (tile.m * p.cluster.m + at.x) * cfg.tile_m + a_slice;
      const int row_b = (tile.n * p.cluster.n + at.y) * cfg.tile_n + b_slice;
      for (int block = 0; block < blocks; ++block) {
        const isa::Mark block_mark("k block %", block);
        const isa::SharedAddress full = mainloop.acquire(state);
        const isa::SharedAddress a = base + smem.a + state.stage * a_bytes + a_slice * span;
        const isa::SharedAddress b = base + smem.b + state.stage * b_bytes + b_slice * span;
        const int k = block * cfg.tile_k;
        if (multicast_a) {
          isa::tensor_load_multicast(a, p.a, full, a_mask, isa::Coords{k, row_a});
        } else {
          isa::tensor_load(a, p.a, full, isa::Coords{k, row_a});
        }
        if (multicast_b) {
          isa::tensor_load_multicast(b, p.b, full, b_mask, isa::Coords{k, row_b});
        } else {
          isa::tensor_load(b, p.b, full, isa::Coords{k, row_b});
        }
        state.advance(cfg.stages);
      }
    }
    isa::launch_dependents();
    mainloop.drain(state);
  }

  /// One warpgroup: multiplies its rows of its tiles and hands them to the epilogue.
  WW_DEVICE static void consume(const Params& p, isa::SharedAddress base, const Mainloop& mainloop,
                                int rank, int warpgroup) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr bool pingpong = cfg.schedule == Schedule::pingpong;
    isa::set_role(warpgroup == 0 ? "consumer 0" : "consumer 1");
    const atom::ClusterCoord at = coord(p, rank);
    const int first_row = pingpong ? 0 : warpgroup * warpgroup_rows(cfg);
    const int warp = isa::warp_index() - 4;
    const int blocks = k_blocks(p);

    Epilogue store = epilogue(base, warp);
    pipeline::OrderedSequence turn = turns(base, warpgroup);
    tile::StaticPersistent scheduler(p.raster);
    tile::TilePosition tile;
    pipeline::PipelineState state;
    Accumulator accumulator[row_atoms(cfg)];
    if (pingpong && warpgroup == 1) {  // the first tile is the other's
      scheduler.next(tile);
      state.skip(blocks, cfg.stages);
    }
    while (scheduler.next(tile)) {
      const isa::Mark tile_mark("tile m % n %", tile.m * p.cluster.m + at.x,
                                tile.n * p.cluster.n + at.y);
      const int row =
          (tile.m * p.cluster.m + at.x) * cfg.tile_m + first_row + epilogue_rows * (warp % 4);
      const int column = (tile.n * p.cluster.n + at.y) * cfg.tile_n;
      store.begin(p, row, column);
      if constexpr (pingpong) turn.enter();
      if (blocks > 0) multiply_tile(base, mainloop, first_row, blocks, state, accumulator, turn);
      if constexpr (pingpong) {
        if (blocks == 0) turn.leave();
        scheduler.next(tile);  // the other's
        state.skip(blocks, cfg.stages);
      }
      store.write(p, row, column, accumulator);
      if ((pingpong || warpgroup == 0) && isa::thread_index() % 128 == 0) isa::count_tile();
    }
    store.drain();
  }

  /// The main loop of one tile: `blocks` K blocks, one group of wgmmas each, one in flight while
  /// the next is issued. A stage is released when the group after it has been issued and it is
  /// read.
  WW_DEVICE static void multiply_tile(isa::SharedAddress base, const Mainloop& mainloop,
                                      int first_row, int blocks, pipeline::PipelineState& state,
                                      Accumulator (&accumulator)[row_atoms(Tag::config)],
                                      const pipeline::OrderedSequence& turn) {
    constexpr GemmConfig cfg = Tag::config;
    const std::uint64_t a0 = atom::encode(atom::descriptor(tile_a(cfg), base + smem.a, first_row));
    const std::uint64_t b0 = atom::encode(atom::descriptor(tile_b(cfg), base + smem.b));
    isa::mark_begin("k block %", 0);
    mainloop.wait(state);
    multiply(a0, b0, state, accumulator, false);
    isa::mark_end();
    pipeline::PipelineState previous = state;
    state.advance(cfg.stages);
    bool landed = blocks > 1 && mainloop.try_wait(state);
    for (int block = 1; block < blocks; ++block) {
      const isa::Mark block_mark("k block %", block);
      mainloop.wait(state, landed);
      multiply(a0, b0, state, accumulator, true);
      isa::wgmma_wait<1>();  // the block before has been read
      mainloop.release(previous);
      previous = state;
      state.advance(cfg.stages);
      landed = block + 1 < blocks && mainloop.try_wait(state);
    }
    // The other warpgroup may queue its wgmmas behind these.
    if constexpr (cfg.schedule == Schedule::pingpong) turn.leave();
    isa::wgmma_wait<0>(accumulator);
    mainloop.release(previous);
  }

  /// One K block: the wgmmas on the operands of a stage, as one group. `a0` and `b0` describe
  /// stage 0; the first wgmma of a tile overwrites the accumulator.
  WW_DEVICE static void multiply(std::uint64_t a0, std::uint64_t b0,
                                 const pipeline::PipelineState& state,
                                 Accumulator (&accumulator)[row_atoms(Tag::config)],
                                 bool accumulate) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile operand_a = tile_a(cfg);
    constexpr atom::OperandTile operand_b = tile_b(cfg);
    const std::uint64_t a = atom::advance(a0, state.stage * atom::tile_bytes(operand_a));
    const std::uint64_t b = atom::advance(b0, state.stage * atom::tile_bytes(operand_b));
    isa::wgmma_fence(accumulator);
    WW_UNROLL for (int step = 0; step < atom::step_count(operand_a); ++step) {
      WW_UNROLL for (int i = 0; i < row_atoms(cfg); ++i) {
        isa::wgmma<cfg.operand, cfg.tile_n>(
            accumulator[i],
            atom::advance(
                a, atom::tile_offset(operand_a, 64 * i, 0) + atom::step_offset(operand_a, step)),
            atom::advance(b, atom::step_offset(operand_b, step)), accumulate || step > 0);
      }
    }
    isa::wgmma_commit();
  }
};

}  // namespace warpwright::kernel
