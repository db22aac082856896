// The formulas of the reference against numbers and places written down by hand.
#include "warpwright/reference/formulas.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace warpwright::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Formulas, Activations) {
  struct Row {
    Activation activation;
    double at_1, at_minus_2;
  };
  // By an arbitrary-precision calculator.
  const Row rows[] = {
      {Activation::none, 1, -2},
      {Activation::relu, 1, 0},
      {Activation::gelu, 0.84119199060827677, -0.045402305912224981},
      {Activation::silu, 0.73105857863000488, -0.23840584404423511},
      {Activation::quick_gelu, 0.84579576593282130, -0.064341376855791850},
      {Activation::relu2, 1, 0},
      {Activation::swiglu_oai, 0.84579576593282130, -0.064341376855791850},  // of the gate
      {Activation::gelu_erf, 0.84134474606854295, -0.045500263896358418},
  };
  ASSERT_EQ(std::size(rows), std::size(all_activations)) << "an activation has no numbers here";
  for (const Row& row : rows) {
    SCOPED_TRACE(name(row.activation));
    const ActivationForm form = form_of(row.activation);
    EXPECT_NEAR(activated(form, 1.0), row.at_1, 1e-14);
    EXPECT_NEAR(activated(form, -2.0), row.at_minus_2, 1e-14);
    EXPECT_NEAR(activated(form, 1.0F), row.at_1, 2e-7);
    EXPECT_EQ(activated(form, 0.0), 0);
    // Far from 0 they are x or 0, and NaN stays.
    EXPECT_EQ(activated(form, 800.0), form.squares ? 640000 : 800);
    EXPECT_EQ(activated(form, kInfinity), kInfinity);
    EXPECT_EQ(activated(form, -kInfinity), row.activation == Activation::none ? -kInfinity : 0);
    EXPECT_TRUE(std::isnan(activated(form, kNan)));
    if (form.squares) continue;  // that has no steepest slope
    double slope = 0;
    for (double x = -6; x < 6; x += 0x1p-10) {
      const double step = activated(form, x + 0x1p-20) - activated(form, x);
      slope = std::max(slope, std::abs(step) * 0x1p20);
    }
    EXPECT_LE(slope, steepest(form) * (1 + 1e-9));
    EXPECT_GE(slope, steepest(form) * 0.96);
  }
}

// The scale of an element, found by what is written into its place.
class Scales : public ::testing::Test {
 protected:
  static constexpr std::int64_t rows = 300;  // of either operand
  static constexpr std::int64_t depth = 384;
  static constexpr std::int64_t matrices = 3;

  Scales() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i);
    o_.a = matrix(nullptr, DType::e4m3, rows, depth);
    o_.b = o_.a;
    o_.b.batch = matrices;
  }
  MatrixView scales(std::int64_t m, std::int64_t n, std::int64_t batch = 1) {
    MatrixView v = matrix(values_.data(), DType::f32, m, n);
    v.batch = batch;
    v.batch_stride = batch == 1 ? 0 : m * n;
    return v;
  }
  double a(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t k) const {
    return scale_of(o_, Side::a, batch, group, row, k);
  }
  double b(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t k) const {
    return scale_of(o_, Side::b, batch, group, row, k);
  }

  std::vector<float> values_ = std::vector<float>(4096);
  GemmOperands o_;
};

TEST_F(Scales, OfTensorsAndGroups) {
  o_.scale_a = o_.scale_b = scales(1, 1, matrices);
  EXPECT_EQ(a(2, 0, 100, 200), 1) << "no scaling";
  o_.scaling = Scaling::tensor;
  EXPECT_EQ(a(2, 0, 100, 200), 2);
  EXPECT_EQ(b(0, 1, 100, 200), 1);
  o_.scaling = Scaling::group;
  o_.scale_a = scales(1, 1);
  o_.scale_b = scales(matrices, 1);
  o_.scale_b.row_stride = 5;
  EXPECT_EQ(a(0, 2, 100, 200), 0) << "one for all groups";
  EXPECT_EQ(b(0, 2, 100, 200), 10);
  o_.scale_a = o_.scale_b;
  EXPECT_EQ(a(0, 2, 100, 200), 10);
  o_.scale_b.data = nullptr;
  EXPECT_EQ(b(0, 2, 100, 200), 1) << "packed weights may be without";
}

