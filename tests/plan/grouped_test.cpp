// Grouped products: what is refused, in which words, and which kernel is chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/must.h"
#include "tests/plan/refused.h"
#include "tests/problem_changes.h"
#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {
namespace {

using tests::at;

GemmOperands operands(Scaling scaling) {
  constexpr std::int64_t total = 300;
  constexpr std::int64_t n = 256;
  constexpr std::int64_t k = 512;
  constexpr std::int64_t groups = 5;
  GemmOperands o;
  o.a = matrix(at(0x10000000), DType::e4m3, total, k);
  o.b = matrix(at(0x20000000), DType::e4m3, n, k);
  o.b.batch = groups;
  o.b.batch_stride = n * k;
  o.d = matrix(at(0x30000000), DType::bf16, total, n);
  o.groups = Groups{at(0x40000000)};
  o.scaling = scaling;
  void* const sx = at(0x50000000);
  void* const sw = at(0x60000000);
  const auto batched = [&](std::int64_t rows, std::int64_t columns) {
    MatrixView v = matrix(sw, DType::f32, rows, columns);
    v.batch = groups;
    v.batch_stride = rows * columns;
    return v;
  };
  switch (scaling) {
    case Scaling::none:
    case Scaling::block_scaled:  // products in groups have none
      break;
    case Scaling::tensor:
      o.scale_a = matrix(sx, DType::f32, 1, 1);
      o.scale_b = matrix(sw, DType::f32, 1, 1);
      break;
    case Scaling::group:
      o.scale_a = matrix(sx, DType::f32, groups, 1);
      o.scale_b = matrix(sw, DType::f32, groups, 1);
      break;
    case Scaling::row_column:
      o.scale_a = matrix(sx, DType::f32, total, 1);
      o.scale_b = batched(n, 1);
      break;
    case Scaling::blockwise:
      // As [ceil(K / 128), total rounded up to 4].
      o.scale_a = {sx, DType::f32, total, 4, 1, 300};
      o.scale_b = batched(2, 4);
      break;
  }
  return o;
}

constexpr Scaling scalings[] = {Scaling::none, Scaling::tensor, Scaling::group, Scaling::row_column,
                                Scaling::blockwise};

using tests::Code;
using tests::O;

// By a plan, which refuses what no kernel does too.
void expect_refused(Scaling scaling, const std::vector<tests::Refused>& rows) {
  tests::expect_refused(operands(scaling), rows, [](const O& o) -> std::optional<Refusal> {
    const auto made = plan(o, model_facts());
    if (made) return std::nullopt;
    return made.refusal();
  });
}

TEST(GroupedRules, TakesWhatIsRight) {
  for (const Scaling scaling : scalings) {
    const auto made = must(plan(operands(scaling), model_facts()));
    EXPECT_FALSE(mismatch(*made, operands(scaling)));
    EXPECT_FALSE(made->explain().empty());
  }
}

// Tokens by index: A has a row a token, D one for each index.
TEST(GroupedRules, RefusesRowsByIndex) {
  const auto by_index = [](O& o) {
    o.a.rows = 40;
    o.groups->rows = reinterpret_cast<const std::int32_t*>(at(0x42000000));
    o.groups->rows_divisor = 8;
  };
  const auto with = [by_index](auto change) {
    return [=](O& o) {
      by_index(o);
      change(o);
    };
  };
  expect_refused(
      Scaling::none,
      {{Code::bad_value,
        with([](O& o) {
          o.groups->rows_divisor = 0;
          o.a.rows = 300;
        }),
        {"rows are given and rows_divisor is 0", "1"}},
       {Code::bad_value,
        with([](O& o) { o.groups->rows_divisor = -3; }),
        {"rows_divisor is -3", "nearest legal value is 0"}},
       {Code::bad_pointer,
        with([](O& o) { o.groups->rows = nullptr; }),
        {"rows is a null pointer", "rows_divisor is 8", "300"}},
       {Code::bad_pointer,
        with([](O& o) { o.groups->rows = reinterpret_cast<const std::int32_t*>(at(0x42000002)); }),
        {"address of rows", "4 bytes", "one of 2"}},
       {Code::overlap,
        with([](O& o) { o.groups->rows = reinterpret_cast<const std::int32_t*>(at(0x30000100)); }),
        {"D overlaps rows"}},
       {Code::bad_shape, with([](O& o) { o.a.rows = 0; }), {"A has no rows", "nearest", "1"}},
       {Code::bad_shape,
        with([](O& o) {
          o.a.row_stride = std::int64_t{1} << 31;
          o.a.data = at(std::uintptr_t{1} << 46);  // apart from all others
        }),
        {"A has 40 rows", "64 GiB", "32"}},
       {Code::bad_shape,
        with([](O& o) { o.d.columns = 128; }),
        {"D has 128 columns", "the product has 256"}}});
  expect_refused(Scaling::row_column,
                 {{Code::bad_shape,
                   with([](O& o) { o.scale_a.rows = 300; }),
                   {"scale_a is 300 x 1", "row-column scaling of A (40 x 512)", "40 x 1"}}});
}

// What is refused of whole products in the same words is in rules_test.cpp.
TEST(GroupedRules, RefusesShapesAndOffsets) {
  const Code pointer = Code::bad_pointer;
  expect_refused(
      Scaling::none,
      {{Code::bad_shape, [](O& o) { o.b.batch = 0; }, {"B", "groups", "legal", "1"}},
       {Code::bad_shape, [](O& o) { o.a.batch = 2; }, {"A is a batch of 2", "nearest legal is 1"}},
       {Code::bad_shape,
        [](O& o) { o.b.columns = 500; },
        {"A is 300 x 512", "nearest legal B is 256 x 512"}},
       {Code::bad_shape, [](O& o) { o.d.rows = 299; }, {"D is 299 x 256", "300 x 256"}},
       {Code::bad_stride,
        [](O& o) { o.b.row_stride = 500; },
        {"B has a row stride of 500", "nearest legal is 512"}},
       {pointer, [](O& o) { o.groups->offsets = nullptr; }, {"offsets is a null", "6 offsets"}},
       {pointer, [](O& o) { o.groups->offsets = at(0x40000002); }, {"offsets", "4 bytes"}},
       {pointer,
        [](O& o) {
          o.groups = Groups{at(0x40000004), OffsetType::int64};
        },
        {"offsets", "8 bytes"}},
       {Code::overlap, [](O& o) { o.d.data = o.a.data; }, {"D overlaps A"}},
       {Code::overlap, [](O& o) { o.groups->offsets = at(0x30000000); }, {"D overlaps offsets"}}});
}

TEST(GroupedRules, RefusesScales) {
  const Code shape = Code::bad_shape;
  const Code stride = Code::bad_stride;
  expect_refused(Scaling::none, {{Code::bad_value,
                                  [](O& o) { o.scale_b.data = at(0x60000000); },
                                  {"scale_b is given", "scaling is none"}}});
  expect_refused(Scaling::tensor,
                 {{shape, [](O& o) { o.scale_a.rows = 2; }, {"scale_a is 2 x 1", "1 x 1"}}});
  expect_refused(Scaling::group,
                 {{shape, [](O& o) { o.scale_b.rows = 4; }, {"scale_b is 4 x 1", "5 x 1"}},
                  {stride,
                   [](O& o) { o.scale_b.row_stride = std::int64_t{1} << 32; },
                   {"scale_b has a row stride of 4294967296", "nearest legal"}}});
  expect_refused(
      Scaling::row_column,
      {{shape, [](O& o) { o.scale_a.rows = 5; }, {"scale_a is 5 x 1", "300 x 1"}},
       {shape, [](O& o) { o.scale_b.batch = 1; }, {"scale_b is 256 x 1", "a batch of 5"}},
       {stride, [](O& o) { o.scale_a.row_stride = -2; }, {"row stride of -2", "0"}}});
  expect_refused(
      Scaling::blockwise,
      {{shape, [](O& o) { o.scale_a.columns = 3; }, {"scale_a is 300 x 3", "300 x 4"}},
       {shape, [](O& o) { o.scale_b.rows = 3; }, {"scale_b is 3 x 4", "2 x 4"}},
       {stride, [](O& o) { o.scale_a.column_stride = -300; }, {"column stride of -300", "0"}}});
}

TEST(GroupedRules, RefusesTypes) {
  expect_refused(
      Scaling::none,
      {{Code::bad_type, [](O& o) { o.a.dtype = DType::f32; }, {"A is f32", "e4m3"}},
       {Code::bad_type, [](O& o) { o.b.dtype = DType::bf16; }, {"A is e4m3 and B is bf16"}},
       {Code::no_kernel, [](O& o) { o.d.dtype = DType::e5m2; }, {"no grouped kernel", "e5m2"}}});
  expect_refused(Scaling::tensor, {{Code::unsupported,
                                    [](O& o) { o.a.dtype = o.b.dtype = DType::bf16; },
                                    {"scaling is tensor", "none"}}});
}

// What whole products take and products in groups do not.
TEST(GroupedRules, RefusesWhatIsOfWholeProducts) {
  expect_refused(Scaling::none, {{Code::bad_shape,
                                  [](O& o) { o.c = o.d, o.c.batch = 2; },
                                  {"C is a batch of 2", "nearest legal is 1"}},
                                 {Code::unsupported,
                                  [](O& o) {
                                    o.b.dtype = DType::bf16;
                                    o.a = {o.a.data, DType::bf16, 300, 512, 1, 304};
                                  },
                                  {"A is MN-major", "groups", "column stride 1"}}});
  GemmOperands whole = operands(Scaling::group);
  whole.groups.reset();
  whole.b.batch = 1;
  whole.scale_a.rows = whole.scale_b.rows = 1;
  expect_contains(why_not(plan(whole, model_facts())), "nearest scaling is tensor");
  const auto other = plan(operands(Scaling::none), *known_facts("a100"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.code(), RefusalCode::no_device);
  expect_contains(other.reason(), "a100");
  const auto search = plan(packed_problem(64, 64, 64, DType::bf16, DType::bf16), model_facts(),
                           {.search = kernel::Grouping::warp_scan});
  ASSERT_FALSE(search.ok());
  EXPECT_EQ(search.code(), RefusalCode::bad_choice);
}

TEST(GroupedRules, APlanIsForItsOperands) {
  const GemmOperands right = operands(Scaling::blockwise);
  const auto made = must(plan(right, model_facts()));
  const Code code = Code::plan_mismatch;
  // Offsets change from launch to launch, as strides of scales; so may alpha.
  tests::expect_mismatches(*made, right,
                           {{code, [](O& o) { o.b.batch = o.scale_b.batch = 4; }, {"4 groups"}},
                            {code, [](O& o) { o.groups->type = OffsetType::int64; }, {"types"}},
                            {code, [](O& o) { o.d.row_stride = 264; }, {"strides"}},
                            {code, [](O& o) { o.d.data = at(0x30000008); }, {"8 bytes only"}},
                            {{}, [](O& o) { o.groups->offsets = at(0x41000000); }},
                            {{}, [](O& o) { o.scale_a.column_stride = 304; }},
                            {{}, [](O& o) { o.alpha = 3; }},
                            {{}, [](O& o) { o.alpha = 0; }}});
  // A plan that does not read A and B cannot begin to.
  GemmOperands unread = right;
  unread.alpha = 0;
  const auto without = must(plan(unread, model_facts()));
  EXPECT_EQ(mismatch(*without, right)->code, RefusalCode::plan_mismatch);
}

TEST(GroupedChoice, FewTokensLieOnN) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const double tokens : {1.0, 8.0, 16.0, 32.0}) {
    GemmProblem p = packed_grouped_problem(8 * static_cast<int>(tokens), 4096, 4096, 8, DType::e4m3,
                                           DType::bf16);
    const auto made = must(plan(p, h200));
    EXPECT_TRUE(made->facts().swap_ab) << tokens;
    EXPECT_GE(made->facts().result_rows, tokens);
    expect_contains(made->explain(), "tokens");
  }
  GemmProblem p = packed_grouped_problem(8 * 4096, 4096, 4096, 8, DType::e4m3, DType::bf16);
  const auto made = must(plan(p, h200));
  EXPECT_FALSE(made->facts().swap_ab);
  // The hint counts, not the mean: few groups hold all the tokens.
  p = packed_grouped_problem(8192, 4096, 4096, 256, DType::e4m3, DType::bf16);
  p.groups->expected_tokens = 4096;
  const auto skewed = must(plan(p, h200));
  EXPECT_FALSE(skewed->facts().swap_ab);
  expect_contains(skewed->reason, "4096 tokens expected");
}

