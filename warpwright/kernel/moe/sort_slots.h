// The kernel that sorts the slots of tokens by expert: a stable counting sort. A slot is token *
// top_k + j, where the router put the token's expert j. Beside it other clusters of the same launch
// may quantise the tokens.
//
// Slots lie in one line, of which every CTA has a part, in their order. A CTA takes its part piece
// by piece, and every warp a run of the piece. A warp counts its slots of every expert, 32 at a
// step: lanes of one expert find each other by match.any, and the lowest adds for all. Prefixes
// over experts, CTAs, warps and lanes say where a slot goes. A CTA puts the slots of a piece in
// order in its shared memory first: what goes to neighbouring rows is then written together, for
// scattered words cost an SM some four cycles each. No atomics: the order is that of the slots.
//
// Up to most_at_once slots one cluster (or CTA) does it all in one launch; its CTAs, of one piece
// each, put their counts into the shared memory of each other. More are sorted by three launches:
// CTAs count their parts, one cluster makes starts of the counts, CTAs count again and write. The
// counts of a part lie in its own piece of `rows` meanwhile. No barrier reaches over a grid.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/moe/sort_counts.h"
#include "warpwright/kernel/moe/sort_shape.h"
#include "warpwright/kernel/moe/token_rows.h"

namespace warpwright::kernel {

struct SortSlotsKernel : SortSlotsShape, private SortCounts {
  /// The whole kernel, for one thread of 32 * p.warps.
  WW_DEVICE static void run(const Params& p) {
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    if (has_parts(p) || isa::cluster_index() == 0) {
      isa::set_role("sorts slots");
      SortSlotsKernel(p).sort();
      return;
    }
    isa::set_role("quantises tokens");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    TokenRowsWork::run(p.quantised, SlotsInMemory(p.quantised), ReadTokens(p.quantised), ready,
                       {(isa::cta_index() - p.cluster) * p.warps + isa::warp_index(),
                        (isa::cta_count() - p.cluster) * p.warps, TokenRowsWork::items(p.quantised),
                        isa::shared_base()});
  }

 private:
  /// What a warp keeps of a piece: experts, and how many of the same came before in the warp.
  struct Taken {
    int key[at_once];
    int place[at_once];
  };

  WW_DEVICE explicit SortSlotsKernel(const Params& p)
      : SortCounts(p),
        tokens_a_step_(32U / static_cast<unsigned>(p.top_k)),
        rest_of_step_(32U % static_cast<unsigned>(p.top_k)) {}

  // --- what launches do -------------------------------------------------------------------------

  WW_DEVICE bool is(SortStage stage) const { return p_.stage == stage; }

  /// A part, piece by piece; for one piece where the stage is for a cluster.
  WW_DEVICE void sort() const {
    if (p_.cluster > 1) isa::cluster_arrive_relaxed();  // this CTA is here
    clear_counts();
    const Part part = part_of_cta();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    if (has_parts(p_)) begin_part(ready, part);
    Taken taken;
    WW_NO_UNROLL
    for (int first = part.first;;) {
      const Part now{first, first + piece() < part.end ? first + piece() : part.end};
      if (is(SortStage::starts)) {
        add_up_parts(ready);
      } else {
        take(ready, now, taken);
        add_up_warps(is(SortStage::count));
      }
      if (!has_parts(p_)) {
        exchange();
        find_starts();
      }
      if (is(SortStage::whole) || is(SortStage::place)) put(now, taken, find_places());
      first += piece();
      if (first >= part.end) break;
      next_piece();
    }
    if (is(SortStage::count)) keep_counts(part);
    if (is(SortStage::starts)) keep_starts(ready);
  }

  /// Nothing is counted yet; where the slots of a part that are to be placed begin.
  WW_DEVICE void begin_part(const isa::Prerequisites& /*ready*/, const Part& part) const {
    const Part experts = columns();
    const isa::GlobalView<std::int32_t> kept{p_.rows + part.first};
    WW_NO_UNROLL
    for (int e = experts.first; e < experts.end; ++e) {
      of_cta(0).store(e, 0);
      starts().store(e, is(SortStage::place) && e < p_.experts ? kept.load(e) : 0);
    }
  }

  WW_DEVICE void next_piece() const {
    sync();  // nobody reads counts any more
    if (is(SortStage::place)) {
      const Part experts = columns();
      WW_NO_UNROLL
      for (int e = experts.first; e < experts.end; ++e) {
        starts().store(e, starts().load(e) + of_cta(0).load(e));
      }
    }
    clear_counts();
  }