TEST_F(Scales, OfRowsAndBlocks) {
  o_.scaling = Scaling::row_column;
  o_.scale_a = scales(rows, 1);
  o_.scale_b = scales(rows, 1, matrices);
  EXPECT_EQ(a(2, 0, 100, 200), 100) << "one matrix serves the batch";
  EXPECT_EQ(b(0, 2, 100, 200), 2 * rows + 100);
  o_.scaling = Scaling::blockwise;
  o_.scale_a = scales(rows, 3);
  EXPECT_EQ(a(0, 0, 7, 127), 21);
  EXPECT_EQ(a(0, 0, 7, 128), 22);
  o_.scale_a.row_stride = 1;  // tokens side by side
  o_.scale_a.column_stride = rows;
  EXPECT_EQ(a(0, 0, 7, 383), 2 * rows + 7);
  o_.scale_b = scales(3, 3, matrices);
  EXPECT_EQ(b(0, 0, 127, 0), 0);
  EXPECT_EQ(b(0, 0, 128, 0), 3);
  EXPECT_EQ(b(0, 1, 299, 383), 9 + 8);
}

// Tiles of 128 rows x 4 blocks, 512 bytes each, one row of tiles after the other.
TEST_F(Scales, OfMicroBlocks) {
  std::vector<std::uint8_t> codes(matrices * 384 * depth / 16);
  const auto with = [&](DType type, int block, std::size_t place, std::int64_t matrix,
                        std::int64_t row, std::int64_t k) {
    o_.a.dtype = type;
    o_.scaling = Scaling::block_scaled;
    const std::int64_t columns = depth / block;
    o_.scale_a = {codes.data(), micro_scale(type), 384, columns, columns, 1,
                  matrices,     384 * columns};
    codes.assign(codes.size(), type == DType::e2m1 ? 0x38 : 127);
    codes[place] = type == DType::e2m1 ? 0x40 : 128;  // 2 among ones
    EXPECT_EQ(a(matrix, 0, row, k), 2);
    EXPECT_EQ(a(matrix, 0, row, k / block * block), 2) << "all of the block";
    EXPECT_EQ(a(matrix, 0, row, k / block * block + block - 1), 2);
    EXPECT_EQ(a(matrix, 0, row ^ 1, k), 1);
    EXPECT_EQ(a(matrix == 0 ? 1 : 0, 0, row, k), 1);
  };
  with(DType::e4m3, 32, 0, 0, 0, 31);
  with(DType::e4m3, 32, 512 + 16 + 4 + 1, 0, 33, 160);  // the sixth block: the second tile
  with(DType::e4m3, 32, 3 * 512, 0, 128, 5);            // three tiles along K
  with(DType::e4m3, 32, 384 * 12 + 2, 1, 0, 64);
  with(DType::e2m1, 16, 512 + 16 + 4 + 1, 0, 33, 80);
  with(DType::e2m1, 16, 6 * 512, 0, 128, 5);
  with(DType::e2m3, 32, 512 + 16 + 4 + 1, 0, 33, 160);
}

// The type of the scales says how many elements share one: the same elements as mxf4.
TEST_F(Scales, OfMicroBlocksByTheScalesType) {
  std::vector<std::uint8_t> codes(384 * depth / 32, 127);
  o_.a.dtype = DType::e2m1;
  o_.scaling = Scaling::block_scaled;
  o_.scale_a = {codes.data(), DType::ue8m0, 384, depth / 32, depth / 32};
  codes[1] = 129;
  EXPECT_EQ(a(0, 0, 0, 31), 1);
  EXPECT_EQ(a(0, 0, 0, 32), 4);
  EXPECT_EQ(a(0, 0, 0, 63), 4);
  EXPECT_EQ(a(0, 0, 0, 64), 1);
}

