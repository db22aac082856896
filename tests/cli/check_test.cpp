// The comparison with float64 where no product of the command line reaches it: types, threads,
// progress. The rest is in transcripts/wrong.txt.
#include "cli/compute/check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "warpwright/numeric/float_format.h"

namespace warpwright::cli {
namespace {

// A matrix of zeros of a type.
struct Matrix {
  DType dtype;
  std::int64_t rows, columns;
  std::vector<std::byte> bytes;

  Matrix(DType t, std::int64_t m, std::int64_t n)
      : dtype(t), rows(m), columns(n), bytes(static_cast<std::size_t>(m * n * size())) {}
  std::int64_t size() const { return numeric::bits(dtype) / 8; }
  void set_code(std::int64_t i, std::int64_t j, std::uint64_t code) {
    std::memcpy(bytes.data() + (i * columns + j) * size(), &code, static_cast<std::size_t>(size()));
  }
  void set(std::int64_t i, std::int64_t j, double x) {
    set_code(i, j, numeric::from_double(dtype, x));
  }
};

GemmOperands product_of(const Matrix& a, const Matrix& b, const Matrix& d) {
  const auto view = [](const Matrix& m) {
    return matrix(const_cast<std::byte*>(m.bytes.data()), m.dtype, m.rows, m.columns);
  };
  GemmOperands o;
  o.a = view(a);
  o.b = view(b);
  o.d = view(d);
  return o;
}

TEST(Check, EveryType) {
  for (const DType in :
       {DType::f32, DType::tf32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::s8}) {
    for (const DType out : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
      Matrix a(in, 3, 70);
      Matrix b(in, 2, 70);
      Matrix d(out, 3, 2);
      for (int k = 0; k < 70; k += 9) {
        a.set(2, k, 3);
        b.set(1, k, k % 2 == 0 ? 2 : -1);
      }
      d.set(2, 1, 12);  // four times 6, four times -3
      EXPECT_TRUE(check_gemm(product_of(a, b, d)).passed)
          << numeric::name(in) << numeric::name(out);
      d.set_code(0, 1, ~std::uint64_t{0});  // poison
      EXPECT_EQ(check_gemm(product_of(a, b, d)).failures, 1) << numeric::name(out);
    }
  }
}

// For e5m2 the largest number, for words of tf32 the upper 19 bits, for a worse accumulator more.
TEST(Check, WhatNoProductReaches) {
  Matrix a(DType::f32, 1, 1);
  Matrix b(DType::f32, 1, 1);
  Matrix small(DType::e5m2, 1, 1);
  b.set(0, 0, 1);
  for (const double x : {1e9, std::numeric_limits<double>::infinity()}) {
    a.set(0, 0, x);
    small.set_code(0, 0, 0x7b);
    EXPECT_TRUE(check_gemm(product_of(a, b, small)).passed) << x;
    small.set_code(0, 0, 0x7c);
    EXPECT_FALSE(check_gemm(product_of(a, b, small)).passed) << x;
  }
  Matrix word(DType::tf32, 1, 1);
  word.set_code(0, 0, 0x3fffffffU);  // almost 2
  const double cut = 2 - 0x1p-10;
  Matrix d(DType::f32, 1, 1);
  d.set(0, 0, cut * cut);
  EXPECT_TRUE(check_gemm(product_of(word, word, d)).passed);
  d.set(0, 0, 4);
  const GemmOperands o = product_of(word, word, d);
  EXPECT_FALSE(check_gemm(o).passed);
  CheckSettings worse;
  worse.accumulator_epsilon = 0x1p-7;
  EXPECT_TRUE(check_gemm(o, worse).passed);
}

TEST(Check, TheResultDoesNotDependOnTheThreads) {
  const Matrix a(DType::f16, 300, 100);
  const Matrix b(DType::f16, 290, 100);
  Matrix d(DType::f32, 300, 290);
  d.set(5, 140, 1);
  d.set(150, 7, std::numeric_limits<double>::quiet_NaN());
  d.set(150, 200, std::numeric_limits<double>::quiet_NaN());
  CheckSettings settings;
  double last = 0;
  settings.progress = [&](double share) {
    EXPECT_GT(share, last);
    last = share;
  };
  for (const int threads : {1, 2, 3, 8, 100}) {
    settings.threads = threads;
    last = 0;
    const CheckResult found = check_gemm(product_of(a, b, d), settings);
    EXPECT_EQ(last, 1.0);
    EXPECT_EQ(found.failures, 3);
    EXPECT_EQ(found.worst_row, 150);
    EXPECT_EQ(found.worst_col, 7) << "of two equally bad ones the first";
  }
}

TEST(Check, RefusesWhatItCannotCheck) {
  const Matrix a(DType::f16, 1, 1);
  const Matrix d(DType::u8, 1, 1);
  EXPECT_THROW(check_gemm(product_of(a, a, d)), InputError);
  EXPECT_THROW(check_gemm(product_of(d, a, a)), InputError);
  GemmOperands p = product_of(a, a, a);
  p.a.rows = -1;
  EXPECT_THROW(check_gemm(p), InputError);
  p = product_of(a, a, a);
  p.scaling = Scaling::tensor;  // of wide operands
  EXPECT_THROW(check_gemm(p), InputError);
  CheckSettings stops;
  stops.progress = [](double) { throw std::runtime_error("stop"); };
  EXPECT_THROW(check_gemm(product_of(a, a, a), stops), std::runtime_error);
}

}  // namespace
}  // namespace warpwright::cli
