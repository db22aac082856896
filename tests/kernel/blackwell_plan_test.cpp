// Plans for Blackwell: what is chosen, what is refused and how, what explain says.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernel/kernel_head.h"
#include "tests/must.h"
#include "tests/problem_changes.h"
#include "warpwright/kernel/blackwell/config_fault.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;
using kernel::TileSource;

GemmProblem problem(DType operand = DType::bf16, DType result = DType::bf16) {
  return packed_problem(512, 512, 512, operand, result);
}

GemmProblem scaled_problem(DType scale, int m, int n, int k) {
  GemmProblem p = packed_problem(m, n, k, DType::e2m1, DType::bf16);
  p.scaling = Scaling::block_scaled;
  const int depth = k / std::max(1, micro_block(scale));
  p.scale_a = packed_matrix(scale, m, depth);
  p.scale_b = packed_matrix(scale, n, depth);
  return p;
}

DeviceFacts b200() {
  return *known_facts("b200");
}

// For a plan by a Blackwell kernel.
const BlackwellConfig& config_of(const Plan& plan) {
  const auto& all = blackwell_kernels();
  const auto row =
      std::find_if(all.begin(), all.end(), [&](const auto& r) { return plan.kernel == r.name; });
  if (row == all.end()) throw std::invalid_argument(plan.kernel + " is no Blackwell kernel");
  return row->config;
}

std::string refusal_of(const GemmProblem& p, const PlanChoices& choices,
                       const DeviceFacts& facts = b200()) {
  const auto made = plan(p, facts, choices);
  return made.ok() ? "none" : made.reason();
}

TEST(BlackwellPlan, ChoosesABlackwellKernel) {
  for (const int architecture : {100, 103}) {
    DeviceFacts facts = b200();
    facts.architecture = architecture;
    const auto made = must(plan(problem(), facts));
    EXPECT_STREQ(made->facts().family, "blackwell_gemm");
    EXPECT_EQ(config_of(*made).tiles, TileSource::clc);
    EXPECT_EQ(made->tile().k, 64);
  }
  const auto hopper = must(plan(problem(), *known_facts("h200")));
  EXPECT_STREQ(hopper->facts().family, "hopper_gemm");
  DeviceFacts other = b200();
  other.architecture = 110;
  EXPECT_EQ(refusal_of(problem(), {}, other),
            "device b200 has architecture sm_110; kernels exist for sm_70 (V100), sm_75 (T4), "
            "sm_80 (A100), sm_86, sm_89, sm_90 (H100, H200), sm_100 (B200), sm_103 (B300) and "
            "sm_120");
}

// Into bf16 from every source of tiles; into f16 and f32 by CLC, which plans take by themselves.
TEST(BlackwellPlan, EveryTypeHasEveryForm) {
  for (const DType operand : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    for (const DType result : {DType::bf16, DType::f16, DType::f32}) {
      for (const bool pair : {false, true}) {
        for (const TileSource tiles :
             {TileSource::one_tile, TileSource::static_persistent, TileSource::clc}) {
          if (result != DType::bf16 && tiles != TileSource::clc) continue;
          const auto made =
              must(plan(problem(operand, result), b200(), {.tiles = tiles, .pair = pair}));
          EXPECT_EQ(config_of(*made).pair, pair);
          EXPECT_EQ(config_of(*made).tiles, tiles);
          EXPECT_EQ(config_of(*made).accumulators, tiles == TileSource::one_tile ? 1 : 2);
        }
      }
    }
  }
}

TEST(BlackwellPlan, RefusesAnOddClusterOfPairs) {
  PlanChoices choices;
  choices.pair = true;
  choices.cluster = atom::ClusterShape{1, 1};
  EXPECT_EQ(refusal_of(problem(), choices),
            "cluster 1,1: a CTA pair lies along M, so the cluster's M must be even; the nearest "
            "legal cluster is 2,1");
  choices.cluster = atom::ClusterShape{2, 1};
  EXPECT_EQ(refusal_of(problem(), choices), "none");
  // Without pairs 1x1 is a cluster like any other.
  choices.pair = false;
  choices.cluster = atom::ClusterShape{1, 1};
  EXPECT_EQ(refusal_of(problem(), choices), "none");
}