  WW_DEVICE void keep_counts(const Part& part) const {
    const Part experts = columns();
    const isa::GlobalView<std::int32_t> kept{p_.rows + part.first};
    WW_NO_UNROLL
    for (int e = experts.first; e < experts.end && e <= p_.experts; ++e) {
      kept.store(e, of_cta(0).load(e));
    }
  }

  /// For this CTA's share of the parts.
  WW_DEVICE void add_up_parts(const isa::Prerequisites& ready) const {
    const Part experts = columns();
    WW_NO_UNROLL
    for (int e = experts.first; e < experts.end; ++e) {
      of_cta(rank_).store(e, e <= p_.experts ? add_up_parts(ready, e, 0, false) : 0);
    }
  }

  WW_DEVICE void keep_starts(const isa::Prerequisites& ready) const {
    const Part experts = columns();
    WW_NO_UNROLL
    for (int e = experts.first; e < experts.end && e < p_.experts; ++e) {
      add_up_parts(ready, e, starts().load(e), true);
    }
  }

  // --- experts of slots -------------------------------------------------------------------------

  WW_DEVICE int first_of_part(int index) const {
    return 32 * (p_.part_steps * index + (index < p_.longer_parts ? index : p_.longer_parts));
  }

  WW_DEVICE Part part_of_cta() const {
    const int index = has_parts(p_) ? isa::cta_index() : rank_;
    const int first = has_parts(p_) ? first_of_part(index) : piece() * index;
    const int end = has_parts(p_) ? first_of_part(index + 1) : first + piece();
    return {first, end < count() ? end : count()};
  }

