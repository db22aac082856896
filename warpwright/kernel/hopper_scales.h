// The warp that fetches block scales: for every K block one float for each token of the tile and
// one for every 64 weights of it, from global memory into the stage's part of shared memory.
//
// Plain loads, so that any strides and any number of tokens will do. They are started several K
// blocks ahead, in registers, because one of them takes longer than a K block.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/hopper_gemm_params.h"
#include "warpwright/kernel/hopper_load.h"

namespace warpwright::kernel {

template <class Tag>
class HopperScales {
 public:
  static constexpr SmemMap smem = smem_map(Tag::config);
  static constexpr int vector = vector_scales(Tag::config);
  static constexpr int units = unit_scales(Tag::config);
  static constexpr int values = (vector + 31) / 32;                       // a lane's tokens
  static constexpr int ahead = values >= 8 ? 2 : (values >= 4 ? 4 : 8);  // K blocks in registers

  WW_DEVICE HopperScales(const HopperGemmParams& p, isa::SharedAddress base,
                         const HopperPipeline<Tag>& mainloop, int rank,
                         const isa::Prerequisites& ready)
      : p_(p), base_(base + smem.scales), mainloop_(mainloop),
        at_(cluster_coord(p, rank)),
        scheduler_(make_scheduler<Tag>(p, base, ready)) {}

  /// One whole warp: all tiles of this CTA.
  WW_DEVICE void run() {
    constexpr GemmConfig cfg = Tag::config;
    tile::Work work;
    pipeline::PipelineState state;
    while (scheduler_.next(work)) {
      begin(work.tile);
      Batch next;
      fetch(next, work.first, work.end);
      for (int block = work.first; block < work.end; block += ahead) {
        const Batch current = next;
        if (block + ahead < work.end) fetch(next, block + ahead, work.end);
        WW_UNROLL for (int j = 0; j < ahead; ++j) {
          if (block + j < work.end) {
            mainloop_.wait_empty(state);
            put(current, j, state.stage);
            mainloop_.publish(state);
            state.advance(cfg.stages);
          }
        }
      }
    }
  }

 private:
  struct Batch {
    float token[ahead][values];
    float unit[ahead];
  };

  /// Where this lane's scales lie, for a tile.
  WW_DEVICE void begin(const tile::TilePosition& tile) {
    constexpr GemmConfig cfg = Tag::config;
    const int m =
        row_origin<Tag>(tile) + (tile.m * p_.cluster.m + at_.x) * result_rows(cfg);
    const int n =
        column_origin<Tag>(tile) + (tile.n * p_.cluster.n + at_.y) * result_columns(cfg);
    const ScaleMatrix& v = p_.vector_scales;
    const ScaleMatrix& u = p_.unit_scales;
    tokens_ = v.data + tile.batch * v.batch_stride;
    first_token_ = (cfg.swapped ? n : m) + isa::lane_index();
    constexpr int part = cfg.gated ? 32 * units : 64 * units;  // weights of one half
    const int weight = isa::lane_index() * 64;
    const int at = (cfg.swapped ? m : n) + (weight < part ? weight : weight - part + p_.half);
    const int row = at / 128 < u.rows ? at / 128 : u.rows - 1;
    unit_ = u.data + tile.batch * u.batch_stride + row * u.row_stride;
  }

  /// Starts the loads of K blocks from `block`; those past `end` are left out.
  WW_DEVICE void fetch(Batch& to, int block, int end) const {
    const isa::GlobalView<const float> tokens{tokens_};
    const isa::GlobalView<const float> unit{unit_};
    WW_UNROLL for (int j = 0; j < ahead; ++j) {
      if (block + j >= end) break;
      WW_UNROLL for (int i = 0; i < values; ++i) {
        const int token = first_token_ + 32 * i;
        to.token[j][i] = token < p_.vector_scales.rows
                             ? tokens.load(token * p_.vector_scales.row_stride +
                                           (block + j) * p_.vector_scales.block_stride)
                             : 0.0F;
      }
      to.unit[j] = isa::lane_index() < units
                       ? unit.load((block + j) * p_.unit_scales.block_stride)
                       : 0.0F;
    }
  }

  WW_DEVICE void put(const Batch& from, int j, int stage) const {
    const isa::SharedView<float> to{base_ + stage * scale_bytes(Tag::config)};
    WW_UNROLL for (int i = 0; i < values; ++i) {
      const int token = isa::lane_index() + 32 * i;
      if (token < vector) to.store(token, from.token[j][i]);
    }
    if (isa::lane_index() < units) to.store(vector + isa::lane_index(), from.unit[j]);
  }

  const HopperGemmParams& p_;
  isa::SharedAddress base_;
  const HopperPipeline<Tag>& mainloop_;
  atom::ClusterCoord at_;
  HopperScheduler<Tag> scheduler_;
  const float* tokens_ = nullptr;
  const float* unit_ = nullptr;
  int first_token_ = 0;
};

}  // namespace warpwright::kernel
