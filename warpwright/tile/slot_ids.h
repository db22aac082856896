// Which experts a router chose: a line of slots, top_k of each token, and the offsets of groups
// that come of it once slots are sorted by expert.
#pragma once

#include <cstdint>

#include "warpwright/isa/config.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// The ids of all slots, in global memory, and whose experts are ours.
struct SlotIds {
  const void* ids = nullptr;  ///< tokens x top_k of int32, or int64 if `wide`
  std::int64_t pitch = 0;     ///< elements from token to token, at least top_k
  bool wide = false;
  int tokens = 0;
  int top_k = 1;
  int first_expert = 0;   ///< of this rank
  int experts = 0;        ///< of this rank, 1 or more
  int experts_total = 0;  ///< of all ranks

  [[nodiscard]] constexpr int count() const { return tokens * top_k; }
};

/// The local expert of a slot by its id; `experts` for an id out of range, one more for what is
/// left out.
template <class Id>
WW_DEVICE int slot_key(const SlotIds& p, Id wide) {
  const int id = static_cast<int>(wide);
  if (id != wide) return p.experts;
  if (id == -1) return p.experts + 1;
  if (static_cast<unsigned>(id) >= static_cast<unsigned>(p.experts_total)) return p.experts;
  const auto local = static_cast<unsigned>(id - p.first_expert);
  return static_cast<int>(local < static_cast<unsigned>(p.experts) ? local : p.experts + 1U);
}

/// The id of slot `rest` of a token.
WW_DEVICE
std::int64_t load_slot_id(const SlotIds& p, std::int64_t token, std::int64_t rest) {
  const std::int64_t at = token * p.pitch + rest;
  if (p.wide) {
    return isa::GlobalView<const std::int64_t>{static_cast<const std::int64_t*>(p.ids)}.load(at);
  }
  return isa::GlobalView<const std::int32_t>{static_cast<const std::int32_t*>(p.ids)}.load(at);
}

/// The offsets that a sort of slots by expert will write, counted from the ids by one warp that
/// does not wait for it.
struct OffsetsAhead {
  SlotIds ids;  ///< null ids: they are not counted
  Divisor by_top_k;

  /// Slots that are worth it: one warp reads all ids.
  static constexpr int most_slots = 1024;
  static constexpr int most_experts = 1023;
  /// Bytes of shared memory for them.
  static constexpr int bytes = 4 * (most_experts + 1);

  constexpr OffsetsAhead() = default;
  constexpr explicit OffsetsAhead(const SlotIds& slots) : ids(slots), by_top_k(slots.top_k) {}

  /// Is it worth it, and is there room?
  static constexpr bool serve(std::int64_t slots, std::int64_t experts) {
    return slots <= most_slots && experts <= most_experts;
  }
  [[nodiscard]] constexpr bool are_given() const { return ids.ids != nullptr; }

  /// All lanes of a warp: leaves the offsets of all experts, and the end of the last, in `to`.
  WW_DEVICE void offsets_to(isa::SharedAddress to) const {
    const int lane = isa::lane_index();
    const isa::SharedView<std::int32_t> offsets{to};
    WW_NO_UNROLL for (int e = lane; e <= ids.experts; e += 32) offsets.store(e, 0);
    isa::sync_warp();
    count_into(to, lane);
    isa::sync_warp();
    int before = 0;
    WW_NO_UNROLL for (int first = 0; first <= ids.experts; first += 32) {
      const int e = first + lane;
      const int own = e < ids.experts ? offsets.load(e) : 0;
      const int upto = isa::sum_up_to_lane(own, lane);
      if (e <= ids.experts) offsets.store(e, before + upto - own);
      before += static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(upto), 31));
    }
    isa::sync_warp();
  }

 private:
  /// How many slots each expert has. A lane has several ids on their way at once.
  WW_DEVICE void count_into(isa::SharedAddress to, int lane) const {
    constexpr int at_once = 4;
    const int slots = ids.count();
    const isa::SharedAddress counts = isa::map_rank(to, isa::cluster_rank());
    WW_NO_UNROLL for (int from = lane; from < slots; from += 32 * at_once) {
      std::int64_t id[at_once];
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const int slot = from + 32 * i;
        const int token = by_top_k.quotient(slot);
        id[i] = slot < slots ? load_slot_id(ids, token, slot - token * ids.top_k) : -1;
      }
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const int expert = slot_key(ids, id[i]);
        if (expert >= ids.experts) continue;
        isa::cluster_add<std::uint32_t>(counts + static_cast<isa::SharedAddress>(4 * expert), 1);
      }
    }
  }
};

}  // namespace warpwright::tile