// Microseconds of the fastest configuration by `bench grouped` on an H200 where all lengths are
// equal (docs/log/grouped_performance.md): none of them is in bench/times.tsv.gz.
struct Measured {
  std::int64_t groups, total, n, k;
  double bf16, e4m3, block;
};
constexpr Measured measured_rows[] = {
    {8, 64, 4096, 4096, 67.05, 35.18, 35.61},
    {8, 128, 4096, 4096, 67.37, 35.54, 35.90},
    {8, 256, 4096, 4096, 69.01, 35.99, 36.77},
    {8, 384, 4096, 4096, 71.24, 36.51, 38.63},
    {8, 512, 4096, 4096, 71.86, 37.24, 39.14},
    {8, 1024, 4096, 4096, 75.33, 41.50, 42.84},
    {8, 4096, 4096, 4096, 181.53, 99.63, 121.24},
    {8, 8192, 4096, 4096, 356.29, 192.99, 222.38},
    {8, 32768, 4096, 4096, 1433.02, 759.11, 858.41},
    {32, 512, 4096, 7168, 444.54, 222.40, 222.97},
    {32, 512, 7168, 2048, 221.90, 114.92, 115.24},
    {32, 2048, 4096, 7168, 464.08, 233.36, 239.22},
    {32, 2048, 7168, 2048, 234.73, 120.92, 123.80},
    {32, 4096, 4096, 7168, 484.56, 251.17, 254.42},
    {32, 4096, 7168, 2048, 250.83, 133.44, 141.71},
    {32, 16384, 4096, 7168, 1239.60, 657.14, 752.91},
    {32, 16384, 7168, 2048, 667.03, 372.12, 426.72},
};

