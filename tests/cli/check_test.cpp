#include "cli/compute/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/reference.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::cli {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A matrix of a type that remembers its codes.
struct Matrix {
  DType dtype;
  std::int64_t rows, columns;
  std::vector<std::byte> bytes;

  Matrix(DType t, std::int64_t m, std::int64_t n) : dtype(t), rows(m), columns(n) {
    bytes.resize(static_cast<std::size_t>(m * n * size()));
  }
  std::int64_t size() const { return numeric::bits(dtype) / 8; }
  void set_code(std::int64_t i, std::int64_t j, std::uint64_t code) {
    std::memcpy(bytes.data() + (i * columns + j) * size(), &code, static_cast<std::size_t>(size()));
  }
  void set(std::int64_t i, std::int64_t j, double x) {
    set_code(i, j, numeric::from_double(dtype, x));
  }
  std::uint64_t code(std::int64_t i, std::int64_t j) const {
    std::uint64_t c = 0;
    std::memcpy(&c, bytes.data() + (i * columns + j) * size(), static_cast<std::size_t>(size()));
    return c;
  }
  double at(std::int64_t i, std::int64_t j) const { return numeric::to_double(dtype, code(i, j)); }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) set(i, j, normal(random));
    }
  }
  Matrix transpose() const {
    Matrix t(dtype, columns, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) t.set_code(j, i, code(i, j));
    }
    return t;
  }
  MatrixView view() const { return matrix(data(), dtype, rows, columns); }
  // The same elements of which the transpose is stored.
  MatrixView view_of_transpose() const { return {data(), dtype, columns, rows, 1, columns}; }

 private:
  void* data() const { return const_cast<std::byte*>(bytes.data()); }
};

GemmOperands product_of(const Matrix& a, const Matrix& b, const Matrix& d) {
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  return o;
}

// What a correct kernel gives: fp32 accumulation in k order, one rounding at the end.
Matrix gemm(const Matrix& a, const Matrix& b, DType dtype, float alpha = 1, float beta = 0,
            const Matrix* c = nullptr) {
  Matrix d(dtype, a.rows, b.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.rows; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < a.columns; ++k) {
        sum += static_cast<float>(a.at(i, k)) * static_cast<float>(b.at(j, k));
      }
      sum *= alpha;
      if (c != nullptr) sum += beta * static_cast<float>(c->at(i, j));
      d.set_code(i, j, reference::code_of(dtype, static_cast<double>(sum)));
    }
  }
  return d;
}

TEST(Check, ACorrectResultPassesInEveryType) {
  for (const DType in :
       {DType::f32, DType::tf32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::s8}) {
    for (const DType out : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
      Matrix a(in, 37, 70);
      Matrix b(in, 29, 70);
      a.fill(1);
      b.fill(2);
      const CheckResult result = check_gemm(product_of(a, b, gemm(a, b, out)));
      EXPECT_TRUE(result.passed) << numeric::name(in) << " " << describe(result);
      EXPECT_EQ(result.elements, 37 * 29);
      EXPECT_LE(result.worst_ratio, 1.0);
    }
  }
}

TEST(Check, AlphaBetaAndC) {
  Matrix a(DType::bf16, 150, 300);
  Matrix b(DType::bf16, 140, 300);
  Matrix c(DType::f16, 150, 140);
  a.fill(1);
  b.fill(2);
  c.fill(3);
  const Matrix d = gemm(a, b, DType::bf16, -0.37f, 2.5f, &c);
  GemmOperands p = product_of(a, b, d);
  p.alpha = -0.37f;
  p.beta = 2.5f;
  p.c = c.view();
  EXPECT_TRUE(check_gemm(p).passed) << describe(check_gemm(p));
  p.beta = 2.4f;
  EXPECT_FALSE(check_gemm(p).passed);
  p.beta = 2.5f;
  p.alpha = 0.37f;
  EXPECT_FALSE(check_gemm(p).passed);
}

