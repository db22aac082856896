// Few slots, as each CTA of a layer in one launch sorts them for itself: which row is whose, and
// which tiles of tokens experts have. No CTA waits for another, and nothing of it leaves the CTA
// but the status.
//
// A thread has a slot. It is one word, the expert above the number, so its row is the number of
// smaller words, as in sort_gather.h. Then a thread has a row. It is the first of its expert where
// the expert of the row before is another one, and the first of a tile at each `tokens` rows from
// there. Ballots in shared memory tell the numbers of both.
#pragma once

#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/moe/slot_adder.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright::kernel {

/// The slots of a launch, in global memory.
struct SlotTilesParams : tile::SlotIds {
  tile::Divisor by_top_k;
  const void* weights = nullptr;  ///< tokens x top_k; null: all are 1
  std::int64_t weight_pitch = 0;  ///< elements from line to line
  DType weight_type = DType::f32;
  std::uint32_t* status = nullptr;  ///< where the first CTA says whether an id is out of range

  constexpr SlotTilesParams() = default;
  constexpr explicit SlotTilesParams(const tile::SlotIds& slots)
      : tile::SlotIds(slots), by_top_k(slots.top_k) {}
};

/// The rows of a token, in order, with their weights: in shared memory from `at` on.
struct RowsInOrder {
  struct Place {
    std::uint32_t row;
    std::uint32_t expert;
    float weight;
  };
  isa::SharedAddress at;
  int rows;
  float factor;

  [[nodiscard]] WW_DEVICE int count() const { return rows; }
  [[nodiscard]] WW_DEVICE Place find(int i) const {
    if (i >= rows) return {no_row, 0, 0};
    const isa::Words<2> w = isa::SharedView<isa::Words<2>>{at}.load(i);
    return {w.word[0] & 0xffff, w.word[0] >> 16, factor * isa::float_of(w.word[1])};
  }
  [[nodiscard]] WW_DEVICE static float weight(const Place& place) { return place.weight; }
};

/// The rows of an expert that is hit, and its tiles of tokens in the line of all.
struct ExpertTiles {
  int expert = 0;
  int first_row = 0;
  int end_row = 0;
  int first_tile = 0;
  int tiles = 0;
};

/// Slots that a warp sorts, a lane each.
inline constexpr int few_slots = 32;

/// The tables of a CTA, for tiles of `tokens` rows.
template <int tokens, int most = 256>
class SlotTiles {
 public:
  static constexpr int most_slots = most;
  static constexpr int threads = most_slots;
  /// Bytes of shared memory for the kernel's life, and while it sorts; both at multiples of 16.
  static constexpr int bytes = 7 * 4 * most_slots + 16;
  static constexpr int scratch_bytes = 3 * 4 * most_slots + 16 + 4 * 32;
  static_assert((tokens & (tokens - 1)) == 0);

  WW_DEVICE SlotTiles(const SlotTilesParams& p, isa::SharedAddress tables) : p_(p), at_(tables) {}

  /// All threads of the CTA, which sort. `scratch` may become something else then.
  WW_DEVICE void fill(const isa::Prerequisites& ready, isa::SharedAddress scratch) const {
    static_assert(most_slots == 256);
    const int thread = isa::thread_index();
    const Scratch s{scratch};
    const int key = key_of(ready, thread);
    const float weight = weight_of(ready, thread);
    const bool is_here = key < p_.experts;
    s.words().store(thread, word_of(key, thread));
    s.note(Scratch::here, is_here);
    s.note(Scratch::strange, key == p_.experts);
    isa::sync_threads(threads);
    if (is_here) place(s, thread, word_of(key, thread));
    if (!is_here && thread < p_.count()) rows().store(thread, -1);
    say_status(ready, s, thread);
    isa::sync_threads(threads);
    if (is_here) put_in_order(thread, key, weight);
    number_tiles(s, thread);
  }

