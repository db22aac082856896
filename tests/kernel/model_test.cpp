// Products on the model: kernels of every family, whole and in groups, by rows of what is asked and
// by chance. What a row gives is in problem.h; a failure prints it with its seed.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/kernel/problems.h"
#include "tests/kernel/rows.h"
#include "tests/must.h"

namespace warpwright::tests {
namespace {

using kernel::Schedule;
using model::Mode;

// What `say(i)` says of 0 to count: nothing. Threads share them.
template <class Say>
void expect_nothing(std::size_t count, const Say& say) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      const std::string said = say(i);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(said, "");
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < all_threads(); ++i) threads.emplace_back(work);
  work();
}

void expect_right(const Rows& rows) {
  ASSERT_FALSE(rows.empty()) << "this build has no kernel for it";
  expect_nothing(rows.size(), [&](std::size_t i) {
    Problem problem(rows[i].instance, rows[i].ask);
    const std::string said = problem.run(scheduled(rows[i].mode, rows[i].ask.seed));
    return said.empty() ? said : problem.text() + ": " + said;
  });
}

// However things fall, D is right and its bytes are the same.
void expect_same_in_every_mode(const Rows& rows) {
  ASSERT_FALSE(rows.empty()) << "this build has no kernel for it";
  expect_nothing(rows.size(), [&](std::size_t i) {
    Problem problem(rows[i].instance, rows[i].ask);
    std::vector<std::byte> first;
    for (const Mode mode : {Mode::eager, Mode::random, Mode::latest}) {
      if (mode == Mode::latest && !campaign()) continue;
      const std::string said = problem.run(scheduled(mode, 11));
      if (!said.empty()) return problem.text() + ": " + said;
      if (first.empty()) first = problem.d_bytes();
      if (first != problem.d_bytes()) return problem.text() + ": other bytes in another schedule";
    }
    return std::string();
  });
}

// A row for each of the asks and kernels.
Rows by_each(const Instances& all, const std::vector<Ask>& asks, Mode mode) {
  Rows rows;
  for (const Instance& i : all) {
    for (Ask ask : asks) {
      if (!takes(i, ask.cluster)) ask.cluster = smallest_cluster(i);
      rows.push_back({i, ask, mode});
    }
  }
  return rows;
}

// --- every kernel --------------------------------------------------------------------------------

// For Blackwell a part: each of them multiplies in the problems by seeds.
const Instances& whole_instances() {
  static const Instances all = [] {
    Instances found = drawn_instances(true);
    std::size_t of_blackwell = 0;
    std::erase_if(found, [&](const Instance& i) {
      if (i.facts->grouped || kernel::is_grouped(i.config)) return true;
      if (is_blackwell(i)) return of_blackwell++ % 7 != 0 && !campaign();
      // K of operands that copies pad is a multiple of 128: the problems by seeds draw such.
      return is_padded_in_shared(i.a, i.b) || is_padded_in_shared(i.b, i.a);
    });
    return found;
  }();
  return all;
}

TEST(EveryKernel, Multiplies) {
  expect_right(sampled(plain_rows(whole_instances()), 4));
}

TEST(EveryKernel, ClustersBatchesAndScales) {
  expect_right(sampled(cluster_rows(whole_instances()), 13));
}

TEST(EveryKernel, BatchesThatShareTheirMatrices) {
  expect_right(sampled(shared_rows(whole_instances()), 12));
}

TEST(EveryKernel, WithoutAProduct) {
  expect_right(sampled(empty_rows(whole_instances()), 16));
}

TEST(EveryKernel, EpiloguesOnOddShapes) {
  expect_right(sampled(epilogue_rows(whole_instances()), 9));
}

TEST(EveryKernel, OtherSchedules) {
  Rows rows;
  for (const Instance& i : whole_instances()) {
    rows.push_back({i, tiles_of(i, 1, 201, 4), Mode::eager});
    rows.push_back({i, tiles_of(i, 1, 202, 4), Mode::random});
  }
  expect_right(sampled(rows, 9));  // both modes, and other kernels than the other tests
}