TEST(Check, TransposedOperands) {
  Matrix a(DType::f16, 133, 61);
  Matrix b(DType::bf16, 135, 61);
  a.fill(1);
  b.fill(2);
  const Matrix d = gemm(a, b, DType::f16);
  const Matrix at = a.transpose();
  const Matrix bt = b.transpose();
  const Matrix dt = d.transpose();
  GemmOperands p = product_of(a, b, d);
  const CheckResult plain = check_gemm(p);
  p.a = at.view_of_transpose();
  p.b = bt.view_of_transpose();
  p.d = dt.view_of_transpose();
  const CheckResult transposed = check_gemm(p);
  EXPECT_TRUE(transposed.passed) << describe(transposed);
  EXPECT_EQ(plain.worst_ratio, transposed.worst_ratio);
  EXPECT_EQ(plain.worst_row, transposed.worst_row);
}

TEST(Check, OneWrongElementIsFoundWhereverItIs) {
  Matrix a(DType::bf16, 200, 300);
  Matrix b(DType::bf16, 260, 300);
  a.fill(1);
  b.fill(2);
  const Matrix good = gemm(a, b, DType::bf16);
  ASSERT_TRUE(check_gemm(product_of(a, b, good)).passed);
  for (const auto& [row, col] : std::vector<std::pair<int, int>>{
           {0, 0}, {0, 259}, {199, 0}, {199, 259}, {127, 128}, {128, 127}, {63, 200}}) {
    Matrix bad = good;
    bad.set_code(row, col, bad.code(row, col) ^ 2);  // two ulps of bf16
    const CheckResult result = check_gemm(product_of(a, b, bad));
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.failures, 1);
    EXPECT_EQ(result.worst_row, row);
    EXPECT_EQ(result.worst_col, col);
    EXPECT_EQ(result.worst_got, bad.at(row, col));
    EXPECT_GT(result.worst_error, result.worst_allowed);
    const std::string where = "D[" + std::to_string(row) + ", " + std::to_string(col) + "]";
    EXPECT_NE(describe(result).find(where), std::string::npos) << describe(result);
    EXPECT_TRUE(describe(result).starts_with("1 of 52000 elements is wrong")) << describe(result);
  }
}

TEST(Check, TheResultDoesNotDependOnTheThreads) {
  Matrix a(DType::f16, 300, 100);
  Matrix b(DType::f16, 290, 100);
  a.fill(1);
  b.fill(2);
  Matrix d = gemm(a, b, DType::f32);
  d.set(5, 140, d.at(5, 140) + 1);
  d.set(150, 7, kNan);
  d.set(150, 200, kNan);
  const GemmOperands p = product_of(a, b, d);
  CheckSettings settings;
  double last = 0;
  settings.progress = [&](double share) {
    EXPECT_GT(share, last);
    last = share;
  };
  settings.threads = 1;
  const CheckResult one = check_gemm(p, settings);
  EXPECT_EQ(last, 1.0);
  EXPECT_EQ(one.failures, 3);
  EXPECT_EQ(one.worst_row, 150);
  EXPECT_EQ(one.worst_col, 7) << "of two equally bad ones the first";
  for (const int threads : {2, 3, 8, 100}) {
    settings.threads = threads;
    last = 0;
    const CheckResult many = check_gemm(p, settings);
    EXPECT_EQ(many.failures, one.failures);
    EXPECT_EQ(many.worst_row, one.worst_row);
    EXPECT_EQ(many.worst_col, one.worst_col);
    EXPECT_EQ(many.worst_want, one.worst_want);
  }
}

// A 1 x 1 x K problem whose sum is `want`, and D as given.
CheckResult check_one(double x, double y, DType dtype, std::uint64_t code, float alpha = 1,
                      DType in = DType::f32) {
  Matrix a(in, 1, 1);
  Matrix b(in, 1, 1);
  Matrix d(dtype, 1, 1);
  a.set(0, 0, x);
  b.set(0, 0, y);
  d.set_code(0, 0, code);
  GemmOperands p = product_of(a, b, d);
  p.alpha = alpha;
  return check_gemm(p);
}