TEST(GroupedChoice, CostsAreNearWhatWasMeasured) {
  double error = 0;
  int count = 0;
  const auto hold = [&](const Measured& row, DType operand, Scaling scaling, double us) {
    GemmProblem p =
        packed_grouped_problem(row.total, row.n, row.k, row.groups, operand, DType::bf16);
    p.scaling = scaling;
    if (scaling == Scaling::blockwise) p.accumulation = Accumulation::promoted;
    p.groups->expected_lengths = LengthSpread::equal;
    const auto made = must(plan(p, *known_facts("h200")));
    EXPECT_NEAR(1e6 * made->cost, us, 0.15 * us)
        << made->name() << " for " << row.groups << " groups, " << row.total << " tokens, N "
        << row.n << ", K " << row.k;
    error += std::abs(1e6 * made->cost / us - 1);
    ++count;
  };
  for (const Measured& row : measured_rows) {
    hold(row, DType::bf16, Scaling::none, row.bf16);
    hold(row, DType::e4m3, Scaling::tensor, row.e4m3);
    hold(row, DType::e4m3, Scaling::blockwise, row.block);
  }
  EXPECT_LT(error / count, 0.05);
  std::printf("costs of %d products in equal groups are %.1f%% off in the mean\n", count,
              100 * error / count);
}

