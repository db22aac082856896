// Who stores a tile, and from what parts of its sums along K: a Share is asked before and after the
// main loop. Parts are added up in the order of the CTAs, so that the result is the same every
// time.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

/// Bytes of the workspace: a flag for every consumer warp, then the sums of every CTA.
constexpr std::int64_t split_flag_bytes(const GemmConfig& c, int ctas) {
  return (std::int64_t{4} * consumer_warps(c) * ctas + 255) / 256 * 256;
}
constexpr std::int64_t split_workspace_bytes(const GemmConfig& c, int ctas) {
  return split_flag_bytes(c, ctas) + std::int64_t{4} * c.tile_m * c.tile_n * ctas;
}

/// A CTA has all of a tile's sums.
template <class Tag>
struct WholeTiles {
  WW_DEVICE WholeTiles(const Cta<Tag>& /*cta*/, int /*warp*/) {}
  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }
  template <class Sums>
  WW_DEVICE CompleteSums finish(Sums& /*sums*/, const tile::Work& /*work*/,
                                const Walk<Tag>& /*walk*/) const {
    return {true, 0, Tag::config.tile_n};
  }
  WW_DEVICE void drain() const {}
};

/// Parts go through the workspace to the CTA that has the tile's last K block. Warp talks to warp,
/// each about its own 16 rows of every atom: no barrier of the CTA is needed.
template <class Tag>
class WorkspaceShare {
 public:
  static constexpr int atoms = row_atoms(Tag::config);
  static constexpr int together = 3;                    // parts that are read at once
  static constexpr int words = Tag::config.tile_n / 8;  // of four floats, in an atom of a thread

  /// Of consumer warp `warp`.
  WW_DEVICE WorkspaceShare(const Cta<Tag>& cta, int warp)
      : p_(cta.p.walk), rank_(cta.rank), warp_(warp) {}

  /// Does this CTA store the tile?
  WW_DEVICE bool stores(const tile::Work& work) const { return work.end == p_.k_blocks; }

  /// Completes the sums or gives them away. `walk` is the one that gave `work` last.
  template <class Sums>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& work, const Walk<Tag>& walk) const {
    // One way out for both, not two: the registers are all taken, and the epilogue follows.
    const bool here = stores(work);
    if (here && work.first > 0) take(sums, walk.scheduler().sharers_from());
    if (!here) give(sums);
    return {here, 0, Tag::config.tile_n};
  }
  WW_DEVICE void drain() const {}

 private:
  /// Leaves this CTA's part for the CTA that stores the tile.
  template <class Sums>
  WW_DEVICE void give(Sums& sums) const {
    const int cta = isa::cta_index();
    const isa::GlobalView<isa::Words<4>> to = part(cta);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int j = 0; j < words; ++j) {
        to.store(place(i, j),
                 {isa::float_bits(sums[i][4 * j]), isa::float_bits(sums[i][4 * j + 1]),
                  isa::float_bits(sums[i][4 * j + 2]), isa::float_bits(sums[i][4 * j + 3])});
      }
    }
    isa::sync_warp();
    if (isa::lane_index() == 0) isa::flag_set(flag(cta), 1);
  }

  /// Adds the parts of the clusters from `first` to before this one.
  template <class Sums>
  WW_DEVICE void take(Sums& sums, int first) const {
    // All of them first: one wait after the other would add up their latencies.
    for (int c = first; c < isa::cluster_index(); ++c) {
      if (isa::lane_index() == 0) isa::flag_wait(flag(cta_of(c)), 1);
    }
    isa::sync_warp();
    for (int c = first; c < isa::cluster_index(); c += together) add(sums, c);
    isa::sync_warp();
    // As it was before the launch, for the next one.
    for (int c = first; c < isa::cluster_index(); ++c) {
      if (isa::lane_index() == 0) isa::flag_clear(flag(cta_of(c)));
    }
  }

  /// Adds the parts of `together` clusters from `c`, as far as they come before this one. Their
  /// loads are all on their way before the first is used.
  template <class Sums>
  WW_DEVICE void add(Sums& sums, int c) const {
    constexpr int batch = words < 4 ? words : 4;
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int first = 0; first < words; first += batch) {
        isa::Words<4> w[together][batch];
        WW_UNROLL for (int part = 0; part < together; ++part) {
          const isa::GlobalView<isa::Words<4>> from = this->part(cta_of(c + part));
          WW_UNROLL for (int j = 0; j < batch; ++j) {
            w[part][j] = {};
            if (first + j < words && c + part < isa::cluster_index()) {
              w[part][j] = from.load(place(i, first + j));
            }
          }
        }
        isa::keep_order();
        WW_UNROLL for (int part = 0; part < together; ++part) {
          WW_UNROLL for (int j = 0; j < batch; ++j) {
            if (first + j >= words) continue;
            WW_UNROLL for (int v = 0; v < 4; ++v) {
              sums[i][4 * (first + j) + v] += isa::float_of(w[part][j].word[v]);
            }
          }
        }
      }
    }
  }
  /// The CTA of this one's rank in cluster `c`.
  WW_DEVICE int cta_of(int c) const { return c * atom::cluster_size(p_.cluster) + rank_; }
  WW_DEVICE std::uint32_t* flag(int cta) const {
    return p_.flags + cta * consumer_warps(Tag::config) + warp_;
  }
  WW_DEVICE isa::GlobalView<isa::Words<4>> part(int cta) const {
    constexpr std::int64_t floats = std::int64_t{Tag::config.tile_m} * Tag::config.tile_n;
    return isa::global_words<4>(p_.partials + cta * floats + warp_ * (atoms * words * 128));
  }
  WW_DEVICE static int place(int i, int j) { return (i * words + j) * 32 + isa::lane_index(); }

  const WalkParams& p_;
  int rank_;
  int warp_;
};

/// The CTAs of a cluster share a tile along K: each leaves its part in its shared memory, where the
/// stages were, and adds up some columns of all parts, in the order of the ranks. Every CTA has one
/// tile.
template <class Tag>
class ClusterShare {
 public:
  static constexpr int atoms = row_atoms(Tag::config);
  static constexpr int words = Tag::config.tile_n / 8;  // of four floats: 8 columns of the tile

  WW_DEVICE ClusterShare(const Cta<Tag>& cta, int warp)
      : base_(cta.base + static_cast<isa::SharedAddress>(warp * atoms * words * 32 * 16)),
        ctas_(cta.p.walk.cluster_k) {}

  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }

  /// All consumer threads of the cluster call it when their tensor cores are done.
  template <class Sums>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& /*work*/, const Walk<Tag>& /*walk*/) {
    if (ctas_ <= 1) return {true, 0, Tag::config.tile_n};
    first_ = words * isa::cluster_rank() / ctas_;
    end_ = words * (isa::cluster_rank() + 1) / ctas_;
    exchange(sums);
    return {true, 8 * first_, 8 * end_};
  }

  /// A peer may still read what this CTA left for it.
  WW_DEVICE void drain() const {
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
using Share = std::conditional_t<Tag::config.sharing == Sharing::workspace, WorkspaceShare<Tag>,
                                 std::conditional_t<Tag::config.sharing == Sharing::cluster,
                                                    ClusterShare<Tag>, WholeTiles<Tag>>>;

}  // namespace warpwright::kernel