TEST(BlackwellPlan, RefusesMoreColumnsThanThereAre) {
  PlanChoices choices;
  choices.tile_n = 256;
  choices.accumulators = 3;
  EXPECT_EQ(refusal_of(problem(), choices),
            "3 accumulators of 256 columns need 768 columns of tensor memory, which has 512; the "
            "nearest legal number is 2");
  choices.accumulators = 0;
  expect_contains(refusal_of(problem(), choices), "the nearest legal number is 1");
  choices.accumulators = 2;
  EXPECT_EQ(refusal_of(problem(), choices), "none");
}

TEST(BlackwellPlan, RefusesTypesOfDifferentKinds) {
  GemmProblem p = problem();
  const std::string rule = "; A and B are both bf16, both fp16, or each e4m3 or e5m2: the nearest ";
  p.b.dtype = DType::e4m3;
  EXPECT_EQ(refusal_of(p, {}), "A is bf16 and B is e4m3" + rule + "B is bf16");
  p.b.dtype = DType::f16;
  EXPECT_EQ(refusal_of(p, {}), "A is bf16 and B is fp16" + rule + "B is bf16");
  p = problem(DType::e4m3);
  p.b.dtype = DType::e5m2;
  EXPECT_EQ(refusal_of(p, {}), "none") << "f8f6f4 mixes them";
  p.b.dtype = DType::bf16;
  EXPECT_NE(refusal_of(p, {}), "none");
  EXPECT_NE(refusal_of(problem(DType::e2m1), {}), "none");
  EXPECT_NE(refusal_of(problem(DType::bf16, DType::e4m3), {}), "none");
}

// What the Hopper kernels compute and these do not.
TEST(BlackwellPlan, RefusesWhatHopperAloneComputes) {
  const auto changed = [](DType operand, const std::function<void(GemmProblem&)>& change) {
    GemmProblem p = problem(operand);
    change(p);
    return refusal_of(p, {});
  };
  using P = GemmProblem;
  EXPECT_EQ(changed(DType::e4m3, [](P& p) { p.c.dtype = p.d.dtype = DType::e5m2; }),
            "D is e5m2; the kernels of sm_100 store bf16, fp16 and f32: the nearest is bf16");
  EXPECT_EQ(
      refusal_of(problem(), {.schedule = kernel::Schedule::pingpong}),
      "no kernel for b200 (sm_100) has the schedule pingpong, which those for sm_90, sm_120 and "
      "sm_121 have: leave it out");
  // Nobody reads these operands.
  EXPECT_EQ(changed(DType::bf16,
                    [](P& p) {
                      p.alpha = 0;
                      p.b.row_stride = 1;
                      p.b.column_stride = 512;
                    }),
            "none");
}

// Scales of 1 x 128 by 128 x 128, and sums that are promoted without any.
TEST(BlackwellPlan, AddsUpKTilesInRegisters) {
  GemmProblem p = problem(DType::e4m3);
  p.scaling = Scaling::blockwise;
  for (const bool scales : {true, false}) {
    p.scaling = scales ? Scaling::blockwise : Scaling::none;
    p.accumulation = Accumulation::promoted;
    const auto made = must(plan(p, b200()));
    EXPECT_TRUE(config_of(*made).blockwise);
    EXPECT_EQ(made->tile().k, 128);
    const std::string text = made->explain();
    expect_contains(text, "columns 384 .. 511  accumulator 3, 128 rows of f32 of a k_tile");
  }
  EXPECT_FALSE(config_of(*plan(problem(DType::e4m3), b200())).blockwise);
}

// Rows of a slice are whole boxes where they lie side by side.
TEST(BlackwellPlan, TakesEveryLayoutOf16Bits) {
  for (const bool of_a : {false, true}) {
    GemmProblem p = problem();
    auto& v = of_a ? p.a : p.b;
    std::swap(v.row_stride, v.column_stride);
    const auto made = must(plan(p, b200()));
    EXPECT_EQ(config_of(*made).a_major, atom::Major::k) << "a launch says it";
    PlanChoices choices;
    choices.cluster = atom::ClusterShape{4, 4};
    choices.pair = false;
    choices.tile_n = 128;
    // Four CTAs along M share a B.
    EXPECT_EQ(refusal_of(p, choices),
              std::string("cluster 4,4: the CTAs of a cluster share an MN-major operand in slices "
                          "of 64 rows; the nearest legal cluster is ") +
                  (of_a ? "4,2" : "2,2"));
    choices.cluster = atom::ClusterShape{2, 2};
    EXPECT_EQ(refusal_of(p, choices), "none");
  }
}