  /// The experts of a piece. All loads are on their way before one is waited for.
  template <class Id>
  WW_DEVICE void load_keys(const isa::Prerequisites& /*ready*/, const Part& part,
                           int (&key)[at_once]) const {
    // Slots of neighbouring steps are 32 apart: one division for all.
    const auto top_k = static_cast<unsigned>(p_.top_k);
    const auto slot = static_cast<unsigned>(slot_of(part, 0));
    unsigned token = slot / top_k;
    unsigned rest = slot - token * top_k;
    const isa::GlobalView<const Id> ids{static_cast<const Id*>(p_.ids)};
    Id id[at_once];
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      id[i] =
          i < p_.steps && slot_of(part, i) < part.end ? ids.load(token * p_.pitch + rest) : Id{-1};
      token += tokens_a_step_;
      rest += rest_of_step_;
      if (rest >= top_k) {
        rest -= top_k;
        ++token;
      }
    }
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) key[i] = tile::slot_key(p_, id[i]);
  }

  /// This thread's slot of a step of its warp's run.
  WW_DEVICE int slot_of(const Part& part, int step) const {
    return part.first + 32 * (p_.steps * warp_ + step) + lane_;
  }

  /// Reads a piece and counts it, behind those who cleared the counts and before those who read
  /// them; says how many slots of the same expert came before in the warp.
  WW_DEVICE void take(const isa::Prerequisites& ready, const Part& part, Taken& t) const {
    if (p_.wide) {
      load_keys<std::int64_t>(ready, part, t.key);
    } else {
      load_keys<std::int32_t>(ready, part, t.key);
    }
    sync();
    std::uint32_t same[at_once];
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      t.place[i] = 0;
      if (i < p_.steps) same[i] = isa::match_any(static_cast<std::uint32_t>(t.key[i]));
    }
    const auto counts = of_warp(warp_);
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (i >= p_.steps) continue;
      if (lane_ == isa::lowest_lane(same[i]) && t.key[i] <= p_.experts) {
        t.place[i] = counts.load(t.key[i]);
        counts.store(t.key[i], static_cast<std::uint16_t>(t.place[i] + isa::count_lanes(same[i])));
      }
      isa::sync_warp();  // the lane that counts in the next step may be another
    }
    const std::uint32_t lanes_before = (1U << lane_) - 1;
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (i >= p_.steps) continue;
      const std::uint32_t before =
          isa::shuffle(static_cast<std::uint32_t>(t.place[i]), isa::lowest_lane(same[i]));
      t.place[i] = static_cast<int>(before) + isa::count_lanes(same[i] & lanes_before);
    }
    sync();
  }

  // --- prefixes ---------------------------------------------------------------------------------

  /// An expert's counts in this CTA's share of the parts, added up from `sum` on; each becomes the
  /// sum of those before, if `keep`.
  WW_DEVICE int add_up_parts(const isa::Prerequisites& /*ready*/, int expert, int sum,
                             bool keep) const {
    const int end = p_.parts * (rank_ + 1) / p_.cluster;
    WW_NO_UNROLL
    for (int first = p_.parts * rank_ / p_.cluster; first < end; first += 8) {
      int counted[8];
      WW_UNROLL
      for (int i = 0; i < 8; ++i) counted[i] = first + i < end ? kept(first + i).load(expert) : 0;
      WW_UNROLL
      for (int i = 0; i < 8; ++i) {
        if (keep && first + i < end) kept(first + i).store(expert, sum);
        sum += counted[i];
      }
    }
    return sum;
  }

  /// The counts of a part.
  WW_DEVICE isa::GlobalView<std::int32_t> kept(int part) const {
    return {p_.rows + first_of_part(part)};
  }

  /// Where experts begin: neighbouring experts a thread, then a scan over threads.
  WW_DEVICE void find_starts() const {
    const Part experts = columns();
    const int end = experts.end < p_.experts ? experts.end : p_.experts;
    int mine = 0;
    WW_NO_UNROLL
    for (int e = experts.first; e < end; ++e) mine += counted(e).all;
    int all = 0;
    int start = sum_before(mine, 0, all);
    WW_NO_UNROLL
    for (int e = experts.first; e < end; ++e) {
      const Counted of_expert = counted(e);
      starts().store(e, start + of_expert.before);
      if (rank_ == 0) isa::GlobalView<std::int32_t>{p_.offsets}.store(e, start);
      start += of_expert.all;
    }
    if (rank_ == 0 && thread_ == 0) {
      isa::GlobalView<std::int32_t>{p_.offsets}.store(p_.experts, all);
      if (p_.status != nullptr) {
        isa::GlobalView<std::uint32_t>{p_.status}.store(0, counted(p_.experts).all > 0 ? 1U : 0U);
      }
    }
    const int everyone = cta_threads() * p_.cluster;
    WW_NO_UNROLL
    for (std::int64_t i = std::int64_t{all} + cta_threads() * rank_ + thread_; i < count();
         i += everyone) {
      isa::GlobalView<std::int32_t>{p_.slots}.store(i, -1);
    }
  }

  /// Where the slots of a piece go in order; their number.
  WW_DEVICE int find_places() const {
    const Part experts = columns();
    const int end = experts.end < p_.experts ? experts.end : p_.experts;
    int mine = 0;
    WW_NO_UNROLL
    for (int e = experts.first; e < end; ++e) mine += of_cta(rank_).load(e);
    int all = 0;
    int place = sum_before(mine, 1, all);
    WW_NO_UNROLL
    for (int e = experts.first; e < end; ++e) {
      places().store(e, place);
      ways().store(e, starts().load(e) - place);
      place += of_cta(rank_).load(e);
    }
    sync();
    return all;
  }

  /// Writes where the slots of a piece go; `all` of them are not left out.
  WW_DEVICE void put(const Part& part, const Taken& t, int all) const {
    const auto before = of_warp(warp_);
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const int slot = slot_of(part, i);
      if (i >= p_.steps || slot >= part.end) continue;
      const int key = t.key[i];
      int row = -1;
      if (key < p_.experts) {
        const int place = places().load(key) + before.load(key) + t.place[i];
        row = ways().load(key) + place;
        ordered().store(place, static_cast<std::uint32_t>(slot - part.first) |
                                   static_cast<std::uint32_t>(key) << 16);
      }
      isa::GlobalView<std::int32_t>{p_.rows}.store(slot, row);
    }
    sync();
    constexpr int together = 4;
    WW_NO_UNROLL
    for (int first = thread_; first < all; first += together * cta_threads()) {
      std::uint32_t word[together];
      int way[together];
      WW_UNROLL
      for (int i = 0; i < together; ++i) {
        const int place = first + i * cta_threads();
        word[i] = place < all ? ordered().load(place) : 0;
      }
      WW_UNROLL
      for (int i = 0; i < together; ++i) way[i] = ways().load(static_cast<int>(word[i] >> 16));
      WW_UNROLL
      for (int i = 0; i < together; ++i) {
        const int place = first + i * cta_threads();
        if (place >= all) continue;
        isa::GlobalView<std::int32_t>{p_.slots}.store(
            place + way[i], part.first + static_cast<int>(word[i] & 0xffff));
      }
    }
  }

  unsigned tokens_a_step_;
  unsigned rest_of_step_;
};

}  // namespace warpwright::kernel
