// Who stores a tile, and from what parts of its sums along K: a Fixup is asked before and after the
// main loop. Parts are added up in the order of the CTAs, so that the result is the same every
// time.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/sliced_fixup.h"
#include "warpwright/kernel/stream_k_fixup.h"

namespace warpwright::kernel {

/// A CTA has all of a tile's sums.
template <class Tag>
struct WholeTiles : WholeSums<Tag::config> {
  WW_DEVICE WholeTiles(const Cta<Tag>& cta, int warp, const isa::Prerequisites& /*ready*/)
      : WholeSums<Tag::config>(cta.p.walk, cta.rank, warp) {}
};

/// Through the workspace.
template <class Tag>
struct StreamKTiles : StreamKFixup<Tag::config> {
  WW_DEVICE StreamKTiles(const Cta<Tag>& cta, int warp, const isa::Prerequisites& /*ready*/)
      : StreamKFixup<Tag::config>(cta.p.walk, cta.rank, warp) {}
};

/// The same, where all CTAs of a tile add up.
template <class Tag>
struct SlicedSums : SlicedFixup<Tag::config> {
  WW_DEVICE SlicedSums(const Cta<Tag>& cta, int warp, const isa::Prerequisites& ready)
      : SlicedFixup<Tag::config>(cta.p.walk, warp, ready) {}
};

/// The CTAs of a cluster share a tile along K: each leaves its part in its shared memory, where the
/// stages were, and adds up some columns of all parts, in the order of the ranks. Every CTA has one
/// tile.
template <class Tag>
class ClusterFixup {
 public:
  static constexpr int atoms = row_atoms(Tag::config);
  static constexpr int words = Tag::config.tile_n / 8;  // of four floats: 8 columns of the tile

  WW_DEVICE ClusterFixup(const Cta<Tag>& cta, int warp, const isa::Prerequisites& /*ready*/)
      : base_(cta.base + static_cast<isa::SharedAddress>(warp * atoms * words * 32 * 16)),
        ctas_(cta.p.walk.cluster_k) {}

  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }

  /// All consumer threads of the cluster call it when their tensor cores are done.
  template <class Sums>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& /*work*/, const Walk<Tag>& /*walk*/,
                                isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    if (ctas_ <= 1) return {true, 0, Tag::config.tile_n};
    first_ = words * isa::cluster_rank() / ctas_;
    end_ = words * (isa::cluster_rank() + 1) / ctas_;
    exchange(sums);
    return {true, 8 * first_, 8 * end_};
  }

  /// A peer may still read what this CTA left for it.
  WW_DEVICE void drain(isa::Site site = isa::Site::here()) const {
    const isa::Call call(site);
    if (ctas_ <= 1) return;
    isa::cluster_arrive_relaxed();
    isa::cluster_wait();
  }

 private:
  template <class Sums>
  WW_DEVICE void exchange(Sums& sums) const {
    // The stages are free when all warps of the CTA have multiplied.
    isa::named_barrier_sync(1, 32 * consumer_warps(Tag::config));
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int j = 0; j < words; ++j) {
        isa::SharedView<isa::Words<4>>{place(base_, i, j)}.store(
            0, {isa::float_bits(sums[i][4 * j]), isa::float_bits(sums[i][4 * j + 1]),
                isa::float_bits(sums[i][4 * j + 2]), isa::float_bits(sums[i][4 * j + 3])});
      }
    }
    isa::cluster_arrive();
    isa::cluster_wait();
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int v = 0; v < 4 * words; ++v) sums[i][v] = 0;
    }
    for (int c = 0; c < ctas_; c += 2) add(sums, c);
  }

  /// Adds the parts of ranks `c` and `c` + 1, as far as they are there. Their loads are all on
  /// their way before the first is used.
  template <class Sums>
  WW_DEVICE void add(Sums& sums, int c) const {
    constexpr int batch = words < 8 ? words : 8;
    const bool two = c + 1 < ctas_;
    const isa::SharedAddress from[2] = {isa::map_rank(base_, c),
                                        isa::map_rank(base_, two ? c + 1 : c)};
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int first = 0; first < words; first += batch) {
        isa::Words<4> w[2][batch];
        WW_UNROLL for (int j = 0; j < batch; ++j) {
          const bool mine = first + j < words && first + j >= first_ && first + j < end_;
          WW_UNROLL for (int part = 0; part < 2; ++part) {
            w[part][j] = {};
            if (mine && (part == 0 || two)) {
              w[part][j] = isa::ClusterView<isa::Words<4>>{place(from[part], i, first + j)}.load();
            }
          }
        }
        WW_UNROLL for (int j = 0; j < batch; ++j) {
          if (first + j >= words) continue;
          WW_UNROLL for (int v = 0; v < 4; ++v) {
            float& sum = sums[i][4 * (first + j) + v];
            sum += isa::float_of(w[0][j].word[v]);
            sum += isa::float_of(w[1][j].word[v]);
          }
        }
      }
    }
  }

  WW_DEVICE static isa::SharedAddress place(isa::SharedAddress base, int i, int j) {
    return base + static_cast<isa::SharedAddress>(((i * words + j) * 32 + isa::lane_index()) * 16);
  }

  isa::SharedAddress base_;
  int ctas_;
  int first_ = 0;  // words
  int end_ = 0;
};

template <class Tag>
using Fixup =
    std::conditional_t<splits_k(Tag::config), StreamKTiles<Tag>,
                       std::conditional_t<slices_k(Tag::config), SlicedSums<Tag>,
                                          std::conditional_t<shares_cluster_k(Tag::config),
                                                             ClusterFixup<Tag>, WholeTiles<Tag>>>>;

}  // namespace warpwright::kernel
