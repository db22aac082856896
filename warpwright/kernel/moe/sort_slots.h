// The kernel that sorts the slots of tokens by expert: a stable counting sort. A slot is token *
// top_k + j, where the router put the token's expert j. Beside it other clusters of the same launch
// may quantise the tokens.
//
// Slots lie in one line, of which every warp has a part, cut in the order of CTAs and warps. A warp
// counts its slots of every expert, 32 at a step: lanes of one expert find each other by match.any,
// and the lowest adds for all. The counts of a cluster's CTAs meet in the shared memory of each.
// Prefixes over experts, CTAs, warps and lanes say where a slot goes. No atomics: the order is that
// of the slots.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/moe/token_rows.h"

namespace warpwright::kernel {

/// What the router chose, and where the sorted slots go.
struct SortSlotsParams {
  const void* ids = nullptr;  ///< tokens x top_k of int32, or int64 if `wide`
  std::int64_t pitch = 0;     ///< elements from token to token, at least top_k
  bool wide = false;
  int tokens = 0;
  int top_k = 1;
  int first_expert = 0;             ///< of this rank
  int experts = 0;                  ///< of this rank, 1 to SortSlotsKernel::max_experts
  int experts_total = 0;            ///< of all ranks
  std::int32_t* offsets = nullptr;  ///< experts + 1: where the rows of an expert begin
  std::int32_t* slots = nullptr;    ///< tokens x top_k: row -> slot; behind the last row -1
  std::int32_t* rows = nullptr;     ///< tokens x top_k: slot -> row; -1 where it is left out
  std::uint32_t* status = nullptr;  ///< bit 0: an id out of range, else 0; or null
  /// Words that become 0, for a product behind the sort that counts rows; or none.
  std::uint32_t* counts = nullptr;
  int count_words = 0;
  int warps = 0;        ///< of a CTA: SortSlotsKernel::shape
  int cluster = 1;      ///< CTAs that sort, which are the first cluster
  TokenRows quantised;  ///< by all other clusters; `rows` is null there
};

/// Counts of a warp or a CTA lie in so many words: of the experts, of ids out of range, padding.
constexpr int sort_slots_stride(int experts) {
  return (experts + 1 + 3) / 4 * 4;
}

/// Dynamic shared memory of a CTA: the counts of warps and of CTAs, the starts of experts, sums of
/// the scan.
constexpr int sort_slots_shared_bytes(int experts, int warps, int cluster) {
  return 4 * (sort_slots_stride(experts) * (warps + cluster + 1) + 32);
}

struct SortSlotsKernel {
  using Params = SortSlotsParams;
  static constexpr int max_warps = 32;
  static constexpr int threads = 32 * max_warps;  ///< at most
  static constexpr int max_experts = 1024;
  static constexpr int max_cluster = 8;
  static constexpr std::int64_t max_slots = std::int64_t{1} << 30;
  static constexpr int one_cta = 4096;  ///< slots that one CTA sorts alone
  /// Steps of 32 slots whose experts a warp reads at once.
  static constexpr int at_once = 4;

  static constexpr int shared_bytes = sort_slots_shared_bytes(max_experts, max_warps, max_cluster);
  static_assert(shared_bytes <= 227 * 1024);

  /// Sets how many warps and CTAs sort.
  static void shape(Params& p) {
    const std::int64_t slots = std::int64_t{p.tokens} * p.top_k;
    p.cluster = slots > one_cta ? max_cluster : 1;
    p.warps = static_cast<int>(std::clamp<std::int64_t>((slots + 31) / 32, 8, max_warps));
  }
  /// CTAs of a launch on a device of `sms` SMs, in clusters of p.cluster.
  static int ctas(const Params& p, int sms) {
    const std::int64_t wanted = (TokenRowsWork::items(p.quantised) + p.warps - 1) / p.warps;
    const std::int64_t more = std::min<std::int64_t>(wanted, 2 * std::int64_t{sms});
    return static_cast<int>((p.cluster + more + p.cluster - 1) / p.cluster * p.cluster);
  }

  /// The whole kernel, for one thread of 32 * p.warps.
  WW_DEVICE static void run(const Params& p) {
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    if (isa::cluster_index() == 0) {
      isa::set_role("sorts slots");
      SortSlotsKernel(p).sort();
      return;
    }
    isa::set_role("quantises tokens");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    TokenRowsWork::run(p.quantised, ready,
                       (isa::cta_index() - p.cluster) * p.warps + isa::warp_index(),
                       (isa::cta_count() - p.cluster) * p.warps);
  }

 private:
  using Counts = isa::SharedView<std::int32_t>;
  /// A warp's part of the line, a thread's of the counts.
  struct Part {
    int first;
    int end;
  };

  WW_DEVICE explicit SortSlotsKernel(const Params& p)
      : p_(p),
        thread_(isa::thread_index()),
        lane_(isa::lane_index()),
        warp_(isa::warp_index()),
        rank_(isa::cluster_rank()),
        stride_(sort_slots_stride(p.experts)) {}

