// What int4 weights cost in accuracy, and what the three ways of multiplying them by e4m3 tokens
// add to it, against float64. The tables of docs/packing.md are what the campaign's size prints.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "tests/campaign.h"
#include "tests/must.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {
namespace {

constexpr int kRows = 32;
constexpr int kTokens = 4;

float rounded(DType type, double x) {
  return static_cast<float>(numeric::to_double(
      type,
      numeric::from_double(type, x, numeric::Rounding::nearest_even, numeric::Overflow::saturate)));
}

// Adds 32 products to a sum as Hopper's tensor core does for 8-bit operands: all are cut off 13
// bits below the leading one of the largest.
float add_step(float sum, const float* a, const float* b) {
  float largest = std::abs(sum);
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(a[i] * b[i]));
  if (largest == 0) return 0;
  const float unit = std::ldexp(1.0F, std::ilogb(largest) - 13);
  float total = std::trunc(sum / unit);
  for (int i = 0; i < 32; ++i) total += std::trunc(a[i] * b[i] / unit);
  return total * unit;
}

enum class Tokens { normal, positive, outliers };
constexpr const char* kTokenNames[] = {"normal", "positive (max(x, 0))", "outliers (1% x 30)"};

struct Errors {
  double promoted, chained, folded, powers, naive;
};

// The way of an error's square, relative to the results' own.
struct Mean {
  double error = 0;
  double size = 0;
  void add(double got, double want) {
    error += (got - want) * (got - want);
    size += want * want;
  }
  [[nodiscard]] double relative() const { return std::sqrt(error / size); }
};

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

PlainWeights quantised(std::vector<float>& values, int k, const QuantiseOptions& options) {
  const MatrixView view = matrix(values.data(), DType::f32, kRows, k);
  const auto w = must(quantise(std::span(&view, 1), options));
  return *w;
}

// Tokens as e4m3 codes' values, each row scaled to the largest.
std::vector<float> tokens_of(Tokens kind, int k) {
  std::vector<float> x = normal_values(static_cast<std::size_t>(kTokens * k), 11);
  std::mt19937 random(12);
  std::vector<bool> is_outlier(static_cast<std::size_t>(k));
  for (int i = 0; i < k; ++i) is_outlier[static_cast<std::size_t>(i)] = random() % 100 == 0;
  for (int t = 0; t < kTokens; ++t) {
    float* const row = x.data() + t * k;
    float largest = 0;
    for (int i = 0; i < k; ++i) {
      if (kind == Tokens::positive) row[i] = std::max(row[i], 0.0F);
      if (kind == Tokens::outliers && is_outlier[static_cast<std::size_t>(i)]) row[i] *= 30;
      largest = std::max(largest, std::abs(row[i]));
    }
    for (int i = 0; i < k; ++i) row[i] = rounded(DType::e4m3, row[i] * 448 / largest);
  }
  return x;
}

