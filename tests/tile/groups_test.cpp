// Which tile of which group: the pure functions against an enumeration, and the three schedulers on
// the model, each warp and the single threads for themselves.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/campaign.h"
#include "tests/must.h"
#include "warpwright/model/machine.h"
#include "warpwright/tile/groups.h"

namespace warpwright::tile {
namespace {

// Reading offsets takes the proof that the grid before has ended, which nobody can make.
static_assert(!std::is_default_constructible_v<isa::Prerequisites>);
static_assert(!std::is_constructible_v<LinearScanGroups<>, const GroupedTiles&, int>);
static_assert(!std::is_constructible_v<WarpScanGroups<>, const GroupedTiles&, int>);
static_assert(
    !std::is_constructible_v<BinarySearchGroups<>, const GroupedTiles&, const GroupTable&, int>);
static_assert(std::is_constructible_v<LinearScanGroups<>, const GroupedTiles&, int,
                                      const isa::Prerequisites&>);
template <class T>
concept ReadsWithoutProof = requires(const T& offsets) {
  offsets.load(0);
}
|| requires(const T& offsets) {
  offsets.span(0);
}
|| requires(const T& offsets) {
  offsets.span({}, 0);
};
static_assert(!ReadsWithoutProof<GroupOffsets>);

// Where a tile is: group, token tile, weight tile.
using Tile = std::tuple<int, int, int>;

// The tiles of every group, by the definition.
std::multiset<Tile> tiles_of(const std::vector<std::int64_t>& offsets, int total, int tokens,
                             int weight_tiles) {
  std::multiset<Tile> all;
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const GroupSpan span = clamped(offsets[g], offsets[g + 1], total);
    for (int t = 0; t * tokens < span.end - span.first; ++t) {
      for (int w = 0; w < weight_tiles; ++w) all.insert({static_cast<int>(g), t, w});
    }
  }
  return all;
}

TEST(Groups, SpansStayInside) {
  EXPECT_EQ(clamped(3, 9, 10), (GroupSpan{3, 9}));
  EXPECT_EQ(clamped(-4, 9, 10), (GroupSpan{0, 9}));
  EXPECT_EQ(clamped(3, 90, 10), (GroupSpan{3, 10}));
  EXPECT_EQ(clamped(8, 5, 10), (GroupSpan{8, 8}));
  EXPECT_EQ(clamped(80, 90, 10), (GroupSpan{10, 10}));
  EXPECT_EQ(clamped(-9, -3, 10), (GroupSpan{0, 0}));
  EXPECT_EQ(clamped(std::int64_t{1} << 40, -(std::int64_t{1} << 40), 10), (GroupSpan{10, 10}));
  EXPECT_TRUE(in_order(0, 0, 0) && in_order(3, 9, 10));
  EXPECT_FALSE(in_order(-1, 3, 10) || in_order(4, 3, 10) || in_order(4, 11, 10));
}

TEST(Groups, EveryTileOfAGroupOnce) {
  for (const int band : {1, 2, 3, 8}) {
    for (const int weights : {1, 2, 5, 32}) {
      for (const int tiles : {1, 2, 3, 7, 8, 9, 17}) {
        const GroupedTiles t(GroupOffsets(nullptr, false, 1, 1 << 20), 16, weights, band, true);
        std::set<std::pair<int, int>> seen;
        TileOfGroup last;
        for (int i = 0; i < tiles * weights; ++i) {
          const TileOfGroup at = in_group(t, tiles, i);
          ASSERT_TRUE(0 <= at.token && at.token < tiles && 0 <= at.weight && at.weight < weights)
              << band << " " << weights << " " << tiles << " " << i;
          EXPECT_TRUE(seen.insert({at.token, at.weight}).second);
          // Neighbours on the line share weights, until all tokens of the band have met them.
          if (i > 0 && at.weight != last.weight) {
            EXPECT_EQ(at.token % band, 0);
          }
          last = at;
        }
      }
    }
  }
}

TEST(Groups, TheLimitIsNeverReachedByOffsetsInOrder) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const int groups = 1 + static_cast<int>(random() % 50);
    std::int64_t tiles = 0;
    std::int64_t total = 0;
    const int tokens = 8 << random() % 5;
    for (int g = 0; g < groups; ++g) {
      const int length = random() % 3 == 0 ? 0 : static_cast<int>(random() % 200);
      total += length;
      tiles += (length + tokens - 1) / tokens;
    }
    EXPECT_LE(tiles, GroupedTiles::most_token_tiles(total, groups, tokens));
  }
}

enum class Search { horizontal, ballot, vertical };

