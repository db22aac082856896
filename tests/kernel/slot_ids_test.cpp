// Offsets of groups that a warp counts ahead of the sort, on the model: those that the sort will
// write, and the same tiles by them.
#include "warpwright/tile/slot_ids.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernel/slots.h"
#include "tests/must.h"
#include "warpwright/tile/groups.h"

namespace warpwright::tests {
namespace {

using tile::OffsetsAhead;

// A routing, and the ids as kernels are given them.
struct Ids {
  explicit Ids(const Draw& draw, std::uint64_t seed)
      : routing(route(draw, seed)),
        slots(device::sort_slots_params(
            routing.sort_into(written, written_slots, written_rows, status))) {}
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;

  [[nodiscard]] model::Allocation memory() const {
    return {const_cast<void*>(slots.ids),
            std::int64_t{slots.tokens} * slots.pitch * (slots.wide ? 8 : 4), "ids", false};
  }

  Routing routing;
  std::vector<std::int32_t> written, written_slots, written_rows;  // by nobody
  std::uint32_t status = 0;
  tile::SlotIds slots;
};

// Counts them by the second of two warps, and reads the table by all its lanes.
model::Report count(const Ids& ids, std::vector<std::int32_t>& found, const model::Options& how) {
  model::Kernel k;
  k.shape = {.ctas = 1, .threads = 64, .shared_bytes = 64 + OffsetsAhead::bytes};
  k.memory.push_back(ids.memory());
  found.assign(ids.routing.offsets.size(), -1);
  k.body = [&] {
    if (isa::warp_index() != 1) return;
    const isa::SharedAddress table = isa::shared_base() + 64;
    OffsetsAhead(ids.slots).offsets_to(table);
    // Each lane reads what other lanes have stored.
    for (int e = isa::lane_index(); e <= ids.slots.experts; e += 32) {
      const int other = ids.slots.experts - e;
      found[index(other)] = isa::SharedView<std::int32_t>{table}.load(other);
    }
  };
  return model::run(k, how);
}

void expect_those_of_the_sort(const Draw& draw, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", tokens " + std::to_string(draw.tokens) +
               ", top-k " + std::to_string(draw.top_k) + ", experts " +
               std::to_string(draw.experts));
  const Ids ids(draw, seed);
  std::vector<std::int32_t> found;
  must_be_clean(count(ids, found, model::random_schedule(seed)));
  EXPECT_EQ(found, ids.routing.offsets);
}

TEST(OffsetsAhead, AreThoseOfTheSort) {
  const std::uint64_t seed = 20281128;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (std::uint64_t i = 0; i < 200; ++i) expect_those_of_the_sort(any_draw(random, 1), seed + i);
  for (const int experts : {1, 31, 32, 33, 127, 300, OffsetsAhead::most_experts}) {
    const int tokens = OffsetsAhead::most_slots / 8;
    expect_those_of_the_sort(
        {.tokens = tokens, .top_k = 8, .experts = experts, .left_out_percent = 5}, seed);
    expect_those_of_the_sort({.tokens = 1,
                              .top_k = 8,
                              .experts = experts,
                              .first_expert = 40,
                              .experts_total = 80 + experts,
                              .wide = true,
                              .strange_percent = 10},
                             seed);
  }
}

TEST(OffsetsAhead, MutantsAreKilled) {
  const Ids ids({.tokens = 30, .top_k = 3, .experts = 40, .strange_percent = 3}, 7);
  std::vector<std::int32_t> found;
  const int killed =
      expect_killed([&](const model::Options& how) { return count(ids, found, how); },
                    [&] { return found == ids.routing.offsets; }, 20);
  EXPECT_GE(killed, 3);
}

// A warp that finds its first tile by what it counted, and the others by what memory says, has the
// tiles of one that reads only memory.
TEST(SpansAhead, GiveTheTilesThatMemoryGives) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    Ids ids(any_draw(random, 1), seed);
    std::vector<std::int32_t>& offsets = ids.routing.offsets;
    const int experts = ids.slots.experts;
    const tile::GroupedTiles tiles(
        tile::GroupOffsets(offsets.data(), false, experts, ids.slots.count()), 8, 3, 1, true);
    std::vector<std::vector<int>> works[2];
    model::Kernel k;
    k.shape = {.ctas = 3, .threads = 32, .shared_bytes = OffsetsAhead::bytes};
    k.memory = {ids.memory(), allocation(offsets, "offsets", false)};
    k.body = [&] {
      const isa::SharedAddress table = isa::shared_base();
      const isa::Prerequisites ready = isa::wait_for_prerequisites();
      const auto keep = [&](int way, const tile::Work& w) {
        if (isa::lane_index() > 0 || isa::cta_index() != 1) return;
        works[way].push_back({w.tile.m, w.tile.n, w.tile.batch, w.first_token, w.end_token});
      };
      tile::Work work;
      tile::WarpScanGroups memory(tiles, 2, ready);
      while (memory.next(work)) keep(0, work);
      const tile::SpansAhead spans(tiles.offsets, ready, OffsetsAhead(ids.slots), table);
      tile::WarpScanGroups ahead(tiles, 2, spans);
      while (ahead.next(work)) {
        keep(1, work);
        isa::sync_warp();
        ahead.spans().written();
        for (int e = isa::lane_index(); e <= experts; e += 32) {
          isa::SharedView<std::int32_t>{table}.store(e, -77);
        }
      }
    };
    must_be_clean(model::run(k, model::random_schedule(seed)));
    EXPECT_EQ(works[0], works[1]);
  }
}

}  // namespace
}  // namespace warpwright::tests