TEST(Check, ToleranceIsHalfAnUlpPlusTheAccumulator) {
  // R = 1 + 2^-8 is a tie of bf16: both neighbours are half an ulp away.
  EXPECT_TRUE(check_one(1 + 0x1p-8, 1, DType::bf16, 0x3f80).passed);
  EXPECT_TRUE(check_one(1 + 0x1p-8, 1, DType::bf16, 0x3f81).passed);
  EXPECT_FALSE(check_one(1 + 0x1p-8, 1, DType::bf16, 0x3f82).passed);
  EXPECT_FALSE(check_one(1 + 0x1p-8, 1, DType::bf16, 0x3f7f).passed);
  // Beside the tie the wrong neighbour passes only as far as one fp32 step reaches.
  EXPECT_TRUE(check_one(1 + 0x1p-8 + 0x1p-24, 1, DType::bf16, 0x3f80).passed);
  EXPECT_FALSE(check_one(1 + 0x1p-8 + 0x1p-22, 1, DType::bf16, 0x3f80).passed);
  const CheckResult result = check_one(1 + 0x1p-8 + 0x1p-22, 1, DType::bf16, 0x3f80);
  EXPECT_EQ(result.worst_error, 0x1p-8 + 0x1p-22);
  EXPECT_NEAR(result.worst_allowed, 0x1p-8 + 0x1p-24 * (1 + 0x1p-8), 1e-12);
}

TEST(Check, TheAccumulatorsShareGrowsWithK) {
  const std::int64_t k = 1024;
  Matrix a(DType::f32, 1, k);
  Matrix b(DType::f32, 1, k);
  for (std::int64_t i = 0; i < k; ++i) {  // R = 0, the sum of |ab| = k
    a.set(0, i, i % 2 == 0 ? 1 : -1);
    b.set(0, i, 1);
  }
  Matrix d(DType::f32, 1, 1);
  const double bound = static_cast<double>(k * k) * 0x1p-24;
  d.set(0, 0, bound);
  EXPECT_TRUE(check_gemm(product_of(a, b, d)).passed);
  d.set(0, 0, bound * 1.0001);
  EXPECT_FALSE(check_gemm(product_of(a, b, d)).passed);
  GemmOperands p = product_of(a, b, d);
  CheckSettings worse;
  worse.accumulator_epsilon = 0x1p-13;
  EXPECT_TRUE(check_gemm(p, worse).passed);
  p.alpha = 2;
  EXPECT_TRUE(check_gemm(p).passed) << "alpha scales the share";
}

TEST(Check, Overflow) {
  EXPECT_TRUE(check_one(300, 300, DType::f16, 0x7c00).passed);
  EXPECT_FALSE(check_one(300, 300, DType::f16, 0x7bff).passed) << "saturated";
  EXPECT_FALSE(check_one(300, 300, DType::f16, 0xfc00).passed) << "sign";
  EXPECT_FALSE(check_one(300, 300, DType::f16, 0x7fff).passed) << "NaN";
  EXPECT_TRUE(check_one(300, -300, DType::f16, 0xfc00).passed);
  EXPECT_TRUE(check_one(65519, 1, DType::f16, 0x7bff).passed);
  EXPECT_FALSE(check_one(65500, 1, DType::f16, 0x7c00).passed);
  EXPECT_TRUE(check_one(65520, 1, DType::f16, 0x7c00).passed);
  EXPECT_FALSE(check_one(65540, 1, DType::f16, 0x7bff).passed);
  EXPECT_TRUE(check_one(1e30, 1e30, DType::f32, 0x7f800000).passed);
  EXPECT_TRUE(check_one(1000, 1, DType::e4m3, 0x7e).passed);
  EXPECT_TRUE(check_one(1000, -1, DType::e4m3, 0xfe).passed);
  EXPECT_FALSE(check_one(1000, 1, DType::e4m3, 0x7f).passed);
  EXPECT_FALSE(check_one(1000, 1, DType::e4m3, 0x7c).passed);
  EXPECT_TRUE(check_one(1e9, 1, DType::e5m2, 0x7b).passed);
  EXPECT_FALSE(check_one(1e9, 1, DType::e5m2, 0x7c).passed);
}