  WW_DEVICE int count() const { return p_.tokens * p_.top_k; }
  WW_DEVICE int cta_threads() const { return 32 * p_.warps; }
  /// Slots of this warp and expert, then: of warps before this one.
  WW_DEVICE Counts of_warp(int warp) const {
    return {isa::shared_base() + static_cast<isa::SharedAddress>(4 * stride_ * warp)};
  }
  WW_DEVICE Counts of_cta(int rank) const { return of_warp(p_.warps + rank); }
  /// Where this CTA's slots of an expert begin.
  WW_DEVICE Counts starts() const { return of_warp(p_.warps + p_.cluster); }
  WW_DEVICE Counts sums() const { return of_warp(p_.warps + p_.cluster + 1); }

  WW_DEVICE void sort() const {
    if (p_.cluster > 1) isa::cluster_arrive_relaxed();  // this CTA is here
    for (int i = thread_; i < stride_ * p_.warps; i += cta_threads()) of_warp(0).store(i, 0);
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const Part part = part_of_warp();
    int key[at_once];
    int place[at_once];
    load_keys(ready, part.first, part, key);
    isa::sync_threads(cta_threads());
    take(key, place);
    for (int at = part.first + 32 * at_once; at < part.end; at += 32 * at_once) {
      load_keys(ready, at, part, key);
      take(key, place);
    }
    isa::sync_threads(cta_threads());
    add_up_warps();
    exchange();
    find_starts();
    isa::sync_threads(cta_threads());
    if (part.end - part.first <= 32 * at_once) {  // what was read and counted is still there
      put(part.first, part, key, place, of_warp(warp_));
      return;
    }
    for (int at = part.first; at < part.end; at += 32 * at_once) {
      load_keys(ready, at, part, key);
      take(key, place);  // counted from the warp's prefix on
      put(at, part, key, place, {});
    }
  }

  WW_DEVICE Part part_of_warp() const {
    const int warps = p_.warps * p_.cluster;
    const int each = ((count() + warps - 1) / warps + 31) / 32 * 32;
    const std::int64_t first = std::int64_t{each} * (rank_ * p_.warps + warp_);
    if (first >= count()) return {count(), count()};
    return {static_cast<int>(first),
            static_cast<int>(first + each < count() ? first + each : count())};
  }

  // --- experts of slots -------------------------------------------------------------------------

  /// The local expert of a slot; `experts` for an id out of range, one more for what is left out.
  WW_DEVICE int key_of(std::int64_t id) const {
    if (id == -1) return p_.experts + 1;
    if (id < 0 || id >= p_.experts_total) return p_.experts;
    const std::int64_t local = id - p_.first_expert;
    return local >= 0 && local < p_.experts ? static_cast<int>(local) : p_.experts + 1;
  }

  WW_DEVICE void load_keys(const isa::Prerequisites& /*ready*/, int from, const Part& part,
                           int (&key)[at_once]) const {
    const bool packed = p_.pitch == p_.top_k;
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const int slot = from + 32 * i + lane_;
      if (slot >= part.end) {
        key[i] = p_.experts + 1;
        continue;
      }
      const unsigned token = static_cast<unsigned>(slot) / static_cast<unsigned>(p_.top_k);
      const std::int64_t at =
          packed ? slot : token * p_.pitch + (slot - static_cast<int>(token) * p_.top_k);
      key[i] = key_of(
          p_.wide
              ? isa::GlobalView<const std::int64_t>{static_cast<const std::int64_t*>(p_.ids)}.load(
                    at)
              : isa::GlobalView<const std::int32_t>{static_cast<const std::int32_t*>(p_.ids)}.load(
                    at));
    }
  }