TEST(Formulas, AlphaBetaAndTheBias) {
  float c[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float bias[] = {10, 20, 30, 40};
  GemmOperands o;
  o.a.columns = 1;  // alpha is of sums that there are
  o.alpha = 0.5F;
  o.beta = 2;
  EXPECT_EQ(before_activation(o, 0, 0, 1, 1, 8), 4) << "no C";
  o.c = matrix(c, DType::f32, 2, 2);
  o.c.batch = 2;
  o.c.batch_stride = 4;
  EXPECT_EQ(before_activation(o, 1, 0, 0, 1, 8), 4 + 2 * 6);
  o.epilogue.bias = Bias::rows;
  o.bias = matrix(bias, DType::f32, 2, 1);
  o.bias.batch = 2;
  o.bias.batch_stride = 2;
  EXPECT_EQ(before_activation(o, 1, 0, 0, 1, 8), 4 + 2 * 6 + 30);
  o.epilogue.bias = Bias::columns;
  EXPECT_EQ(before_activation(o, 1, 0, 0, 1, 8), 4 + 2 * 6 + 20);
  EXPECT_EQ(before_activation(o, 0, 1, 0, 1, 8), 4 + 2 * 2 + 40);
  o.alpha = 0;
  EXPECT_EQ(before_activation(o, 0, 0, 0, 0, kNan), 2 + 10) << "alpha 0 drops NaN";
  c[0] = std::numeric_limits<float>::quiet_NaN();
  o.beta = 0;
  EXPECT_EQ(before_activation(o, 0, 0, 0, 0, 1), 10) << "and beta 0 drops C's";
}

// A square is as far off as its root may be: at 3 +- 0.5 by 3.5^2 - 3^2, at -1 +- 2 by 1.
TEST(Formulas, OfASquareTheBound) {
  const ActivationForm form = form_of(Activation::relu2);
  const auto at = [&](double x, double off) {
    return activated<Roundings::left_out>(form, Bounded<double>{x, off});
  };
  EXPECT_EQ(at(3, 0.5).value, 9);
  EXPECT_EQ(at(3, 0.5).bound, 3.25);
  EXPECT_EQ(at(-1, 2).value, 0);
  EXPECT_GE(at(-1, 2).bound, 1);
  EXPECT_EQ(at(-5, 0).bound, 0);
  EXPECT_TRUE(std::isnan(at(kNan, 0).value));
}

TEST(Formulas, TheGateAndTheScaleOfD) {
  float scale = 3;
  GemmOperands o;
  o.epilogue = {.activation = Activation::relu, .gated = true};
  o.scale_d = matrix(&scale, DType::f32, 1, 1);
  const Bounded<double> x{2, 0.5};
  const Bounded<double> gate{-5, 0.25};
  const auto d = finished<Roundings::left_out>(o, {}, x, gate);
  EXPECT_EQ(d.value, -30);
  // The farthest of (2 +- 0.5) * (-5 -+ 0.25): 2.5 * 5.25 is 3.125 more than 10.
  EXPECT_EQ(d.bound, 3 * 3.125);
  const auto rounded = finished<Roundings::counted>(o, {}, x, gate);
  EXPECT_EQ(rounded.value, d.value);
  EXPECT_GT(rounded.bound, d.bound);
  EXPECT_LT(rounded.bound, d.bound + 1e-5);
  const auto steep = finished<Roundings::left_out>(o, {}, x, gate, 1.2);
  EXPECT_GT(steep.bound, d.bound);
}

// As gpt-oss has it: min(gate, 7), and up within -7 and 7, plus 1.
TEST(Formulas, AGateWithLimits) {
  GemmOperands o;
  o.epilogue = {.activation = Activation::swiglu_oai, .gated = true};
  const auto d = [&o](double gate, double up, double of_gate = 0, double of_up = 0) {
    return finished<Roundings::left_out>(o, {}, Bounded<double>{gate, of_gate},
                                         Bounded<double>{up, of_up});
  };
  constexpr double at_7 = 6.9999531283033172;  // by an arbitrary-precision calculator
  EXPECT_NEAR(d(1, 0.5).value, 1.5 * 0.84579576593282130, 1e-14);
  EXPECT_NEAR(d(-2, 3).value, 4 * -0.064341376855791850, 1e-14);
  EXPECT_NEAR(d(9, 0).value, at_7, 1e-13);
  EXPECT_NEAR(d(kInfinity, 9).value, 8 * at_7, 1e-13);
  EXPECT_NEAR(d(7, -kInfinity).value, -6 * at_7, 1e-13);
  EXPECT_EQ(d(-kInfinity, 1).value, 0);
  EXPECT_TRUE(std::isnan(d(kNan, 1).value));
  EXPECT_TRUE(std::isnan(d(1, kNan).value));
  EXPECT_TRUE(std::isnan(d(kNan, kInfinity).value));
  // What is surely beyond a limit is known; what may be within it is not.
  EXPECT_EQ(d(20, 30, 2, 3).bound, 0);
  EXPECT_EQ(d(kInfinity, -kInfinity, kInfinity, kInfinity).bound, 0);
  EXPECT_GT(d(7.5, 0, 1).bound, 0.9);
  EXPECT_GT(d(7, 7.5, 0, 1).bound, 6);
  EXPECT_GT(d(7, -7.5, 0, 1).bound, 6);
  // Numbers of a model: silu cut at 10, as DeepSeek-V4 has it; or none, and a half beside up.
  o.epilogue = {.activation = Activation::silu, .gated = true, .gate = GateNumbers{1, 0, 10}};
  constexpr double at_10 = 9.9995460213129757;
  EXPECT_NEAR(d(11, 2).value, 2 * at_10, 1e-13);
  EXPECT_NEAR(d(1, -12).value, -10 * 0.73105857863000488, 1e-14);
  EXPECT_EQ(d(1, -12, 0, 1).bound, 0);
  o.epilogue.gate = GateNumbers{1.702F, 0.5F};
  EXPECT_NEAR(d(1, 20).value, 20.5 * 0.84579576593282130, 1e-6);
  EXPECT_NEAR(d(800, -20).value, -19.5 * 800, 1e-10);
  o.epilogue = {.activation = Activation::swiglu_oai, .gated = true};
  const auto counted = finished<Roundings::counted>(o, {}, Bounded<double>{2}, Bounded<double>{3});
  EXPECT_GT(counted.bound, 0);
  EXPECT_LT(counted.bound, 1e-4);
}

TEST(Formulas, WhatTypesHold) {
  EXPECT_EQ(saturated(DType::e4m3, 1000.0), 448);
  EXPECT_EQ(saturated(DType::e5m2, -1e9), -57344);
  EXPECT_EQ(saturated(DType::f16, 1e9), 1e9);
  EXPECT_TRUE(std::isnan(saturated(DType::e4m3, kNan)));
  EXPECT_EQ(rounded(DType::e4m3, 1000), 448);
  EXPECT_EQ(rounded(DType::f16, 1e9), kInfinity);
  EXPECT_EQ(rounded(DType::bf16, 1 + 0x1p-9), 1);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for (const double x : {0.0, 0x1p-20, 0.3, 1.0, 1.99, 200.0}) {
      EXPECT_GE(spacing(type, x), numeric::ulp(type, x)) << numeric::name(type) << " " << x;
      EXPECT_LE(spacing(type, x), 2.01 * numeric::ulp(type, x) + 0x1p-16);
    }
  }
}

