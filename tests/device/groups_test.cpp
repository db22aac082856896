// Products in groups through the public calls, on the model: every epilogue that whole products
// have, against sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/campaign.h"
#include "tests/must.h"
#include "tests/reference.h"
#include "tests/scheduled.h"
#include "warpwright/model.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright {
namespace {

using numeric::bf16_t;

struct Ask {
  const char* name;
  Epilogue epilogue;
  bool reads_c = false;
  bool in_place = false;  // C is D
  bool one_bias = false;  // for all groups
};

constexpr std::int64_t kTotal = 45;  // the last two rows in no group
constexpr std::int64_t kN = 128;
constexpr std::int64_t kK = 96;
const std::vector<std::int32_t> kOffsets = {0, 3, 3, 36, 43};
constexpr std::int64_t kGroups = 4;

class GroupedProduct {
 public:
  explicit GroupedProduct(const Ask& ask, unsigned seed)
      : ask_(ask), columns_(ask.epilogue.gated ? kN / 2 : kN) {
    std::mt19937 random(seed);
    const auto fill = [&](std::vector<bf16_t>& v, std::int64_t size) {
      for (std::int64_t i = 0; i < size; ++i) {
        v.push_back(bf16_t(static_cast<float>(static_cast<int>(random() % 17) - 8) / 8));
      }
    };
    fill(a_, kTotal * kK);
    fill(b_, kGroups * kN * kK);
    fill(c_, kTotal * columns_);
    fill(bias_, kGroups * std::max(kN, kTotal));
    d_.assign(static_cast<std::size_t>(kTotal * columns_), poison());
    if (ask.in_place) d_ = c_;
    o.a = matrix(a_.data(), DType::bf16, kTotal, kK);
    o.b = matrix(b_.data(), DType::bf16, kN, kK);
    o.b.batch = kGroups;
    o.b.batch_stride = kN * kK;
    o.d = matrix(d_.data(), DType::bf16, kTotal, columns_);
    o.alpha = 0.25F;
    o.epilogue = ask.epilogue;
    if (ask.reads_c) {
      o.beta = -0.5F;
      o.c = ask.in_place ? o.d : matrix(c_.data(), DType::bf16, kTotal, columns_);
    }
    if (ask.epilogue.bias == Bias::rows) o.bias = matrix(bias_.data(), DType::bf16, kTotal, 1);
    if (ask.epilogue.bias == Bias::columns) {
      o.bias = matrix(bias_.data(), DType::bf16, kN, 1);
      if (!ask.one_bias) {
        o.bias.batch = kGroups;
        o.bias.batch_stride = kN;
      }
    }
    o.groups = Groups{.offsets = kOffsets.data()};
  }

  // What is wrong with D; empty when nothing is.
  [[nodiscard]] std::string fault() {
    GemmOperands before = o;  // with C as it was where it is D
    if (ask_.reads_c) before.c.data = c_.data();
    const tests::Product product(before);
    for (std::int64_t row = 0; row < kTotal; ++row) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        const auto at = static_cast<std::size_t>(row * columns_ + column);
        const double got = float(d_[at]);
        const std::int64_t g = group_of(row);
        if (g < 0) {  // left as it was
          const bf16_t was = ask_.in_place ? c_[at] : poison();
          if (std::isnan(got) != std::isnan(float(was))) return "a row in no group was written";
          continue;
        }
        const double want = product.result(0, g, row, column);
        if (!(std::abs(got - want) <= 0.01 * std::abs(want) + 0.01)) {
          return "D[" + std::to_string(row) + "," + std::to_string(column) + "] is " +
                 std::to_string(got) + ", not " + std::to_string(want);
        }
      }
    }
    return {};
  }

  [[nodiscard]] double d(std::int64_t row, std::int64_t column) const {
    return float(d_[static_cast<std::size_t>(row * columns_ + column)]);
  }

  GemmOperands o;

 private:
  static bf16_t poison() { return bf16_t(std::nanf("")); }

  static std::int64_t group_of(std::int64_t row) {
    for (std::int64_t g = 0; g < kGroups; ++g) {
      if (row >= kOffsets[static_cast<std::size_t>(g)] &&
          row < kOffsets[static_cast<std::size_t>(g) + 1]) {
        return g;
      }
    }
    return -1;
  }

  Ask ask_;
  std::int64_t columns_;
  std::vector<bf16_t> a_, b_, c_, d_, bias_;
};

class GroupEpilogue : public ::testing::TestWithParam<std::tuple<Ask, bool>> {};

