// What the sort of slots is given, and its shape: how many warps, CTAs and launches sort.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/kernel/moe/token_rows.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright::kernel {

/// What a launch does.
enum class SortStage : std::uint8_t {
  whole,   ///< sorts: one cluster
  count,   ///< counts the slots of every part: a CTA each
  starts,  ///< makes of the counts where each part's slots of an expert begin: one cluster
  place,   ///< writes where slots go: a CTA for each part
};

/// What the router chose, of 1 to SortSlotsKernel::max_experts experts, and where the sorted slots
/// go.
struct SortSlotsParams : tile::SlotIds {
  std::int32_t* offsets = nullptr;  ///< experts + 1: where the rows of an expert begin
  std::int32_t* slots = nullptr;    ///< tokens x top_k: row -> slot; behind the last row -1
  std::int32_t* rows = nullptr;     ///< tokens x top_k: slot -> row; -1 where it is left out
  std::uint32_t* status = nullptr;  ///< bit 0: an id out of range, else 0; or null
  int warps = 0;                    ///< of a CTA; this and what follows: SortSlotsKernel::shape
  int cluster = 1;                  ///< CTAs that exchange counts, which are the first cluster
  int steps = 1;                    ///< 32 slots each, of a warp in a piece
  int parts = 1;                    ///< of the line where three launches sort, else 1
  int part_steps = 0;               ///< 32 slots each, of a part
  int longer_parts = 0;             ///< the first ones, which have one more
  SortStage stage = SortStage::whole;
  TokenRows quantised;  ///< by all other clusters; `rows` is null there
};

/// Words of the counts of a CTA: of the experts, of ids out of range, padding. Those of a warp have
/// 16 bits.
constexpr int sort_slots_stride(int experts) {
  return (experts + 1 + 7) / 8 * 8;
}

/// Dynamic shared memory of a CTA: a piece in order, the counts of warps and of CTAs, three words
/// for every expert, sums of scans.
constexpr int sort_slots_shared_bytes(int experts, int warps, int cluster, int steps) {
  return 4 * (32 * warps * steps + sort_slots_stride(experts) * (cluster + 3) + 64) +
         2 * sort_slots_stride(experts) * warps;
}

/// What can be sorted, and how many warps and CTAs do it.
struct SortSlotsShape {
  using Params = SortSlotsParams;
  static constexpr int max_warps = 32;
  static constexpr int threads = 32 * max_warps;  ///< at most
  static constexpr int max_experts = 1024;
  static constexpr int max_cluster = 8;
  static constexpr std::int64_t max_slots = std::int64_t{1} << 30;
  static constexpr int one_cta = 4096;  ///< slots that one CTA sorts by itself
  /// Steps of 32 slots that a warp keeps in registers: a piece at most.
  static constexpr int at_once = 4;
  static constexpr int max_piece = threads * at_once;
  static constexpr int most_at_once = max_cluster * max_piece;
  static constexpr int max_parts = 128;  ///< a CTA of each is resident on an H100

  static constexpr int shared_bytes =
      sort_slots_shared_bytes(max_experts, max_warps, max_cluster, at_once);
  static_assert(shared_bytes <= 227 * 1024);
  static_assert(max_experts <= 1 << 15 && max_piece <= 1 << 16, "an ordered slot is one word");
  // The counts of a part lie in its part of `rows`, cut in steps of 32 slots.
  static_assert(max_piece / 2 - 32 >= sort_slots_stride(max_experts));

  /// Are so many parts of these slots long enough for the counts of so many experts?
  static bool serves_parts(std::int64_t slots, std::int64_t experts, std::int64_t parts) {
    return parts >= 2 && parts <= max_parts &&
           (slots + 31) / 32 / parts * 32 - 32 >= sort_slots_stride(static_cast<int>(experts));
  }

  /// Sets how many warps and CTAs sort, and in how many parts. Few slots are cut into `parts` only
  /// where these are given, as a check does: then in pieces of a few steps, of which a part has
  /// several.
  static void shape(Params& p, int parts = 0) {
    const std::int64_t slots = std::int64_t{p.tokens} * p.top_k;
    const auto share = [&](std::int64_t by) { return (slots + by - 1) / by; };
    if (parts > 0) {
      p.cluster = 2;
      p.warps = 2;
      p.steps = 1;
      return cut(p, parts);
    }
    p.cluster = slots > one_cta ? max_cluster : 1;
    p.warps = static_cast<int>(std::clamp<std::int64_t>(share(32), 8, max_warps));
    p.parts = slots > most_at_once
                  ? static_cast<int>(std::min<std::int64_t>(share(max_piece), max_parts))
                  : 1;
    cut(p, p.parts);
    const auto steps = share(std::int64_t{32} * p.warps * p.cluster);
    p.steps = static_cast<int>(std::clamp<std::int64_t>(steps, 1, at_once));
  }
  /// Cuts the line into equal parts, but for a step of 32 slots.
  static void cut(Params& p, int parts) {
    const auto steps = static_cast<int>((std::int64_t{p.tokens} * p.top_k + 31) / 32);
    p.parts = parts;
    p.part_steps = steps / parts;
    p.longer_parts = steps % parts;
  }
  static int launches(const Params& p) { return p.parts > 1 ? 3 : 1; }
  /// The parameters of launch `i`, of those that `shape` has set.
  static Params launch(Params p, int i) {
    constexpr SortStage stages[] = {SortStage::count, SortStage::starts, SortStage::place};
    if (p.parts > 1) p.stage = stages[i];
    if (has_parts(p)) p.cluster = 1;
    return p;
  }
  /// Does a CTA of this launch have a part of its own?
  static constexpr bool has_parts(const Params& p) {
    return p.stage == SortStage::count || p.stage == SortStage::place;
  }
  /// CTAs of a launch on a device of `sms` SMs, in clusters of p.cluster.
  static int ctas(const Params& p, int sms) {
    if (has_parts(p)) return p.parts;
    const std::int64_t wanted = (TokenRowsWork::items(p.quantised) + p.warps - 1) / p.warps;
    const std::int64_t more = std::min<std::int64_t>(wanted, 2 * std::int64_t{sms});
    return static_cast<int>((p.cluster + more + p.cluster - 1) / p.cluster * p.cluster);
  }
  /// For a CTA of that launch.
  static int shared_bytes_of(const Params& p) {
    return sort_slots_shared_bytes(p.experts, p.warps, p.cluster, p.steps);
  }
};

}  // namespace warpwright::kernel