// --- lengths as routing spreads them

struct Kind {
  DType operand;
  Scaling scaling;
};
constexpr Kind kinds[] = {{DType::bf16, Scaling::none},
                          {DType::e4m3, Scaling::tensor},
                          {DType::e4m3, Scaling::blockwise}};

GemmProblem layer(std::int64_t groups, std::int64_t tokens, std::int64_t n, std::int64_t k,
                  const Kind& kind) {
  GemmProblem p = packed_grouped_problem(groups * tokens, n, k, groups, kind.operand, DType::bf16);
  p.scaling = kind.scaling;
  return p;
}

// The two products of models' layers of experts.
struct Layer {
  int groups;
  int n;
  int k;
};
constexpr Layer layers[] = {
    {128, 1536, 2048}, {128, 2048, 768},  {8, 28672, 4096},  {8, 4096, 14336},  {128, 3072, 4096},
    {128, 4096, 1536}, {256, 4096, 7168}, {256, 7168, 2048}, {128, 5760, 2880}, {128, 2880, 2880}};

// Lengths of interest: all up to beyond the widest tile of tokens, some behind.
std::vector<std::int64_t> lengths_to(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t tokens = 1; tokens <= most; tokens += tokens < 160 ? 1 : 16) {
    all.push_back(tokens);
  }
  return all;
}