// A ring that two warps and the scheduler of a CTA read.
struct GroupRingShape {
  static constexpr pipeline::TileRingShape value = {3, 3};
};
using GroupRing = pipeline::TileRing<GroupRingShape, DynamicNumbers>;

using Walks = std::map<std::pair<int, int>, std::vector<Work>>;

// Runs one scheduler on the model: `clusters` of `size` CTAs; warps 0 and 2 take whole walks, over
// static persistent tiles or, where there is a `counter`, over tiles that warp 1 draws.
// The tiles that every walk gave, in its order.
Walks walk(Search search, const GroupedTiles& tiles, const std::vector<std::int32_t>& o,
           int clusters, int size, model::Mode mode, std::uint32_t* counter = nullptr) {
  constexpr int threads = 96;
  constexpr int table_bytes = (GroupTable::bytes(threads) + 15) / 16 * 16;
  Walks walks;
  const auto take_with = [&](const isa::Prerequisites& ready, const auto& numbers) {
    const GroupTable table(tiles, isa::shared_base(), threads);
    const int warp = isa::warp_index();
    const auto take = [&](auto& scheduler) {
      Work work;
      for (int after = 0; after < 2;) {  // asking again after the end is allowed
        if (!scheduler.next(work)) {
          ++after;
          continue;
        }
        EXPECT_EQ(after, 0);
        EXPECT_EQ(work.end, 3);
        if (isa::lane_index() == 0) walks[{isa::cta_index(), warp}].push_back(work);
      }
    };
    if (search == Search::horizontal) {
      LinearScanGroups scheduler(tiles, 3, ready, numbers);
      take(scheduler);
    } else if (search == Search::ballot) {
      WarpScanGroups scheduler(tiles, 3, ready, numbers);
      take(scheduler);
    } else {
      BinarySearchGroups scheduler(tiles, table, 3, ready, numbers);
      take(scheduler);
    }
  };
  const auto body = [&] {
    const GroupRing ring(isa::shared_base() + table_bytes, {});
    if (isa::thread_index() == 0) {
      ring.initialise({size, 1});
      isa::fence_mbarrier_init();
    }
    isa::cluster_arrive();
    isa::cluster_wait();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    if (search == Search::vertical) {
      GroupTable(tiles, isa::shared_base(), threads).fill(ready);
    }
    if (isa::warp_index() != 1) {
      if (counter == nullptr) return take_with(ready, StaticNumbers());
      return take_with(ready, ClcNumbers<GroupRing, pipeline::Reader::warp>(ring));
    }
    if (counter == nullptr) return;
    const int count = tile_count(tiles, ready);
    if (isa::cluster_index() >= count || isa::lane_index() != 0) return;
    ring.schedule(DrawingScheduler{counter, count, size, ready}, isa::cluster_rank());
  };
  model::Options how;
  how.mode = mode;
  how.seed = 3;
  const model::LaunchShape shape{
      .ctas = clusters * size,
      .cluster_size = size,
      .threads = threads,
      .shared_bytes = table_bytes + pipeline::ring_bytes(GroupRingShape::value)};
  std::vector<model::Allocation> memory = {{const_cast<std::int32_t*>(o.data()),
                                            static_cast<std::int64_t>(o.size() * 4), "offsets",
                                            false}};
  if (counter != nullptr) {
    memory.push_back({.base = counter, .bytes = sizeof *counter, .name = "counter"});
  }
  must_be_clean(model::run(shape, how, memory, body));
  if (counter != nullptr) {
    EXPECT_EQ(*counter, 0U);
  }
  return walks;
}

void expect_all_tiles(const std::vector<std::int32_t>& o, int total, int tokens, int weights,
                      int band, bool swap_ab, int clusters, int size, model::Mode mode) {
  const GroupedTiles t(GroupOffsets(o.data(), false, static_cast<int>(o.size()) - 1, total), tokens,
                       weights, band, swap_ab);
  const std::multiset<Tile> want = tiles_of({o.begin(), o.end()}, total, tokens, weights);
  const auto first = walk(Search::horizontal, t, o, clusters, size, mode);
  for (const Search search : {Search::ballot, Search::vertical}) {
    EXPECT_EQ(walk(search, t, o, clusters, size, mode), first) << static_cast<int>(search);
  }
  // Whatever the order in which they are drawn: all CTAs and warps of a cluster see the same tiles.
  const auto tiles_seen = [&](const Walks& walks) {
    std::multiset<Tile> all;
    for (const auto& [who, tiles] : walks) {
      const auto leader = walks.find({who.first / size * size, 0});
      EXPECT_TRUE(leader != walks.end() && leader->second == tiles);
      if (who.second != 0 || who.first % size != 0) continue;
      for (const Work& w : tiles) {
        const TilePosition& p = w.tile;
        all.insert({p.batch, swap_ab ? p.n : p.m, swap_ab ? p.m : p.n});
        const auto g = static_cast<std::size_t>(p.batch);
        EXPECT_EQ((GroupSpan{w.first_token, w.end_token}), clamped(o[g], o[g + 1], total));
      }
    }
    return all;
  };
  const std::multiset<Tile> seen = tiles_seen(first);
  std::uint32_t counter = 0;
  const auto search = static_cast<Search>(o.size() % 3);
  EXPECT_EQ(tiles_seen(walk(search, t, o, clusters, size, mode, &counter)), seen);
  if (want.size() <= static_cast<std::size_t>(t.limit) * static_cast<std::size_t>(weights)) {
    EXPECT_EQ(seen, want);
  } else {
    EXPECT_LE(seen.size(), static_cast<std::size_t>(t.limit) * static_cast<std::size_t>(weights));
  }
}