  /// The same by a warp and its shuffles, where there are `few_slots` at most: a lane has one.
  WW_DEVICE void fill_by_warp(const isa::Prerequisites& ready) const {
    const int lane = isa::lane_index();
    const int key = key_of(ready, lane);
    const float weight = weight_of(ready, lane);
    const bool is_here = key < p_.experts;
    const std::uint32_t strange = isa::ballot(key == p_.experts);
    if (isa::cta_index() == 0 && lane == 0 && p_.status != nullptr) {
      isa::GlobalView<std::uint32_t>{p_.status}.store(0, strange != 0 ? 1U : 0U);
    }
    // Which lanes have smaller words, and which the same expert.
    const std::uint32_t word = word_of(key, lane);
    std::uint32_t less = 0;
    std::uint32_t same = 0;
    WW_NO_UNROLL
    for (int first = 0; first < p_.count(); first += 4) {
      WW_UNROLL
      for (int j = first; j < first + 4; ++j) {
        const std::uint32_t other = isa::shuffle(word, j);
        less |= (other < word ? 1U : 0U) << j;
        same |= (expert_of_word(other) == key ? 1U : 0U) << j;
      }
    }
    const int row = isa::count_lanes(less);
    const int group_rows = isa::count_lanes(same);
    const int group_tiles = (group_rows + tokens - 1) / tokens;
    const bool begins = is_here && (same & less) == 0;
    // Tiles of smaller experts, a bit of their numbers at a time.
    int tile = 0;
    int all_tiles = 0;
    WW_UNROLL
    for (int bit = 1; bit <= few_slots / tokens; bit *= 2) {
      const std::uint32_t has = isa::ballot(begins && (group_tiles & bit) != 0);
      tile += bit * isa::count_lanes(has & less);
      all_tiles += bit * isa::count_lanes(has);
    }
    // Rows of the token that the lane is, and of the lane's own those before it.
    const std::uint32_t here = isa::ballot(is_here);
    const int token = p_.by_top_k.quotient(lane);
    const int kept = isa::count_lanes(here & lanes_of(lane));
    const int place = isa::count_lanes(here & less & lanes_of(token));
    if (lane < p_.tokens) view(kept_at).store(lane, kept);
    if (lane == 0) view(count_at).store(0, all_tiles);
    if (!is_here) return;
    view(tokens_at).store(row, token);
    ordered().store(token * p_.top_k + place,
                    {{static_cast<std::uint32_t>(row) | static_cast<std::uint32_t>(key) << 16,
                      isa::float_bits(weight)}});
    if (!begins) return;
    WW_NO_UNROLL
    for (int i = 0; i < group_tiles; ++i) {
      store_entry(tile + i, {key, row, row + group_rows, tile, group_tiles});
    }
  }

  /// Tiles of all experts that are hit.
  [[nodiscard]] WW_DEVICE int tiles() const { return view(count_at).load(); }
  /// The expert that has tile `i` of them.
  [[nodiscard]] WW_DEVICE ExpertTiles expert_of(int i) const {
    const isa::Words<2> w = entries().load(i);
    return {static_cast<int>(w.word[0] & 0xffff), static_cast<int>(w.word[1] & 0x3ff),
            static_cast<int>(w.word[1] >> 10 & 0x3ff), static_cast<int>(w.word[1] >> 20),
            static_cast<int>(w.word[0] >> 16)};
  }
  /// The token of a row.
  [[nodiscard]] WW_DEVICE int token(int row) const { return view(tokens_at).load(row); }
  /// The rows of a token, as SlotAdder asks for them.
  [[nodiscard]] WW_DEVICE RowsInOrder of_token(const SumSlotsParams& p, int token) const {
    return {ordered().address + token * p_.top_k * 8, rows_of(token), p.factor};
  }
  /// Rows of a token.
  [[nodiscard]] WW_DEVICE int rows_of(int token) const { return view(kept_at).load(token); }

 private:
  static constexpr int tokens_at = 0;
  static constexpr int rows_at = 4 * most_slots;
  static constexpr int kept_at = 2 * 4 * most_slots;
  static constexpr int entries_at = 3 * 4 * most_slots;
  static constexpr int ordered_at = 5 * 4 * most_slots;
  static constexpr int count_at = 7 * 4 * most_slots;
  static constexpr int slot_bits = 8;
  static_assert(1 << slot_bits >= most_slots);