// The share of `groups` groups that have more than `bound` of `rows` rows that fall one by one,
// exactly.
double share_above(std::int64_t rows, int groups, std::int64_t bound) {
  const auto n = static_cast<double>(rows);
  const double hit = std::log(1.0 / groups);
  const double missed = std::log1p(-1.0 / groups);
  double upto = 0;
  for (std::int64_t i = 0; i <= std::min(bound, rows); ++i) {
    const auto x = static_cast<double>(i);
    upto += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * hit +
                     (n - x) * missed);
  }
  return 1 - upto;
}

// What half of the groups overflow is not chosen while there is a wider tile of tokens: they would
// read their weights once more. 128 tokens are the widest of any kernel: beyond them every tile is
// overflowed, and of the narrower ones it counts where the mean's own tiles end. For a tile that
// the mean just fills 43% of the groups (of 16 rows) to 47% (of 64) are longer.
TEST(RoutedChoice, NoTileThatHalfOfTheGroupsOverflow) {
  const DeviceFacts h200 = *known_facts("h200");
  constexpr int widest = 128;
  double most = 0;
  for (const Layer& l : layers) {
    for (const std::int64_t tokens : lengths_to(1024)) {
      for (const Kind& kind : kinds) {
        const auto made = must(plan(layer(l.groups, tokens, l.n, l.k, kind), h200));
        const int rows = made->facts().result_rows;
        if (rows >= widest) continue;  // also groups that are cut evenly
        const std::int64_t end = (tokens + rows - 1) / rows * rows;
        const double over = share_above(l.groups * tokens, l.groups, end);
        EXPECT_LT(over, 0.48) << made->name() << " for " << l.groups << " x " << tokens << ", N "
                              << l.n << ", K " << l.k;
        most = std::max(most, over);
      }
    }
  }
  std::printf("%.1f%% of the groups overflow their tile at most\n", 100 * most);
}

// Groups that are as long as each other lose little by a plan that does not expect it: in the mean,
// as they are predicted. The most is lost where all of them just fill a tile, or are a token
// longer.
TEST(RoutedChoice, EqualLengthsLoseOnePercentInTheMean) {
  const DeviceFacts h200 = *known_facts("h200");
  double sum = 0;
  int count = 0;
  for (const Layer& l : layers) {
    for (std::int64_t tokens = 1; tokens <= 1024; tokens += 5) {
      const Kind& kind = kinds[static_cast<std::size_t>(tokens) % 3];
      GemmProblem p = layer(l.groups, tokens, l.n, l.k, kind);
      const auto routed = plan(p, h200);
      p.groups->expected_lengths = LengthSpread::equal;
      const auto equal = plan(p, h200);
      ASSERT_TRUE(routed.ok() && equal.ok());
      const auto same = must(plan(p, h200, {.cluster = routed->cluster, .kernel = routed->kernel}));
      EXPECT_GE(same->cost, equal->cost);
      sum += same->cost / equal->cost - 1;
      ++count;
    }
  }
  std::printf("equal lengths lose %.2f%% in the mean of %d plans\n", 100 * sum / count, count);
  EXPECT_LT(sum / count, 0.01);
}