// Few tiles of a long K are cut, into parts of a size; not where sums must not depend on the batch.
TEST(BlackwellPlan, SplitsFewTilesAlongK) {
  const GemmProblem p = packed_problem(128, 256, 16384, DType::bf16, DType::bf16);
  const auto made = must(plan(p, b200()));
  EXPECT_TRUE(config_of(*made).splits_k) << made->name();
  EXPECT_EQ(made->ctas % 2, 0);
  EXPECT_GT(made->ctas, 4);
  EXPECT_LT(made->ctas, 64) << "who stores a tile reads all of its parts";
  EXPECT_GT(made->workspace_bytes, std::int64_t{made->ctas} * made->tile().m * made->tile().n * 4);
  const auto invariant = must(plan(p, b200(), {.batch_invariant = true}));
  EXPECT_FALSE(config_of(*invariant).splits_k);
  for (const auto& [m, k] : {std::pair{4096, 16384}, {128, 512}}) {
    const auto whole = must(plan(packed_problem(m, 4096, k, DType::bf16, DType::bf16), b200()));
    EXPECT_FALSE(config_of(*whole).splits_k) << whole->name();
  }
}

// Plans go by floors: what bounds a product decides.
TEST(BlackwellPlan, FollowsTheFloor) {
  const auto planned = [](int m, int n, int k, const DeviceFacts& device) {
    return *must(plan(packed_problem(m, n, k, DType::bf16, DType::bf16), device));
  };
  EXPECT_TRUE(config_of(planned(8192, 8192, 8192, b200())).pair) << "whose port brings half of B";
  EXPECT_EQ(planned(1024, 1024, 1024, b200()).cluster_ctas(), 1) << "which nobody waits for";
  // In many rounds who shares loads asks L2 for less, where that bounds nothing.
  GemmProblem promoted = packed_problem(8192, 8192, 8192, DType::e4m3, DType::bf16);
  promoted.accumulation = Accumulation::promoted;
  EXPECT_EQ(must(plan(promoted, b200()))->cluster_ctas(), 2);
  // A cluster of two over one tile's rows has a CTA without any.
  promoted = packed_problem(128, 7168, 4096, DType::e4m3, DType::bf16);
  promoted.accumulation = Accumulation::promoted;
  EXPECT_EQ(must(plan(promoted, b200()))->ctas, 56);
  // Two tiles are cut, and as bytes of sums take longer, into fewer parts than the grid has room.
  EXPECT_LE(planned(128, 256, 16384, b200()).ctas, 32);
  // Accumulators that share columns hide less of a store, of which a short K has many.
  const auto has_overlap = [](int n, int k) {
    return kernel::overlaps(
        config_of(*must(plan(scaled_problem(DType::ue4m3, 4096, n, k), b200()))));
  };
  EXPECT_TRUE(has_overlap(4096, 4096));
  EXPECT_FALSE(has_overlap(32768, 512));
}

// A tuning cache names kernels, clusters and grids.
TEST(BlackwellPlan, CandidatesAndChoicesByName) {
  const auto all = must(candidates(problem(), b200()));
  EXPECT_GT(all->size(), 2U);
  for (const Plan& one : *all) {
    const auto again = must(plan(problem(), b200(),
                                 {.cluster = one.cluster,
                                  .kernel = one.kernel,
                                  .ctas = one.ctas,
                                  .pair = config_of(one).pair}));
    EXPECT_EQ(again->kernel, one.kernel);
    EXPECT_EQ(again->ctas, one.ctas);
    EXPECT_LE(all->front().cost, one.cost);
  }
  expect_contains(refusal_of(problem(), {.kernel = "hopper_bf16_bf16_128x256"}),
                  "the kernel hopper_bf16_bf16_128x256 does not run on b200 (sm_100)");
  // (Who splits tiles along K takes any number.)
  expect_contains(refusal_of(problem(), {.ctas = 7, .tiles = TileSource::clc}), "a grid of 7 CTAs");
}

TEST(BlackwellPlan, RefusesWhatNoKernelHas) {
  EXPECT_EQ(refusal_of(problem(), {.tile_n = 128, .pair = true})
                .find("no kernel of sm_100 has pairs, tile_n 128 for "),
            0U);
  expect_contains(refusal_of(problem(), {.pair = true}, *known_facts("h200")),
                  "pairs of SMs, which those for sm_100");
  expect_contains(refusal_of(problem(), {.cluster = atom::ClusterShape{4, 4}}, model_facts(8, 100)),
                  "needs as many SMs");
}

