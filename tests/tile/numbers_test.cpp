// Tiles that clusters draw from a counter: the ring by which every role of a cluster learns of
// them, in every schedule, and with its synchronisation broken.
#include "warpwright/tile/numbers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/mutants.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {
namespace {

using model::Check;
using model::Options;
using model::Report;
using pipeline::Reader;

struct Shape {
  static constexpr pipeline::TileRingShape value = {2, 3};
};
using Ring = pipeline::TileRing<Shape, DynamicNumbers>;

// A grid that walks over a raster, by a counter or (`drawn` false) without one: in every CTA a
// scheduler, a thread that reads and a warp that reads, each with all of its cluster's tiles.
struct Grid {
  int clusters = 2;
  atom::ClusterShape cluster;
  Raster raster{3, 3, 2};
  bool drawn = true;

  std::uint32_t counter = 0;
  std::vector<std::uint32_t> done = {};  // by whom every tile was done
  std::vector<std::vector<int>> seen = {};

  [[nodiscard]] int size() const { return atom::cluster_size(cluster); }

  model::Kernel kernel() {
    const auto tiles = static_cast<std::size_t>(tile_count(raster));
    counter = 0;
    done.assign(tiles, 0);
    seen.assign(static_cast<std::size_t>(2 * clusters * size()), {});
    return {{.ctas = clusters * size(),
             .cluster_size = size(),
             .threads = 96,
             .shared_bytes = pipeline::ring_bytes(Shape::value)},
            [this] { work(); },
            {{.base = &counter, .bytes = sizeof counter, .name = "counter"},
             {done.data(), static_cast<std::int64_t>(4 * tiles), "done"}},
            false,
            model::stays_zero(counter)};
  }

  void work() {
    const PreparedRaster prepared(raster);
    const Ring ring(isa::shared_base(), {});
    if (isa::thread_index() == 0) {
      ring.initialise(cluster);
      isa::fence_mbarrier_init();
    }
    isa::cluster_arrive_relaxed();
    isa::cluster_wait();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const int warp = isa::warp_index();
    if (warp == 0) {
      isa::set_role("scheduler");
      if (isa::lane_index() != 0 || isa::cluster_index() >= prepared.count) return;
      const DrawingScheduler scheduler{drawn ? &counter : nullptr, prepared.count, size(), ready};
      ring.schedule(scheduler, isa::cluster_rank());
    } else if (warp == 1) {
      isa::set_role("thread");
      if (isa::lane_index() == 0) {
        walk(Persistent(prepared, 4, ClcNumbers<Ring, Reader::thread>(ring)));
      }
    } else {
      isa::set_role("warp");
      walk(Persistent(prepared, 4, ClcNumbers<Ring, Reader::warp>(ring)));
    }
  }

  template <class Scheduler>
  void walk(Scheduler scheduler) {
    const int warp = isa::thread_index() / 32;  // a thread may be here by itself
    auto& mine = seen[static_cast<std::size_t>(2 * isa::cta_index() + warp - 1)];
    Work tile;
    int rounds = 0;
    while (scheduler.next(tile)) {
      if (++rounds > 2 * raster.tiles_m * raster.tiles_n) return;  // a mutant that finds no end
      const int at = tile.tile.m * raster.tiles_n + tile.tile.n;
      if (isa::lane_index() != 0) continue;
      mine.push_back(at);
      if (warp != 1 || isa::cluster_rank() != 0) continue;
      // Two clusters that have one tile race.
      const isa::GlobalView<std::uint32_t> to{done.data()};
      to.store(at, to.load(at) + 1);
    }
    EXPECT_FALSE(scheduler.next(tile));  // asking again is allowed
  }

  // Every tile once, and all roles of a cluster with the same tiles in the same order.
  [[nodiscard]] bool is_right() const {
    for (const std::uint32_t d : done) {
      if (d != 1) return false;
    }
    const auto roles = static_cast<std::size_t>(2 * size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] != seen[i / roles * roles]) return false;
    }
    return counter == 0;
  }

  // What is wrong in this schedule; nothing when all is well.
  std::string fault(const Options& how) {
    const Report report = model::run(kernel(), how);
    if (!report.clean()) return report.text();
    return is_right() ? "" : "a tile was left out or done twice";
  }
};

constexpr atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

TEST(DynamicNumbers, EveryTileOnceInEveryCluster) {
  for (const atom::ClusterShape cluster : clusters) {
    for (const Raster& raster :
         {Raster{3, 3, 2}, Raster{1, 1, 1}, Raster{2, 1, 1}, Raster{5, 4, 3}}) {
      for (const bool drawn : {true, false}) {
        Grid grid{.clusters = 3, .cluster = cluster, .raster = raster, .drawn = drawn};
        for (Options how : model::schedules()) {
          how.fence_after_reads = how.seed % 2 == 0;
          SCOPED_TRACE(model::text(how));
          EXPECT_EQ(grid.fault(how), "") << cluster.m << "x" << cluster.n << " " << raster.tiles_m
                                         << "x" << raster.tiles_n << " " << drawn;
        }
      }
    }
  }
}

TEST(DynamicNumbers, WithoutACounterTheSharesAreStatic) {
  Grid grid{.cluster = {2, 1}, .drawn = false};
  EXPECT_EQ(grid.fault({}), "");
  EXPECT_EQ(grid.seen[0].size(), 5U);
  const PreparedRaster prepared(grid.raster);
  for (std::size_t i = 0; i < grid.seen[0].size(); ++i) {
    const TilePosition at = position(prepared, 2 * static_cast<int>(i));
    EXPECT_EQ(grid.seen[0][i], at.m * grid.raster.tiles_n + at.n);
  }
}

// Clusters that begin with one another's tiles, drawn and static, with more clusters than tiles
// too.
// Where an SM is slow, or another grid holds it, the others take its tiles.
TEST(DynamicNumbers, AClusterThatStartsLateHasFewTiles) {
  Grid grid{.clusters = 2, .cluster = {1, 1}, .raster = {6, 4, 2}};
  Options how;
  how.sms = 1;  // the second cluster starts when the first has ended
  EXPECT_EQ(grid.fault(how), "");
  EXPECT_EQ(grid.seen[0].size(), 23U);
  EXPECT_EQ(grid.seen[2].size(), 1U);
}

TEST(DynamicNumbers, EveryMutantIsKilled) {
  for (const atom::ClusterShape cluster : {clusters[0], clusters[1]}) {
    Grid grid{.cluster = cluster};
    int killed = 0;
    for (const model::Mutation& m : model::mutations(model::sites_of(grid.kernel()))) {
      const auto is_killed = [&] {
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
          std::vector<Options> all = {model::random_schedule(seed)};
          if (seed == 0) all = model::schedules();
          for (Options how : all) {
            how.mutation = m;
            if (!grid.fault(how).empty()) return true;
          }
        }
        return false;
      }();
      killed += is_killed ? 1 : 0;
      EXPECT_TRUE(is_killed || model::same(grid.kernel(), m))
          << model::text(m) << ", " << m.how() << " in " << cluster.m << "x" << cluster.n;
    }
    EXPECT_GT(killed, 30);
  }
}

}  // namespace
}  // namespace warpwright::tile