TEST(Check, NanAndInfinity) {
  EXPECT_TRUE(check_one(kNan, 1, DType::bf16, 0x7fff).passed);
  EXPECT_TRUE(check_one(kInf, 0, DType::f32, 0xffc00000).passed);
  EXPECT_FALSE(check_one(kNan, 1, DType::bf16, 0x3f80).passed);
  EXPECT_FALSE(check_one(kNan, 1, DType::bf16, 0x7f80).passed);
  EXPECT_TRUE(check_one(kNan, 1, DType::e4m3, 0x7f).passed);
  EXPECT_FALSE(check_one(1, 1, DType::bf16, 0x7fff).passed);
  EXPECT_FALSE(check_one(1, 1, DType::bf16, 0x7f80).passed);
  EXPECT_TRUE(check_one(-kInf, 1, DType::bf16, 0xff80).passed);
  EXPECT_FALSE(check_one(-kInf, 1, DType::bf16, 0x7f80).passed);
  EXPECT_FALSE(check_one(-kInf, 1, DType::bf16, 0xff7f).passed);
  EXPECT_TRUE(check_one(kInf, 1, DType::e5m2, 0x7b).passed);
  EXPECT_TRUE(check_one(kNan, 1, DType::f32, 0, 0).passed) << "alpha = 0 drops the product";
  const CheckResult result = check_one(1, 1, DType::bf16, 0x7fff);
  EXPECT_EQ(result.worst_ratio, kInf);
  EXPECT_NE(describe(result).find("is nan where 1 is due."), std::string::npos) << describe(result);
}

TEST(Check, SaysHowOverflowCounts) {
  const auto said = [](const CheckResult& result) {
    EXPECT_TRUE(result.passed);
    return describe(result);
  };
  CheckResult result = check_one(300, 300, DType::f16, 0x7c00);
  EXPECT_EQ(result.infinite, 1);
  EXPECT_EQ(result.worst_row, -1);  // nothing was measured
  EXPECT_EQ(said(result),
            "All 1 elements are right: 1 is infinite as float64 is beyond fp16's largest number, "
            "6.55e+04.");
  result = check_one(1000, 1, DType::e4m3, 0x7e);
  EXPECT_EQ(result.saturated, 1);
  EXPECT_EQ(said(result),
            "All 1 elements are right: 1 is e4m3's largest number, 448, as float64 is beyond.");
  result = check_one(kNan, 1, DType::bf16, 0x7fff);
  EXPECT_EQ(result.nan, 1);
  EXPECT_EQ(said(result), "All 1 elements are right: 1 is NaN as float64 is.");

  // Beside elements that are measured.
  Matrix a(DType::f32, 2, 1);
  Matrix b(DType::f32, 3, 1);
  Matrix d(DType::f16, 2, 3);
  a.set(0, 0, 1);
  a.set(1, 0, 60000);
  for (int j = 0; j < 3; ++j) {
    b.set(j, 0, 2 + j);
    d.set(0, j, 2 + j);
    d.set(1, j, kInf);
  }
  result = check_gemm(product_of(a, b, d));
  EXPECT_EQ(result.infinite, 3);
  EXPECT_EQ(
      said(result),
      "All 6 elements are right: 3 are infinite as float64 is beyond fp16's largest number, "
      "6.55e+04; the worst of the others, D[0, 0], is 2 where 2 is due: off by 0, allowed are "
      "0.000976681709.");
  // A finite number there is wrong, and counted as that alone.
  d.set(1, 1, 65504);
  result = check_gemm(product_of(a, b, d));
  EXPECT_EQ(result.failures, 1);
  EXPECT_EQ(result.infinite, 2);
  EXPECT_EQ(describe(result), "1 of 6 elements is wrong: D[1, 1] is 65504 where 180000 is due.");
}

// Two products of 3e38 that cancel overflow in fp32, whatever the exact sum says.
TEST(Check, OverflowOnTheWayIsTolerated) {
  Matrix a(DType::f32, 1, 2);
  Matrix b(DType::f32, 1, 2);
  a.set(0, 0, 3e38);
  a.set(0, 1, -3e38);
  b.set(0, 0, 2);
  b.set(0, 1, 2);
  Matrix d(DType::f32, 1, 1);
  for (const double x : {kNan, kInf, -kInf, 0.0}) {
    d.set(0, 0, x);
    const CheckResult result = check_gemm(product_of(a, b, d));
    EXPECT_TRUE(result.passed) << x;
    EXPECT_EQ(result.overflowed, x == 0 ? 0 : 1) << x;
    if (x == 0) continue;
    EXPECT_EQ(describe(result),
              "All 1 elements are right: 1 is infinite or NaN where float32 may overflow on the "
              "way.");
  }
}