TEST(BlackwellPlan, GridsFollowTheTileSource) {
  const GemmProblem p = packed_problem(4096, 4096, 64, DType::bf16, DType::bf16);
  PlanChoices choices;
  choices.pair = false;
  choices.tile_n = 128;
  choices.cluster = atom::ClusterShape{2, 1};
  choices.tiles = TileSource::static_persistent;
  EXPECT_EQ(plan(p, b200(), choices)->ctas, 148);
  for (const TileSource tiles : {TileSource::one_tile, TileSource::clc}) {
    choices.tiles = tiles;
    const auto made = plan(p, b200(), choices);
    EXPECT_EQ(made->ctas, 32 * 32);
    EXPECT_NEAR(made->waves(), 1024 / 148.0, 1e-9);
  }
}

TEST(BlackwellPlan, ConfigurationsAreJudged) {
  static_assert(kernel::config_fault(BlackwellConfig{}) == nullptr);
  const auto faulty = [](BlackwellConfig c) { return kernel::config_fault(c) != nullptr; };
  EXPECT_TRUE(faulty({.result = DType::e4m3}));
  EXPECT_TRUE(faulty({.tile_m = 64})) << "whose tokens are not on N";
  EXPECT_TRUE(faulty({.tile_n = 100}));
  EXPECT_TRUE(faulty({.tile_n = 96})) << "no whole epilogue buffers of bf16";
  EXPECT_TRUE(faulty({.accumulators = 5})) << "640 columns";
  EXPECT_TRUE(faulty({.tile_n = 256, .accumulators = 3}));
  EXPECT_TRUE(faulty({.blockwise = true})) << "k_tiles of 64";
  EXPECT_TRUE(faulty({.tile_n = 256, .stages = 4, .splits_k = true})) << "256 sums a thread";
  EXPECT_TRUE(faulty({.splits_k = true, .tiles = TileSource::clc}));
  EXPECT_TRUE(faulty({.stages = 7})) << "more shared memory than there is";
  for (const auto& row : blackwell_kernels()) {
    const BlackwellConfig& c = row.config;
    EXPECT_EQ(kernel::config_fault(c), nullptr);
    EXPECT_LE(kernel::smem_map(c).bytes, kernel::max_smem_bytes);
  }
}

// MMAs of K 96 are of sm_103: a B200 never runs their kernels, by name neither.
TEST(BlackwellPlan, MmasOfK96AreOfSm103) {
  int there = 0;
  for (const KernelFacts& f : blackwell_family().kernels()) {
    const bool is_long =
        std::find(f.features.begin(), f.features.end(), "MMAs of K 96") != f.features.end();
    EXPECT_EQ(f.architectures, is_long ? std::vector{103} : (std::vector{100, 103})) << f.name;
    there += is_long ? 1 : 0;
    if (!is_long || !f.built) continue;
    const GemmProblem p = scaled_problem(f.micro_scales.front(), 4096, 4096, 7680);
    const std::string said = "the kernel " + f.name +
                             " does not run on b200 (sm_100); only sm_103 (b300) has MMAs of K 96: "
                             "the nearest is the kernel without _k96";
    EXPECT_EQ(refusal_of(p, {.kernel = f.name}).find(said), 0U);
    EXPECT_EQ(refusal_of(p, {.kernel = f.name}, *known_facts("b300")), "none");
    const auto on_b200 = candidates(p, b200());
    if (!on_b200.ok()) continue;  // no other kernel of this build
    for (const Plan& one : *on_b200) EXPECT_FALSE(config_of(one).long_k) << one.kernel;
    // In a cluster that shares its loads the MMAs decide, of which it has fewer; not for a K of
    // 256, which counts as 768.
    PlanChoices choices{.tile_n = f.tile.n, .pair = f.pair};
    choices.cluster = atom::ClusterShape{4, 4};
    const auto best = must(plan(p, *known_facts("b300"), choices));
    EXPECT_TRUE(config_of(*best).long_k) << best->kernel;
    const auto shorter = must(plan(scaled_problem(f.micro_scales.front(), 4096, 4096, 256),
                                   *known_facts("b300"), choices));
    EXPECT_FALSE(config_of(*shorter).long_k) << shorter->kernel;
  }
  EXPECT_EQ(there, 2);
}

