// One product on the model against float64, with its operands, edges and guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "warpwright/device/model.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright {

inline std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct Case {
  int m = 0;
  int n = 0;
  int k = 0;
  atom::ClusterShape cluster;
  int tile_n = 128;
  DType operand = DType::bf16;
  std::optional<DType> operand_b = {};  ///< when it is not A's
  DType result = DType::bf16;
  float alpha = 1.0F;
  float beta = 0.0F;
  int d_pad = 0;    ///< elements between the rows of D
  int d_shift = 0;  ///< elements by which D starts late
  int c_pad = 0;
  int c_shift = 0;
  bool in_place = false;
  PlanChoices choices = {};  ///< beside cluster and tile
  int architecture = 90;
  int sms = 16;
};

inline std::string text(const Case& c) {
  std::string s = std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k);
  s += " cluster " + std::to_string(c.cluster.m) + "x" + std::to_string(c.cluster.n);
  s += " tile " + std::to_string(c.tile_n) + " " + std::string(numeric::name(c.operand)) + " -> " +
       std::string(numeric::name(c.result));
  s += " alpha " + std::to_string(c.alpha) + " beta " + std::to_string(c.beta);
  s += " D " + std::to_string(c.d_pad) + "/" + std::to_string(c.d_shift) + " C " +
       std::to_string(c.c_pad) + "/" + std::to_string(c.c_shift) + (c.in_place ? " in place" : "");
  return s;
}

/// A matrix of narrow elements with room before, between and after its rows, all of it the same
/// odd code, which is a NaN in every float type.
class Tensor {
 public:
  Tensor(DType type, int rows, int columns, int pitch, int shift)
      : type_(type), rows_(rows), columns_(columns), pitch_(pitch), shift_(shift) {
    bytes_.assign(
        64 + static_cast<std::size_t>(width()) * index(2 * guard + shift + rows * pitch + 1), 0xff);
  }
  static constexpr int guard = 64;

  [[nodiscard]] int width() const { return numeric::bits(type_) / 8; }
  unsigned char* origin() {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return bytes_.data() + ((at + 63) / 64 * 64 - at);
  }
  unsigned char* element(std::int64_t i, std::int64_t j) {
    return origin() + (guard + shift_ + i * pitch_ + j) * width();
  }
  MatrixView view() { return {element(0, 0), type_, rows_, columns_, pitch_}; }
  void set(int i, int j, double x) {
    const std::uint64_t code = numeric::from_double(type_, x);
    std::memcpy(element(i, j), &code, static_cast<std::size_t>(width()));
  }
  double get(int i, int j) {
    std::uint64_t code = 0;
    std::memcpy(&code, element(i, j), static_cast<std::size_t>(width()));
    return numeric::to_double(type_, code);
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < rows_; ++i) {
      for (int j = 0; j < columns_; ++j) set(i, j, static_cast<int>(random() % 33) / 16.0 - 1.0);
    }
  }
  /// Bytes outside the elements that are no longer what they were.
  int disturbed() {
    std::vector<unsigned char> copy = bytes_;
    for (int i = 0; i < rows_; ++i) {
      const std::ptrdiff_t at = element(i, 0) - bytes_.data();
      std::fill_n(copy.begin() + at, columns_ * width(), static_cast<unsigned char>(0xff));
    }
    int count = 0;
    for (const unsigned char b : copy) count += b != 0xff ? 1 : 0;
    return count;
  }

 private:
  DType type_;
  int rows_;
  int columns_;
  int pitch_;
  int shift_;
  std::vector<unsigned char> bytes_;
};

/// Runs the case on the model and compares D with float64. Returns D's bytes.
inline std::vector<unsigned char> expect_right(const Case& c, const device::ModelOptions& how) {
  SCOPED_TRACE(text(c) + (how.mode == model::Mode::random ? ", random, seed " : ", mode ") +
               std::to_string(how.mode == model::Mode::random
                                  ? how.seed
                                  : static_cast<std::uint64_t>(how.mode)));
  const int k_pitch = (c.k + 15) / 16 * 16 + 16;
  Tensor a(c.operand, c.m, c.k, k_pitch, 0);
  Tensor b(c.operand_b.value_or(c.operand), c.n, c.k, k_pitch, 0);
  Tensor d(c.result, c.m, c.n, c.n + c.d_pad, c.d_shift);
  Tensor source(c.result, c.m, c.n, c.n + c.c_pad, c.c_shift);
  a.fill(1);
  b.fill(2);
  source.fill(3);
  if (c.in_place) d.fill(3);
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  o.c = c.in_place ? o.d : source.view();
  o.alpha = c.alpha;
  o.beta = c.beta;
  PlanChoices choices = c.choices;
  choices.cluster = c.cluster;
  choices.tile_n = c.tile_n;
  const auto made = plan(o, model_facts(c.sms, c.architecture), choices);
  EXPECT_TRUE(made.ok()) << made.reason();
  if (!made.ok()) return {};
  const auto report = device::launch_on_model(*made, o, how);
  EXPECT_TRUE(report.ok()) << report.reason();
  if (!report.ok()) return {};
  EXPECT_TRUE(report->clean()) << report->text();

  int wrong = 0;
  double worst = 0;
  for (int i = 0; i < c.m; ++i) {
    std::vector<double> row(static_cast<std::size_t>(c.k));
    for (int x = 0; x < c.k; ++x) row[static_cast<std::size_t>(x)] = a.get(i, x);
    for (int j = 0; j < c.n; ++j) {
      double sum = 0;
      double size = 0;
      // Every element of the first rows and columns, of the last ones, and some between.
      if (i > 3 && i < c.m - 3 && j > 3 && j < c.n - 3 && (i * 7 + j) % 13 != 0) {
        if (std::isnan(d.get(i, j))) ++wrong;
        continue;
      }
      for (int x = 0; x < c.k; ++x) {
        const double product = row[static_cast<std::size_t>(x)] * b.get(j, x);
        sum += product;
        size += std::fabs(product);
      }
      double want = static_cast<double>(c.alpha) * sum;
      if (c.beta != 0) want += static_cast<double>(c.beta) * source.get(i, j);
      const double slack = (c.k + 8) * std::ldexp(std::fabs(c.alpha) * size + 2, -24) +
                           0.51 * numeric::ulp(c.result, want);
      const double off = std::fabs(d.get(i, j) - want);
      if (!(off <= slack)) ++wrong;
      worst = std::max(worst, off);
    }
  }
  EXPECT_EQ(wrong, 0) << "elements of D; the largest difference is " << worst;
  EXPECT_EQ(d.disturbed(), 0) << "bytes outside D";
  EXPECT_EQ(source.disturbed(), 0);
  std::vector<unsigned char> bytes;
  for (int i = 0; i < c.m; ++i) {
    bytes.insert(bytes.end(), d.element(i, 0), d.element(i, 0) + c.n * d.width());
  }
  return bytes;
}

inline device::ModelOptions mode(model::Mode m, std::uint64_t seed = 1) {
  device::ModelOptions how;
  how.mode = m;
  how.seed = seed;
  return how;
}

}  // namespace warpwright