TEST_P(GroupEpilogue, IsThatOfWholeProducts) {
  const auto& [ask, swap_ab] = GetParam();
  GroupedProduct product(ask, 11);
  const PlanChoices choices{.swap_ab = swap_ab};
  const auto made = must(plan(product.o, model_facts(3), choices));
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest, model::Mode::random}) {
    GroupedProduct again(ask, 11);
    const auto report = must(device::launch_on_model(*made, again.o, tests::scheduled(mode, 5)));
    EXPECT_TRUE(report->clean()) << report->text();
    EXPECT_EQ(again.fault(), "") << made->name();
  }
}

constexpr Ask kAsks[] = {
    {"plain", {}},
    {"gelu", {.activation = Activation::gelu}},
    {"silu_gated", {.activation = Activation::silu, .gated = true}},
    {"gated_with_bias", {.activation = Activation::silu, .gated = true, .bias = Bias::columns}},
    {"oai", {.activation = Activation::swiglu_oai, .gated = true, .bias = Bias::columns}},
    {"oai_interleaved",
     {.activation = Activation::swiglu_oai,
      .gated = true,
      .bias = Bias::columns,
      .interleaved = true}},
    {"interleaved", {.activation = Activation::silu, .gated = true, .interleaved = true}},
    {"bias_a_group", {.activation = Activation::relu, .bias = Bias::columns}},
    {"one_bias", {.bias = Bias::columns}, false, false, true},
    {"bias_of_tokens", {.bias = Bias::rows}, true},
    {"c", {}, true},
    {"c_in_place", {.bias = Bias::columns}, true, true},
};

INSTANTIATE_TEST_SUITE_P(All, GroupEpilogue,
                         ::testing::Combine(::testing::ValuesIn(kAsks), ::testing::Bool()),
                         [](const auto& of) {
                           return std::string(std::get<0>(of.param).name) +
                                  (std::get<1>(of.param) ? "_swapped" : "");
                         });

// e4m3 with scales of blocks, gated: ones times ones, so that D says which scales it got.
class GatedBlockScales {
 public:
  static constexpr std::int64_t n = 640;      // of which halves begin in the middle of a block
  static constexpr std::int64_t blocks = 23;  // of K, of which the last one is short
  static constexpr std::int64_t k = 2880;

  explicit GatedBlockScales(bool interleaved) {
    for (std::size_t i = 0; i < scale_a_.size(); ++i) {
      scale_a_[i] = static_cast<float>(i % 7 + 1) / 256;
    }
    for (std::size_t i = 0; i < scale_b_.size(); ++i) {
      scale_b_[i] = static_cast<float>(i % 5 + 1) / 256;
    }
    o.a = matrix(a_.data(), DType::e4m3, kTotal, k);
    o.b = matrix(b_.data(), DType::e4m3, n, k);
    o.b.batch = kGroups;
    o.b.batch_stride = n * k;
    o.d = matrix(d_.data(), DType::bf16, kTotal, n / 2);
    o.scaling = Scaling::blockwise;
    o.scale_a = matrix(scale_a_.data(), DType::f32, kTotal, blocks);
    o.scale_b = matrix(scale_b_.data(), DType::f32, n / 128, blocks);
    o.scale_b.batch = kGroups;
    o.scale_b.batch_stride = n / 128 * blocks;
    o.epilogue = {.activation = Activation::silu, .gated = true, .interleaved = interleaved};
    o.groups = Groups{.offsets = kOffsets.data()};
  }

  [[nodiscard]] double got(std::int64_t row, std::int64_t column) const {
    return float(d_[static_cast<std::size_t>(row * n / 2 + column)]);
  }
  [[nodiscard]] double due(std::int64_t g, std::int64_t row, std::int64_t column) const {
    const auto sum = [&](std::int64_t of) {
      double all = 0;
      for (std::int64_t x = 0; x < blocks; ++x) {
        all += (x + 1 < blocks ? 128.0 : 64.0) *
               scale_a_[static_cast<std::size_t>(row * blocks + x)] *
               scale_b_[static_cast<std::size_t>((g * (n / 128) + of / 128) * blocks + x)];
      }
      return all;
    };
    const bool in_turns = o.epilogue.interleaved;
    const double gate = sum(in_turns ? 2 * column : column);
    return gate / (1 + std::exp(-gate)) * sum(in_turns ? 2 * column + 1 : column + n / 2);
  }

  GemmOperands o;

 private:
  std::vector<std::uint8_t> a_ = std::vector<std::uint8_t>(kTotal * k, 0x38);  // 1
  std::vector<std::uint8_t> b_ = std::vector<std::uint8_t>(kGroups * n * k, 0x38);
  std::vector<float> scale_a_ = std::vector<float>(kTotal * blocks);
  std::vector<float> scale_b_ = std::vector<float>(kGroups * (n / 128) * blocks);
  std::vector<bf16_t> d_ = std::vector<bf16_t>(kTotal * n / 2, bf16_t(std::nanf("")));
};