// Tiles of 8 tokens are of MMAs with scales, and of one SM; tiles with scales are cut along K, but
// not where three k_tiles go together or a gate has an accumulator of its own.
TEST(BlackwellPlan, FewTokensWithScalesAreJudged) {
  constexpr auto mx = atom::UmmaKind::mxf8f6f4;
  constexpr tile::TileWidths from_8 = {{8, 16, 128}};
  constexpr auto by_static = TileSource::static_persistent;
  const BlackwellConfig tokens{.kind = mx,
                               .stages = 3,
                               .accumulators = 2,
                               .tiles = by_static,
                               .swap_ab = true,
                               .widths = from_8,
                               .scale = DType::ue8m0};
  EXPECT_EQ(kernel::config_fault(tokens), nullptr);
  BlackwellConfig c = tokens;
  c.splits_k = true;
  EXPECT_EQ(kernel::config_fault(c), nullptr);
  c.tiles = TileSource::clc;
  EXPECT_STREQ(kernel::config_fault(c), "tiles are split along K in static persistent tiles");
  c = tokens;
  c.kind = atom::UmmaKind::f16;
  c.scale = DType::f32;
  EXPECT_STREQ(kernel::config_fault(c),
               "widths ascend in multiples of 16, of MMAs of 64 rows or with scales of 8, with "
               "pairs of 32");
  c.tile_m = 64;
  EXPECT_EQ(kernel::config_fault(c), nullptr);
  c.gated = true;
  EXPECT_STREQ(kernel::config_fault(c),
               "64 rows are of few tokens, by MMAs of one SM that multiply no scales, without a "
               "gate");
  c = tokens;
  c.widths = {{8, 24, 128}};
  EXPECT_STREQ(kernel::config_fault(c), "behind 8 columns a tile has whole parts of 16");
  c = tokens;
  c.gated = c.splits_k = true;
  c.tile_m = 256;
  c.accumulators = 1;
  EXPECT_STREQ(kernel::config_fault(c),
               "groups, and tiles of gates and what they are for, are not split along K");
  BlackwellConfig cut{.kind = atom::UmmaKind::mxf4,
                      .stages = 3,
                      .accumulators = 2,
                      .splits_k = true,
                      .tiles = by_static,
                      .scale = DType::ue8m0};
  EXPECT_EQ(kernel::config_fault(cut), nullptr);
  cut.long_k = true;
  EXPECT_STREQ(kernel::config_fault(cut),
               "MMAs of K 96 take three stages together, and tiles are cut along K at any of them");
}

TEST(BlackwellPlan, LongKIsJudged) {
  BlackwellConfig c{
      .kind = atom::UmmaKind::mxf4, .stages = 3, .scale = DType::ue8m0, .long_k = true};
  EXPECT_EQ(kernel::config_fault(c), nullptr);
  EXPECT_EQ(kernel::mma_atom(c).k, 96);
  EXPECT_EQ(kernel::k_blocks(c), 8);
  c.stages = 1;
  EXPECT_STREQ(kernel::config_fault(c),
               "an MMA of K 96 reads two stages at once, so that a ring has at least two");
  c.stages = 3;
  c.kind = atom::UmmaKind::mxf8f6f4;
  EXPECT_STREQ(kernel::config_fault(c),
               "MMAs of K 96 are of kinds mxf4 and mxf4nvf4, and have no tokens on N here");
}

