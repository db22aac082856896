// The Hopper kernel under many schedules and with its synchronisation broken: a sample here, the
// whole set in script/campaign (docs/log/campaign.md, docs/mutation.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "tests/kernel/check_case.h"
#include "tests/kernel/problem.h"
#include "tests/must.h"
#include "warpwright/plan/families/hopper.h"

namespace warpwright::device {
namespace {

using kernel::GemmConfig;
using tests::Ask;
using tests::Problem;

// A product small enough for hundreds of runs, by one kind of kernel: its K goes once round the
// ring of stages and on, and every CTA takes two tiles or more or, split along K, shares of some.
// Where a cluster shares a tile along K there is one, and the same for each of its CTAs.
struct Case {
  const char* name;
  bool (*has)(const GemmConfig&);
  atom::ClusterShape cluster = {1, 1};
  float beta = 0;
  int padding = 0;  // of the rows of D and C
  bool ragged = false;
  bool packed_c = false;  // the padding is only D's
  unsigned seed = 1;      // of the operands; even: A's block scales lie as copies want them
  bool static_shares =
      false;           // by a kernel that takes its tiles dynamically where it has a counter
  bool alone = false;  // CTAs that could share a tile in a cluster have tiles of their own
};

bool pingpong(const GemmConfig& c) {
  return tests::is_basic(c, kernel::Schedule::pingpong);
}
bool drawn(const GemmConfig& c) {
  return kernel::is_dynamic_persistent(c) && !kernel::is_grouped(c) && takes_turns(c);
}
bool drawn_shared(const GemmConfig& c) {
  return kernel::is_dynamic_persistent(c) && !kernel::is_grouped(c) &&
         schedule_of(c) == kernel::Schedule::cooperative;
}
bool cooperative(const GemmConfig& c) {
  return tests::is_basic(c, kernel::Schedule::cooperative);
}
template <DType T>
bool pingpong_into(const GemmConfig& c) {
  return pingpong(c) && c.result == T;
}
bool split(const GemmConfig& c) {
  return splits_k(c) && !sums_in_registers(c) && c.tile_n <= 64;
}
bool sliced(const GemmConfig& c) {
  return slices_k(c) && !is_swapped(c) && c.tile_n <= 64;
}
bool sliced_swapped(const GemmConfig& c) {
  return slices_k(c) && is_swapped(c) && c.tile_n > 64;
}
bool scaled(const GemmConfig& c) {
  return is_blockwise(c) && takes_whole_tiles(c);
}
bool scaled_split(const GemmConfig& c) {
  return is_blockwise(c) && splits_k(c);
}
bool promoted(const GemmConfig& c) {
  return sums_of(c) == kernel::Sums::promoted && !shares_cluster_k(c);
}
bool swap_ab(const GemmConfig& c) {
  return is_swapped(c) && takes_whole_tiles(c);
}
bool in_cluster(const GemmConfig& c) {
  return shares_cluster_k(c) && !sums_in_registers(c);
}
bool scaled_in_cluster(const GemmConfig& c) {
  return shares_cluster_k(c) && is_blockwise(c);
}
bool packed(const GemmConfig& c) {
  return kernel::packed_a(c) && !has_float_codes(c) && sums_of(c) == kernel::Sums::promoted &&
         takes_whole_tiles(c);
}
bool packed_in_cluster(const GemmConfig& c) {
  return kernel::packed_a(c) && !has_float_codes(c) && group_sums(c) == GroupSums::folded &&
         shares_cluster_k(c);
}
bool packed_in_passes(const GemmConfig& c) {
  return kernel::packed_a(c) && passes(c) > 1;
}
bool packed_gated(const GemmConfig& c) {
  return kernel::packed_a(c) && c.gated;
}
bool e2m1_straight(const GemmConfig& c) {
  return kernel::packed_a(c) && has_float_codes(c) && !sums_in_registers(c) && takes_whole_tiles(c);
}
bool e2m1_by_two(const GemmConfig& c) {
  return kernel::packed_a(c) && has_float_codes(c) && in_flight(c) > 1;
}
bool e2m1_bf16_in_cluster(const GemmConfig& c) {
  return kernel::packed_a(c) && operand_bits(c) == 16 && shares_cluster_k(c);
}
bool packed_by_one_in_cluster(const GemmConfig& c) {
  return kernel::packed_a(c) && c.consumer_warpgroups == 1 && shares_cluster_k(c);
}
bool gated(const GemmConfig& c) {
  return c.gated;
}
bool narrow_result(const GemmConfig& c) {
  return numeric::bits(c.result) == 8;
}

constexpr Case in_turns_with_c = {"in turns, 2x1, C", pingpong, {2, 1}, 1};

constexpr Case cases[] = {
    {"in turns", pingpong},
    {"split along K", split},
    {"in slices", sliced},
    {"block scales", scaled},
    {"block scales, A's by copies, 2x1", scaled, {2, 1}, 0, 0, false, false, 2},
    in_turns_with_c,
    {"in turns, 1x2, f16", pingpong_into<DType::f16>, {1, 2}},
    {"in turns, 2x2, f32 and C", pingpong_into<DType::f32>, {2, 2}, 1},
    {"shared, C", cooperative, {1, 1}, 1},
    {"shared, 2x1", cooperative, {2, 1}},
    {"in turns, C and D by elements", pingpong, {1, 1}, 1, 1},
    {"in turns, C, D by elements", pingpong, {1, 1}, 1, 1, false, true},
    {"split along K, 2x1, C", split, {2, 1}, 1},
    {"in slices, swapped, C", sliced_swapped, {1, 1}, 1},
    {"swapped, 1x2", swap_ab, {1, 2}},
    {"shared along K in a cluster", in_cluster},
    {"shared along K in a cluster, C", in_cluster, {1, 1}, 1},
    {"not shared in a cluster, C", in_cluster, {1, 1}, 1, 0, false, false, 1, false, true},
    {"block scales, shared along K in a cluster", scaled_in_cluster},
    {"block scales, split along K, 1x2", scaled_split, {1, 2}},
    {"promoted", promoted},
    {"gated", gated},
    {"8-bit D", narrow_result},
    {"packed weights, 2x1", packed, {2, 1}},
    {"packed weights, folded, shared along K in a cluster", packed_in_cluster},
    {"packed weights, in passes over the tokens, 2x1", packed_in_passes, {2, 1}},
    {"packed weights, gated, 2x1", packed_gated, {2, 1}},
    {"e2m1 weights, two groups of one accumulator in flight, 2x1", e2m1_straight, {2, 1}},
    {"e2m1 weights, two accumulators", e2m1_by_two},
    {"e2m1 weights and bf16 tokens, shared along K in a cluster", e2m1_bf16_in_cluster},
    {"packed weights, one warpgroup, shared along K in a cluster", packed_by_one_in_cluster},
    {"drawn, in turns, 2x1, C", drawn, {2, 1}, 1},
    {"drawn, shared, 1x2", drawn_shared, {1, 2}},
    {"drawn, but static persistent tiles, in turns, 2x1",
     drawn,
     {2, 1},
     0,
     0,
     false,
     false,
     1,
     true},
};
constexpr std::size_t sample = 2;  // outside the campaign

// Chunks of a warp's rows of a tile.
int chunks(const GemmConfig& config) {
  const int atoms = kernel::row_atoms(config) / (kernel::gated_rows(config) ? 2 : 1);
  return atoms * kernel::result_columns(config) / kernel::subtile_columns(config);
}
// C comes into and D leaves by two buffers in turn, of which no tile fills one twice.
bool buffers_alternate(const Plan& plan) {
  const TileShape tile = plan.tile();
  const bool whole = plan.tiles() * tile.m * tile.n == plan.problem.m() * plan.problem.n();
  const GemmConfig& config = hopper_config(plan);
  return plan.c_path == EpiloguePath::tma && plan.d_path == EpiloguePath::tma &&
         store_of(config) == kernel::Store::tensor && config.buffers == 2 &&
         (chunks(config) == 1 || (chunks(config) == 2 && whole));
}
bool buffer_a_tile(const Plan& plan) {
  return buffers_alternate(plan) && chunks(hopper_config(plan)) == 1;
}
// C comes by copies, and D's only chunk of a tile leaves by lanes.
bool chunk_by_lanes(const Plan& plan) {
  const GemmConfig& config = hopper_config(plan);
  return plan.c_path == EpiloguePath::tma && store_of(config) == kernel::Store::lanes &&
         config.buffers == 2 && chunks(config) == 1;
}
// The CTAs of a cluster share a tile along K: none of them loads for another.
bool loads_alone(const Plan& plan) {
  return plan.cluster_k > 1;
}
constexpr Argued argued_hopper[] = {
    no_copy_to_wait_for,
    {"bulk commit_group at kernel/epilogue.h", "isa::bulk_commit();", "dropped the first time",
     "the first store joins the second's group; C comes into a buffer once a tile, so into the "
     "first store's not before that group is committed, and then waits until it has been read",
     buffers_alternate},
    {"bulk wait_group at kernel/epilogue.h", "// the store that used the buffer last",
     "one more group may be pending",
     "with one chunk a tile C comes into the buffer of the store before the latest; the latest "
     "may still be read",
     buffer_a_tile},
    {"fence.proxy.async at kernel/epilogue.h", "// A load of C may follow into this buffer",
     "only by lane 0",
     "lane 0 asks for C, and the meeting before D's stores has told it of the other lanes' writes",
     chunk_by_lanes},
    {"syncwarp at kernel/epilogue.h", "// its pieces have been read", "dropped",
     "with one chunk a tile C comes into the buffer of the tile before the latest; the warp has "
     "met "
     "in the latest one's",
     chunk_by_lanes},
    flag_goes_back,
    {"mbarrier.arrive parts at kernel/hopper/fixup.h", "isa::mbarrier_arrive_expect(barrier_",
     "by a thread of another role",
     "a phase wants one arrival and the bytes of all parts: who announces them, and when, is the "
     "same to those who wait",
     loads_alone},
    {"mbarrier wait empty at kernel/hopper/load.h", "ring_.producer_tail(state_);", "dropped",
     "before the producer's end: its stages are released only by warps of its own CTA, which read "
     "them and end after that; nobody else signals it",
     loads_alone},
};

// Run under many schedules, not mutated: the largest cluster, and edges in both directions.
constexpr Case more_clean_cases[] = {
    {"in turns, 4x4", pingpong, {4, 4}},
    {"in turns, 2x2, f32 and C, ragged, by elements",
     pingpong_into<DType::f32>,
     {2, 2},
     1,
     5,
     true},
    {"shared, 1x2, C, ragged", cooperative, {1, 2}, 1, 0, true},
    {"split along K, 2x1, ragged, by elements", split, {2, 1}, 0, 3, true},
    {"in slices, ragged, C by elements", sliced, {1, 1}, 1, 3, true},
};

constexpr int sharers = 2;  // CTAs that share the tile of a cluster

Ask ask_for(const Case& c, const GemmConfig& config) {
  const int rows = kernel::result_rows(config) * c.cluster.m;
  const int columns = kernel::result_columns(config) * c.cluster.n;
  const int tiles_n = atom::cluster_size(c.cluster) > 4 ? 1 : 2;  // 16 tiles are enough
  Ask ask;
  ask.seed = c.seed;
  if (shares_columns(config) && !c.alone) {
    ask.m = is_swapped(config) ? columns : rows;
    ask.n = is_swapped(config) ? rows : columns;
    ask.k = sharers * (config.stages + 1) * kernel::tile_k(config);
    ask.beta = c.beta;
    ask.clusters = sharers;
    ask.padding = c.padding;
    if (c.ragged) ask.m -= 5;
    return ask;
  }
  // Some buffer of the epilogue must be filled a second time; three clusters share eight tiles.
  const int tiles_m = splits_k(config) ? 4 : std::max(2, config.buffers / chunks(config) + 1);
  ask.m = tiles_m * rows;
  ask.n = tiles_n * columns;
  if (is_swapped(config)) std::swap(ask.m, ask.n);
  if (c.ragged) ask.m -= 5;
  if (config.gated) ask.n *= 2;
  ask.k = (config.stages + 1) * kernel::tile_k(config);
  ask.cluster = c.cluster;
  ask.clusters = splits_k(config) ? 3 : tiles_n;
  ask.beta = c.beta;
  ask.padding = c.padding;
  ask.packed_c = c.packed_c;
  return ask;
}

// What the checks take of a case.
struct Prepared {
  Prepared(const tests::Instance& instance, const Case& c)
      : problem(instance, ask_for(c, instance.config)), operands(problem.operands()) {
    PlanChoices choices = problem.choices();
    if (c.static_shares) choices.tiles = kernel::TileSource::static_persistent;
    // One cluster: there is one tile.
    if (shares_cluster_k(instance.config)) choices.cluster_k = c.alone ? 1 : sharers;
    DeviceFacts facts = problem.facts();
    if (c.alone) facts.sms = 2;  // several tiles a CTA
    plan = warpwright::plan(operands, facts, choices);
  }