TEST(Check, TinyValues) {
  // The product underflows in fp32: zero is right, and so is the smallest subnormal beside it.
  EXPECT_TRUE(check_one(1e-30, 1e-30, DType::f32, 0).passed);
  EXPECT_TRUE(check_one(0x1p-100, 0x1p-49, DType::f32, 1).passed);
  EXPECT_FALSE(check_one(0x1p-100, 0x1p-45, DType::f32, 0).passed);
  EXPECT_TRUE(check_one(0x1p-25, 1, DType::f16, 0).passed);
  EXPECT_TRUE(check_one(0, 1, DType::f32, 0x80000000).passed);
}

TEST(Check, EmptyExtents) {
  const Matrix a(DType::f16, 3, 0);
  const Matrix b(DType::f16, 2, 0);
  Matrix d(DType::f16, 3, 2);
  EXPECT_TRUE(check_gemm(product_of(a, b, d)).passed);
  d.set(1, 1, 1);
  EXPECT_EQ(check_gemm(product_of(a, b, d)).failures, 1);
  const Matrix none(DType::f16, 0, 2);
  const CheckResult result = check_gemm(product_of(Matrix(DType::f16, 0, 5), b, none));
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.elements, 0);
  EXPECT_EQ(result.worst_row, -1);
  EXPECT_NE(describe(result).find("nothing to check"), std::string::npos);
}

TEST(Check, RefusesWhatItCannotCheck) {
  const Matrix a(DType::f16, 1, 1);
  const Matrix d(DType::u8, 1, 1);
  EXPECT_THROW(check_gemm(product_of(a, a, d)), InputError);
  EXPECT_THROW(check_gemm(product_of(d, a, a)), InputError);
  GemmOperands p = product_of(a, a, a);
  p.a.rows = -1;
  EXPECT_THROW(check_gemm(p), InputError);
  const auto stop = [](double) { throw std::runtime_error("stop"); };
  EXPECT_THROW(check_gemm(product_of(a, a, a), {.progress = stop}), std::runtime_error);
}

// --- scaled, batched and fused products ----------------------------------------------------------

float as_float(double x) {
  return static_cast<float>(x);
}

// One step of Hopper's 8-bit multiplication: up to 32 products and the sum so far, each cut off 13
// bits below the leading one of the largest of them.
double narrow_step(double sum, const std::vector<double>& products) {
  double largest = std::abs(sum);
  for (const double p : products) largest = std::max(largest, std::abs(p));
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 13);
  double total = std::trunc(sum / unit) * unit;
  for (const double p : products) total += std::trunc(p / unit) * unit;
  return total;
}

// A product of everything that a check knows, in the roles of both kernel and question.
struct Fused {
  Matrix a, b, d;
  Matrix scale_a{DType::f32, 1, 1}, scale_b{DType::f32, 1, 1}, bias{DType::f32, 1, 1};
  GemmOperands asked;

  Fused(DType in, DType out, std::int64_t m, std::int64_t n, std::int64_t k, bool gated = false)
      : a(in, m, k), b(in, n, k), d(out, m, gated ? n / 2 : n) {
    a.fill(1);
    b.fill(2);
    asked = product_of(a, b, d);
    asked.epilogue.gated = gated;
    if (gated) asked.epilogue.activation = Activation::silu;
  }

