// The warp that fetches block scales: for every k_tile one float for each token of the tile and
// one for every 64 or 32 weights of it, from global memory into the stage's part of shared memory.
// Where blocks are smaller than a k_tile it does so for each of its parts.
//
// Plain loads, so that any strides and any number of tokens will do. They are started several K
// blocks ahead, in registers, because one of them takes longer than a k_tile. But even a few of
// them make the tensor cores' own reads slower (5% of a large product, measured), so in tiles of
// 128 tokens and more, where those lie side by side at multiples of 16 bytes, the producer has
// their scales copied, and this warp reads only those of the weights, for several k_tiles at
// once.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

/// k_tiles whose scales are on their way in registers: as many as the warp has room for beside its
/// scheduler. For 256 tokens one: addresses and scales take 32 registers then.
constexpr int blocks_ahead(const GemmConfig& c) {
  const int values = (token_scales(c) + 31) / 32 * scale_parts(c);
  if (values > 8) return 1;
  if (sum_registers(c) > 160 || (packed_a(c) && values >= 8)) return 1;
  if (values >= 8 || sum_registers(c) > 128 || splits_k(c)) return 3;
  if (values < 4 || grouping(c) != Grouping::binary_search) return 6;
  return 5;
}

/// Where the scale of a tile's weights that lane `lane` has lies, of block `block` along K: lanes
/// behind the last one have the first one's.
template <class Tag>
WW_DEVICE const float* weight_scale_of(const GemmParams& p, const tile::Work& work, int lane,
                                       int block = 0) {
  constexpr GemmConfig cfg = Tag::config;
  const ScaleMatrix& scales = p.scales.weights;
  constexpr int weights = weight_scales(cfg);
  constexpr int length = weights_per_scale(cfg);
  constexpr int part = length * weights / (cfg.gated ? 2 : 1);  // weights of one half
  const int weight = (lane < weights ? lane : 0) * length;
  const bool of_gate = weight < part;
  const int at = p.operands.gate.row(
      (is_swapped(cfg) ? work.row : work.column) + (of_gate ? weight : weight - part),
      of_gate ? 0 : 1);
  return scales.at(work.tile.batch, scales.within(at / scale_block(cfg)), block);
}

template <class Tag>
class ScaleLoader {
 public:
  static constexpr SmemMap smem = smem_map(Tag::config);
  static constexpr int tokens = token_scales(Tag::config);
  static constexpr int weights = weight_scales(Tag::config);
  static constexpr int values = (tokens + 31) / 32;        // a lane's tokens
  static constexpr int parts = scale_parts(Tag::config);   // of a k_tile
  static constexpr int ahead = blocks_ahead(Tag::config);  // k_tiles in registers

  WW_DEVICE explicit ScaleLoader(const Cta<Tag>& cta)
      : all_(cta.p),
        p_(cta.p.scales),
        scales_(cta.base + smem.scales),
        ring_(cta.ring),
        walk_(make_walk<Tag>(cta)),
        blocks_(parts > 1 ? (cta.p.operands.k - 1) / scale_block(Tag::config) + 1 : 0) {}

  /// One whole warp: all tiles of this CTA.
  WW_DEVICE void run() {
    if (copies_scales(Tag::config) && p_.copies_tokens) {
      run_weights();
    } else {
      run_all();
    }
  }

 private:
  /// The loads of a batch of k_tiles, also of the next tile's first, are on their way while the
  /// batch before it is handed out.
  WW_DEVICE void run_all() {
    constexpr GemmConfig cfg = Tag::config;
    pipeline::PipelineState state;
    Batch next;
    bool more = advance(ahead);
    if (more) fetch(next);
    while (more) {
      const Batch current = next;
      const int count = count_;
      more = advance(ahead);
      if (more) {
        fetch(next);
      }
      WW_UNROLL for (int j = 0; j < ahead; ++j) {
        if (j < count) {
          ring_.warp_acquire(state);
          put(current, j, state.stage);
          ring_.warp_commit(state);
          state.advance(cfg.stages);
        }
      }
    }
  }

  /// The same, only of the weights'. A lane has one of a k_tile of the batch.
  WW_DEVICE void run_weights() {
    constexpr GemmConfig cfg = Tag::config;
    pipeline::PipelineState state;
    const int mine = isa::lane_index() / lanes;
    float next = 0;
    bool more = advance(weights_ahead);
    if (more) next = fetch_weight(mine);
    while (more) {
      const float current = next;
      const int count = count_;
      more = advance(weights_ahead);
      if (more) next = fetch_weight(mine);
      for (int j = 0; j < count; ++j) {
        ring_.warp_acquire(state);
        if (mine == j && isa::lane_index() % lanes < weights) {
          stage_view(state.stage).store(weight_place + isa::lane_index() % lanes, current);
        }
        ring_.warp_commit(state);
        state.advance(cfg.stages);
      }
    }
  }

