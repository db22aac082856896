// The kernel that sorts few slots and puts the rows of their tokens into the order of the experts,
// in one launch: sort_slots.h and gather_rows.h are two.
//
// No CTA waits for another. Each has a run of the items that movers of rows share out, and finds by
// itself where the slots of these items' tokens go. A slot is one word, its expert above its
// number, so its row is the number of smaller words: slots of smaller experts, and earlier ones of
// the same expert. Where an expert begins is a number of smaller words too. All words lie in shared
// memory; a warp takes one that is asked for, and its lanes compare it with all. So bits are those
// of the sort, whatever the number of CTAs.
//
// What the sort writes is shared out like this: the slots of a token belong to the CTA that has the
// token's first item, experts are dealt out evenly, the end of the last brings the status along.
// A token is read and quantised once, as by the gather: its stores to the rows of all its slots
// wait for nobody, while a warp for each slot would quantise the same elements top_k times, and
// there are warps enough without: 64 tokens of 2,048 elements are 512 pieces, for 1,056 warps.
//
// Behind it the first product counts where experts begin by itself, to ask for weights before this
// grid has ended (tile/slot_ids.h). So dependents start behind the wait: what a grid before wrote,
// the ids, is there for them too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_shape.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// What the sort and the gather are given, and how a launch shares it out.
struct SortGatherParams {
  SortSlotsParams sort;     ///< its shape and `quantised` are not used
  GatherRowsParams gather;  ///< its rows of slots and offsets are not read: those of the sort
  std::int64_t items = 1;   ///< of a CTA; this and what follows: SortGatherKernel::shape
  int items_of_token = 1;
  int ctas = 1;
  int experts = 1;  ///< of whose first rows a CTA says where they lie; the end of the last is one
};

/// The rows of slots that a CTA has found itself, in its shared memory; for RowForm::micro also
/// where the rows of experts begin.
struct SlotsOfCta {
  isa::SharedView<std::int32_t> rows;
  isa::SharedView<std::int32_t> offsets;
  int first = 0;  ///< the slot that `rows` begin with

  [[nodiscard]] static constexpr bool have_rows() { return true; }
  [[nodiscard]] WW_DEVICE int row(std::int64_t slot) const {
    return rows.load(static_cast<int>(slot) - first);
  }
  [[nodiscard]] WW_DEVICE int offset(int expert) const { return offsets.load(expert); }
};

class SortGatherKernel {
 public:
  using Params = SortGatherParams;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int ctas_an_sm = 2;
  static constexpr int slot_bits = 12;
  static constexpr int max_slots = 1 << slot_bits;
  static_assert(SortSlotsShape::max_experts + 2 < 1 << (31 - slot_bits));
  /// For RowForm::micro every CTA finds where all experts begin: so many comparisons are worth it.
  static constexpr std::int64_t max_pairs = std::int64_t{1} << 17;

  /// Can it be done in one launch? (Each CTA goes over all slots for each of its own.)
  static constexpr bool serves(std::int64_t slots, std::int64_t experts, bool is_micro) {
    return slots <= max_slots && (!is_micro || slots * experts <= max_pairs);
  }