  Problem problem;
  GemmOperands operands;
  Result<Plan> plan = Refusal(RefusalCode::no_kernel, "not planned yet");
};

// By the first kernel of this build that a case wants; says aloud when there is none.
std::unique_ptr<Prepared> prepared(const Case& c) {
  const auto instance = tests::one_with(c.name, c.has);
  return instance ? std::make_unique<Prepared>(*instance, c) : nullptr;
}

TEST(Check, CleanUnderManySchedules) {
  std::ofstream table = campaign_table("schedules");
  table << "# The unbroken kernels under many schedules\n\n"
           "Written by `script/campaign`: eager, latest, and random schedules by seed, with all\n"
           "checks of the model on and D compared with the reference.\n\n"
           "| problem | plan | schedules | findings |\n|---|---|---:|---:|\n";
  std::vector<Case> all(std::begin(cases), std::end(cases));
  all.insert(all.end(), std::begin(more_clean_cases), std::end(more_clean_cases));
  for (const Case& c : sampled(all, 6)) {
    const auto wanted = prepared(c);
    if (wanted) expect_clean(c.name, wanted->plan, wanted->operands, 2, table);
  }
}

TEST(Mutation, ArgumentsNameLines) {
  expect_lines(argued_hopper);
}

TEST(Check, FindsAMutantAndReplaysIt) {
  const auto wanted = must(prepared(in_turns_with_c));
  const Result<Plan>& made = wanted->plan;
  const GemmOperands& operands = wanted->operands;
  ASSERT_TRUE(made) << made.reason();
  const auto mutants = must(mutants_of(*made, operands));
  ASSERT_FALSE(mutants->empty());
  auto options = tests::in_schedules(4);
  options.mode = model::Mode::random;
  for (const model::Mutation& m : *mutants) {
    if (m.at == model::SyncKind::fence_proxy_async && m.kind == model::Mutation::Kind::drop) {
      options.mutation = m;
    }
  }
  ASSERT_TRUE(options.mutation);
  const Result<CheckReport> report = check(*made, operands, options);
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->clean());
  EXPECT_EQ(report->failing, 4);
  options.replay = report->findings.front().first;
  options.mode.reset();
  const Result<CheckReport> again = check(*made, operands, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->schedules, 1);
  EXPECT_EQ(again->findings.front().finding.sentence, report->findings.front().finding.sentence);
  // The fence is missing whatever the order of events: no decision matters.
  const Result<Reduction> reduced = must(reduce(*made, operands, *options.replay, options));
  EXPECT_TRUE(reduced->kept.empty());
}

TEST(Check, DoesNotDependOnTheJobs) {
  const auto wanted = must(prepared(in_turns_with_c));
  const Result<Plan>& made = wanted->plan;
  const GemmOperands& operands = wanted->operands;
  ASSERT_TRUE(made) << made.reason();
  auto options = tests::in_schedules(6);
  const auto mutants = must(mutants_of(*made, operands));
  ASSERT_GT(mutants->size(), 20U);
  options.mutation = (*mutants)[20];
  const Result<CheckReport> one = check(*made, operands, options);
  options.jobs = 3;
  const Result<CheckReport> three = check(*made, operands, options);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->failing, three->failing);
  ASSERT_EQ(one->findings.size(), three->findings.size());
  for (std::size_t i = 0; i < one->findings.size(); ++i) {
    EXPECT_EQ(one->findings[i].finding.sentence, three->findings[i].finding.sentence);
    EXPECT_EQ(one->findings[i].first, three->findings[i].first);
    EXPECT_EQ(one->findings[i].schedules, three->findings[i].schedules);
  }
}

