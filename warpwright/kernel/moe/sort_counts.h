// The counts of the sort of slots, of one CTA: where they lie in its shared memory, how they are
// added up over warps, over CTAs and over experts.
#pragma once

#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/moe/sort_shape.h"

namespace warpwright::kernel {

/// For one thread of the kernel.
class SortCounts {
 protected:
  using Counts = isa::SharedView<std::int32_t>;
  /// For a line, from `first` to before `end`.
  struct Part {
    int first;
    int end;
  };

  WW_DEVICE explicit SortCounts(const SortSlotsParams& p)
      : p_(p),
        thread_(isa::thread_index()),
        lane_(isa::lane_index()),
        warp_(isa::warp_index()),
        rank_(SortSlotsShape::has_parts(p) ? 0 : isa::cluster_rank()),
        stride_(sort_slots_stride(p.experts)) {}

  WW_DEVICE int count() const { return p_.tokens * p_.top_k; }
  WW_DEVICE int cta_threads() const { return 32 * p_.warps; }
  WW_DEVICE int piece() const { return 32 * p_.warps * p_.steps; }
  WW_DEVICE void sync(isa::Site site = isa::Site::sync()) const {
    isa::sync_threads(cta_threads(), site);
  }

  // --- shared memory ----------------------------------------------------------------------------

  WW_DEVICE isa::SharedView<std::uint32_t> ordered() const { return {isa::shared_base()}; }
  /// Slots of a warp and expert, then: of warps before this one.
  WW_DEVICE isa::SharedView<std::uint16_t> of_warp(int warp) const {
    return {isa::shared_base() + static_cast<isa::SharedAddress>(4 * piece() + 2 * stride_ * warp)};
  }
  WW_DEVICE Counts of_cta(int rank) const {
    return {of_warp(p_.warps).address + static_cast<isa::SharedAddress>(4 * stride_ * rank)};
  }
  /// The row where this CTA's slots of an expert begin.
  WW_DEVICE Counts starts() const { return of_cta(p_.cluster); }
  /// Where they begin within the piece in order, and how far the row is from there.
  WW_DEVICE Counts places() const { return of_cta(p_.cluster + 1); }
  WW_DEVICE Counts ways() const { return of_cta(p_.cluster + 2); }
  WW_DEVICE Counts sums() const { return of_cta(p_.cluster + 3); }

  WW_DEVICE void clear_counts() const {
    const isa::SharedView<isa::Words<4>> all{of_warp(0).address};
    WW_NO_UNROLL
    for (int i = thread_; i < stride_ / 8 * p_.warps; i += cta_threads()) all.store(i, {});
  }

  // --- sums -------------------------------------------------------------------------------------

  /// The counts that a thread adds up, an even number: only it touches them, until all CTAs have
  /// theirs.
  WW_DEVICE Part columns() const {
    const int each = 2 * ((stride_ / 2 + cta_threads() - 1) / cta_threads());
    const int first = each * thread_;
    return {first < stride_ ? first : stride_, first + each < stride_ ? first + each : stride_};
  }

  /// An expert's counts become prefixes over the CTA's warps, and the CTA's count, or a part of
  /// it (`more`). Two at once: neither has more than a piece.
  WW_DEVICE void add_up_warps(bool more) const {
    const auto pairs_of = [&](int warp) {
      return isa::SharedView<std::uint32_t>{of_warp(warp).address};
    };
    const Part of_thread = columns();
    WW_NO_UNROLL
    for (int e = of_thread.first; e < of_thread.end; e += 2) {
      std::uint32_t sum = 0;
      WW_NO_UNROLL
      for (int first = 0; first < p_.warps; first += 8) {
        std::uint32_t counted[8];  // read all before the first is written: nobody waits eight times
        WW_UNROLL
        for (int i = 0; i < 8; ++i) {
          counted[i] = first + i < p_.warps ? pairs_of(first + i).load(e / 2) : 0;
        }
        WW_UNROLL
        for (int i = 0; i < 8; ++i) {
          if (first + i < p_.warps) pairs_of(first + i).store(e / 2, sum);
          sum += counted[i];
        }
      }
      const Counts all = of_cta(rank_);
      all.store(e, (more ? all.load(e) : 0) + static_cast<int>(sum & 0xffff));
      all.store(e + 1, (more ? all.load(e + 1) : 0) + static_cast<int>(sum >> 16));
    }
  }

  /// Every CTA of the cluster learns the counts of all.
  WW_DEVICE void exchange() const {
    if (p_.cluster == 1) return;
    sync();
    isa::cluster_wait();  // all have started
    const int pieces = stride_ / 4;
    const isa::SharedView<isa::Words<4>> mine{of_cta(rank_).address};
    // A warp stores 32 pieces into one CTA at a time.
    WW_NO_UNROLL
    for (int turn = warp_; turn < (pieces + 31) / 32 * p_.cluster; turn += p_.warps) {
      const int peer = turn % p_.cluster;
      const int at = turn / p_.cluster * 32 + lane_;
      if (peer == rank_ || at >= pieces) continue;
      const isa::SharedAddress to = mine.address + static_cast<isa::SharedAddress>(16 * at);
      isa::ClusterView<isa::Words<4>>{isa::map_rank(to, peer)}.store(mine.load(at));
    }
    isa::cluster_arrive();
    isa::cluster_wait();
  }

  /// The slots of an expert in all CTAs, and in those before this one.
  struct Counted {
    int all = 0;
    int before = 0;
  };
  WW_DEVICE Counted counted(int expert) const {
    Counted sum;
    WW_UNROLL
    for (int r = 0; r < SortSlotsShape::max_cluster; ++r) {
      const int n = r < p_.cluster ? of_cta(r).load(expert) : 0;
      sum.all += n;
      if (r < rank_) sum.before += n;
    }
    return sum;
  }

  /// The sum of `mine` over the threads before this one. `of_all`: over all. `which`, 0 or 1: the
  /// sums of another scan may still be read.
  WW_DEVICE int sum_before(int mine, int which, int& of_all) const {
    const int up_to_me = isa::sum_up_to_lane(mine, lane_);
    if (lane_ == 31) sums().store(32 * which + warp_, up_to_me);
    sync();
    const int of_warps =
        isa::sum_up_to_lane(lane_ < p_.warps ? sums().load(32 * which + lane_) : 0, lane_);
    const auto up_to_warp = [&](int warp) {
      return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(of_warps), warp));
    };
    of_all = up_to_warp(31);
    const int before = up_to_warp(warp_ == 0 ? 0 : warp_ - 1);
    return up_to_me - mine + (warp_ == 0 ? 0 : before);
  }

  const SortSlotsParams& p_;
  int thread_;
  int lane_;
  int warp_;
  int rank_;  ///< in the cluster that exchanges counts, else 0
  int stride_;
};

}  // namespace warpwright::kernel
