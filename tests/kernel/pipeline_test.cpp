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

#include "tests/draws.h"
#include "tests/index.h"
#include "tests/kernel/table.h"
#include "warpwright/kernel/hopper/table.h"
#include "warpwright/model/machine.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/pipeline/tma_pipeline.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/tile/raster.h"

namespace warpwright {
namespace {

using atom::ClusterShape;
using kernel::GemmConfig;
using Config = GemmConfig;
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
          EXPECT_EQ((pipeline::released_ctas(cluster, from) >> to & 1) != 0, same);
          if (same) arrivals += warps;
        }
        EXPECT_EQ(arrivals, pipeline::empty_arrivals(shape, cluster));
        if (warps % 4 == 0) {
          TmaPipelineShape by_warpgroups = shape;
          by_warpgroups.wgmma_only = true;
          EXPECT_TRUE(pipeline::counts_match(by_warpgroups, cluster));
          EXPECT_EQ(arrivals / 4, pipeline::empty_arrivals(by_warpgroups, cluster));
        }
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
  // For a turn the first consumer's first wait passes, the other's waits.
  EXPECT_EQ(pipeline::first_parity(pipeline::turn_row(), 0), 1);
  EXPECT_EQ(pipeline::first_parity(pipeline::turn_row(), 1), 0);
  EXPECT_EQ(pipeline::barrier_bytes(4), 64);
}

// What a ring waits for follows from what is declared, in every round.
TEST(PipelineTest, WaitsBeginAsDeclared) {
  using Usual = pipeline::RingBarriers<3, 0, 1>;
  using Other = pipeline::RingBarriers<3, 1, 0>;
  pipeline::PipelineState state;
  for (int i = 0; i < 12; ++i) {
    const int round = i / 3 % 2;
    EXPECT_EQ(Usual::full_parity(state), round);
    EXPECT_EQ(Usual::empty_parity(state), 1 - round);
    EXPECT_EQ(Other::full_parity(state), 1 - round);
    EXPECT_EQ(Other::empty_parity(state), round);
    state.advance(3);
  }
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
  tests::Draws draw(seed);
  for (int i = 0; i < 400; ++i) {
    tile::Raster raster{draw(1, 40), draw(1, 40), draw(1, 45), draw(0, 1) == 1};
    if (i % 3 == 0) {
      const double kept = draw(0, 1) * 1e5;
      raster = tile::make_raster(draw(1, 200), draw(1, 200), {draw(1, 4), draw(1, 4)}, draw(1, 132),
                                 {draw(1, 256) * 10.0, draw(1, 256) * 10.0, kept});
    }
    raster.batch = draw(0, 2) == 0 ? draw(2, 4) : 1;
    SCOPED_TRACE(std::to_string(raster.tiles_m) + " x " + std::to_string(raster.tiles_n) +
                 " band " + std::to_string(raster.band) + " batch " + std::to_string(raster.batch));
    std::set<std::tuple<int, int, int>> seen;
    const tile::PreparedRaster prepared(raster);
    EXPECT_EQ(prepared.count, tile::tile_count(raster));
    for (int t = 0; t < tile::tile_count(raster); ++t) {
      const tile::TilePosition at = tile::position(raster, t);
      EXPECT_EQ(tile::position(prepared, t), at);
      EXPECT_TRUE(at.m >= 0 && at.m < raster.tiles_m && at.n >= 0 && at.n < raster.tiles_n);
      EXPECT_EQ(at.batch, t / (raster.tiles_m * raster.tiles_n));  // one output after the other
      seen.insert({at.batch, at.m, at.n});
    }
    EXPECT_EQ(seen.size(), index(raster.tiles_m * raster.tiles_n * raster.batch));
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
      const tile::Raster r = tile::make_raster(m, n, cluster, 132, {128, 256});
      EXPECT_GE(r.tiles_m * cluster.m, m);
      EXPECT_LT((r.tiles_m - 1) * cluster.m, std::max(m, 1));
      EXPECT_GE(r.tiles_n * cluster.n, n);
      EXPECT_LT((r.tiles_n - 1) * cluster.n, std::max(n, 1));
      EXPECT_GE(r.band, 1);
    }
  }
}

