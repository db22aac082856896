// Declared protocols, the walk over the output, and what fixes a kernel: as values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/instances.h"
#include "warpwright/model/machine.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/plan/plan.h"
#include "warpwright/tile/raster.h"

namespace warpwright {
namespace {

constexpr std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

using atom::ClusterShape;
using kernel::GemmConfig;
using pipeline::TmaPipelineShape;

constexpr TmaPipelineShape eight_warps{4, 8, 49152};

// The counts that the documents give: (cm + cn - 1) x consumer warps.
static_assert(pipeline::empty_arrivals(eight_warps, {1, 1}) == 8);
static_assert(pipeline::empty_arrivals(eight_warps, {2, 1}) == 16);
static_assert(pipeline::empty_arrivals(eight_warps, {1, 2}) == 16);
static_assert(pipeline::empty_arrivals(eight_warps, {2, 2}) == 24);
static_assert(pipeline::empty_arrivals(eight_warps, {4, 4}) == 56);
static_assert(pipeline::counts_match(eight_warps, {4, 4}));
static_assert(pipeline::counts_match(eight_warps, {3, 5}));

std::vector<ClusterShape> all_clusters() {
  std::vector<ClusterShape> all;
  for (int m = 1; m <= 16; ++m) {
    for (int n = 1; m * n <= 16; ++n) all.push_back({m, n});
  }
  return all;
}

std::string text(ClusterShape c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n);
}

TEST(PipelineTest, SignalsAndExpectationsAgreeInEveryCluster) {
  for (const ClusterShape cluster : all_clusters()) {
    SCOPED_TRACE(text(cluster));
    const int size = cluster.m * cluster.n;
    for (const int warps : {1, 4, 8, 12}) {
      const TmaPipelineShape shape{3, warps, 1024};
      EXPECT_TRUE(pipeline::counts_match(shape, cluster));
      // Counted by hand: x runs fastest; signals go along the row and the column.
      for (int to = 0; to < size; ++to) {
        int arrivals = 0;
        for (int from = 0; from < size; ++from) {
          const bool same =
              from % cluster.m == to % cluster.m || from / cluster.m == to / cluster.m;
          EXPECT_EQ(pipeline::lane_signals(cluster, atom::coord_of(cluster, from), to), same);
          if (same) arrivals += warps;
        }
        EXPECT_EQ(arrivals, pipeline::empty_arrivals(shape, cluster));
      }
    }
    for (int rank = 0; rank < size; ++rank) {
      const unsigned released = pipeline::released_ctas(cluster, rank);
      EXPECT_NE(released >> rank & 1, 0U);
      EXPECT_EQ(released >> size, 0U);
      for (int other = 0; other < size; ++other) {
        EXPECT_EQ(released >> other & 1,
                  unsigned{pipeline::released_ctas(cluster, other)} >> rank & 1);
      }
      for (int lane = size; lane < 32; ++lane) {
        EXPECT_FALSE(pipeline::lane_signals(cluster, atom::coord_of(cluster, rank), lane));
      }
    }
  }
}

TEST(PipelineTest, RowsOfTheTable) {
  const pipeline::BarrierRow full = pipeline::full_row(eight_warps);
  EXPECT_STREQ(full.name, "full");
  EXPECT_EQ(full.copies, 4);
  EXPECT_EQ(full.arrivals, 1);
  EXPECT_EQ(full.transaction_bytes, 49152);
  EXPECT_EQ(full.first_wait_parity, 0);
  const pipeline::BarrierRow empty = pipeline::empty_row(eight_warps, {2, 2});
  EXPECT_STREQ(empty.name, "empty");
  EXPECT_EQ(empty.copies, 4);
  EXPECT_EQ(empty.arrivals, 24);
  EXPECT_EQ(empty.transaction_bytes, 0);
  EXPECT_EQ(empty.first_wait_parity, 1);
  EXPECT_EQ(pipeline::barrier_bytes(4), 64);
}

TEST(PipelineTest, StateGoesRound) {
  for (const int stages : {1, 2, 3, 7}) {
    pipeline::PipelineState state;
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(state.stage, i % stages);
      EXPECT_EQ(state.parity, i / stages % 2);
      for (const int skipped : {0, 1, 2, 5, 23}) {
        pipeline::PipelineState far = state;
        far.skip(skipped, stages);
        EXPECT_EQ(far.stage, (i + skipped) % stages);
        EXPECT_EQ(far.parity, (i + skipped) / stages % 2);
      }
      state.advance(stages);
    }
  }
}

