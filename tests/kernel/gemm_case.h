// One product on the model against float64, with its operands, edges and guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference.h"
#include "warpwright/device/model.h"

namespace warpwright {

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
  int batch = 1;        ///< of A, B, C and D; scales and biases serve all of it
  bool shared = false;  ///< A, B, C, scales and bias are one matrix by a batch stride of 0
  Scaling scaling = Scaling::none;  ///< none, tensor or row_column
  Bias bias = Bias::none;
  Activation activation = Activation::none;
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
  s += " batch " + std::to_string(c.batch) + (c.shared ? " of one matrix" : "") + " scaling " +
       std::to_string(static_cast<int>(c.scaling)) + " bias " +
       std::to_string(static_cast<int>(c.bias)) + " activation " +
       std::to_string(static_cast<int>(c.activation));
  return s;
}

using tests::Tensor;

/// The tensors of a case.
struct CaseTensors {
  explicit CaseTensors(const Case& c)
      : pitch((c.k + 15) / 16 * 16 + 16),
        a(batch_of(c.operand, c, c.m, c.k, pitch)),
        b(batch_of(c.operand_b.value_or(c.operand), c, c.n, c.k, pitch)),
        d(batch_of(c.result, c, c.m, c.n, c.n + c.d_pad, c.d_shift)),
        source(batch_of(c.result, c, c.m, c.n, c.n + c.c_pad, c.c_shift)),
        scale_a(DType::f32, c.scaling == Scaling::row_column ? c.m : 1, 1, 1),
        scale_b(DType::f32, c.scaling == Scaling::row_column ? c.n : 1, 1, 1),
        bias(DType::f32, c.bias == Bias::rows ? c.m : c.n, 1, 1) {
    unsigned seed = 0;
    for (Tensor* t : {&a, &b, &source, &scale_a, &scale_b, &bias}) {
      if (c.shared) t->share(c.batch);
      t->fill_sixteenths(++seed);
    }
    if (c.in_place) d.fill_sixteenths(3);
  }

  /// One matrix below the other.
  static Tensor batch_of(DType type, const Case& c, int rows, int columns, int pitch,
                         int shift = 0) {
    return {type, rows, columns, pitch, 1, c.batch, std::int64_t{rows} * pitch, shift};
  }

  [[nodiscard]] GemmOperands operands(const Case& c) const {
    GemmOperands o;
    o.a = a.view();
    o.b = b.view();
    o.d = d.view();
    o.c = c.in_place ? o.d : source.view();
    o.alpha = c.alpha;
    o.beta = c.beta;
    o.scaling = c.scaling;
    if (c.scaling != Scaling::none) {
      o.scale_a = scale_a.view();
      o.scale_b = scale_b.view();
    }
    o.epilogue.activation = c.activation;
    o.epilogue.bias = c.bias;
    if (c.bias != Bias::none) o.bias = bias.view();
    return o;
  }

  int pitch;
  Tensor a, b, d, source, scale_a, scale_b, bias;
};

/// Element (i, j) of matrix `of` of D, and how far off the kernel may be.
inline std::pair<double, double> expected(const Case& c, const tests::Product& product, int of,
                                          int i, int j) {
  const tests::Sum sum = product.before(of, of, i, j);
  const double want = tests::activated(c.activation, sum.value);
  const bool smooth = c.activation == Activation::silu || c.activation == Activation::gelu;
  const double slack = (c.k + 8) * std::ldexp(sum.size + 4, -24) +
                       (smooth ? std::fabs(want) * 1e-5 + 1e-6 : 0.0) +
                       0.51 * numeric::ulp(c.result, want);
  return {want, slack};
}

/// Runs the case on the model and compares D with float64. Returns D's bytes.
inline std::vector<unsigned char> expect_right(const Case& c, const device::ModelOptions& how) {
  SCOPED_TRACE(text(c) + (how.mode == model::Mode::random ? ", random, seed " : ", mode ") +
               std::to_string(how.mode == model::Mode::random
                                  ? how.seed
                                  : static_cast<std::uint64_t>(how.mode)));
  CaseTensors t(c);
  const GemmOperands o = t.operands(c);
  // In place the product's C is what D was.
  GemmOperands before = o;
  before.c = t.source.view();
  const tests::Product product(before);
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
  for (int row = 0; row < c.batch * c.m; ++row) {
    const int of = row / c.m;
    const int i = row % c.m;
    for (int j = 0; j < c.n; ++j) {
      // Every element of the first rows and columns, of the last ones, and some between.
      if (i > 3 && i < c.m - 3 && j > 3 && j < c.n - 3 && (i * 7 + j) % 13 != 0) {
        if (std::isnan(t.d.get(of, i, j))) ++wrong;
        continue;
      }
      const auto [want, slack] = expected(c, product, of, i, j);
      const double off = std::fabs(t.d.get(of, i, j) - want);
      if (!(off <= slack)) ++wrong;
      worst = std::max(worst, off);
    }
  }
  EXPECT_EQ(wrong, 0) << "elements of D; the largest difference is " << worst;
  EXPECT_EQ(t.d.disturbed(), 0) << "bytes outside D";
  EXPECT_EQ(t.source.disturbed(), 0);
  std::vector<unsigned char> bytes;
  for (int row = 0; row < c.batch * c.m; ++row) {
    const auto* const first =
        reinterpret_cast<const unsigned char*>(t.d.address(row / c.m, row % c.m, 0));
    bytes.insert(bytes.end(), first, first + c.n * numeric::bits(c.result) / 8);
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