  static Matrix positive(std::int64_t rows, std::int64_t columns, unsigned seed) {
    Matrix s(DType::f32, rows, columns);
    s.fill(seed);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) s.set(i, j, std::abs(s.at(i, j)) + 0.25);
    }
    return s;
  }

  void scale(Scaling scaling) {
    asked.scaling = scaling;
    const bool row = scaling == Scaling::row_column;
    const bool block = scaling == Scaling::block;
    const std::int64_t columns = block ? (a.columns + 127) / 128 : 1;
    scale_a = positive(row || block ? a.rows : 1, columns, 5);
    scale_b = positive(row ? b.rows : block ? (b.rows + 127) / 128 : 1, columns, 6);
    asked.scale_a = scale_a.view();
    asked.scale_b = scale_b.view();
  }

  void add_bias(Bias along) {
    asked.epilogue.bias = along;
    bias = Matrix(DType::f32, along == Bias::rows ? a.rows : b.rows, 1);
    bias.fill(7);
    for (std::int64_t i = 0; i < bias.rows; ++i) bias.set(i, 0, 8 * bias.at(i, 0));
    asked.bias = bias.view();
  }

  // What a kernel has before the activation: float32 around the tensor core's own sums.
  [[nodiscard]] float before(std::int64_t i, std::int64_t j) const {
    const bool narrow = numeric::bits(a.dtype) == 8 && numeric::is_float(a.dtype);
    const bool blocks = asked.scaling == Scaling::block;
    const bool promoted = narrow && (blocks || asked.accumulation == Accumulation::promoted);
    const auto at = [&](const Matrix& s, std::int64_t row, std::int64_t block) {
      if (asked.scaling == Scaling::tensor) return s.at(0, 0);
      return asked.scaling == Scaling::row_column ? s.at(row, 0) : s.at(row, block);
    };
    float total = 0;
    double sum = 0;
    for (std::int64_t k = 0; k < a.columns; k += 32) {
      std::vector<double> products;
      for (std::int64_t l = k; l < std::min(k + 32, a.columns); ++l) {
        products.push_back(a.at(i, l) * b.at(j, l));
      }
      if (narrow) {
        sum = narrow_step(sum, products);
      } else {
        for (const double p : products) sum = static_cast<double>(as_float(sum + p));
      }
      const bool last = k + 32 >= a.columns;
      if (!last && !(promoted && (k + 32) % 128 == 0)) continue;
      float factor = 1;
      if (asked.scaling != Scaling::none) {
        factor = as_float(at(scale_a, i, k / 128)) *
                 as_float(at(scale_b, blocks ? j / 128 : j, k / 128));
      }
      total += factor * as_float(sum);
      sum = 0;
    }
    total *= asked.alpha;
    if (asked.epilogue.bias == Bias::rows) total += as_float(bias.at(i, 0));
    if (asked.epilogue.bias == Bias::columns) total += as_float(bias.at(j, 0));
    return total;
  }

  // Fills D, with the halves of a gated product exchanged if asked for.
  void run(bool swap_halves = false) {
    const std::int64_t half = d.columns;
    for (std::int64_t i = 0; i < d.rows; ++i) {
      for (std::int64_t j = 0; j < d.columns; ++j) {
        float x =
            tests::activated(asked.epilogue.activation, before(i, swap_halves ? j + half : j));
        if (asked.epilogue.gated) x *= before(i, swap_halves ? j : j + half);
        if (asked.scale_d.data != nullptr) {
          float scale = 0;
          std::memcpy(&scale, asked.scale_d.data, sizeof scale);
          x *= scale;
        }
        d.set_code(i, j, reference::code_of(d.dtype, static_cast<double>(x)));
      }
    }
  }

  [[nodiscard]] CheckResult result() const { return check_gemm(asked); }
};

TEST(FusedCheck, ScaledProductsPassAndWrongScalesFail) {
  for (const Scaling scaling : {Scaling::tensor, Scaling::row_column, Scaling::block}) {
    for (const Accumulation sums : {Accumulation::fast, Accumulation::promoted}) {
      for (const DType out : {DType::bf16, DType::f32, DType::e4m3}) {
        Fused f(DType::e4m3, out, 20, 140, 272);
        f.scale(scaling);
        f.asked.accumulation = sums;
        f.run();
        EXPECT_TRUE(f.result().passed) << describe(f.result());
        // One scale off by an eighth: everything that it scales is wrong.
        const float right = as_float(f.scale_b.at(0, 0));
        f.scale_b.set(0, 0, static_cast<double>(right) * 1.125);
        const CheckResult wrong = f.result();
        EXPECT_FALSE(wrong.passed);
        EXPECT_GT(wrong.failures, out == DType::e4m3 ? 1 : 10) << describe(wrong);
        f.scale_b.set(0, 0, static_cast<double>(right));
        f.asked.scaling = Scaling::none;
        EXPECT_FALSE(f.result().passed) << "no scales at all";
      }
    }
  }
}

