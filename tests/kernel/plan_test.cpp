// Plans: what is chosen, what the caller chose, and what a launch refuses (the rules on problems
// are tested in tests/plan/).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kernel/kernel_head.h"
#include "tests/kernel/problem.h"
#include "tests/kernel/table.h"
#include "tests/must.h"
#include "tests/problem_changes.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/simulation/model.h"

namespace warpwright {
namespace {

// Operands of 64 x 80 x 48 that are legal, over memory of their own.
struct Legal {
  alignas(64) std::uint16_t a[64 * 48] = {};
  alignas(64) std::uint16_t b[80 * 48] = {};
  alignas(64) std::uint16_t c[64 * 80] = {};
  alignas(64) std::uint16_t d[64 * 80] = {};
  GemmOperands operands() {
    GemmOperands o;
    o.a = matrix(a, DType::bf16, 64, 48);
    o.b = matrix(b, DType::bf16, 80, 48);
    o.c = matrix(c, DType::bf16, 64, 80);
    o.d = matrix(d, DType::bf16, 64, 80);
    o.beta = 0;
    return o;
  }
};

std::string refusal(const GemmProblem& p, const PlanChoices& choices = {},
                    const DeviceFacts& facts = model_facts()) {
  const auto made = plan(p, facts, choices);
  return made.ok() ? std::string() : made.reason();
}

void expect_says(const std::string& sentence, const std::vector<std::string>& parts) {
  ASSERT_FALSE(sentence.empty()) << "not refused; expected to hear of " << parts.front();
  for (const std::string& part : parts) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "no \"" << part << "\" in: " << sentence;
  }
}

TEST(PlanTest, StridesOfASingleRow) {
  // The pitch of one row is never walked; whatever it is, there is a plan that launches or a
  // refusal.
  static Legal legal;
  for (const std::int64_t stride :
       {std::int64_t{48}, std::int64_t{0}, std::int64_t{8}, std::int64_t{-8}, std::int64_t{1} << 39,
        std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::min()}) {
    SCOPED_TRACE(stride);
    GemmOperands o = legal.operands();
    o.a.rows = o.d.rows = 1;
    o.a.row_stride = stride;
    const auto made = plan(o, model_facts());
    if (made.ok()) {
      const auto report = must(device::launch_on_model(*made, o));
      EXPECT_TRUE(report->clean()) << report->text();
    }
    GemmOperands p = legal.operands();
    p.a.rows = p.d.rows = 1;
    p.d.row_stride = stride;
    const auto other = plan(p, model_facts());
    if (other.ok()) {
      const auto report = must(device::launch_on_model(*other, p));
      EXPECT_TRUE(report->clean()) << report->text();
    }
  }
}

TEST(PlanTest, RefusedChoicesAndDevices) {
  const GemmProblem good = packed_problem(256, 256, 64, DType::bf16, DType::bf16);
  expect_says(refusal(good, {.cluster = atom::ClusterShape{3, 1}, .tile_n = {}}),
              {"3x1", "1x1", "4x4"});
  expect_says(refusal(good, {.cluster = {}, .tile_n = 184}), {"184", "hopper_bf16_bf16_128x256"});
  expect_says(refusal(good, {.kernel = "hopper_bf16_bf16_1x1"}),
              {"no kernel \"hopper_bf16_bf16_1x1\"", "the nearest is hopper_"});
  expect_says(refusal(good, {.cluster = atom::ClusterShape{4, 4}, .tile_n = {}}, model_facts(8)),
              {"16", "8", "model"});
  DeviceFacts other = *known_facts("b200");
  other.architecture = 110;
  expect_says(refusal(good, {}, other), {"b200", "sm_120", "sm_90", "sm_100"});
}

TEST(PlanTest, SameArgumentsSamePlan) {
  for (const std::int64_t m : {1, 77, 128, 4096}) {
    for (const std::int64_t n : {1, 130, 8192}) {
      const GemmProblem p = packed_problem(m, n, 512, DType::bf16, DType::bf16);
      const auto first = plan(p, *known_facts("h200"));
      const auto second = plan(p, *known_facts("h200"));
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_EQ(first->name(), second->name());
      EXPECT_EQ(first->explain(), second->explain());
      EXPECT_EQ(first->raster, second->raster);
      EXPECT_EQ(first->ctas, second->ctas);
      // The grid covers the output and is whole clusters that fit.
      EXPECT_EQ(first->ctas % atom::cluster_size(first->cluster), 0);
      EXPECT_GE(first->ctas, 1);
      EXPECT_LE(first->ctas, 132);
      const bool swap_ab = first->facts().swap_ab;
      EXPECT_GE(std::int64_t{first->raster.tiles_m} * first->cluster.m * first->tile().m,
                swap_ab ? n : m);
      EXPECT_GE(std::int64_t{first->raster.tiles_n} * first->cluster.n * first->tile().n,
                swap_ab ? m : n);
    }
  }
}

TEST(PlanTest, ChoicesAreKept) {
  const GemmProblem problem = packed_problem(1000, 1000, 256, DType::bf16, DType::bf16);
  for (const atom::ClusterShape cluster : kernel::supported_clusters) {
    for (const tests::Instance& i : tests::all_with(tests::is_plain)) {
      if (stored_a(i.config) != DType::bf16 || i.config.result != DType::bf16) continue;
      if (!tests::takes(i.config, cluster)) continue;
      SCOPED_TRACE(i.name);
      PlanChoices choices = tests::only(i);
      choices.cluster = cluster;
      const auto made = must(plan(problem, model_facts(16), choices));
      EXPECT_EQ(made->cluster, cluster);
      EXPECT_EQ(hopper_config(*made), i.config);
      EXPECT_EQ(made->kernel, i.name);
      // Said by its properties instead of its name.
      const auto other = must(plan(problem, model_facts(16),
                                   {.tile_m = i.config.tile_m,
                                    .tile_n = i.config.tile_n,
                                    .schedule = schedule_of(i.config),
                                    .swap_ab = false}));
      EXPECT_EQ(other->tile().m, i.config.tile_m);
      EXPECT_EQ(other->tile().n, i.config.tile_n);
      EXPECT_EQ(schedule_of(hopper_config(*other)), schedule_of(i.config));
      EXPECT_FALSE(other->facts().swap_ab);
    }
  }
}

TEST(PlanTest, TilesAreDrawnBeyondOneWave) {
  using kernel::TileSource;
  const DeviceFacts h200 = *known_facts("h200");
  int drawn = 0;
  for (const tests::Instance& i : tests::instances()) {
    const kernel::GemmConfig& c = i.config;
    if (kernel::packed_a(c) || !(operand_a(c) == operand_b(c)) ||
        operand_a(c).major != atom::Major::k || c.gated || c.quantises || sums_in_registers(c)) {
      continue;
    }
    for (const std::int64_t columns : {132, 133}) {  // tiles
      const std::int64_t m = is_swapped(c) ? columns * c.tile_n : c.tile_m;
      const std::int64_t n = is_swapped(c) ? c.tile_m : columns * c.tile_n;
      const GemmProblem p = packed_problem(m, n, 4096, stored_a(c), c.result);
      PlanChoices choices = tests::only(i);
      choices.cluster = atom::ClusterShape{1, 1};
      const auto made = must(plan(p, h200, choices));
      SCOPED_TRACE(made->name() + " " + std::to_string(columns));
      const bool draws = kernel::is_dynamic_persistent(c) && made->ctas < columns;
      drawn += draws ? 1 : 0;
      EXPECT_EQ(made->tile_source,
                draws ? TileSource::dynamic_persistent : TileSource::static_persistent);
      if (!splits_k(c) && !slices_k(c)) {
        EXPECT_EQ(made->flag_bytes, draws ? 128 : 0);
        EXPECT_EQ(made->workspace_bytes, made->flag_bytes);
      }
      const std::string text = made->explain();
      EXPECT_EQ(text.find("tiles drawn from a counter") != std::string::npos, draws) << text;
      for (const char* part : {"scheduler    3 ", "ring of tiles", "tile_full", "tile_empty"}) {
        EXPECT_EQ(text.find(part) != std::string::npos, kernel::is_dynamic_persistent(c))
            << part << text;
      }
      choices.tiles = TileSource::static_persistent;
      const auto shares = must(plan(p, h200, choices));
      EXPECT_EQ(shares->tile_source, TileSource::static_persistent);
      choices.tiles = TileSource::dynamic_persistent;
      const auto forced = plan(p, h200, choices);
      ASSERT_EQ(forced.ok(), kernel::is_dynamic_persistent(c));
      if (forced.ok()) {
        EXPECT_EQ(forced->tile_source, TileSource::dynamic_persistent);
      } else {
        EXPECT_NE(forced.reason().find("dynamic persistent tiles"), std::string::npos)
            << forced.reason();
      }
    }
  }
  EXPECT_GT(drawn, 0);
}

TEST(PlanTest, GridsOfSplitTiles) {
  const auto instance =
      tests::one_with("K split", [](const kernel::GemmConfig& c) { return splits_k(c); });
  if (!instance) return;
  const kernel::GemmConfig& c = instance->config;
  const DType a = is_swapped(c) ? operand_b(c).type : stored_a(c);
  const GemmProblem problem = packed_problem(16, 4096, 4096, a, c.result);
  PlanChoices choices = tests::only(*instance);
  for (const int ctas : {1, 7, 96, 132}) {
    choices.ctas = ctas;
    choices.cluster = atom::ClusterShape{1, 1};
    const auto made = must(plan(problem, *known_facts("h200"), choices));
    EXPECT_EQ(made->ctas, ctas);
    EXPECT_GT(made->flag_bytes, 0);
    // A flag a consumer warp, and a tile of floats a CTA.
    EXPECT_GE(made->workspace_bytes, std::int64_t{4} * ctas * c.tile_m * c.tile_n);
    EXPECT_EQ(made->workspace_bytes % 256, 0);
  }
  choices.ctas = 0;
  expect_says(refusal(problem, choices, *known_facts("h200")), {"a grid of 0 CTAs"});
  choices.ctas = 5000;
  expect_says(refusal(problem, choices, *known_facts("h200")), {"a grid of 5000 CTAs"});
}

// Few tiles and a long K: all SMs share them, but where a row's bits may depend on nothing.
TEST(PlanTest, SlicesOfFewTilesOfALongK) {
  const auto sliced = [](const Plan& plan) { return slices_k(hopper_config(plan)); };
  const DeviceFacts h200 = *known_facts("h200");
  const GemmProblem problem = packed_problem(469, 64, 11568, DType::bf16, DType::bf16);
  const auto made = must(plan(problem, h200));
  EXPECT_TRUE(sliced(*made)) << made->name();
  EXPECT_GT(made->ctas, 100);
  EXPECT_EQ(made->ctas % made->tiles(), 0);
  EXPECT_GE(made->flag_bytes, 128 * made->tiles());
  const TileShape tile = made->tile();
  EXPECT_EQ(made->workspace_bytes,
            made->flag_bytes + std::int64_t{4} * tile.m * tile.n * made->ctas);
  const std::string words = std::to_string(made->ctas / made->tiles()) + " CTAs share a tile along";
  EXPECT_NE(made->explain().find(words), std::string::npos) << made->explain();
  PlanChoices choices;
  choices.batch_invariant = true;
  const auto invariant = must(plan(problem, h200, choices));
  EXPECT_FALSE(sliced(*invariant)) << invariant->name();
  choices.kernel = made->kernel;
  expect_says(refusal(problem, choices, h200), {made->kernel.c_str()});
  // Every tile is shared by as many.
  choices.batch_invariant = false;
  choices.ctas = made->ctas + 1;
  expect_says(refusal(problem, choices, h200), {"a grid of"});
  // A tile for every SM.
  const auto whole = must(plan(packed_problem(4096, 4096, 4096, DType::bf16, DType::bf16), h200));
  EXPECT_FALSE(sliced(*whole)) << whole->name();
}

TEST(PlanTest, EmptyProblems) {
  for (const auto& [m, n, k] : {std::tuple{0, 64, 64}, {64, 0, 64}, {0, 0, 0}}) {
    const auto made = must(plan(packed_problem(m, n, k, DType::bf16, DType::bf16), model_facts()));
    EXPECT_EQ(made->ctas, 0);
    EXPECT_EQ(made->tiles(), 0);
    EXPECT_FALSE(made->explain().empty());
  }
  const auto no_k = must(plan(packed_problem(64, 64, 0, DType::bf16, DType::bf16), model_facts()));
  EXPECT_GT(no_k->ctas, 0);
}

// The rows are in tests/plan/rules_test.cpp; the model refuses what they say.
TEST(PlanTest, LaunchesRefuseOtherOperands) {
  static Legal legal;
  GemmOperands o = legal.operands();
  const auto made = must(plan(o, model_facts()));
  o.alpha = 0;
  EXPECT_TRUE(device::launch_on_model(*made, o).ok());
  o.d.rows = o.a.rows = 63;
  ASSERT_TRUE(mismatch(*made, o));
  EXPECT_EQ(device::launch_on_model(*made, o).reason(), mismatch(*made, o)->reason);
}

// A plan by that kernel, of a problem that it serves.
Result<Plan> plan_of(const tests::Instance& i, atom::ClusterShape cluster) {
  tests::Ask ask = tests::extents(i, 2, 1);
  ask.k = 512;
  ask.cluster = cluster;
  PlanChoices choices = tests::only(i);
  choices.cluster = cluster;
  return plan(tests::Problem(i, ask).operands(), model_facts(16), choices);
}

TEST(ExplainTest, TablesOfRolesAndBarriers) {
  for (const atom::ClusterShape cluster : {atom::ClusterShape{1, 1}, {2, 2}, {4, 4}}) {
    for (const tests::Instance& i : tests::instances()) {
      if (!tests::takes(i.config, cluster)) continue;
      SCOPED_TRACE(i.name);
      const auto made = must(plan_of(i, cluster));
      const std::string text = made->explain();
      const kernel::GemmConfig& c = hopper_config(*made);
      expect_says(text, {"consumer 0", made->name(), std::to_string(kernel::smem_map(c).bytes)});
      EXPECT_NE(text.find("\nproducer"), std::string::npos) << text;
      EXPECT_EQ(text.find("\nconsumer 1") != std::string::npos, c.consumer_warpgroups > 1);
      EXPECT_EQ(text.find("\nscales ") != std::string::npos, is_blockwise(c));
      const auto rows = made->barriers();
      ASSERT_GE(rows.size(), 3U);
      EXPECT_EQ(rows[0].arrivals, is_blockwise(c) ? 2 : 1);
      const auto& packed = made->problem.packed;
      const int span = 128 * k_atoms(c);
      const int packed_tiles = c.tile_m / 64 * (tile_k(c) / packed::kTileK);
      const int of_a = packed ? packed_tiles * packed::tile_bytes(packed->format) : c.tile_m * span;
      EXPECT_EQ(rows[0].transaction_bytes, of_a + c.tile_n * span);
      EXPECT_EQ(rows[0].copies, c.stages);
      // One of a warp that reads scales or codes itself, else one of a warpgroup.
      const bool reads = is_blockwise(c) || packed;
      const int readers = kernel::warps_per_stage(c) / (reads ? 1 : 4);
      EXPECT_EQ(rows[1].arrivals, (cluster.m + cluster.n - 1) * readers);
      EXPECT_EQ(rows[1].copies, c.stages);
      EXPECT_EQ(rows[2].copies, c.buffers * kernel::consumer_warps(c));
      // Each is a line of the text, with its numbers in this order.
      for (const pipeline::BarrierRow& row : rows) {
        std::istringstream lines(text);
        std::string line;
        bool found = false;
        while (std::getline(lines, line)) {
          std::istringstream words(line);
          std::string name;
          int copies = 0;
          int arrivals = 0;
          int bytes = 0;
          int parity = 0;
          if (!(words >> name >> copies >> arrivals >> bytes >> parity) || name != row.name) {
            continue;
          }
          found = true;
          EXPECT_EQ(copies, row.copies);
          EXPECT_EQ(arrivals, row.arrivals);
          EXPECT_EQ(bytes, row.transaction_bytes);
          EXPECT_EQ(parity, pipeline::first_parity(row));
          const bool is_empty = name == "empty" || name == "tile_empty";
          EXPECT_EQ(line.find("1, passes") != std::string::npos, is_empty) << line;
          EXPECT_EQ(line.find("1, 0 ") != std::string::npos, name == "turn") << line;
        }
        EXPECT_TRUE(found) << row.name << " is not in\n" << text;
      }
    }
  }
}

TEST(ExplainTest, TheHeadOfTheKernelSaysTheSame) {
  const auto table = barriers_in_head("hopper/gemm.h");
  ASSERT_FALSE(table.empty());
  // Everything that any plan declares is in the head, and nothing else.
  std::vector<std::string> declared;
  for (const tests::Instance& i : tests::instances()) {
    SCOPED_TRACE(i.name);
    const auto made = must(plan_of(i, {1, 1}));
    for (const pipeline::BarrierRow& row : made->barriers()) {
      declared.emplace_back(row.name);
      const auto at = std::find_if(table.begin(), table.end(),
                                   [&](const auto& entry) { return entry.first == row.name; });
      ASSERT_NE(at, table.end()) << row.name << " is not at the head of the kernel";
      const std::string& said = at->second;
      // "1 + bytes of ..." where copies signal, the plain count or its formula otherwise.
      EXPECT_EQ(said.find("bytes") != std::string::npos, row.transaction_bytes > 0) << said;
      if (row.transaction_bytes > 0) {
        // "1 (+1, +2)": one more arrival is that of the scales, two more those of the warps that
        // fetch tokens by index, which no kernel of this list has.
        const bool scales = std::string(row.name) == "full";
        EXPECT_EQ(row.arrivals, scales && is_blockwise(hopper_config(*made)) ? 2 : 1);
        const std::string of_answers = " 1 + " + std::to_string(row.transaction_bytes) + " bytes";
        EXPECT_NE(said.find(scales                                 ? " 1 (+1, +2) + bytes"
                            : std::string(row.name) == "tile_full" ? of_answers
                                                                   : " 1 + bytes"),
                  std::string::npos)
            << said;
      }
      const bool by_stage = said.find(" stages ") != std::string::npos;
      EXPECT_EQ(by_stage, std::string(row.name) == "full" || std::string(row.name) == "empty");
      if (by_stage) {
        EXPECT_EQ(row.copies, made->facts().stages) << said;
      }
      const bool by_formula = said.find("(cm+cn-1) *") != std::string::npos;
      EXPECT_EQ(by_formula, std::string(row.name) == "empty") << said;
      if (!by_formula && row.transaction_bytes == 0) {
        const std::string count = std::string(row.name) == "tile_empty"
                                      ? " all roles, in the first CTA"
                                      : " " + std::to_string(row.arrivals) + " ";
        EXPECT_NE(said.find(count), std::string::npos) << said;
      }
    }
  }
  for (const auto& [name, said] : table) {
    EXPECT_NE(std::find(declared.begin(), declared.end(), name), declared.end()) << said;
  }
}

}  // namespace
}  // namespace warpwright