// Nothing to multiply, or one of a thing; without tiles; alpha 0, with A and B full of NaN.
TEST(EveryKernel, Degenerate) {
  std::vector<Ask> asks;
  for (const auto& [m, n, k] :
       {std::tuple{1, 1, 1}, {1, 300, 8}, {300, 1, 8}, {5, 7, 0}, {0, 8, 16}, {8, 0, 16}}) {
    for (const float beta : {0.0F, 2.0F}) asks.push_back({.m = m, .n = n, .k = k, .beta = beta});
  }
  for (const float beta : {0.0F, 1.0F}) {
    asks.push_back({.m = 140, .n = 40, .k = 64, .alpha = 0, .beta = beta});
  }
  const Instances plain = all_with([](const kernel::GemmConfig& c) {
    return is_basic(c, Schedule::pingpong) || is_basic(c, Schedule::cooperative);
  });
  Instances some;
  for (const Instance& i : joined(plain, blackwell_instances())) {
    const bool other = i.facts->grouped || i.config.gated || has_feature(i, "stream-K");
    if (other) continue;  // those take other products
    if (stored_a(i.config) == DType::bf16 && i.config.result == DType::bf16) some.push_back(i);
  }
  expect_right(sampled(by_each(some, asks, Mode::random), 6));
}

// By seeds: as many problems as an eighth of the kernels here, others every time; 100,000 in
// script/campaign.
constexpr double most = 3e6;  // multiplications of one

TEST(Problems, ByTheSeedsOfTheRun) {
  const std::uint64_t first = tests::run_seed();
  const std::size_t count = drawn_instances(true).size() / 8;
  std::printf("%zu problems by the seeds from %llu on\n", count,
              static_cast<unsigned long long>(first));
  expect_nothing(count, [first](std::size_t i) {
    const Seeded problem(first + i, most, true);
    const std::string said = problem.fault_on_model();
    return said.empty() ? said : problem.text() + ": " + said;
  });
}

// A seed is one problem, and seeds draw all that there is to draw.
TEST(Problems, SeedsNameThem) {
  std::set<std::string> kernels;
  std::set<Activation> activations;
  std::set<Scaling> scalings;
  int batches = 0, in_place = 0, shifted = 0, clusters = 0, twice = 0, in_groups = 0, larger = 0;
  constexpr int count = 3000;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Seeded p(seed, most, true);
    ASSERT_EQ(p.text(), Seeded(seed, most, true).text());
    const Ask& ask = p.ask();
    kernels.insert(p.instance().name);
    activations.insert(ask.activation);
    scalings.insert(ask.scaling);
    twice += p.twice() ? 1 : 0;
    in_groups += p.in_groups() ? 1 : 0;
    batches += ask.batch > 1 ? 1 : 0;
    in_place += ask.in_place ? 1 : 0;
    shifted += ask.shift > 0 ? 1 : 0;
    clusters += atom::cluster_size(ask.cluster) > 1 ? 1 : 0;
    larger += static_cast<double>(ask.m) * ask.n * ask.k > 2 * most ? 1 : 0;
  }
  std::set<std::string> all;
  for (const Instance& i : drawn_instances(true)) all.insert(i.name);
  EXPECT_EQ(kernels, all);
  EXPECT_EQ(activations.size(), std::ranges::count_if(all_activations, is_of_products));
  EXPECT_GE(scalings.size(), 5U);
  for (const int often : {batches, in_place, shifted, clusters, twice, in_groups}) {
    EXPECT_GT(often, count / 50);
  }
  EXPECT_LT(larger, count / 20);
}

// --- Hopper --------------------------------------------------------------------------------------

Instances basic(Schedule schedule) {
  return all_with([=](const kernel::GemmConfig& c) {
    return is_basic(c, schedule) && numeric::bits(stored_a(c)) == 16;
  });
}
Instances of_bf16(Instances all) {
  std::erase_if(all, [](const Instance& i) {
    return stored_a(i.config) != DType::bf16 || i.config.result != DType::bf16;
  });
  return all;
}
const Instances in_turns = of_bf16(basic(Schedule::pingpong));

TEST(HopperOnTheModel, EveryTypeInTurnsAndShared) {
  const Ask ask{.m = 130, .n = 136, .k = 72, .beta = 0.5F, .seed = 7};
  expect_right(by_each(joined(basic(Schedule::pingpong), basic(Schedule::cooperative)), {ask},
                       Mode::random));
}

TEST(HopperOnTheModel, EveryClusterInEveryMode) {
  std::vector<Ask> asks;
  for (const atom::ClusterShape cluster : kernel::supported_clusters) {
    if (cluster == atom::ClusterShape{4, 4}) continue;
    asks.push_back({.m = 257, .n = 300, .k = 200, .cluster = cluster, .beta = -1, .padding = 4});
  }
  const Instances all = joined(in_turns, of_bf16(basic(Schedule::cooperative)));
  expect_same_in_every_mode(sampled(by_each(all, asks, Mode::eager), 7));
}