// A caller of equal lengths who says so has a tile that all of them fit in, where there is one.
TEST(RoutedChoice, EqualLengthsFitTheirTile) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {14, 15, 16, 28, 30, 32, 60, 62, 64}) {
    for (const Kind& kind : kinds) {
      GemmProblem p = layer(128, tokens, 1536, 2048, kind);
      p.groups->expected_lengths = LengthSpread::equal;
      const auto equal = must(plan(p, h200));
      EXPECT_GE(equal->facts().result_rows, tokens) << equal->name() << " for " << tokens;
    }
  }
}

// Bits, legality and memory do not depend on the guess, and what it is not can be refused.
TEST(RoutedChoice, HintsAreHints) {
  const DeviceFacts h200 = *known_facts("h200");
  GemmProblem p = layer(128, 32, 1536, 2048, kinds[0]);
  const auto routed = candidates(p, h200);
  for (const float zipf : {0.0F, 0.5F, 1.0F, 8.0F}) {
    for (const double tokens : {0.0, 1.0, 33.0, 1e6}) {
      p.groups->expected_zipf = zipf;
      p.groups->expected_tokens = tokens;
      const auto all = candidates(p, h200);
      ASSERT_TRUE(all.ok() && routed.ok());
      EXPECT_EQ(all->size(), routed->size());
      EXPECT_EQ(all->front().workspace_bytes, routed->front().workspace_bytes);
      for (const Plan& one : *all) EXPECT_TRUE(one.cost > 0 && one.cost < 1) << one.cost;
    }
  }
  for (const float zipf : {-1.0F, 8.5F, std::nanf("")}) {
    p.groups->expected_zipf = zipf;
    EXPECT_FALSE(plan(p, h200).ok()) << zipf;
  }
  p.groups->expected_zipf = 0;
  p.groups->expected_lengths = static_cast<LengthSpread>(2);
  const auto none = plan(p, h200);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.code(), RefusalCode::bad_value);
  EXPECT_EQ(none.refusal().rule, "it must be routed (0) or equal (1)");
  EXPECT_EQ(none.refusal().nearest, "equal");
}

// --- the lengths themselves, against lengths that are drawn

// Lengths of `rows` rows that fall one by one.
std::vector<int> fallen(int rows, int groups, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> lengths(static_cast<std::size_t>(groups));
  for (int i = 0; i < rows; ++i) ++lengths[random() % lengths.size()];
  return lengths;
}

TEST(GroupLengths, AsRowsFall) {
  for (const int mean : {1, 2, 4, 8, 16, 30, 32, 64, 256, 1000}) {
    for (const int groups : {1, 8, 128}) {
      const GroupLengths lengths = group_lengths(layer(groups, mean, 64, 64, kinds[0]));
      for (const int rows : {8, 16, 32, 48, 64, 128}) {
        double busy = 0;
        double tiles = 0;
        constexpr int draws = 60;
        for (int seed = 1; seed <= draws; ++seed) {
          for (const int length : fallen(mean * groups, groups, static_cast<std::uint64_t>(seed))) {
            busy += length > 0 ? 1 : 0;
            tiles += (length + rows - 1) / rows;
          }
        }
        const double expected = lengths.busy * lengths.tiles(rows).mean;
        EXPECT_NEAR(lengths.busy, busy / draws, 0.03 * groups) << mean << " x " << groups;
        EXPECT_NEAR(expected, tiles / draws, 0.04 * tiles / draws + 0.03 * groups)
            << mean << " x " << groups << ", tiles of " << rows;
      }
    }
  }
}