TEST(RasterTest, VisitsEveryTileOnce) {
  constexpr unsigned seed = 4711;
  std::printf("rasters by seed %u\n", seed);
  std::mt19937 random(seed);
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int i = 0; i < 400; ++i) {
    tile::Raster raster{draw(1, 40), draw(1, 40), draw(1, 45), draw(0, 1) == 1};
    if (i % 3 == 0) {
      raster = tile::make_raster(draw(1, 200), draw(1, 200), {draw(1, 4), draw(1, 4)}, draw(1, 132),
                                 draw(1, 256), draw(1, 256));
    }
    SCOPED_TRACE(std::to_string(raster.tiles_m) + " x " + std::to_string(raster.tiles_n) +
                 " band " + std::to_string(raster.band));
    std::set<std::pair<int, int>> seen;
    const tile::PreparedRaster prepared(raster);
    EXPECT_EQ(prepared.count, tile::tile_count(raster));
    for (int t = 0; t < tile::tile_count(raster); ++t) {
      const tile::TilePosition at = tile::position(raster, t);
      EXPECT_EQ(tile::position(prepared, t), at);
      EXPECT_TRUE(at.m >= 0 && at.m < raster.tiles_m && at.n >= 0 && at.n < raster.tiles_n);
      seen.insert({at.m, at.n});
    }
    EXPECT_EQ(seen.size(), index(raster.tiles_m * raster.tiles_n));
  }
}

TEST(RasterTest, DivisorsDivide) {
  constexpr unsigned seed = 99;
  std::printf("divisors by seed %u\n", seed);
  std::mt19937 random(seed);
  constexpr int most = 2147483647;
  for (int i = 0; i < 20000; ++i) {
    const int value = 1 + static_cast<int>((random() >> 1) >> (random() % 31));
    if (value < 1) continue;
    const tile::Divisor divisor(value);
    const int any = static_cast<int>(random() >> 1);
    for (const int n : {0, 1, value - 1, value, any, any / value * value, most - 1, most}) {
      ASSERT_EQ(divisor.quotient(n), n / value) << n << " / " << value;
    }
  }
}

TEST(RasterTest, MadeRastersHoldTheOutput) {
  for (const ClusterShape cluster : all_clusters()) {
    for (const auto& [m, n] : {std::pair{1, 1}, {1, 50}, {50, 1}, {7, 9}, {64, 64}, {0, 5}}) {
      const tile::Raster r = tile::make_raster(m, n, cluster, 132, 128, 256);
      EXPECT_GE(r.tiles_m * cluster.m, m);
      EXPECT_LT((r.tiles_m - 1) * cluster.m, std::max(m, 1));
      EXPECT_GE(r.tiles_n * cluster.n, n);
      EXPECT_LT((r.tiles_n - 1) * cluster.n, std::max(n, 1));
      EXPECT_GE(r.band, 1);
    }
  }
}

