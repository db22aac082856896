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
#include "warpwright/kernel/sum_parts.h"

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

/// The CTAs of a cluster share a tile along K. A warp sends each part of its sums to the CTA that
/// adds it up (st.async), and adds up what the same warp of the others has sent it, in the order of
/// the ranks. Nothing waits for a whole CTA, or is released to the cluster: an arrival that
/// releases takes longer than all the rest. Every CTA has one tile.
template <class Tag>
class ClusterFixup {
 public:
  static constexpr int atoms = cluster_parts(Tag::config).atoms;
  static constexpr int words = cluster_parts(Tag::config).words;

  WW_DEVICE ClusterFixup(const Cta<Tag>& cta, int warp, const isa::Prerequisites& /*ready*/)
      : ctas_(cta.p.walk.cluster_k),
        warp_(warp),
        places_(cta.base + smem_map(Tag::config).parts),
        barrier_(cta.base + smem_map(Tag::config).part_barriers + warp * 8) {
    constexpr ClusterParts parts = cluster_parts(Tag::config);
    if (ctas_ <= 1) return;
    rank_ = isa::cluster_rank();
    first_ = parts.words_before(parts.first(rank_, ctas_), warp_);
    end_ = parts.words_before(parts.first(rank_ + 1, ctas_), warp_);
    if (isa::lane_index() == 0 && end_ > first_) {
      isa::mbarrier_arrive_expect(barrier_, (end_ - first_) * (ctas_ - 1) * parts.unit_bytes());
    }
  }

  /// One thread of the CTA, before its threads meet.
  WW_DEVICE static void initialise(isa::SharedAddress base) {
    constexpr ClusterParts parts = cluster_parts(Tag::config);
    WW_NO_UNROLL for (int i = 0; i < parts.warps; ++i) {
      isa::mbarrier_init(base + smem_map(Tag::config).part_barriers + i * 8, 1, {"parts", i},
                         "the leader of its warp");
    }
  }

  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }

  /// All consumer warps call it when their tensor cores are done.
  template <class Sums>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& /*work*/, const Walk<Tag>& /*walk*/,
                                isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    if (ctas_ <= 1) return {true, 0, Tag::config.tile_n};
    isa::cluster_wait();  // all have begun, and their barriers are there
    send(sums);
    if (end_ > first_) {
      isa::mbarrier_wait<isa::Scope::cluster>(barrier_, 0, {"parts", warp_});
      add(sums);
    }
    return {true, 8 * first_, 8 * end_};
  }

  /// No peer writes any more: all parts are there, or this warp gets none.
  WW_DEVICE void drain() const {}

 private:
  /// Where the part of CTA `rank` of a unit of CTA `owner` lies.
  WW_DEVICE isa::SharedAddress place(int unit, int owner, int rank) const {
    constexpr ClusterParts parts = cluster_parts(Tag::config);
    const int slot = (unit - parts.first(owner, ctas_)) * (ctas_ - 1) + rank - (rank > owner);
    return places_ +
           static_cast<isa::SharedAddress>(slot * parts.unit_bytes() + isa::lane_index() * 16);
  }

  template <class Sums>
  WW_DEVICE void send(Sums& sums) const {
    constexpr ClusterParts parts = cluster_parts(Tag::config);
    WW_UNROLL for (int j = 0; j < words; ++j) {
      if (j >= first_ && j < end_) continue;
      const int unit = j * parts.warps + warp_;
      const int owner = parts.owner(unit, ctas_);
      const isa::SharedAddress to = isa::map_rank(place(unit, owner, rank_), owner);
      const isa::SharedAddress barrier = isa::map_rank(barrier_, owner);
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        isa::store_async(to + i * parts.atom_bytes, sums_word(sums[i], j), barrier);
      }
    }
  }

  template <class Sums>
  WW_DEVICE void add(Sums& sums) const {
    constexpr ClusterParts parts = cluster_parts(Tag::config);
    WW_UNROLL for (int j = 0; j < words; ++j) {
      if (j < first_ || j >= end_) continue;
      const isa::SharedAddress from = place(j * parts.warps + warp_, rank_, 0);
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        float sum[4] = {0, 0, 0, 0};
        WW_NO_UNROLL for (int c = 0; c < ctas_; ++c) {
          isa::Words<4> w = sums_word(sums[i], j);
          if (c != rank_) {
            const int before = (c - (c > rank_)) * parts.unit_bytes() + i * parts.atom_bytes;
            w = isa::SharedView<isa::Words<4>>{from + before}.load(0);
          }
          WW_UNROLL for (int v = 0; v < 4; ++v) sum[v] += isa::float_of(w.word[v]);
        }
        WW_UNROLL for (int v = 0; v < 4; ++v) sums[i][4 * j + v] = sum[v];
      }
    }
  }

  int ctas_;
  int warp_;
  isa::SharedAddress places_;
  isa::SharedAddress barrier_;  // of this warp
  int rank_ = 0;
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