  // What is there only while the CTA sorts.
  struct Scratch {
    isa::SharedAddress at;
    enum Line : std::uint8_t { here, strange, begins, starts };  // of ballots, one a warp

    [[nodiscard]] WW_DEVICE isa::SharedView<std::uint32_t> words() const { return {at}; }
    [[nodiscard]] WW_DEVICE isa::SharedView<std::uint32_t> sorted() const {
      return {at + 4 * most_slots};
    }
    [[nodiscard]] WW_DEVICE isa::SharedView<std::int32_t> first_rows() const {
      return {at + 2 * 4 * most_slots};
    }
    [[nodiscard]] WW_DEVICE isa::SharedView<std::uint32_t> ballots(Line line) const {
      return {at + 3 * 4 * most_slots + 16 + 32 * static_cast<isa::SharedAddress>(line)};
    }

    WW_DEVICE void note(Line line, bool says) const {
      const std::uint32_t lanes = isa::ballot(says);
      const int warp = isa::warp_index();  // of all lanes
      if (isa::lane_index() == 0) ballots(line).store(warp, lanes);
    }
    /// Threads before `thread` that said so.
    [[nodiscard]] WW_DEVICE int before(Line line, int thread) const {
      int sum = 0;
      WW_UNROLL
      for (int w = 0; w < threads / 32; ++w) {
        const std::uint32_t lanes = ballots(line).load(w);
        const int left = thread - 32 * w;
        if (left > 0) sum += isa::count_lanes(left >= 32 ? lanes : lanes & ((1U << left) - 1));
      }
      return sum;
    }
  };

  [[nodiscard]] WW_DEVICE isa::SharedView<std::int32_t> view(int at) const {
    return {at_ + static_cast<isa::SharedAddress>(at)};
  }
  [[nodiscard]] WW_DEVICE isa::SharedView<std::int32_t> rows() const { return view(rows_at); }
  [[nodiscard]] WW_DEVICE isa::SharedView<isa::Words<2>> ordered() const {
    return {at_ + ordered_at};
  }
  [[nodiscard]] WW_DEVICE isa::SharedView<isa::Words<2>> entries() const {
    return {at_ + entries_at};
  }

  /// The word of a slot; behind the last all are larger than any.
  [[nodiscard]] WW_DEVICE std::uint32_t word_of(int key, int slot) const {
    if (slot >= p_.count()) return 0xffffffffU;
    return static_cast<std::uint32_t>(key) << slot_bits | static_cast<std::uint32_t>(slot);
  }

  /// The expert of a slot, or a number above all of them.
  [[nodiscard]] WW_DEVICE int key_of(const isa::Prerequisites& /*ready*/, int slot) const {
    if (slot >= p_.count()) return p_.experts + 1;
    if (p_.ids == nullptr) return 0;  // there is no router
    const int token = p_.by_top_k.quotient(slot);
    return tile::slot_key(p_, tile::load_slot_id(p_, token, slot - token * p_.top_k));
  }

  [[nodiscard]] WW_DEVICE float weight_of(const isa::Prerequisites& /*ready*/, int slot) const {
    if (slot >= p_.count() || p_.weights == nullptr) return 1;
    const int token = p_.by_top_k.quotient(slot);
    return float_at(p_.weights, p_.weight_type, token * p_.weight_pitch + slot - token * p_.top_k);
  }

  /// Lanes that have the slots of a token.
  [[nodiscard]] WW_DEVICE std::uint32_t lanes_of(int token) const {
    const int first = token * p_.top_k;
    if (first >= 32) return 0;
    return (p_.top_k >= 32 ? ~0U : (1U << p_.top_k) - 1) << first;
  }

  WW_DEVICE void store_entry(int tile, const ExpertTiles& e) const {
    const auto word = [](int low, int high, int by) {
      return static_cast<std::uint32_t>(low) | static_cast<std::uint32_t>(high) << by;
    };
    entries().store(tile, {{word(e.expert, e.tiles, 16),
                            word(e.first_row, e.end_row, 10) | word(0, e.first_tile, 20)}});
  }