TEST(HopperOnTheModel, SixteenCtas) {
  Ask ask{.m = 515, .n = 515, .k = 200, .cluster = {4, 4}, .padding = 5};
  expect_right(by_each(in_turns, {ask}, Mode::latest));
  ask.m = 90;
  expect_right(by_each(in_turns, {ask}, Mode::random));
}

// Without a k_tile no wgmma brings the lanes of a warp together: those that wait for their turn
// must not fall behind the one that gives it. Found by problems by seed.
TEST(HopperOnTheModel, TurnsWithoutAKBlock) {
  std::vector<Ask> asks;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    asks.push_back({.m = 200, .n = 300, .clusters = 1, .beta = 1, .seed = seed});
  }
  expect_right(by_each(in_turns, asks, Mode::starve));
}

TEST(HopperOnTheModel, OneSeedOneRun) {
  ASSERT_FALSE(in_turns.empty());
  const Problem problem(in_turns.front(), {.m = 140, .n = 200, .k = 150});
  const auto made = must(problem.planned());
  std::vector<std::int64_t> switches;
  for (const std::uint64_t seed : {5, 5, 6}) {
    const auto report =
        must(device::launch_on_model(*made, problem.operands(), scheduled(Mode::random, seed)));
    EXPECT_EQ(report->text(), "");
    EXPECT_EQ(report->statistics.tiles, made->tiles());
    switches.push_back(report->statistics.fiber_switches);
  }
  EXPECT_EQ(switches[0], switches[1]);
  EXPECT_NE(switches[0], switches[2]);
}

// C is D: no CTA of a cluster that shares a tile reads what another one stores. Found by problems
// by seed.
TEST(HopperOnTheModel, InPlaceWhereCtasShareATile) {
  Rows rows;
  for (const Instance& i : all_with([](const kernel::GemmConfig& c) {
         return shares_columns(c) && !c.gated && numeric::bits(c.result) > 8;
       })) {
    for (const int padding : {0, 3}) {
      rows.push_back({i, tiles_of(i, 0, 301, 4)});
      rows.back().ask.beta = 1;
      rows.back().ask.in_place = true;
      rows.back().ask.padding = padding;
    }
  }
  expect_right(sampled(rows, 3));
}

// CTAs that add up a tile in slices wait for none that has not begun: they end on fewer SMs than
// CTAs, down to one, and with an SM held by another grid, and D has the same bits.
TEST(HopperOnTheModel, SlicesEndOnAnySms) {
  for (const Instance& i : sampled(all_with([](const auto& c) { return slices_k(c); }), 3)) {
    Ask ask = tiles_of(i, 0, 77, 5);
    ask.k = 11 * step_k(i);
    ask.clusters = 5;
    Problem problem(i, ask);
    auto made = must(problem.planned());
    ASSERT_GE(made->ctas, 4 * made->tiles()) << made->name();
    ASSERT_EQ(problem.run(made), "") << problem.text();
    const std::vector<std::byte> bits = problem.d_bytes();
    Plan held = *made;
    for (const int sms : {1, 2, 3, 5, made->ctas}) {
      held.device.sms = sms;
      for (const Mode mode : {Mode::eager, Mode::latest, Mode::random, Mode::starve, Mode::timed}) {
        device::ModelOptions how = scheduled(mode, static_cast<std::uint64_t>(sms));
        how.occupied_sm = sms - 1;
        how.launches = mode == Mode::random ? 2 : 1;
        SCOPED_TRACE(problem.text() + " on " + std::to_string(sms) + " SMs, mode " +
                     std::to_string(static_cast<int>(mode)));
        ASSERT_EQ(problem.run(Result<Plan>(held), how), "");
        ASSERT_EQ(problem.d_bytes(), bits);
      }
    }
  }
}

