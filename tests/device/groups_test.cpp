// Products in groups through the public calls, on the model: every epilogue that whole products
// have, against sums in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/reference.h"
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
  const auto made = plan(product.o, model_facts(3), choices);
  ASSERT_TRUE(made.ok()) << made.reason();
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest, model::Mode::random}) {
    GroupedProduct again(ask, 11);
    device::ModelOptions how;
    how.mode = mode;
    how.seed = 5;
    const auto report = device::launch_on_model(*made, again.o, how);
    ASSERT_TRUE(report.ok()) << report.reason();
    EXPECT_TRUE(report->clean()) << report->text();
    EXPECT_EQ(again.fault(), "") << made->name();
  }
}

constexpr Ask kAsks[] = {
    {"plain", {}},
    {"gelu", {.activation = Activation::gelu}},
    {"silu_gated", {.activation = Activation::silu, .gated = true}},
    {"gated_with_bias", {.activation = Activation::silu, .gated = true, .bias = Bias::columns}},
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
TEST(GroupEpilogue, GatedWithBlockScales) {
  constexpr std::int64_t n = 512;                       // two blocks of weights in each half
  constexpr std::int64_t k = 256;                       // two blocks of K
  const std::vector<std::uint8_t> a(kTotal * k, 0x38);  // 1
  const std::vector<std::uint8_t> b(kGroups * n * k, 0x38);
  std::vector<float> scale_a(kTotal * 2);
  std::vector<float> scale_b(kGroups * 4 * 2);
  for (std::size_t i = 0; i < scale_a.size(); ++i) scale_a[i] = static_cast<float>(i % 7 + 1) / 64;
  for (std::size_t i = 0; i < scale_b.size(); ++i) scale_b[i] = static_cast<float>(i % 5 + 1) / 64;
  for (const bool swap_ab : {false, true}) {
    std::vector<bf16_t> out(static_cast<std::size_t>(kTotal * n / 2), bf16_t(std::nanf("")));
    GemmOperands o;
    o.a = matrix(const_cast<std::uint8_t*>(a.data()), DType::e4m3, kTotal, k);
    o.b = matrix(const_cast<std::uint8_t*>(b.data()), DType::e4m3, n, k);
    o.b.batch = kGroups;
    o.b.batch_stride = n * k;
    o.d = matrix(out.data(), DType::bf16, kTotal, n / 2);
    o.scaling = Scaling::blockwise;
    o.scale_a = matrix(scale_a.data(), DType::f32, kTotal, 2);
    o.scale_b = matrix(scale_b.data(), DType::f32, 4, 2);
    o.scale_b.batch = kGroups;
    o.scale_b.batch_stride = 8;
    o.epilogue = {.activation = Activation::silu, .gated = true};
    o.groups = Groups{.offsets = kOffsets.data()};
    const auto made = plan(o, model_facts(3), {.swap_ab = swap_ab});
    ASSERT_TRUE(made.ok()) << made.reason();
    const auto report = device::launch_on_model(*made, o);
    ASSERT_TRUE(report.ok()) << report.reason();
    EXPECT_TRUE(report->clean()) << report->text();
    for (std::int64_t g = 0; g < kGroups; ++g) {
      for (int row = kOffsets[static_cast<std::size_t>(g)];
           row < kOffsets[static_cast<std::size_t>(g) + 1]; ++row) {
        for (std::int64_t column = 0; column < n / 2; ++column) {
          const auto half = [&](std::int64_t block) {
            double sum = 0;
            for (std::int64_t x = 0; x < 2; ++x) {
              sum += 128.0 * scale_a[static_cast<std::size_t>(row * 2 + x)] *
                     scale_b[static_cast<std::size_t>(g * 8 + block * 2 + x)];
            }
            return sum;
          };
          const double want =
              tests::activated(Activation::silu, half(column / 128)) * half(column / 128 + 2);
          ASSERT_NEAR(float(out[static_cast<std::size_t>(row * n / 2 + column)]), want, 0.01 * want)
              << made->name() << " group " << g << " row " << row << " column " << column;
        }
      }
    }
  }
}

void expect_refused(const GemmOperands& o, RefusalCode code, const char* words) {
  const auto made = plan(o, model_facts());
  ASSERT_FALSE(made.ok()) << "expected: " << words;
  EXPECT_EQ(made.code(), code);
  EXPECT_NE(made.reason().find(words), std::string::npos) << made.reason();
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
  expect_refused(o, RefusalCode::unsupported, "which take K-major operands");
  o = product.o;
  o.groups.reset();
  expect_refused(o, RefusalCode::bad_shape, "B is a batch of 4");
  auto problem = packed_problem(64, 64, 64, DType::e4m3, DType::bf16);
  problem.scaling = Scaling::group;
  const auto made = plan(problem, model_facts());
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.reason().find("has no groups"), std::string::npos) << made.reason();
  const auto other = plan(problem, model_facts(), {.tile_tokens = 16});
  ASSERT_FALSE(other.ok());
}

}  // namespace
}  // namespace warpwright