  /// Puts a slot that is here where it belongs.
  WW_DEVICE void place(const Scratch& s, int slot, std::uint32_t word) const {
    const isa::SharedView<isa::Words<4>> all{s.words().address};
    const int fours = (p_.count() + 3) / 4;
    int row = 0;
    WW_NO_UNROLL
    for (int i = 0; i < fours; ++i) {
      const isa::Words<4> four = all.load(i);
      WW_UNROLL
      for (int j = 0; j < 4; ++j) row += four.word[j] < word ? 1 : 0;
    }
    s.sorted().store(row, word);
    rows().store(slot, row);
    view(tokens_at).store(row, p_.by_top_k.quotient(slot));
  }

  /// One thread of the grid: whether an id was out of range.
  WW_DEVICE void say_status(const isa::Prerequisites& /*ready*/, const Scratch& s,
                            int thread) const {
    if (isa::cta_index() != 0 || thread != 0 || p_.status == nullptr) return;
    const bool any = s.before(Scratch::strange, threads) > 0;
    isa::GlobalView<std::uint32_t>{p_.status}.store(0, any ? 1U : 0U);
  }

  /// All threads, of which each has a row now: the rows of tokens, and the tiles.
  WW_DEVICE void number_tiles(const Scratch& s, int row) const {
    const int rows_here = s.before(Scratch::here, threads);
    const bool is_here = row < rows_here;
    const int expert = is_here ? expert_of_word(s.sorted().load(row)) : -1;
    const int before = is_here && row > 0 ? expert_of_word(s.sorted().load(row - 1)) : -1;
    const bool begins = is_here && expert != before;
    s.note(Scratch::begins, begins);
    count_rows(row);
    isa::sync_threads(threads);
    const int group = s.before(Scratch::begins, row + 1) - 1;
    if (begins) s.first_rows().store(group, row);
    if (row == 0) s.first_rows().store(s.before(Scratch::begins, threads), rows_here);
    isa::sync_threads(threads);
    const int first = is_here ? s.first_rows().load(group) : 0;
    const int end = is_here ? s.first_rows().load(group + 1) : 0;
    const bool starts = is_here && (row - first) % tokens == 0;
    s.note(Scratch::starts, starts);
    isa::sync_threads(threads);
    const int tile = s.before(Scratch::starts, row);
    if (starts) {
      store_entry(tile, {expert, first, end, tile - (row - first) / tokens,
                         (end - first + tokens - 1) / tokens});
    }
    if (row == 0) view(count_at).store(0, s.before(Scratch::starts, threads));
    isa::sync_threads(threads);
  }

  /// Puts the row of a slot that is here where it comes among those of its token.
  WW_DEVICE void put_in_order(int slot, int expert, float weight) const {
    const int first = p_.by_top_k.quotient(slot) * p_.top_k;
    const int mine = rows().load(slot);
    int place = 0;
    WW_NO_UNROLL
    for (int j = 0; j < p_.top_k; ++j) {
      const int row = rows().load(first + j);
      place += row >= 0 && row < mine ? 1 : 0;
    }
    ordered().store(first + place,
                    {{static_cast<std::uint32_t>(mine) | static_cast<std::uint32_t>(expert) << 16,
                      isa::float_bits(weight)}});
  }

  /// Rows of the token `token`, where there is one.
  WW_DEVICE void count_rows(int token) const {
    if (token >= p_.tokens) return;
    int kept = 0;
    WW_NO_UNROLL
    for (int j = 0; j < p_.top_k; ++j) kept += rows().load(token * p_.top_k + j) >= 0 ? 1 : 0;
    view(kept_at).store(token, kept);
  }

  WW_DEVICE static int expert_of_word(std::uint32_t word) {
    return static_cast<int>(word >> slot_bits);
  }

  const SlotTilesParams& p_;
  isa::SharedAddress at_;
};

}  // namespace warpwright::kernel