// Any number of CTAs a tile, more than it has columns of eight, too: the sums are of the same parts
// in the same order, whatever the schedule.
TEST(HopperOnTheModel, SlicesOfAnyNumberOfCtas) {
  for (const Instance& i : sampled(all_with([](const auto& c) { return slices_k(c); }), 3)) {
    for (const int sharers : {1, 2, 3, 6, 17, 41}) {
      Ask ask = tiles_of(i, 0, 91, 5);
      ask.k = 41 * step_k(i) - 8;
      ask.m = ask.n = 8 * sharers % 37 + 9;
      Problem problem(i, ask);
      PlanChoices choices = problem.choices();
      choices.ctas = sharers;
      const auto made = must(plan(problem.operands(), model_facts(64), choices));
      std::vector<std::byte> bits;
      for (const std::uint64_t seed : {0, 1, 2}) {
        SCOPED_TRACE(problem.text() + ", " + std::to_string(sharers) + " CTAs");
        ASSERT_EQ(problem.run(made, scheduled(seed == 0 ? Mode::eager : Mode::random, seed)), "");
        if (seed == 0) bits = problem.d_bytes();
        ASSERT_EQ(problem.d_bytes(), bits);
      }
    }
  }
}

// The comparison itself can fail: one wrong element, one element left out, one byte beside them.
TEST(HopperOnTheModel, WrongResultsAreSeen) {
  Problem problem(instances().front(), {.m = 133, .n = 20, .k = 40, .seed = 7});
  EXPECT_NE(problem.fault().find("D[0, 0, 0] is"), std::string::npos) << "D is still empty";
  ASSERT_EQ(problem.run(), "");
  const double right = problem.d().get(0, 3, 11);
  problem.d().set(0, 3, 11, right + 0.125);
  expect_contains(problem.fault(), "D[0, 3, 11] is");
  problem.d().set(0, 3, 11, right);
  ASSERT_EQ(problem.fault(), "");
  problem.d().memory()[255] = std::byte{0};
  EXPECT_EQ(problem.fault(), "1 bytes beside the elements of D were written");
}

// --- packed weights ------------------------------------------------------------------------------

// Groups, types of scales, encodings and zero points are chosen when the kernel runs: each by every
// kernel, whole and in groups.
TEST(PackedOnTheModel, EveryFormat) {
  Rows rows;
  for (const Instance& i : joined(instances(), grouped_instances())) {
    if (!kernel::packed_a(i.config)) continue;
    for (unsigned format = 0; format < 18; ++format) {
      const int k = 128 * 2 + 16 * static_cast<int>(format % 5);
      Ask ask{.m = i.config.tile_n / 2 + 3, .n = 64 + 128 + 7, .k = k};
      if (i.config.gated) ask.n = 3 * gated_unit(i.config);
      if (kernel::is_grouped(i.config)) ask = grouped_ask(i, {0, 9, 9, 60, 61}, 200, k);
      ask.seed = format;
      rows.push_back({i, ask, format % 2 == 0 ? Mode::random : Mode::latest});
    }
  }
  expect_right(sampled(rows, 61));
}

// A K that ends within its first group leaves groups of zeros behind it. Their scales are the last
// one's, so the quotients of chained sums are 1, and nothing of the sums is cut off again.
TEST(PackedOnTheModel, ChainedSumsOfOneGroupAreExact) {
  const Instance chained = named("grouped_s4xe4m3_bf16_128x64_b_sw2");
  for (int k = 1; k <= 12; ++k) {
    // Groups of 32, scales of bf16 and f32.
    Ask ask = grouped_ask(chained, {0, 4, 9}, 130, k);
    ask.seed = k % 2 == 0 ? 0U : 12U;
    Problem problem(chained, ask);
    SCOPED_TRACE(problem.text());
    ASSERT_EQ(problem.run(), "");
    const std::vector<std::byte> in_tensor_core = problem.d_bytes();
    GemmOperands operands = problem.operands();
    ASSERT_EQ(operands.packed->format.group, 32);
    operands.packed->sums = GroupSums::exact;
    problem.poison_d();
    const auto made = must(plan(operands, problem.facts()));
    ASSERT_TRUE(device::launch_on_model(*made, operands));
    EXPECT_EQ(in_tensor_core, problem.d_bytes());
  }
}

// Codes that are read in another encoding show.
TEST(PackedOnTheModel, WrongWeightsAreSeen) {
  const auto instance = one_with("packed weights", [](const auto& c) {
    return kernel::packed_a(c) && sums_of(c) == kernel::Sums::promoted && !has_zero_points(c) &&
           !has_float_codes(c);
  });
  ASSERT_TRUE(instance);
  Problem problem(*instance, {.m = 5, .n = 130, .k = 256, .seed = 6});
  EXPECT_EQ(problem.run(), "");
  GemmOperands other = problem.operands();
  Int4Encoding& encoding = other.packed->format.encoding;
  encoding = encoding == Int4Encoding::ex ? Int4Encoding::sm : Int4Encoding::ex;
  const auto made = must(plan(other, problem.facts(), problem.choices()));
  ASSERT_TRUE(device::launch_on_model(*made, other));
  EXPECT_NE(problem.fault(), "");
}

