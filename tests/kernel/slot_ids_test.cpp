// Offsets of groups that a warp counts ahead of the sort, on the model: those that the sort will
// write, and the same tiles by them.
#include "warpwright/tile/slot_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "warpwright/model/machine.h"
#include "warpwright/tile/groups.h"

namespace warpwright::tile {
namespace {

// Ids of tokens as a router may leave them: of other ranks, -1, out of range.
struct Routed {
  explicit Routed(std::uint64_t seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto draw = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    slots.wide = draw(0, 1) == 1;
    slots.top_k = draw(1, 9);
    slots.tokens = draw(1, draw(0, 1) == 1 ? 20 : OffsetsAhead::most_slots / slots.top_k);
    slots.pitch = slots.top_k + draw(0, 3);
    constexpr int some[] = {1, 2, 31, 32, 33, 64, 127, 128, 300, OffsetsAhead::most_experts};
    slots.experts = some[random() % std::size(some)];
    slots.first_expert = draw(0, 1) * draw(0, 40);
    slots.experts_total = slots.first_expert + slots.experts + draw(0, 1) * draw(0, 40);
    narrow.resize(static_cast<std::size_t>(slots.tokens * slots.pitch), 3);
    std::vector<int> lengths(static_cast<std::size_t>(slots.experts), 0);
    for (int t = 0; t < slots.tokens; ++t) {
      for (int j = 0; j < slots.top_k; ++j) {
        int id = draw(0, slots.experts_total - 1);
        if (draw(0, 19) == 0) id = draw(-2, -1);
        if (draw(0, 19) == 0) id = slots.experts_total + draw(0, 5);
        narrow[static_cast<std::size_t>(t * slots.pitch + j)] = id;
        const int local = id - slots.first_expert;
        if (id >= 0 && local >= 0 && local < slots.experts) ++lengths[static_cast<unsigned>(local)];
      }
    }
    wide.assign(narrow.begin(), narrow.end());
    // 64 bits whose lower 32 are an expert's number.
    if (slots.wide && draw(0, 3) == 0 && narrow[0] >= 0) {
      const int local = narrow[0] - slots.first_expert;
      if (local >= 0 && local < slots.experts) --lengths[static_cast<unsigned>(local)];
      wide[0] += std::int64_t{1} << 32;
    }
    slots.ids = slots.wide ? static_cast<const void*>(wide.data()) : narrow.data();
    offsets.push_back(0);
    for (const int n : lengths) offsets.push_back(offsets.back() + n);
  }
  Routed(const Routed&) = delete;
  Routed& operator=(const Routed&) = delete;

  [[nodiscard]] model::Allocation memory() const {
    const auto bytes = static_cast<std::int64_t>(narrow.size()) * (slots.wide ? 8 : 4);
    return {const_cast<void*>(slots.ids), bytes, "ids", false};
  }

  SlotIds slots;
  std::vector<std::int32_t> narrow, offsets;
  std::vector<std::int64_t> wide;
};

// Counts them by the second of two warps, and reads the table by all its lanes.
model::Report count(const Routed& r, std::vector<std::int32_t>& found, const model::Options& how) {
  model::Kernel k;
  k.shape = {.ctas = 1, .threads = 64, .shared_bytes = 64 + OffsetsAhead::bytes};
  k.memory.push_back(r.memory());
  found.assign(r.offsets.size(), -1);
  k.body = [&] {
    if (isa::warp_index() != 1) return;
    const isa::SharedAddress table = isa::shared_base() + 64;
    OffsetsAhead(r.slots).offsets_to(table);
    for (int e = isa::lane_index(); e <= r.slots.experts; e += 32) {
      found[static_cast<std::size_t>(e)] =
          isa::SharedView<std::int32_t>{table}.load(r.slots.experts - e);
    }
  };
  model::Report report = model::run(k, how);
  std::reverse(found.begin(), found.end());
  return report;
}

TEST(OffsetsAhead, AreThoseOfTheSort) {
  const std::uint64_t seed = 20281128;
  for (std::uint64_t i = 0; i < 200; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    const Routed r(seed + i);
    std::vector<std::int32_t> found;
    model::Options how = model::random_schedule(i);
    const model::Report report = count(r, found, how);
    ASSERT_TRUE(report.clean()) << report.text();
    ASSERT_EQ(found, r.offsets);
  }
}

TEST(OffsetsAhead, MutantsAreKilled) {
  const Routed r(7);
  std::vector<std::int32_t> found;
  model::Options counting;
  counting.count_sites = true;
  int killed = 0;
  for (const model::Mutation& m : model::mutations(count(r, found, counting).sites)) {
    SCOPED_TRACE(model::text(m) + ", " + std::string(m.how()));
    std::vector<model::Options> all = model::schedules();
    for (std::uint64_t i = 0; i < 20; ++i) all.push_back(model::random_schedule(i));
    const bool is_killed = std::any_of(all.begin(), all.end(), [&](model::Options how) {
      how.mutation = m;
      return !count(r, found, how).clean() || found != r.offsets;
    });
    killed += is_killed ? 1 : 0;
    EXPECT_TRUE(is_killed || m.how().find("twice") != std::string_view::npos);
  }
  EXPECT_GE(killed, 3);
}

// A warp that finds its first tile by what it counted, and the others by what memory says, has the
// tiles of one that reads memory alone.
TEST(SpansAhead, GiveTheTilesThatMemoryGives) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Routed r(seed);
    const GroupedTiles tiles(
        GroupOffsets(r.offsets.data(), false, r.slots.experts, r.slots.count()), 8, 3, 1, true);
    std::vector<Work> works[2];
    model::Kernel k;
    k.shape = {.ctas = 3, .threads = 32, .shared_bytes = OffsetsAhead::bytes};
    k.memory = {r.memory(),
                {const_cast<std::int32_t*>(r.offsets.data()),
                 static_cast<std::int64_t>(4 * r.offsets.size()), "offsets", false}};
    k.body = [&] {
      const isa::SharedAddress table = isa::shared_base();
      const isa::Prerequisites ready = isa::wait_for_prerequisites();
      const auto keep = [&](int way, const Work& work) {
        if (isa::lane_index() == 0 && isa::cta_index() == 1) works[way].push_back(work);
      };
      Work work;
      WarpScanGroups memory(tiles, 2, ready);
      while (memory.next(work)) keep(0, work);
      const SpansAhead spans(tiles.offsets, ready, OffsetsAhead(r.slots), true, table);
      WarpScanGroups<StaticNumbers, SpansAhead> ahead(tiles, 2, spans);
      while (ahead.next(work)) {
        keep(1, work);
        isa::sync_warp();
        ahead.spans().written();
        for (int e = isa::lane_index(); e <= r.slots.experts; e += 32) {
          isa::SharedView<std::int32_t>{table}.store(e, -77);
        }
      }
    };
    const model::Report report = model::run(k, model::random_schedule(seed));
    ASSERT_TRUE(report.clean()) << report.text();
    const auto text = [](const Work& w) {
      return std::vector<int>{w.tile.m, w.tile.n, w.tile.batch, w.first_token, w.end_token};
    };
    ASSERT_EQ(works[0].size(), works[1].size());
    for (std::size_t i = 0; i < works[0].size(); ++i) {
      EXPECT_EQ(text(works[0][i]), text(works[1][i]));
    }
  }
}

}  // namespace
}  // namespace warpwright::tile