TEST(GroupEpilogue, GatedWithBlockScales) {
  const std::vector<std::pair<bool, bool>> ways = {
      {false, false}, {true, false}, {false, true}, {true, true}};
  for (const auto& [swap_ab, interleaved] : sampled(ways, 2)) {
    const GatedBlockScales product(interleaved);
    const auto made = must(plan(product.o, model_facts(3), {.swap_ab = swap_ab}));
    const auto report = must(device::launch_on_model(*made, product.o));
    EXPECT_TRUE(report->clean()) << report->text();
    for (std::int64_t g = 0; g < kGroups; ++g) {
      for (int row = kOffsets[static_cast<std::size_t>(g)];
           row < kOffsets[static_cast<std::size_t>(g) + 1]; ++row) {
        for (std::int64_t column = 0; column < product.n / 2; ++column) {
          const double want = product.due(g, row, column);
          ASSERT_NEAR(product.got(row, column), want, 0.01 * want)
              << made->name() << " group " << g << " row " << row << " column " << column
              << (interleaved ? ", interleaved" : "");
        }
      }
    }
  }
}

// Limits cut infinities; NaN is not cut. For gate and up, each on its own.
TEST(GroupEpilogue, WhatLimitsLeave) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // A gate that is 7 and an up that is 7 or -7 at most.
  const double most = 7 / (1 + std::exp(-1.702 * 7));
  struct Row {
    float gate, up;
    double due;
  };
  constexpr float kLarge = 1e4F;
  const Row rows[] = {{kNan, 1, kNan},         {1, kNan, kNan},
                      {kNan, kNan, kNan},      {kInfinity, 0, most},
                      {kLarge, 0, most},       {7, kInfinity, 8 * most},
                      {7, kLarge, 8 * most},   {7, -kInfinity, -6 * most},
                      {7, -kLarge, -6 * most}, {-kLarge, 1, 0},
                      {0, kInfinity, 0},       {7, -1, 0}};
  for (const bool swap_ab : {false, true}) {
    for (const bool interleaved : {false, true}) {
      GroupedProduct product({"limits",
                              {.activation = Activation::swiglu_oai,
                               .gated = true,
                               .bias = Bias::columns,
                               .interleaved = interleaved},
                              false,
                              false,
                              true},
                             17);
      // Without a product the biases say all.
      product.o.alpha = 0;
      std::vector<float> bias(kN, 0);
      for (std::size_t i = 0; i < std::size(rows); ++i) {
        bias[interleaved ? 2 * i : i] = rows[i].gate;
        bias[interleaved ? 2 * i + 1 : i + kN / 2] = rows[i].up;
      }
      product.o.bias = matrix(bias.data(), DType::f32, kN, 1);
      const auto made = must(plan(product.o, model_facts(3), {.swap_ab = swap_ab}));
      const auto report = must(device::launch_on_model(*made, product.o));
      EXPECT_TRUE(report->clean()) << report->text();
      for (std::size_t i = 0; i < std::size(rows); ++i) {
        SCOPED_TRACE(i);
        const double got = product.d(4, static_cast<std::int64_t>(i));
        EXPECT_EQ(std::isnan(got), std::isnan(rows[i].due));
        if (std::isnan(rows[i].due)) continue;
        EXPECT_NEAR(got, rows[i].due, 0.005 * std::abs(rows[i].due));
      }
    }
  }
}

void expect_refused(const GemmOperands& o, RefusalCode code, const char* words) {
  const auto made = plan(o, model_facts());
  ASSERT_FALSE(made.ok()) << "expected: " << words;
  EXPECT_EQ(made.code(), code);
  expect_contains(made.reason(), words);
}

TEST(GroupEpilogue, RefusesWhatDoesNotGoTogether) {
  const GroupedProduct product({"gated", {.activation = Activation::silu, .gated = true}}, 3);
  GemmOperands o = product.o;
  o.d.batch = 2;
  expect_refused(o, RefusalCode::bad_shape, "the rows of all groups are one matrix");
  o = product.o;
  o.beta = 1;
  o.c = o.d;
  expect_refused(o, RefusalCode::unsupported, "a gated product takes no C");
  o = product.o;
  o.b.row_stride = 1;
  o.b.column_stride = kN;
  expect_refused(o, RefusalCode::unsupported, "which take only K-major operands");
  o = product.o;
  o.groups.reset();
  expect_refused(o, RefusalCode::bad_shape, "B is a batch of 4");
  auto problem = packed_problem(64, 64, 64, DType::e4m3, DType::bf16);
  problem.scaling = Scaling::group;
  expect_contains(why_not(plan(problem, model_facts())), "has no groups");
  const auto other = plan(problem, model_facts(), {.tile_tokens = 16});
  ASSERT_FALSE(other.ok());
}

}  // namespace
}  // namespace warpwright