// Where the sums of 8-bit products are kept shows: Hopper's tensor core drops what is more than 13
// bits below a running sum, and promoted sums do not. D of a row that begins with a large product
// and goes on with ones.
TEST(Sums, OfOnesBesideALargeNumber) {
  constexpr int ones = 16384;
  constexpr double large = 448.0 * 448.0;
  for (const kernel::Sums sums :
       {kernel::Sums::tensor_core, kernel::Sums::promoted, kernel::Sums::blockwise}) {
    const auto instance = one_with("e4m3 sums", [sums](const kernel::GemmConfig& c) {
      return stored_a(c) == DType::e4m3 && operand_b(c).type == DType::e4m3 && sums_of(c) == sums &&
             !c.gated && !is_swapped(c) && numeric::bits(c.result) > 8;
    });
    if (!instance) continue;
    Problem problem(*instance, {.m = 1, .n = 1, .k = 128 + ones, .alpha = 1});
    const GemmOperands o = problem.operands();
    const auto set = [](const MatrixView& v, std::int64_t i, double x) {
      const auto code = static_cast<std::uint8_t>(numeric::from_double(DType::e4m3, x));
      static_cast<std::uint8_t*>(v.data)[i] = code;
    };
    for (int i = 0; i < 128 + ones; ++i) {  // one k_tile before the ones
      const double x = i == 0 ? 448 : i < 128 ? 0 : 1;
      set(o.a, i, x);
      set(o.b, i, x);
    }
    for (const MatrixView& scale : {o.scale_a, o.scale_b}) {
      for (std::int64_t i = 0; i < scale.columns; ++i) {
        static_cast<float*>(scale.data)[i * scale.column_stride] = 1;
      }
    }
    problem.run();  // what fast sums lose is more than most do
    const double sum = problem.d().get(0, 0, 0);
    const double half_ulp = 512;  // of bf16
    EXPECT_NEAR(sum, sums == kernel::Sums::tensor_core ? large : large + ones,
                sums == kernel::Sums::tensor_core ? 0 : half_ulp)
        << instance->name;
  }
}

// --- Blackwell -----------------------------------------------------------------------------------

// Those that any whole product of bf16 may ask for.
Instances for_whole_products() {
  Instances some = of_bf16(blackwell_instances());
  std::erase_if(some, [](const Instance& i) { return i.facts->grouped || i.config.gated; });
  return some;
}

