// Weights of 4 bits in their packed form (facts/packed_weights.h), as A of a kernel: the producer's
// part, a source of its stages (sources.h). One bulk copy brings 64 rows of a k_tile with their
// scales; a consumer's lanes read them from there (decode/int4.h, decode/e2m1.h).
#pragma once

#include "warpwright/facts/packed_weights.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

/// The bulk copies of a tile's weights, one for every 64 rows.
template <class Tag>
class PackedWeights {
 public:
  static constexpr int row_tiles = Tag::config.tile_m / packed::kTileRows;
  static constexpr int spans = in_flight(Tag::config);
  /// Read once, where one tile holds all tokens of its group as a rule.
  static constexpr bool once = Tag::config.tile_n <= 64;

  WW_DEVICE static PackedWeights of(const Cta<Tag>& cta) {
    return PackedWeights(cta.p.operands, cta.base + smem_map(Tag::config).a);
  }

  WW_DEVICE static void prefetch_map(const OperandParams& /*p*/) {}

  /// For groups the first tile is guessed: the one that is this CTA's where each group has a tile
  /// of tokens. Weights depend on no grid before.
  WW_DEVICE static void prefetch_guessed(const GemmParams& p, atom::ClusterCoord at) {
    if constexpr (is_grouped(Tag::config)) {
      const tile::Divisor& weights = p.walk.groups.by_weights;
      const int number = isa::cluster_index();
      tile::Work work;
      work.tile.batch = weights.quotient(number);
      if (p.operands.packed.ahead == 0 || work.tile.batch >= p.walk.groups.offsets.groups()) return;
      const int tile = number - work.tile.batch * static_cast<int>(weights.value);
      work.row = (tile * p.walk.cluster.m + at.x) * result_rows(Tag::config);
      PackedWeights weights_of_tile(p.operands, 0);
      weights_of_tile.place(p.operands, work);
      weights_of_tile.prefetch(work);
    }
  }

  /// They are bytes of a stage.
  [[nodiscard]] WW_DEVICE int more() const { return row_tiles * spans * p_.tile_bytes; }

  /// Looks where the weights of a tile lie.
  WW_DEVICE void place(const OperandParams& /*p*/, const tile::Work& work) {
    constexpr int parts = gated_rows(Tag::config) ? 2 : 1;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      const int part = i / (row_tiles / parts);
      const int at = gate_.row(work.row, part) / packed::kTileRows + i % (row_tiles / parts);
      // Past the last row: any tile will do, its products are not stored.
      const int row_tile = at < p_.row_tiles ? at : p_.row_tiles - 1;
      from_[i] = ((work.tile.batch * experts_apart_) * p_.row_tiles + row_tile) * p_.k_tiles;
    }
  }

  /// Asks L2 for the first of a tile's stages.
  WW_DEVICE void prefetch(const tile::Work& work) const {
    const int first_k_tile = work.first;
    const int left = p_.k_tiles - first_k_tile * spans;
    const int tiles = p_.ahead * spans < left ? p_.ahead * spans : left;
    if (tiles <= 0) return;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      isa::bulk_prefetch(tile(i, first_k_tile * spans), tiles * p_.tile_bytes);
    }
  }

  /// Starts the copies of a stage, whose k_tiles are neighbours. Past the last k_tile it loads that
  /// one again: TMA fills the tokens there with zeros, so the products vanish.
  WW_DEVICE void load(const OperandParams& /*p*/, int stage, int k_tile,
                      isa::SharedAddress full) const {
    const isa::SharedAddress to = stages_ + stage * stage_a_bytes(Tag::config);
    const int first = k_tile * spans;
    WW_UNROLL for (int i = 0; i < row_tiles; ++i) {
      const isa::SharedAddress at = to + i * spans * most_packed_tile(Tag::config);
      if constexpr (spans > 1) {
        if (first + spans > p_.k_tiles) {
          for (int s = 0; s < spans; ++s) {
            const int k = first + s < p_.k_tiles ? first + s : p_.k_tiles - 1;
            copy(at + static_cast<isa::SharedAddress>(s * p_.tile_bytes), tile(i, k), 1, full);
          }
          continue;
        }
      }
      copy(at, tile(i, first), spans, full);
    }
  }

 private:
  /// `stages` is where they lie in shared memory.
  WW_DEVICE PackedWeights(const OperandParams& p, isa::SharedAddress stages)
      : p_(p.packed), gate_(p.gate), experts_apart_(p.a_batch), stages_(stages) {
    if constexpr (once) policy_ = isa::evict_first();
  }

  /// The packed tile of a row tile and a k_tile.
  [[nodiscard]] WW_DEVICE const std::byte* tile(int i, int k) const {
    return p_.data + static_cast<std::int64_t>(from_[i] + k) * p_.tile_bytes;
  }
  WW_DEVICE void copy(isa::SharedAddress to, const std::byte* from, int tiles,
                      isa::SharedAddress full) const {
    if constexpr (once) {
      isa::bulk_load(to, from, tiles * p_.tile_bytes, full, policy_);
    } else {
      isa::bulk_load(to, from, tiles * p_.tile_bytes, full);
    }
  }

  const PackedParams& p_;
  GateParams gate_;    // of halves that begin with a tile
  int experts_apart_;  // 0 where one matrix serves the whole batch
  isa::SharedAddress stages_;
  isa::CachePolicy policy_;
  int from_[row_tiles];  // the number of the first packed tile
};

}  // namespace warpwright::kernel