TEST(Check, SchedulesHaveNames) {
  for (const char* text : {"eager", "latest", "0", "17", "starve9"}) {
    const auto schedule = must(parse_schedule(text), text);
    EXPECT_EQ(schedule->text(), text);
  }
  EXPECT_FALSE(parse_schedule("soon"));
  EXPECT_FALSE(parse_schedule("-1"));
  EXPECT_FALSE(parse_schedule(""));
  auto options = tests::in_schedules(4);
  options.seed = 9;
  const std::vector<Schedule> all = schedules_of(options);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].text() + " " + all[1].text() + " " + all[2].text() + " " + all[3].text(),
            "eager latest starve9 9");
  options.mode = model::Mode::latest;
  EXPECT_EQ(schedules_of(options).size(), 1U);
}

// In the sample two problems, two schedules and some mutants; none may survive in either set.
TEST(Mutation, NoMutantOfTheHopperKernelSurvives) {
  std::ofstream table = campaign_table("mutation");
  table << "# Mutants of the Hopper GEMM kernel\n\n"
           "Written by `script/campaign`. Every synchronising statement that a run executes is\n"
           "broken in every way there is, one at a time, and the model runs under up to 64\n"
           "schedules until a check speaks (its code, and after how many schedules). A mutant is\n"
           "*equivalent* when a program finds that under all 64 schedules every access to memory\n"
           "comes after the same other accesses as in the unbroken kernel\n"
           "(`warpwright/model/order/relation.h`), or for the reason given in its row.\n"
           "`warpwright check gemm ... --mutate` prints the same\n"
           "table for any product.\n";
  Mutants mutants(argued_hopper);
  const std::size_t last = campaign() ? std::size(cases) : sample;
  for (const Case& c : part_of(std::vector<Case>(cases, cases + last))) {
    const auto wanted = prepared(c);
    if (!wanted) continue;
    mutants.expect_all_killed(c.name, wanted->plan, wanted->operands, 2, table);
  }
  mutants.expect_all_needed();
}

}  // namespace
}  // namespace warpwright::device