TEST(BlackwellOnTheModel, EveryFormInEveryMode) {
  std::vector<Ask> asks;
  for (const atom::ClusterShape cluster :
       {atom::ClusterShape{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
    asks.push_back({.m = 300, .n = 270, .k = 200, .cluster = cluster, .padding = 2});
  }
  expect_same_in_every_mode(sampled(by_each(for_whole_products(), asks, Mode::eager), 19));
}

// Clusters that take many tiles each, on as few SMs as hold one; the ring of stages goes round in
// every tile.
TEST(BlackwellOnTheModel, ManyTilesACluster) {
  const Ask ask{.m = 500, .n = 600, .k = 200, .cluster = {2, 1}, .clusters = 1, .padding = 4};
  expect_same_in_every_mode(sampled(by_each(for_whole_products(), {ask}, Mode::eager), 8));
}

// Another grid holds an SM: CLC's clusters do without it, and every tile is computed
// once.
TEST(BlackwellOnTheModel, AnOccupiedSm) {
  const Ask ask{.m = 600, .n = 600, .k = 64, .cluster = {2, 1}, .clusters = 4};
  for (const Instance& i : sampled(for_whole_products(), 8)) {
    Problem problem(i, ask);
    device::ModelOptions how = scheduled(Mode::timed);
    how.occupied_sm = 2;
    EXPECT_EQ(problem.run(how), "") << problem.text();
  }
}

// --- groups --------------------------------------------------------------------------------------

using Offsets = std::vector<std::int64_t>;

Rows for_groups(const std::vector<std::pair<Offsets, int>>& offsets_and_k) {
  Rows rows;
  for (const Instance& i : grouped_instances()) {
    for (const auto& [offsets, k] : offsets_and_k) {
      rows.push_back({i, grouped_ask(i, offsets, 40, k)});
    }
  }
  return rows;
}

TEST(GroupedOnTheModel, Degenerate) {
  expect_right(sampled(for_groups({{{0, 0, 0, 0}, 96},
                                   {{0, 1}, 96},
                                   {{0, 0, 0, 3, 3}, 96},
                                   {{0, 130}, 96},
                                   {{0, 3, 40}, 0}}),
                       4));
}

// B as torch.expand makes it: one matrix for every group.
TEST(GroupedOnTheModel, GroupsThatShareTheirWeights) {
  Rows rows;
  for (const Instance& i : grouped_instances()) {
    rows.push_back({i, grouped_ask(i, {0, 40, 40, 57, 130}, 264, 200)});
    rows.back().ask.shares_b = true;
  }
  expect_right(sampled(rows, 8));
}

// By a plan that does not read A and B, and by one that does, as one for any alpha.
TEST(GroupedOnTheModel, AlphaMayBecomeZero) {
  for (const Instance& i : sampled(grouped_instances(), 7)) {
    Ask ask = grouped_ask(i, {0, 20, 20, 47}, 136, 96);
    const Problem any(i, ask);
    ask.alpha = 0;
    Problem zero(i, ask);
    EXPECT_EQ(zero.run(), "") << zero.text();
    EXPECT_EQ(zero.run(any.planned()), "") << zero.text();
  }
}

TEST(GroupedOnTheModel, HundredsOfGroups) {
  Rows rows;
  for (const char* name : {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
                           "grouped_e4m3_bf16_128x64_h_sw"}) {
    Draws draw(5);
    Ask ask = grouped_ask(named(name), lengths_to_offsets(draw, 420, 2), 16, 48);
    ask.scaling = Scaling::group;
    rows.push_back({named(name), ask});
  }
  expect_right(rows);
}

TEST(GroupedOnTheModel, EveryModeGivesTheSameBytes) {
  Rows rows;
  for (const char* name : {"grouped_e4m3_bf16_128x32_b_bs_sw", "grouped_bf16_bf16_128x128_v_pp",
                           "grouped_e4m3_bf16_128x128_v_bs", "grouped_e4m3_bf16_128x64_h_sw"}) {
    Draws draw(31);
    Ask ask = grouped_ask(named(name), lengths_to_offsets(draw, 7, 150), 264, 300);
    ask.cluster = {2, 1};
    rows.push_back({named(name), ask});
  }
  expect_same_in_every_mode(sampled(rows, 4));
}

// Offsets that are not in order: nothing outside the tensors is touched, and the kernel says so.
TEST(GroupedOnTheModel, OffsetsInDisorderStayInside) {
  Draws draw(9);
  std::vector<std::size_t> numbers(2 * grouped_instances().size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  for (const std::size_t i : sampled(numbers, 11)) {
    const Instance& instance = grouped_instances()[i % grouped_instances().size()];
    Offsets offsets;
    for (int g = 0; g <= 12; ++g) offsets.push_back(7 * g);
    const int broken = draw(1, 11);
    offsets[index(broken)] = i % 2 == 0 ? (std::int64_t{1} << 40) : -(std::int64_t{1} << 40);
    Ask ask = grouped_ask(instance, offsets, 136, 64);
    ask.m = 90;
    Problem problem(instance, ask);  // by its seed, offsets of 64 bits
    SCOPED_TRACE(problem.text());
    const auto made = must(problem.planned());
    std::uint32_t status = 0;
    device::ModelOptions how;
    how.check_order = false;  // groups that overlap write the same rows
    how.offsets_status = &status;
    const auto report = must(device::launch_on_model(*made, problem.operands(), how));
    EXPECT_TRUE(report->clean()) << report->text();
    EXPECT_EQ(problem.d().disturbed({{0, 90}}), 0);
    // The group before a step too far, or into which one falls, is the first in disorder.
    EXPECT_EQ(status, static_cast<std::uint32_t>(broken - 1 + 1));
    ASSERT_TRUE(offsets_fault(status).has_value());
    EXPECT_NE(offsets_fault(status)->find("group " + std::to_string(broken - 1)),
              std::string::npos);
  }
}

}  // namespace
}  // namespace warpwright::tests