// Sums of s8 are exact: what is allowed are the roundings around them.
TEST(FusedCheck, ScaledIntegers) {
  for (const Scaling scaling : {Scaling::none, Scaling::tensor, Scaling::row_column}) {
    Fused f(DType::s8, DType::f32, 20, 140, 272);
    f.scale(scaling);
    f.run();
    EXPECT_TRUE(f.result().passed) << describe(f.result());
    f.d.set(3, 5, f.d.at(3, 5) * (1 + 0x1p-13));
    EXPECT_EQ(f.result().failures, 1) << describe(f.result());
  }
}

// The tensor core reads the upper 19 bits of a word.
TEST(FusedCheck, WordsOfTf32AreCut) {
  Matrix a(DType::tf32, 1, 1);
  Matrix d(DType::f32, 1, 1);
  a.set_code(0, 0, 0x3fffffffU);  // almost 2
  const double cut = 2 - 0x1p-10;
  d.set(0, 0, cut * cut);
  EXPECT_TRUE(check_gemm(product_of(a, a, d)).passed);
  d.set(0, 0, 4);
  EXPECT_FALSE(check_gemm(product_of(a, a, d)).passed);
}

TEST(FusedCheck, BlockScalesBelongToTheirBlock) {
  Fused f(DType::e5m2, DType::bf16, 30, 260, 384);
  f.scale(Scaling::block);
  f.run();
  ASSERT_TRUE(f.result().passed) << describe(f.result());
  for (const auto& [row, block] : std::vector<std::pair<int, int>>{{0, 2}, {1, 1}, {2, 0}}) {
    const double right = f.scale_b.at(row, block);
    f.scale_b.set(row, block, right * 1.5);
    const CheckResult wrong = f.result();
    EXPECT_FALSE(wrong.passed);
    EXPECT_EQ(wrong.worst_col / 128, row) << describe(wrong);
    f.scale_b.set(row, block, right);
  }
  EXPECT_TRUE(f.result().passed);
}

TEST(FusedCheck, BiasAndActivations) {
  for (const Activation activation : all_activations) {
    for (const Bias bias : {Bias::rows, Bias::columns}) {
      Fused f(DType::bf16, DType::bf16, 50, 70, 64);
      f.asked.epilogue.activation = activation;
      f.asked.alpha = 0.25F;
      f.add_bias(bias);
      f.run();
      EXPECT_TRUE(f.result().passed) << describe(f.result());
      f.asked.epilogue.bias = Bias::none;
      EXPECT_FALSE(f.result().passed) << "a missing bias";
      f.asked.epilogue.bias = bias;
      f.asked.epilogue.activation =
          activation == Activation::silu ? Activation::gelu : Activation::silu;
      EXPECT_FALSE(f.result().passed) << "another activation";
    }
  }
}

TEST(FusedCheck, GatedHalvesHaveTheirOrder) {
  for (const DType in : {DType::f16, DType::e4m3}) {
    for (const DType out : {DType::bf16, DType::e4m3}) {
      Fused f(in, out, 33, 160, 96, true);
      f.asked.alpha = 0.125F;
      f.run();
      EXPECT_TRUE(f.result().passed) << describe(f.result());
      EXPECT_EQ(f.result().elements, 33 * 80);
      f.run(true);
      EXPECT_FALSE(f.result().passed) << "exchanged halves";
    }
  }
}

TEST(FusedCheck, TheScaleOfTheResultSaturates) {
  Fused f(DType::e4m3, DType::e4m3, 20, 24, 64);
  float scale = 40;
  f.asked.scale_d = matrix(&scale, DType::f32, 1, 1);
  f.run();
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    for (std::int64_t j = 0; j < 24; ++j) largest += std::abs(f.d.at(i, j)) == 448 ? 1 : 0;
  }
  EXPECT_GT(largest, 10) << "the test wants values beyond the largest";
  EXPECT_TRUE(f.result().passed) << describe(f.result());
  scale = 36;
  EXPECT_FALSE(f.result().passed);
}