TEST(RasterTest, PersistentClustersShareTheTiles) {
  for (const auto& [ctas, cluster, tiles_m, tiles_n] :
       {std::tuple{8, 1, 5, 7}, {8, 2, 5, 7}, {6, 2, 1, 1}, {16, 16, 3, 3}, {4, 1, 2, 2}}) {
    std::vector<std::vector<int>> visits(static_cast<std::size_t>(cluster),
                                         std::vector<int>(index(tiles_m * tiles_n), 0));
    model::LaunchShape shape;
    shape.ctas = ctas;
    shape.cluster_size = cluster;
    shape.threads = 1;
    const tile::PreparedRaster raster(tile::Raster{tiles_m, tiles_n, 2, true});
    const model::Report report = model::run(shape, {}, {}, [&, across = tiles_n] {
      tile::StaticPersistent scheduler(raster);
      tile::TilePosition at;
      auto& mine = visits[static_cast<std::size_t>(isa::cluster_rank())];
      while (scheduler.next(at)) ++mine[index(at.m * across + at.n)];
      EXPECT_FALSE(scheduler.next(at));
    });
    EXPECT_TRUE(report.clean()) << report.text();
    // Every rank of a cluster sees the same tiles, and all clusters together each once.
    for (const auto& of_rank : visits) {
      for (const int count : of_rank) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ConfigTest, FaultsAreSentences) {
  const auto fault = [](const std::function<void(GemmConfig&)>& change) {
    GemmConfig c;
    change(c);
    const char* said = kernel::config_fault(c);
    return std::string(said == nullptr ? "" : said);
  };
  EXPECT_EQ(fault([](GemmConfig&) {}), "");
  using Config = GemmConfig;
  EXPECT_NE(fault([](Config& c) { c.operand = DType::f32; }).find("operands"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.result = DType::e4m3; }).find("results"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.tile_m = 96; }).find("64 rows"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.consumer_warpgroups = 0; }), "");
  EXPECT_NE(fault([](Config& c) { c.tile_n = 260; }), "");
  EXPECT_NE(fault([](Config& c) { c.tile_n = 0; }), "");
  EXPECT_NE(fault([](Config& c) { c.tile_n = 96; }).find("epilogue"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.tile_k = 32; }).find("tile_k"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.stages = 5; }).find("shared memory"), std::string::npos);
  EXPECT_NE(fault([](Config& c) { c.consumer_registers = 240; }).find("register"),
            std::string::npos);
}

TEST(ConfigTest, SharedMemoryRegions) {
  for (const GemmConfig& c : gemm_configs()) {
    SCOPED_TRACE(std::to_string(c.tile_n));
    EXPECT_EQ(kernel::config_fault(c), nullptr);
    const kernel::SmemMap map = kernel::smem_map(c);
    const int a = c.stages * c.tile_m * c.tile_k * 2;
    const int b = c.stages * c.tile_n * c.tile_k * 2;
    const int buffers = kernel::consumer_warps(c) * kernel::epilogue_buffers;
    // In this order, each where the one before ends or later.
    EXPECT_GE(map.b, map.a + a);
    EXPECT_GE(map.epilogue, map.b + b);
    EXPECT_GE(map.barriers, map.epilogue + buffers * kernel::epilogue_buffer_bytes);
    EXPECT_GE(map.c_barriers, map.barriers + 2 * c.stages * 8);
    EXPECT_GE(map.turns, map.c_barriers + buffers * 8);
    EXPECT_GE(map.bytes, map.turns + (c.schedule == kernel::Schedule::pingpong ? 16 : 0));
    EXPECT_LE(map.bytes, 227 * 1024);
    for (const int swizzled : {map.a, map.b, map.epilogue}) EXPECT_EQ(swizzled % 1024, 0);
    EXPECT_EQ(kernel::epilogue_buffer_bytes % 1024, 0);
    EXPECT_EQ(c.tile_m * c.tile_k * 2 % 1024, 0);
    EXPECT_EQ(c.tile_n * c.tile_k * 2 % 1024, 0);
    for (const int barriers : {map.barriers, map.c_barriers, map.turns}) EXPECT_EQ(barriers % 8, 0);
    // The transaction bytes of a stage are those of its two tiles.
    EXPECT_EQ(kernel::mainloop_shape(c).stage_bytes, (c.tile_m + c.tile_n) * c.tile_k * 2);
    EXPECT_LE(128 * (c.producer_registers + c.consumer_warpgroups * c.consumer_registers),
              kernel::launch_registers(c) * kernel::threads(c));
    EXPECT_LE(kernel::launch_registers(c) * kernel::threads(c), 65536);
  }
}

}  // namespace
}  // namespace warpwright