TEST(Formulas, ElementsOfEveryWidth) {
  const std::uint8_t bytes[] = {0x27, 0xc0, 0x80, 0x3f, 0xc0, 0x3f, 0x00, 0x40};
  EXPECT_EQ(read(bytes, DType::e2m1, 0), 6);
  EXPECT_EQ(read(bytes, DType::e2m1, 1), 1);
  EXPECT_EQ(read(bytes, DType::s4, 3), -4);
  EXPECT_EQ(read(bytes, DType::s8, 1), -64);
  EXPECT_EQ(read(bytes, DType::bf16, 1), 1);
  EXPECT_EQ(read(bytes, DType::bf16, 2), 1.5);
  EXPECT_EQ(read(bytes, DType::f32, 1), 2 + 0x3fc0 * 0x1p-22);
  EXPECT_EQ(packed_value(-3, 0.5), -1.5);
  // Four of 6 bits in three bytes: 0x0f, 0x20, 0x1f and 0x2a, from the low bits up.
  const std::uint8_t dense[] = {0x0f, 0xf8, 0xa9, 0x3f};
  for (const auto& [type, values] : {std::pair{DType::e2m3, std::array{1.875, -0.0, 7.5, -1.25}},
                                     {DType::e3m2, std::array{1.75, -0.0, 28.0, -0.75}}}) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(read(dense, type, static_cast<std::int64_t>(i)), values[i]) << i;
    }
  }
  EXPECT_EQ(read(dense, DType::e2m3, 4), -7.5);
  EXPECT_EQ(packed_value(-3, 0.5, 2), 1.5);
}

}  // namespace
}  // namespace warpwright::reference