// Two accumulators of 256 columns and the scales are more columns than there are: the accumulators
// share whole subtiles.
TEST(BlackwellPlan, WideAccumulatorsShareColumns) {
  const auto wide = [](atom::UmmaKind kind, DType scale, bool long_k, DType result) {
    return BlackwellConfig{.kind = kind,
                           .result = result,
                           .tile_n = 256,
                           .stages = 3,
                           .accumulators = 2,
                           .pair = true,
                           .tiles = TileSource::clc,
                           .scale = scale,
                           .long_k = long_k};
  };
  struct Row {
    BlackwellConfig c;
    int shared, buffers, columns;
  };
  constexpr auto mx = atom::UmmaKind::mxf8f6f4;
  constexpr auto nv = atom::UmmaKind::mxf4nvf4;
  for (const auto& [c, shared, buffers, columns] :
       {Row{wide(mx, DType::ue8m0, false, DType::bf16), 64, 2, 448 + 2 * 12},
        Row{wide(mx, DType::ue8m0, false, DType::f32), 32, 2, 480 + 2 * 12},
        Row{wide(nv, DType::ue4m3, false, DType::bf16), 64, 1, 448 + 48},
        Row{wide(nv, DType::ue4m3, true, DType::bf16), 192, 1, 320 + 144}}) {
    EXPECT_EQ(kernel::config_fault(c), nullptr);
    EXPECT_TRUE(kernel::overlaps(c));
    EXPECT_EQ(kernel::shared_columns(c), shared);
    EXPECT_EQ(kernel::scale_buffers(c), buffers);
    EXPECT_EQ(kernel::first_scale_column(c) + buffers * kernel::scale_columns(c), columns);
    EXPECT_EQ(kernel::tmem_columns(c), 512);
    EXPECT_EQ(kernel::accumulator_shape(c).accumulators, 1);
  }
  BlackwellConfig codes = wide(mx, DType::ue8m0, false, DType::e4m3);
  codes.d_scale = DType::ue8m0;
  EXPECT_STREQ(kernel::config_fault(codes), "accumulators that share columns do not become codes");
  BlackwellConfig narrow = wide(mx, DType::ue8m0, false, DType::bf16);
  narrow.tile_n = 192;
  EXPECT_FALSE(kernel::overlaps(narrow));
  EXPECT_FALSE(kernel::overlaps(BlackwellConfig{.tile_n = 256, .stages = 3, .accumulators = 2}));
}

// The seed's numbers of a 4 x 4 cluster: one SM, and pairs.
TEST(BlackwellPlan, BarriersAsTheSeedCountsThem) {
  PlanChoices choices;
  choices.cluster = atom::ClusterShape{4, 4};
  choices.pair = false;
  const auto one = must(plan(problem(), b200(), choices));
  EXPECT_EQ(one->barriers()[0].transaction_bytes, 128 * 64 * 2 * 2);
  EXPECT_EQ(one->barriers()[1].arrivals, 7);
  expect_contains(one->explain(), "   0  0x1111  0x000f  0x111f         7");
  choices.pair = true;
  const auto two = must(plan(problem(), b200(), choices));
  // Both CTAs' bytes on the leader: 2 x (128 rows of A + 128 of the 256 columns of B).
  EXPECT_EQ(two->barriers()[0].transaction_bytes, 2 * (128 + 128) * 64 * 2);
  EXPECT_EQ(two->barriers()[1].arrivals, 5);
  const std::string text = two->explain();
  expect_contains(text, "   0  0x1111  0x0005  0x333f         5");
  expect_contains(text, "tensor memory  512 of 512 columns allocated");
  expect_contains(text, "scheduler    2");
}

// Everything that any plan declares is at the head of the kernel, with its counts, and nothing
// else.
TEST(BlackwellPlan, TheHeadOfTheKernelSaysTheSame) {
  const auto table = barriers_in_head("blackwell/gemm.h");
  ASSERT_FALSE(table.empty());
  std::vector<std::string> declared;
  // The last one has two accumulators that share columns.
  const GemmProblem scaled = scaled_problem(DType::ue4m3, 512, 512, 512);
  for (const auto& [p, tile_n] : {std::pair{problem(), 128}, {problem(), 256}, {scaled, 256}}) {
    const auto made = must(plan(
        p, b200(), {.cluster = atom::ClusterShape{2, 1}, .tile_n = tile_n, .pair = tile_n == 256}));
    for (const pipeline::BarrierRow& row : made->barriers()) {
      declared.emplace_back(row.name);
      const auto at = std::find_if(table.begin(), table.end(),
                                   [&](const auto& entry) { return entry.first == row.name; });
      ASSERT_NE(at, table.end()) << row.name << " is not at the head of the kernel";
      const std::string& said = at->second;
      EXPECT_EQ(said.find("bytes") != std::string::npos, row.transaction_bytes > 0) << said;
      EXPECT_EQ(said.find(" stages ") != std::string::npos, row.copies == made->facts().stages)
          << said;
      const std::string name = row.name;
      const std::string count = name == "empty"        ? "(cm+cn-1), with pairs (cm/2+cn-1)"
                                : name == "tile_empty" ? "all roles of the cluster"
                                                       : " " + std::to_string(row.arrivals);
      expect_contains(said, count);
    }
  }
  for (const auto& [name, said] : table) {
    EXPECT_NE(std::find(declared.begin(), declared.end(), name), declared.end()) << said;
  }
}

}  // namespace
}  // namespace warpwright