  /// Counts the slots of a warp, and says how many of the same expert came before each.
  WW_DEVICE void take(const int (&key)[at_once], int (&place)[at_once]) const {
    std::uint32_t same[at_once];
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      same[i] = isa::match_any(static_cast<std::uint32_t>(key[i]));
      place[i] = 0;
    }
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (lane_ == isa::lowest_lane(same[i]) && key[i] <= p_.experts) {
        place[i] = of_warp(warp_).load(key[i]);
        of_warp(warp_).store(key[i], place[i] + isa::count_lanes(same[i]));
      }
      isa::sync_warp();  // the lane that counts in the next step may be another
    }
    const std::uint32_t lanes_before = (1U << lane_) - 1;
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const std::uint32_t before =
          isa::shuffle(static_cast<std::uint32_t>(place[i]), isa::lowest_lane(same[i]));
      place[i] = static_cast<int>(before) + isa::count_lanes(same[i] & lanes_before);
    }
  }

  // --- prefixes ---------------------------------------------------------------------------------

  /// The counts that a thread adds up: it alone touches them until all CTAs have theirs.
  WW_DEVICE Part columns() const {
    const int each = (stride_ + cta_threads() - 1) / cta_threads();
    const int first = each * thread_;
    return {first, first + each < stride_ ? first + each : stride_};
  }

  /// Of an expert's counts become prefixes over the CTA's warps, and the CTA's count.
  WW_DEVICE void add_up_warps() const {
    const Part of_thread = columns();
    for (int e = of_thread.first; e < of_thread.end; ++e) {
      int sum = 0;
      for (int first = 0; first < p_.warps; first += 8) {
        int counted[8];  // read all before the first is written: nobody waits eight times
        WW_UNROLL
        for (int i = 0; i < 8; ++i) {
          counted[i] = first + i < p_.warps ? of_warp(first + i).load(e) : 0;
        }
        WW_UNROLL
        for (int i = 0; i < 8; ++i) {
          if (first + i < p_.warps) of_warp(first + i).store(e, sum);
          sum += counted[i];
        }
      }
      of_cta(rank_).store(e, sum);
    }
  }

  /// Every CTA of the cluster learns the counts of all.
  WW_DEVICE void exchange() const {
    if (p_.cluster == 1) return;
    isa::sync_threads(cta_threads());
    isa::cluster_wait();  // all have started
    const int pieces = stride_ / 4;
    const isa::SharedView<isa::Words<4>> mine{of_cta(rank_).address};
    for (int i = thread_; i < pieces * (p_.cluster - 1); i += cta_threads()) {
      const int peer = (rank_ + 1 + i / pieces) % p_.cluster;
      const int at = i % pieces;
      const isa::SharedAddress to = mine.address + static_cast<isa::SharedAddress>(16 * at);
      isa::ClusterView<isa::Words<4>>{isa::map_rank(to, peer)}.store(mine.load(at));
    }
    isa::cluster_arrive();
    isa::cluster_wait();
  }

  /// The slots of an expert in all CTAs, or in those before `rank`.
  WW_DEVICE int counted(int expert, int ranks) const {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += of_cta(r).load(expert);
    return sum;
  }

  /// Where experts begin: neighbouring experts a thread, then a scan over threads.
  WW_DEVICE void find_starts() const {
    const Part of_thread = columns();
    const int first = of_thread.first;
    const int end = of_thread.end < p_.experts ? of_thread.end : p_.experts;
    int mine = 0;
    for (int e = first; e < end; ++e) mine += counted(e, p_.cluster);
    const int up_to_me = isa::sum_up_to_lane(mine, lane_);
    if (lane_ == 31) sums().store(warp_, up_to_me);
    isa::sync_threads(cta_threads());
    const int of_warps = isa::sum_up_to_lane(lane_ < p_.warps ? sums().load(lane_) : 0, lane_);
    const auto up_to_warp = [&](int warp) {
      return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(of_warps), warp));
    };
    const int all = up_to_warp(31);
    const int before = up_to_warp(warp_ == 0 ? 0 : warp_ - 1);
    int start = up_to_me - mine + (warp_ == 0 ? 0 : before);
    for (int e = first; e < end; ++e) {
      starts().store(e, start + counted(e, rank_));
      if (rank_ == 0) isa::GlobalView<std::int32_t>{p_.offsets}.store(e, start);
      start += counted(e, p_.cluster);
    }
    if (rank_ == 0 && thread_ == 0) {
      isa::GlobalView<std::int32_t>{p_.offsets}.store(p_.experts, all);
      if (p_.status != nullptr) {
        isa::GlobalView<std::uint32_t>{p_.status}.store(
            0, counted(p_.experts, p_.cluster) > 0 ? 1U : 0U);
      }
    }
    const int everyone = cta_threads() * p_.cluster;
    for (std::int64_t i = std::int64_t{all} + cta_threads() * rank_ + thread_; i < count();
         i += everyone) {
      isa::GlobalView<std::int32_t>{p_.slots}.store(i, -1);
    }
    for (int i = cta_threads() * rank_ + thread_; i < p_.count_words; i += everyone) {
      isa::GlobalView<std::uint32_t>{p_.counts}.store(i, 0);
    }
  }

  /// Writes where slots go. `more`: what `place` is counted from, unless from all warps before.
  WW_DEVICE void put(int from, const Part& part, const int (&key)[at_once],
                     const int (&place)[at_once], Counts more) const {
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const int slot = from + 32 * i + lane_;
      if (slot >= part.end) continue;
      int row = -1;
      if (key[i] < p_.experts) {
        row = starts().load(key[i]) + place[i];
        if (more.address != 0) row += more.load(key[i]);
        isa::GlobalView<std::int32_t>{p_.slots}.store(row, slot);
      }
      isa::GlobalView<std::int32_t>{p_.rows}.store(slot, row);
    }
  }

  const Params& p_;
  int thread_;
  int lane_;
  int warp_;
  int rank_;
  int stride_;
};

}  // namespace warpwright::kernel