TEST(FusedCheck, BatchesAndTheirSharedMatrices) {
  // Three products with one B, in one tensor after the other.
  const std::int64_t m = 140;
  const std::int64_t n = 30;
  const std::int64_t k = 48;
  Matrix a(DType::bf16, 3 * m, k);
  Matrix b(DType::bf16, n, k);
  a.fill(1);
  b.fill(2);
  Matrix d = gemm(a, b, DType::bf16);
  GemmOperands p = product_of(a, b, d);
  p.a.rows = p.d.rows = m;
  p.a.batch = p.d.batch = 3;
  p.a.batch_stride = m * k;
  p.d.batch_stride = m * n;
  const CheckResult right = check_gemm(p);
  EXPECT_TRUE(right.passed) << describe(right);
  EXPECT_EQ(right.elements, 3 * m * n);
  const double kept = d.at(2 * m + 5, 7);
  d.set(2 * m + 5, 7, 1000);
  const CheckResult wrong = check_gemm(p);
  EXPECT_EQ(wrong.failures, 1);
  EXPECT_NE(describe(wrong).find("D[2, 5, 7]"), std::string::npos) << describe(wrong);
  d.set(2 * m + 5, 7, kept);
  p.a.batch_stride = 0;
  EXPECT_FALSE(check_gemm(p).passed) << "the first A for all";
}

TEST(FusedCheck, AnUnpromotedSumFails) {
  // One large product, then many that the narrow sum cuts off.
  Fused f(DType::e4m3, DType::f32, 3, 5, 4096);
  for (std::int64_t k = 0; k < 4096; ++k) {
    for (std::int64_t i = 0; i < 3; ++i) f.a.set(i, k, k == 0 ? 256 : 0.25);
    for (std::int64_t j = 0; j < 5; ++j) f.b.set(j, k, k == 0 ? 64 : 4);
  }
  f.asked.accumulation = Accumulation::promoted;
  f.run();
  const double promoted = f.d.at(0, 0);
  EXPECT_TRUE(f.result().passed) << describe(f.result());
  f.asked.accumulation = Accumulation::fast;
  f.run();
  EXPECT_LT(f.d.at(0, 0), 0.9 * promoted) << "the inputs show nothing";
  EXPECT_TRUE(f.result().passed) << "fast may lose them: " << describe(f.result());
  f.asked.accumulation = Accumulation::promoted;
  EXPECT_FALSE(f.result().passed) << describe(f.result());
}

TEST(FusedCheck, TheNarrowBoundIsNoFreePass) {
  // Random products of fp8, long ones: a K block left out is seen, with either accumulation.
  for (const Accumulation sums : {Accumulation::fast, Accumulation::promoted}) {
    Fused f(DType::e4m3, DType::bf16, 64, 64, 2048);
    f.asked.accumulation = sums;
    f.run();
    const CheckResult right = f.result();
    EXPECT_TRUE(right.passed) << describe(right);
    EXPECT_LT(right.worst_allowed, sums == Accumulation::fast ? 16.0 : 4.0)
        << "sums have a deviation of 45";
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t k = 1024; k < 1152; ++k) f.a.set(i, k, 0);
    }
    EXPECT_FALSE(f.result().passed);
  }
}

TEST(FusedCheck, PoisonShowsInEveryType) {
  for (const DType out : {DType::e4m3, DType::e5m2, DType::bf16, DType::f32}) {
    Fused f(DType::e5m2, out, 9, 9, 64);
    f.asked.epilogue.activation = Activation::gelu;
    f.run();
    ASSERT_TRUE(f.result().passed) << describe(f.result());
    f.d.set_code(3, 4, ~std::uint64_t{0});
    const CheckResult result = f.result();
    EXPECT_EQ(result.failures, 1) << numeric::name(out);
    EXPECT_EQ(result.worst_ratio, kInf);
  }
}

TEST(FusedCheck, RefusesScalesOfWideOperands) {
  Fused f(DType::bf16, DType::bf16, 4, 4, 16);
  f.scale(Scaling::tensor);
  EXPECT_THROW(static_cast<void>(f.result()), InputError);
}

}  // namespace
}  // namespace warpwright::cli