TEST(Groups, TheSchedulersAgreeAndTakeEveryTileOnce) {
  for (const unsigned i : sampled_seeds(200, 29)) {
    SCOPED_TRACE("seed " + std::to_string(i));
    tests::Draws draw(i);
    const int groups = i % 4 == 0 ? draw(90, 400) : draw(1, 70);
    std::vector<std::int32_t> o = {draw(0, 3)};  // rows before the first group are nobody's
    for (int g = 0; g < groups; ++g) {
      o.push_back(o.back() + (draw(0, 2) == 0 ? 0 : draw(0, i % 3 == 0 ? 9 : 150)));
    }
    const int total = o.back() + draw(0, 3);
    expect_all_tiles(o, total, 8 << draw(0, 4), draw(1, 6), draw(1, 5), draw(0, 1) == 0, draw(1, 5),
                     draw(1, 2), i % 2 == 0 ? model::Mode::latest : model::Mode::random);
  }
}

TEST(Groups, NothingIsLostAtTheEnds) {
  for (const int groups : {1, 2, 31, 32, 33, 95, 96, 97, 192, 193}) {
    std::vector<std::int32_t> one_each(static_cast<std::size_t>(groups) + 1);
    for (int g = 0; g <= groups; ++g) one_each[static_cast<std::size_t>(g)] = g;
    expect_all_tiles(one_each, groups, 16, 2, 1, true, 3, 1, model::Mode::latest);
    const std::vector<std::int32_t> empty(static_cast<std::size_t>(groups) + 1, 5);
    expect_all_tiles(empty, 9, 16, 2, 1, true, 2, 1, model::Mode::latest);
    std::vector<std::int32_t> last = empty;
    last.back() = 50;
    expect_all_tiles(last, 50, 16, 2, 2, false, 2, 1, model::Mode::latest);
  }
}

TEST(Groups, OffsetsInDisorderDoNoHarm) {
  std::mt19937 random(11);
  for (int i = 0; i < 12; ++i) {
    std::vector<std::int32_t> o(static_cast<std::size_t>(2 + random() % 100));
    for (std::int32_t& x : o) x = static_cast<std::int32_t>(random() % 900) - 200;
    if (i % 3 == 0) {
      for (std::size_t g = 0; g < o.size(); ++g) o[g] = g % 2 == 0 ? INT32_MIN : INT32_MAX;
    }
    expect_all_tiles(o, 500, 32, 3, 2, true, 3, 1, model::Mode::latest);
  }
}

TEST(Groups, TheCheckNamesTheFirstGroupInDisorder) {
  const auto status_of = [](const std::vector<std::int64_t>& o, int total) {
    std::uint32_t status = 99;
    const GroupOffsets offsets(o.data(), true, static_cast<int>(o.size()) - 1, total);
    const std::vector<model::Allocation> memory = {
        {const_cast<std::int64_t*>(o.data()), static_cast<std::int64_t>(o.size() * 8), "offsets",
         false},
        {&status, 4, "status"}};
    const model::Report report = model::run(
        {}, {}, memory, [&] { check_offsets(offsets, isa::wait_for_prerequisites(), &status); });
    EXPECT_TRUE(report.clean()) << report.text();
    return status;
  };
  std::vector<std::int64_t> o(80);
  for (std::size_t g = 0; g < o.size(); ++g) o[g] = static_cast<std::int64_t>(g * 3);
  EXPECT_EQ(status_of(o, 400), 0U);
  EXPECT_EQ(status_of(o, 230), 76U + 1U);
  o[40] = 7;
  EXPECT_EQ(status_of(o, 400), 39U + 1U);
  o[2] = -5;
  EXPECT_EQ(status_of(o, 400), 1U + 1U);
}

}  // namespace
}  // namespace warpwright::tile