// What is measured instead of what a router will give: M rows in all, as many groups without any,
// and as many tiles, as are expected.
TEST(GroupLengths, TypicalOnes) {
  for (const float zipf : {0.0F, 1.0F}) {
    for (const int mean : {1, 4, 30, 256}) {
      for (const int groups : {1, 2, 8, 96, 128}) {
        GemmProblem p = layer(groups, mean, 64, 64, kinds[0]);
        p.groups->expected_zipf = zipf;
        const std::vector<std::int64_t> lengths = typical_lengths(p);
        ASSERT_EQ(lengths.size(), static_cast<std::size_t>(groups));
        EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), p.m());
        EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 0);
        const GroupLengths expected = group_lengths(p);
        const auto busy =
            std::count_if(lengths.begin(), lengths.end(), [](auto n) { return n > 0; });
        EXPECT_NEAR(static_cast<double>(busy), expected.busy, 0.5 + 0.01 * groups);
        if (zipf > 0 || groups < 8) continue;
        double tiles = 0;
        for (const std::int64_t n : lengths) tiles += static_cast<double>((n + 63) / 64);
        const double wanted = expected.busy * expected.tiles(64).mean;
        EXPECT_NEAR(tiles, wanted, 0.06 * wanted + 1) << groups << " x " << mean;
      }
    }
  }
  GemmProblem equal = layer(8, 16, 64, 64, kinds[0]);
  equal.groups->expected_lengths = LengthSpread::equal;
  EXPECT_EQ(typical_lengths(equal), std::vector<std::int64_t>(8, 16));
}

TEST(GroupLengths, TokensOfGroupsCutEvenly) {
  constexpr tile::TileWidths widths{{72, 112, 128, 136, 144}};
  GemmProblem p = layer(128, 264, 64, 64, kinds[0]);
  p.groups->expected_lengths = LengthSpread::equal;
  EXPECT_DOUBLE_EQ(group_lengths(p).even_tokens(widths), 136 + 128);
  for (const int mean : {16, 64, 100, 130, 200, 256, 264, 400, 1000}) {
    const GroupLengths lengths = group_lengths(layer(128, mean, 64, 64, kinds[0]));
    double tokens = 0;
    double busy = 0;
    for (int seed = 1; seed <= 20; ++seed) {
      for (const int length : fallen(mean * 128, 128, static_cast<std::uint64_t>(seed))) {
        if (length == 0) continue;
        ++busy;
        // By the definition: ceil(length / 144) tiles, and of each the width that takes it.
        const int tiles = (length + 143) / 144;
        const auto width = [&](int n) {
          return *std::find_if(widths.of.begin(), widths.of.end(), [&](int w) { return w >= n; });
        };
        const int step = width((length + tiles - 1) / tiles);
        tokens += (tiles - 1) * step + width(length - (tiles - 1) * step);
      }
    }
    EXPECT_NEAR(lengths.even_tokens(widths), tokens / busy, 0.015 * tokens / busy) << mean;
  }
}

// Groups of a few tiles of tokens pay for their tails where they are not cut evenly.
TEST(RoutedChoice, GroupsAreCutEvenlyWhereTailsCost) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const Kind& kind : kinds) {
    if (kind.scaling == Scaling::blockwise)
      continue;  // no kernel does: one measured 1.3 times slower
    const GemmProblem p = layer(128, 256, 1536, 2048, kind);
    const auto all = must(candidates(p, h200));
    const auto best = [&](bool even) {
      double least = 1;
      for (const Plan& one : *all) {
        if (has_widths(hopper_config(one)) == even) least = std::min(least, one.cost);
      }
      return least;
    };
    EXPECT_LT(best(true), best(false));
  }
}

TEST(GroupLengths, MeanOfCeil) {
  EXPECT_DOUBLE_EQ(mean_ceil(0, 8, 8), 1);
  EXPECT_DOUBLE_EQ(mean_ceil(4, 12, 8), 1.5);
  EXPECT_DOUBLE_EQ(mean_ceil(16, 16, 8), 2);
  EXPECT_NEAR(mean_ceil(0, 8000, 8), 500.5, 1e-9);
}