  static constexpr int lanes = weights > 4 ? 8 : 4;  // of a k_tile's weights
  static constexpr int weights_ahead = 32 / lanes;   // k_tiles
  static constexpr int weight_place = copied_scales(Tag::config);

  struct Batch {
    float token[ahead][parts][values];
    float weight[ahead][parts];
  };

  /// Goes on to the next batch of k_tiles, `most` or fewer; false when there is none.
  WW_DEVICE bool advance(int most) {
    block_ += count_;
    while (block_ == work_.end) {
      if (!walk_.next(work_)) return false;
      block_ = work_.first;
      begin();
    }
    count_ = work_.end - block_ < most ? work_.end - block_ : most;
    return true;
  }

  /// Where this lane's scales lie, from the k_tile at hand on. Pointers are kept and moved on: to
  /// work them out for every load would take longer than a k_tile.
  WW_DEVICE void begin() {
    constexpr GemmConfig cfg = Tag::config;
    const ScaleMatrix& t = p_.tokens;
    WW_UNROLL for (int i = 0; i < values; ++i) {
      const int row = (is_swapped(cfg) ? work_.column : work_.row) + isa::lane_index() + 32 * i;
      token_[i] = t.at(work_.tile.batch, token_of(row, i), block_ * parts);
    }
    if constexpr (weights == 0) return;
    const int lane =
        copies_scales(cfg) && p_.copies_tokens ? isa::lane_index() % lanes : isa::lane_index();
    weight_ = weight_scale_of<Tag>(all_, work_, lane, block_ * parts);
  }

  /// The row of the matrix of scales for row `row` of D, this lane's `i`-th of the tile.
  WW_DEVICE int token_of(int row, int i) {
    if constexpr (gathers(Tag::config)) {
      const int token = row < work_.end_token ? p_.index.token(row) : tile::TokenIndex::none;
      const std::uint32_t bit = 1U << i;
      absent_ = token == tile::TokenIndex::none ? absent_ | bit : absent_ & ~bit;
      return token == tile::TokenIndex::none ? 0 : token;
    }
    return p_.tokens.within(row);
  }

  /// Starts the loads of the batch at hand and moves the pointers behind it.
  WW_DEVICE void fetch(Batch& to) {
    WW_UNROLL for (int j = 0; j < ahead; ++j) {
      if (j >= count_) break;
      WW_UNROLL for (int part = 0; part < parts; ++part) {
        // The last k_tile may end before its last parts: products are 0, and so are scales.
        if (parts > 1 && (block_ + j) * parts + part >= blocks_) {
          WW_UNROLL for (int i = 0; i < values; ++i) to.token[j][part][i] = 0;
          to.weight[j][part] = 0;
          continue;
        }
        WW_UNROLL for (int i = 0; i < values; ++i) {
          to.token[j][part][i] = isa::GlobalView<const float>{token_[i]}.load();
          if (gathers(Tag::config) && (absent_ >> i & 1) != 0) to.token[j][part][i] = 0;
          token_[i] += p_.tokens.block_stride;
        }
        if constexpr (weights > 0) {
          to.weight[j][part] = isa::GlobalView<const float>{weight_}.load();
        }
        weight_ += p_.weights.block_stride;
      }
    }
  }

  /// This lane's scale of the `mine`-th k_tile of the batch at hand; moves the pointer behind it.
  WW_DEVICE float fetch_weight(int mine) {
    const int block = mine < count_ ? mine : 0;
    const float weight =
        isa::GlobalView<const float>{weight_}.load(block * p_.weights.block_stride);
    weight_ += count_ * p_.weights.block_stride;
    return weight;
  }

  WW_DEVICE isa::SharedView<float> stage_view(int stage) const {
    return isa::SharedView<float>{scales_ + stage * scale_bytes(Tag::config)};
  }

  WW_DEVICE void put(const Batch& from, int j, int stage) const {
    const isa::SharedView<float> to = stage_view(stage);
    WW_UNROLL for (int part = 0; part < parts; ++part) {
      const int first = part * part_scales(Tag::config);
      WW_UNROLL for (int i = 0; i < values; ++i) {
        const int token = isa::lane_index() + 32 * i;
        if (token < tokens) to.store(first + token, from.token[j][part][i]);
      }
      if (isa::lane_index() < weights) {
        to.store(first + weight_place + isa::lane_index(), from.weight[j][part]);
      }
    }
  }

  const GemmParams& all_;
  const ScaleParams& p_;
  isa::SharedAddress scales_;
  MainloopPipeline<Tag> ring_;
  Walk<Tag> walk_;
  tile::Work work_;
  int block_ = 0;  // the batch at hand: k_tiles of work_ from block_
  int count_ = 0;
  const float* token_[values];
  std::uint32_t absent_ = 0;  // bit i: token_[i] is none's, whose scales are 0
  const float* weight_ = nullptr;
  int blocks_;  // along K, where they are parts of k_tiles
};

}  // namespace warpwright::kernel