// Bands by what L2 keeps, for products of bf16 in tiles of 128 x 256 on an H200: one operand that
// is kept whole while the other streams past it, or else a block in flight that is near square.
// The walk over bands skips none that makes as many bands of even width, and tries no other.
TEST(RasterTest, WiderBandsAreTheEvenOnes) {
  for (int across = 1; across < 700; ++across) {
    std::vector<int> even, all, walked;
    for (int i = 1; i <= across && i <= 256; ++i) {
      const int band = i == 256 ? across : i;
      const int bands = (across + band - 1) / band;
      all.push_back(band);
      if (band == (across + bands - 1) / bands) even.push_back(band);
    }
    for (const bool is_even : {true, false}) {
      walked.clear();
      for (int band = 1; band <= across;) {
        walked.push_back(band);
        band = tile::wider_band(band, (across + band - 1) / band, across, is_even);
      }
      ASSERT_EQ(walked, is_even ? even : all) << across;
    }
  }
}

TEST(RasterTest, BandsReadLittleFromMemory) {
  const auto band = [](int m, int n, int k) {
    return tile::make_raster(m / 128, n / 256, {2, 1}, 132, {256.0 * k, 512.0 * k, 30e6});
  };
  EXPECT_EQ(band(4096, 24576, 1536).band, 16);  // all of A
  EXPECT_TRUE(band(4096, 24576, 1536).along_m);
  for (const auto& [m, n, k] : {std::tuple{16384, 4096, 4096}, {8192, 8192, 8192}}) {
    // Neither is kept whole, and 66 clusters are in flight.
    EXPECT_GE(band(m, n, k).band, 6);
    EXPECT_LE(band(m, n, k).band, 11);
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
      tile::Persistent scheduler(raster, 5);
      tile::Work work;
      auto& mine = visits[static_cast<std::size_t>(isa::cluster_rank())];
      while (scheduler.next(work)) {
        ++mine[index(work.tile.m * across + work.tile.n)];
        EXPECT_EQ(work.first, 0);  // tiles are taken whole
        EXPECT_EQ(work.end, 5);
      }
      EXPECT_FALSE(scheduler.next(work));
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
  const auto expect = [&](const std::function<void(GemmConfig&)>& change, const char* part) {
    const std::string said = fault(change);
    EXPECT_NE(said.find(part), std::string::npos) << "no \"" << part << "\" in: " << said;
  };
  using kernel::Sums;
  using Shared = kernel::SharedOperands;
  const auto shared = [](Shared operands) {
    return [operands](Config& c) { c.operands = operands, c.tile_n = 128; };
  };
  const kernel::Operand e4m3 = {DType::e4m3};
  expect(shared({.a = {DType::f32}}), "operands");
  expect(shared({.b = {DType::f16}}), "the same type");
  expect(shared({.a = e4m3}), "the same type");
  expect(shared({.a = {DType::s4}, .b = e4m3}), "operands");
  expect(shared({.sums = Sums::promoted}), "8-bit products");
  expect(shared({.a = {DType::e4m3, atom::Major::mn}, .b = e4m3}), "must be K-major");
  expect(shared({.a = e4m3, .b = e4m3, .sums = Sums::promoted, .k_atoms = 2}), "several spans");
  expect([](Config& c) { c.result = DType::e2m1; }, "results");
  expect([](Config& c) { c.tile_m = 96; }, "64 rows");
  expect([](Config& c) { c.consumer_warpgroups = 0; }, "64 rows");
  expect([](Config& c) { c.tile_n = 260; }, "wgmma's N");
  expect([](Config& c) { c.tile_n = 0; }, "wgmma's N");
  expect([](Config& c) { c.stages = 5; }, "shared memory");
  expect([](Config& c) { c.stages = 1; }, "two stages");
  expect([](Config& c) { c.tile_m = 256, c.stages = 2; }, "registers");
  expect(
      [](Config& c) {
        c.walk = kernel::Whole{.in_turns = true};
        c.consumer_warpgroups = 1;
      },
      "ping-pong");
  expect([](Config& c) { c.walk = kernel::ClusterK{}, c.gated = true; }, "neither gated");
  const auto packed = [](Config& c) {
    c = kernel::hopper::exact(kernel::hopper::s4(128, 48));
    c.stages = 4;
  };
  EXPECT_EQ(fault(packed), "");
  expect([&](Config& c) { packed(c), c.walk = kernel::Whole{.in_turns = true}; }, "packed weights");
  expect([&](Config& c) { packed(c), c.consumer_warpgroups = 1, c.tile_m = 256; },
         "packed weights");
  expect([&](Config& c) { packed(c), c.consumer_warpgroups = 5, c.tile_m = 320; }, "64 rows");
  expect(
      [&](Config& c) {
        c = kernel::hopper::exact_by_two(kernel::hopper::s4(128, 16));
        c.gated = true;
        c.consumer_warpgroups = 1;
        c.stages = 2;
      },
      "by two");
  expect(
      [&](Config& c) {
        c = kernel::hopper::in_halves(kernel::hopper::exact(kernel::hopper::s4(128, 24)));
        c.stages = 2;
      },
      "wgmma's N");
  expect(
      [&](Config& c) {
        shared({.swap_ab = true})(c);
        c.gated = true;
      },
      "gated rows");
  expect(
      [](Config& c) {
        c.gated = true;
        c.tile_n = 144;
      },
      "gated columns");
  expect(
      [](Config& c) {
        c.walk = kernel::Grouped{.search = kernel::Grouping::binary_search};
        c.operands = Shared{.a = {DType::bf16, atom::Major::mn}};
      },
      "tokens of groups");
}

TEST(ConfigTest, EveryKernelOfTheTableIsLegal) {
  std::set<std::string> names;
  for (const auto& i : hopper_kernels()) {
    SCOPED_TRACE(i.name);
    EXPECT_TRUE(names.insert(i.name).second) << "a name is given twice";
    EXPECT_EQ(kernel::config_fault(i.config), nullptr);
    EXPECT_TRUE(kernel::signals_match(i.config));
    EXPECT_TRUE(kernel::supports(i.config, {1, 1}));
    const auto same = std::count_if(hopper_kernels().begin(), hopper_kernels().end(),
                                    [&](const auto& row) { return row.config == i.config; });
    EXPECT_EQ(same, 1) << "a configuration is compiled twice";
  }
}

// What the documents promise of every build.
TEST(ConfigTest, TheBuildHasEveryKind) {
  using kernel::Schedule;
  using kernel::Sums;
  const auto has = [](const char* what, const tests::Property& property) {
    EXPECT_TRUE(tests::one_with(what, property).has_value()) << what;
  };
  has("a shared tile of 128 x 256",
      [](const Config& c) { return tests::is_basic(c, Schedule::cooperative); });
  has("tiles in turns", [](const Config& c) { return tests::is_basic(c, Schedule::pingpong); });
  has("operands swap_ab and K split", [](const Config& c) { return is_swapped(c) && splits_k(c); });
  has("promoted sums", [](const Config& c) { return sums_of(c) == Sums::promoted; });
  has("block scales", [](const Config& c) { return is_blockwise(c); });
}

TEST(ConfigTest, SharedMemoryRegions) {
  for (const auto& instance : hopper_kernels()) {
    const GemmConfig& c = instance.config;
    SCOPED_TRACE(std::to_string(c.tile_m) + "x" + std::to_string(c.tile_n));
    const kernel::SmemMap map = kernel::smem_map(c);
    const int row = 128 * k_atoms(c);  // bytes of a stage's K in a row
    EXPECT_EQ(kernel::tile_k(c) * kernel::operand_bits(c) / 8, row);
    const int buffers = kernel::consumer_warps(c) * c.buffers;
    // In this order, each where the one before ends or later.
    EXPECT_GE(map.b, map.a + c.stages * kernel::stage_a_bytes(c));
    EXPECT_GE(map.epilogue, map.b + c.stages * c.tile_n * row);
    EXPECT_GE(map.scales, map.epilogue + buffers * kernel::epilogue_buffer_bytes(c));
    EXPECT_GE(map.barriers, map.scales + c.stages * kernel::scale_bytes(c));
    EXPECT_GE(map.c_barriers, map.barriers + 2 * c.stages * 8);
    EXPECT_GE(map.turns, map.c_barriers + buffers * 8);
    EXPECT_GE(map.bytes, map.turns + (takes_turns(c) ? 16 : 0));
    EXPECT_LE(map.bytes, 227 * 1024);
    for (const int swizzled : {map.a, map.b, map.epilogue}) EXPECT_EQ(swizzled % 1024, 0);
    EXPECT_EQ(kernel::epilogue_buffer_bytes(c) % 1024, 0);
    EXPECT_LE(kernel::subtile_bytes(c), kernel::epilogue_buffer_bytes(c));
    EXPECT_EQ(c.tile_m * row % 1024, 0);
    EXPECT_EQ(c.tile_n * row % 1024, 0);
    EXPECT_EQ(map.scales % 16, 0);
    for (const int barriers : {map.barriers, map.c_barriers, map.turns}) EXPECT_EQ(barriers % 8, 0);
    // The transaction bytes of a stage are those of its two tiles; for packed ones the launch
    // knows, and of tokens by index there are none.
    const bool own_a = kernel::gathers(c) && !is_swapped(c);
    const bool own_b = kernel::gathers(c) && is_swapped(c);
    const int of_a = kernel::packed_a(c) || own_a ? 0 : c.tile_m;
    EXPECT_EQ(kernel::mainloop_shape(c).stage_bytes, (of_a + (own_b ? 0 : c.tile_n)) * row);
    EXPECT_LE(128 * (kernel::producer_registers(c) +
                     c.consumer_warpgroups * kernel::consumer_registers(c)),
              kernel::launch_registers(c) * kernel::threads(c));
    EXPECT_LE(kernel::launch_registers(c) * kernel::threads(c), 65536);
    EXPECT_GT(kernel::consumer_registers(c), kernel::sum_registers(c));
  }
}

// The chunks of the epilogue and the atoms of the main loop cover a tile once.
TEST(ConfigTest, ChunksAndAtomsCoverATile) {
  for (const auto& instance : hopper_kernels()) {
    const GemmConfig& c = instance.config;
    SCOPED_TRACE(std::to_string(c.tile_m) + "x" + std::to_string(c.tile_n));
    EXPECT_EQ(kernel::result_columns(c) % kernel::subtile_columns(c), 0);
    EXPECT_EQ(kernel::subtile_inner(c) * kernel::subtile_outer(c),
              kernel::warp_rows * kernel::subtile_columns(c));
    const bool alone = takes_turns(c);
    for (int w = 0; w < (alone ? c.consumer_warpgroups : 1); ++w) {
      std::set<int> rows;
      for (int v = alone ? w : 0; v < (alone ? w + 1 : c.consumer_warpgroups); ++v) {
        for (int i = 0; i < kernel::row_atoms(c); ++i) rows.insert(kernel::atom_row(c, v, i));
      }
      EXPECT_EQ(rows.size(), index(c.tile_m / 64));
      EXPECT_EQ(*rows.begin(), 0);
      EXPECT_EQ(*rows.rbegin(), c.tile_m - 64);
      for (const int row : rows) EXPECT_EQ(row % 64, 0);
    }
  }
}

}  // namespace
}  // namespace warpwright