// The experts liked most get most, and no more than all tokens.
TEST(GroupLengths, OfRanks) {
  GemmProblem p = layer(128, 256, 64, 64, kinds[0]);
  const GroupLengths even = group_lengths(p);
  p.groups->expected_zipf = 1;
  const GroupLengths ranked = group_lengths(p);
  EXPECT_LT(ranked.cuts[6], even.cuts[6]);
  EXPECT_GT(ranked.cuts.back(), 4 * even.cuts.back());
  EXPECT_LT(ranked.cuts.back(), 4096 + 200);  // top-8
  EXPECT_TRUE(std::is_sorted(ranked.cuts.begin(), ranked.cuts.end()));
}

// Lengths differ, and a cluster along the tokens leaves CTAs idle at every group's end.
TEST(GroupedChoice, NoClusterAlongTokensUnasked) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t tokens : {1, 30, 100, 128, 200, 256, 500}) {
    for (const std::int64_t groups : {8, 64, 256}) {
      const auto made = must(plan(
          packed_grouped_problem(tokens * groups, 4096, 2048, groups, DType::e4m3, DType::bf16),
          h200));
      EXPECT_EQ(made->facts().swap_ab ? made->cluster.n : made->cluster.m, 1)
          << made->name() << " for " << groups << " groups of " << tokens;
    }
  }
  const auto asked =
      must(plan(packed_grouped_problem(8192, 4096, 4096, 8, DType::e4m3, DType::bf16), h200,
                {.cluster = atom::ClusterShape{2, 1}, .swap_ab = false}));
  EXPECT_EQ(asked->cluster.m, 2);
}

// Looking at one group after the other takes the longer the more there are.
TEST(GroupedChoice, FloorsKnowHowTilesAreFound) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto search = [&](std::int64_t groups, kernel::Grouping how) {
    const auto made =
        must(plan(packed_grouped_problem(64 * groups, 512, 512, groups, DType::e4m3, DType::bf16),
                  h200, {.search = how}));
    return floor_of(*made)->search;
  };
  EXPECT_GT(search(256, kernel::Grouping::linear_scan),
            3 * search(256, kernel::Grouping::warp_scan));
  EXPECT_LT(search(8, kernel::Grouping::linear_scan), search(8, kernel::Grouping::binary_search));
}

TEST(GroupedChoice, WorkspaceAndGridDoNotDependOnLengths) {
  const DeviceFacts h200 = *known_facts("h200");
  for (const std::int64_t total : {8, 80, 8000}) {
    const auto made =
        must(plan(packed_grouped_problem(total, 4096, 4096, 8, DType::bf16, DType::bf16), h200));
    EXPECT_EQ(made->workspace_bytes, 16);
    EXPECT_EQ(made->ctas, 132);
  }
  const auto nothing =
      must(plan(packed_grouped_problem(0, 4096, 4096, 8, DType::bf16, DType::bf16), h200));
  EXPECT_EQ(nothing->ctas, 0);
}

TEST(GroupedChoice, AsTheCallerFixesIt) {
  const GemmProblem p = packed_grouped_problem(500, 512, 512, 7, DType::e4m3, DType::bf16);
  const auto all = must(candidates(p, model_facts()));
  EXPECT_GT(all->size(), 5U);
  // What differs by 1% is told apart by what it depends on.
  for (std::size_t i = 1; i < all->size(); ++i) {
    EXPECT_LE((*all)[i - 1].cost, 1.011 * (*all)[i].cost);
  }
  const auto vertical = must(plan(p, model_facts(), {.search = kernel::Grouping::binary_search}));
  EXPECT_EQ(grouping(hopper_config(*vertical)), kernel::Grouping::binary_search);
  const auto tile =
      must(plan(p, model_facts(), {.cluster = atom::ClusterShape{2, 1}, .tile_tokens = 32}));
  EXPECT_EQ(tile->facts().result_rows, 32);
  expect_contains(why_not(plan(p, model_facts(), {.tile_tokens = 33})), "grouped_e4m3");
}

}  // namespace
}  // namespace warpwright