Errors errors_of(const PlainWeights& w, Tokens kind) {
  const int k = static_cast<int>(w.extents.k);
  const std::vector<float> x = tokens_of(kind, k);
  Mean promoted;
  Mean chained;
  Mean folded;
  Mean powers;
  Mean naive;
  std::vector<float> code(static_cast<std::size_t>(k));
  std::vector<float> scale(code.size());
  std::vector<float> by_table(code.size());
  std::vector<float> by_power(code.size());
  std::vector<float> by_f16(code.size());
  double top = 0;  // the largest value of all: the naive way's one factor puts it to 448
  for (const float v : values_of(w)) top = std::max(top, std::abs(static_cast<double>(v)));
  const double whole = std::exp2(std::floor(std::log2(448 / top)));
  for (int n = 0; n < kRows; ++n) {
    double largest = 0;
    for (int i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(i);
      code[at] = static_cast<float>(code_of(w, 0, n, i)) / 512;
      scale[at] = static_cast<float>(scale_of(w, 0, n, i)) * 512;
      largest = std::max(largest, scale_of(w, 0, n, i));
    }
    const double row_factor = largest * 8 / 448;
    const double row_power = std::exp2(std::floor(std::log2(largest)) - 4);
    for (int i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float q = code[at] * 512;
      const double s = static_cast<double>(scale[at]) / 512;
      by_table[at] = rounded(DType::e4m3, q * rounded(DType::e4m3, s / row_factor));
      by_power[at] = rounded(DType::e4m3, q * s / row_power);
      by_f16[at] = rounded(DType::e4m3, whole * rounded(DType::f16, q * rounded(DType::f16, s)));
    }
    for (int t = 0; t < kTokens; ++t) {
      const float* const token = x.data() + t * k;
      double exact = 0;
      float total = 0;
      float chain = 0;
      float group = 0;
      float table = 0;
      float power = 0;
      float f16 = 0;
      for (int i = 0; i < k; i += 32) {
        const auto at = static_cast<std::size_t>(i);
        for (int j = 0; j < 32; ++j) {
          exact += static_cast<double>(code[at + j]) * static_cast<double>(scale[at]) *
                   static_cast<double>(token[i + j]);
        }
        if (i % w.group == 0 && i > 0) {
          total += group * scale[at - 1];
          group = 0;
          chain *= scale[at - 1] / scale[at];
        }
        group = add_step(group, code.data() + i, token + i);
        chain = add_step(chain, code.data() + i, token + i);
        table = add_step(table, by_table.data() + i, token + i);
        power = add_step(power, by_power.data() + i, token + i);
        f16 = add_step(f16, by_f16.data() + i, token + i);
      }
      total += group * scale.back();
      promoted.add(total, exact);
      chained.add(chain * scale.back(), exact);
      folded.add(table * row_factor, exact);
      powers.add(power * row_power, exact);
      naive.add(f16 / whole, exact);
    }
  }
  return {promoted.relative(), chained.relative(), folded.relative(), powers.relative(),
          naive.relative()};
}

TEST(AccuracyTest, WaysOfMultiplying) {
  const int k = campaign() ? 8192 : 1024;
  std::vector<float> values = normal_values(static_cast<std::size_t>(kRows) * k, 3);
  for (const int group : {32, 128}) {
    const PlainWeights w = quantised(values, k, {Int4Encoding::ex, group, DType::bf16});
    for (const Tokens kind : {Tokens::normal, Tokens::positive, Tokens::outliers}) {
      const Errors e = errors_of(w, kind);
      std::printf("| %d | %d | %s | %.1e | %.1e | %.1e | %.1e | %.1e |\n", k, group,
                  kTokenNames[static_cast<int>(kind)], e.promoted, e.chained, e.folded, e.powers,
                  e.naive);
      EXPECT_LT(e.promoted, 1e-3);
      EXPECT_LT(e.promoted, e.chained);
      EXPECT_LT(e.chained, 0.02);
      EXPECT_LT(4 * e.promoted, e.folded);
      EXPECT_LT(e.folded, 0.06);
      EXPECT_LT(e.powers, e.folded);
      EXPECT_LT(e.naive, 0.06);
    }
  }
}

TEST(AccuracyTest, Quantising) {
  const int k = campaign() ? 8192 : 1024;
  std::vector<float> values = normal_values(static_cast<std::size_t>(kRows) * k, 3);
  double before = 0;
  for (const int group : {32, 64, 128}) {
    double error[2];
    for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
      const std::vector<float> back =
          values_of(quantised(values, k, {encoding, group, DType::bf16}));
      Mean mean;
      for (std::size_t i = 0; i < values.size(); ++i) {
        mean.add(static_cast<double>(back[i]), static_cast<double>(values[i]));
      }
      error[static_cast<int>(encoding)] = mean.relative();
    }
    std::printf("| %d | %.4f | %.4f |\n", group, error[0], error[1]);
    EXPECT_LT(error[1], error[0]);  // sm has one code less
    EXPECT_GT(error[1], before);    // larger groups have larger scales
    EXPECT_LT(error[0], 0.12);
    before = error[1];
  }
}

}  // namespace
}  // namespace warpwright::weights