  /// Sets how CTAs share it out on a device of `sms` SMs: few items each, so that all take part,
  /// and an expert for each warp.
  static void shape(Params& p, int sms) {
    const std::int64_t items = p.gather.items();
    const std::int64_t most = std::max(sms, 1);
    // Those of a row stay in one CTA.
    const std::int64_t together = p.gather.rows.form == RowForm::rows ? p.gather.rows.sharers : 1;
    const auto each = [](std::int64_t all, std::int64_t by) { return (all + by - 1) / by; };
    p.items = each(each(items, most), together) * together;
    p.items_of_token = static_cast<int>(p.gather.items_of_token());
    p.ctas = static_cast<int>(
        std::max(each(items, p.items), std::min(most, each(p.sort.experts + 1, warps))));
    p.experts = static_cast<int>(each(p.sort.experts + 1, p.ctas));
  }
  /// For a CTA: the words of all slots, the rows of its own, where experts begin, and where warps
  /// that share a row meet.
  static int shared_bytes_of(const Params& p) {
    const auto tokens = static_cast<int>(
        std::min<std::int64_t>(p.sort.tokens, (p.items - 1) / p.items_of_token + 2));
    return 4 * (padded(p.sort) + tokens * p.sort.top_k + begins(p) + meeting_words);
  }
  static constexpr int meeting_words = WarpShare::words_a_warp * warps;
  static constexpr int shared_bytes =
      4 * (2 * max_slots + 2 * SortSlotsShape::max_experts + 1 + meeting_words);

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("sorts and gathers");
    SortGatherKernel(p).run();
  }

 private:
  using Four = isa::Words<4>;

  WW_DEVICE explicit SortGatherKernel(const Params& p)
      : p_(p),
        s_(p.sort),
        thread_(isa::thread_index()),
        lane_(isa::lane_index()),
        warp_(isa::warp_index()),
        cta_(isa::cta_index()) {}

  WW_DEVICE void run() const {
    const std::int64_t all = p_.gather.items();
    const auto among = [&](std::int64_t item) { return item < all ? item : all; };
    const std::int64_t first = among(cta_ * p_.items);
    const std::int64_t end = among(first + p_.items);
    // Tokens that items are of, and from which on their first items are here.
    const auto by_token = [&](std::int64_t item) {
      return static_cast<int>(quotient(item + p_.items_of_token - 1, p_.items_of_token));
    };
    const Slots mine{static_cast<int>(quotient(first, p_.items_of_token)) * s_.top_k,
                     by_token(first) * s_.top_k, by_token(end) * s_.top_k};
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    isa::launch_dependents();  // behind the wait: they read the ids before they wait for this grid
    load_words(ready);
    isa::sync_threads(threads);
    const int rows_at = padded(s_);
    const int begins_at = rows_at + mine.end - mine.first;
    const SlotsOfCta found{{words_from(rows_at)}, {words_from(begins_at)}, mine.first};
    rank(ready, mine, found);
    isa::sync_threads(threads);
    p_.gather.move(found, ready, {first + warp_, warps, end, words_from(begins_at + begins(p_))});
  }

  /// For the tokens whose items this CTA has; it writes those from `own` on.
  struct Slots {
    int first;
    int own;
    int end;
  };

  static constexpr int count(const SortSlotsParams& p) { return p.tokens * p.top_k; }
  /// Words that say where experts begin.
  static constexpr int begins(const Params& p) {
    return p.gather.rows.form == RowForm::micro ? p.sort.experts + 1 : 0;
  }
  /// Words in shared memory: a whole number of steps of a warp.
  static constexpr int padded(const SortSlotsParams& p) { return (count(p) + 127) / 128 * 128; }
  [[nodiscard]] WW_DEVICE static isa::SharedAddress words_from(int word) {
    return isa::shared_base() + static_cast<isa::SharedAddress>(4 * word);
  }
  [[nodiscard]] WW_DEVICE isa::SharedView<std::uint32_t> words() const { return {words_from(0)}; }
  /// The smallest word of an expert.
  static WW_DEVICE std::uint32_t first_word(int expert) {
    return static_cast<std::uint32_t>(expert) << slot_bits;
  }
  static WW_DEVICE int expert_of(std::uint32_t word) { return static_cast<int>(word >> slot_bits); }

  /// For a slot; -1 behind the last.
  [[nodiscard]] WW_DEVICE std::int64_t load_id(const isa::Prerequisites& /*ready*/,
                                               int slot) const {
    if (slot >= count(s_)) return -1;
    const std::int64_t token = quotient(slot, s_.top_k);
    return tile::load_slot_id(s_, token, slot - token * s_.top_k);
  }

  /// For all slots; behind the last come words that are larger than any. Two loads are on their way
  /// before one is waited for, which is all of 64 tokens with 8 experts.
  WW_DEVICE void load_words(const isa::Prerequisites& ready) const {
    constexpr int at_once = 2;
    WW_NO_UNROLL
    for (int from = thread_; from < padded(s_); from += at_once * threads) {
      std::int64_t id[at_once];
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) id[i] = load_id(ready, from + i * threads);
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const int slot = from + i * threads;
        if (slot >= padded(s_)) continue;
        const bool is_slot = slot < count(s_);
        const int expert = tile::slot_key(s_, id[i]);
        const std::uint32_t word = first_word(expert) + static_cast<std::uint32_t>(slot);
        words().store(slot, is_slot ? word : 0xffffffffU);
      }
    }
  }

  /// All lanes: the number of words below that one.
  [[nodiscard]] WW_DEVICE int rank_of(std::uint32_t word) const {
    constexpr int at_once = 4;
    const isa::SharedView<Four> all{words().address};
    const int end = padded(s_) / 4;
    int below = 0;
    WW_NO_UNROLL
    for (int from = lane_; from < end; from += 32 * at_once) {
      Four four[at_once];
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (from + 32 * i < end) four[i] = all.load(from + 32 * i);
      }
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (from + 32 * i >= end) continue;
        WW_UNROLL
        for (int j = 0; j < 4; ++j) below += four[i].word[j] < word ? 1 : 0;
      }
    }
    const int up_to_me = isa::sum_up_to_lane(below, lane_);
    return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(up_to_me), 31));
  }

  /// A word for each warp at a time: those of slots, then the first ones of experts, which are of
  /// RowForm::micro all experts, else this CTA's.
  WW_DEVICE void rank(const isa::Prerequisites& ready, const Slots& mine,
                      const SlotsOfCta& found) const {
    const bool all = p_.gather.rows.form == RowForm::micro;
    const auto among = [&](int e) { return e < s_.experts + 1 ? e : s_.experts + 1; };
    const int own = among(cta_ * p_.experts);
    const int own_end = among(own + p_.experts);
    const int slots = mine.end - mine.first;
    const int first_expert = all ? 0 : own;
    const int experts = (all ? s_.experts + 1 : own_end) - first_expert;
    WW_NO_UNROLL
    for (int i = warp_; i < slots + experts; i += warps) {
      const bool is_slot = i < slots;
      const int slot = mine.first + i;
      const int expert = first_expert + i - slots;
      const std::uint32_t word = is_slot ? words().load(slot) : first_word(expert);
      const bool is_here = word < first_word(s_.experts);
      const int rank = is_here || !is_slot ? rank_of(word) : -1;
      if (is_slot) {
        if (lane_ == 0) keep_row(ready, found, slot, rank, slot >= mine.own);
        continue;
      }
      if (all && lane_ == 0) found.offsets.store(expert, rank);
      if (expert >= own && expert < own_end) keep_begin(ready, expert, rank);
    }
  }

  WW_DEVICE void keep_row(const isa::Prerequisites& /*ready*/, const SlotsOfCta& found, int slot,
                          int row, bool is_own) const {
    found.rows.store(slot - found.first, row);
    if (!is_own) return;
    isa::GlobalView<std::int32_t>{s_.rows}.store(slot, row);
    if (row >= 0) isa::GlobalView<std::int32_t>{s_.slots}.store(row, slot);
  }

  /// All lanes. Behind the last expert come the status, and -1 for what is no row.
  WW_DEVICE void keep_begin(const isa::Prerequisites& /*ready*/, int expert, int begin) const {
    if (lane_ == 0) isa::GlobalView<std::int32_t>{s_.offsets}.store(expert, begin);
    if (expert < s_.experts) return;
    if (s_.status != nullptr) {
      bool is_strange = false;  // of an id out of range
      WW_NO_UNROLL
      for (int i = lane_; i < padded(s_); i += 32) {
        is_strange = is_strange || expert_of(words().load(i)) == s_.experts;
      }
      const bool any = isa::ballot(is_strange) != 0;
      if (lane_ == 0) isa::GlobalView<std::uint32_t>{s_.status}.store(0, any ? 1U : 0U);
    }
    WW_NO_UNROLL
    for (int i = begin + lane_; i < count(s_); i += 32) {
      isa::GlobalView<std::int32_t>{s_.slots}.store(i, -1);
    }
  }

  const Params& p_;
  const SortSlotsParams& s_;
  int thread_;
  int lane_;
  int warp_;
  int cta_;
};

}  // namespace warpwright::kernel
