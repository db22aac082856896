// Every instance on the model, on products small enough for a double-precision reference written
// down here: all operand types, layouts, scales, epilogues, batches, tails and splits along K.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "warpwright/device/model.h"
#include "warpwright/kernel/instances.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::device {
namespace {

struct Instance {
  const char* name;
  kernel::GemmConfig config;
};

const std::vector<Instance>& instances() {
#define WW_INSTANCE(tag, ...) Instance{kernel::tag::name, kernel::tag::config},
  static const std::vector<Instance> all = {WW_HOPPER_GEMM_INSTANCES(WW_INSTANCE)};
#undef WW_INSTANCE
  return all;
}

// What is asked beside the types, which the instance fixes.
struct Ask {
  int m = 0;
  int n = 0;
  int k = 0;
  int batch = 1;
  atom::ClusterShape cluster{1, 1};
  int sms = 4;
  float beta = 0;
  Scaling scaling = Scaling::none;
  Activation activation = Activation::none;
  Bias bias = Bias::none;
  DType bias_type = DType::f32;
  int padding = 0;  // elements behind each row of D
  model::Mode mode = model::Mode::latest;
  unsigned seed = 1;
};

// A batch of matrices with its memory; values are also kept as doubles, [batch][row][column].
class Matrix {
 public:
  Matrix() = default;
  Matrix(DType type, int batch, int rows, int columns, bool rows_inside = false, int padding = 0)
      : rows_(rows), columns_(columns) {
    const int inner = (rows_inside ? rows : columns) + padding;
    const int unit = 128 / numeric::bits(type);
    const int pitch = padding == 0 ? (inner + unit - 1) / unit * unit : inner;
    const int outer = rows_inside ? columns : rows;
    view.dtype = type;
    view.rows = rows;
    view.columns = columns;
    view.row_stride = rows_inside ? 1 : pitch;
    view.column_stride = rows_inside ? pitch : 1;
    view.batch = batch;
    view.batch_stride = static_cast<std::int64_t>(pitch) * outer;
    // Poison: an element that nobody stores, or that is read and should not be, shows as NaN.
    bytes_.assign(
        static_cast<std::size_t>(view.batch_stride * batch * numeric::bits(type) / 8 + 16),
        std::byte{0xff});
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    view.data = bytes_.data() + (16 - at % 16) % 16;
  }
  void fill(std::mt19937& random, double low, double high) {
    std::uniform_real_distribution<double> draw(low, high);
    for (int b = 0; b < view.batch; ++b) {
      for (int i = 0; i < rows_; ++i) {
        for (int j = 0; j < columns_; ++j) {
          const auto code = numeric::from_double(view.dtype, draw(random));
          std::memcpy(address(b, i, j), &code, static_cast<std::size_t>(element()));
        }
      }
    }
  }
  [[nodiscard]] double at(int b, int i, int j) const {
    std::uint64_t code = 0;
    std::memcpy(&code, address(b, i, j), static_cast<std::size_t>(element()));
    return numeric::to_double(view.dtype, code);
  }
  [[nodiscard]] bool poisoned(int b, int i, int j) const {
    const std::byte* p = address(b, i, j);
    for (int k = 0; k < element(); ++k) {
      if (p[k] != std::byte{0xff}) return false;
    }
    return true;
  }
  MatrixView view;

 private:
  [[nodiscard]] int element() const { return numeric::bits(view.dtype) / 8; }
  [[nodiscard]] std::byte* address(int b, int i, int j) const {
    return static_cast<std::byte*>(view.data) +
           (b * view.batch_stride + i * view.row_stride + j * view.column_stride) * element();
  }
  int rows_ = 0;
  int columns_ = 0;
  std::vector<std::byte> bytes_;
};

double activated(Activation a, double x) {
  switch (a) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::none:
      break;
  }
  return x;
}

class Problem {
 public:
  Problem(const Instance& instance, const Ask& ask) : instance_(instance), ask_(ask) {
    const kernel::GemmConfig& c = instance.config;
    std::mt19937 random(ask.seed);
    const DType ta = c.swapped ? c.b : c.a;
    const DType tb = c.swapped ? c.a : c.b;
    const bool mn_a = (c.swapped ? c.b_major : c.a_major) == atom::Major::mn;
    const bool mn_b = (c.swapped ? c.a_major : c.b_major) == atom::Major::mn;
    const int columns = c.gated ? ask.n / 2 : ask.n;
    a_ = Matrix(ta, ask.batch, ask.m, ask.k, mn_a);
    b_ = Matrix(tb, ask.batch, ask.n, ask.k, mn_b);
    d_ = Matrix(c.result, ask.batch, ask.m, columns, false, ask.padding);
    a_.fill(random, -1, 1);
    b_.fill(random, -1, 1);
    o_.a = a_.view;
    o_.b = b_.view;
    o_.d = d_.view;
    o_.alpha = 0.75F;
    o_.beta = ask.beta;
    if (ask.beta != 0) {
      c_ = Matrix(c.result, ask.batch, ask.m, columns, false, ask.padding);
      c_.fill(random, -2, 2);
      o_.c = c_.view;
    }
    o_.scaling = ask.scaling;
    if (c.sums == kernel::Sums::block_scaled) o_.scaling = Scaling::block;
    if (c.sums == kernel::Sums::promoted) o_.accumulation = Accumulation::promoted;
    const int blocks = (ask.k + 127) / 128;
    switch (o_.scaling) {
      case Scaling::none:
        break;
      case Scaling::tensor:
        sa_ = Matrix(DType::f32, 1, 1, 1);
        sb_ = Matrix(DType::f32, 1, 1, 1);
        break;
      case Scaling::row_column:
        sa_ = Matrix(DType::f32, ask.batch, ask.m, 1, true);
        sb_ = Matrix(DType::f32, ask.batch, ask.n, 1, true);
        break;
      case Scaling::block:
        sa_ = Matrix(DType::f32, ask.batch, ask.m, blocks, ask.seed % 2 == 0);
        sb_ = Matrix(DType::f32, ask.batch, (ask.n + 127) / 128, blocks);
        break;
    }
    if (o_.scaling != Scaling::none) {
      sa_.fill(random, 0.5, 2);
      sb_.fill(random, 0.5, 2);
      o_.scale_a = sa_.view;
      o_.scale_b = sb_.view;
    }
    o_.epilogue = {c.gated ? Activation::silu : ask.activation, c.gated, ask.bias};
    if (ask.bias != Bias::none) {
      bias_ = Matrix(ask.bias_type, 1, ask.bias == Bias::rows ? ask.m : ask.n, 1, true);
      bias_.fill(random, -1, 1);
      o_.bias = bias_.view;
    }
    if (numeric::bits(c.result) == 8) {
      sd_ = Matrix(DType::f32, 1, 1, 1);
      sd_.fill(random, 4, 8);
      o_.scale_d = sd_.view;
    }
  }

  void run() {
    SCOPED_TRACE(instance_.name);
    SCOPED_TRACE("m " + std::to_string(ask_.m) + " n " + std::to_string(ask_.n) + " k " +
                 std::to_string(ask_.k) + " batch " + std::to_string(ask_.batch) + " cluster " +
                 std::to_string(ask_.cluster.m) + "x" + std::to_string(ask_.cluster.n) + " seed " +
                 std::to_string(ask_.seed));
    PlanChoices choices;
    choices.kernel = instance_.name;
    choices.cluster = ask_.cluster;
    const auto plan = warpwright::plan(o_, model_facts(ask_.sms), choices);
    ASSERT_TRUE(plan) << plan.reason();
    ModelOptions options;
    options.mode = ask_.mode;
    options.seed = ask_.seed;
    const auto report = launch_on_model(*plan, o_, options);
    ASSERT_TRUE(report) << report.reason();
    ASSERT_TRUE(report->clean()) << report->text();
    compare();
  }

 private:
  // The product's element and the sum of the magnitudes of its terms.
  struct Sum {
    double value = 0;
    double size = 0;
  };

  [[nodiscard]] Sum product(int b, int i, int j) const {
    Sum s;
    for (int k = 0; k < ask_.k; ++k) {
      double term = a_.at(b, i, k) * b_.at(b, j, k);
      if (o_.scaling == Scaling::block) term *= sa_.at(b, i, k / 128) * sb_.at(b, j / 128, k / 128);
      s.value += term;
      s.size += std::abs(term);
    }
    double factor = static_cast<double>(o_.alpha);
    if (o_.scaling == Scaling::tensor) factor *= sa_.at(0, 0, 0) * sb_.at(0, 0, 0);
    if (o_.scaling == Scaling::row_column) factor *= sa_.at(b, i, 0) * sb_.at(b, j, 0);
    s.value *= factor;
    s.size *= std::abs(factor);
    if (ask_.bias == Bias::rows) s.value += bias_.at(0, i, 0);
    if (ask_.bias == Bias::columns) s.value += bias_.at(0, j, 0);
    return s;
  }

  // Each of at most K / 32 instructions cuts sums of 8-bit products off 13 bits below the largest.
  [[nodiscard]] double loss() const {
    const bool narrow = numeric::bits(instance_.config.a) == 8;
    const int sums = instance_.config.sums == kernel::Sums::tensor_core ? ask_.k / 32 + 1 : 5;
    return narrow ? (sums + 1) * 33 * std::ldexp(1.0, -13) / 8 : std::ldexp(1.0, -20) * 8;
  }

  void compare() const {
    const int columns = static_cast<int>(d_.view.columns);
    double worst = 0;
    for (int b = 0; b < ask_.batch; ++b) {
      for (int i = 0; i < ask_.m; ++i) {
        for (int j = 0; j < columns; ++j) {
          Sum s = product(b, i, j);
          double want = s.value;
          double bound = s.size * loss();
          if (ask_.beta != 0) want += static_cast<double>(ask_.beta) * c_.at(b, i, j);
          want = activated(o_.epilogue.activation, want);
          bound *= 1.2;  // the steepest slope of an activation
          if (instance_.config.gated) {
            const Sum up = product(b, i, j + columns);
            bound = bound * std::abs(up.value) + up.size * loss() * std::abs(want);
            want *= up.value;
          }
          if (numeric::bits(d_.view.dtype) == 8) {
            want *= sd_.at(0, 0, 0);
            bound *= sd_.at(0, 0, 0);
            const double most = d_.view.dtype == DType::e4m3 ? 448 : 57344;
            want = std::min(std::max(want, -most), most);
          }
          const double got = d_.at(b, i, j);
          bound += 0.51 * numeric::ulp(d_.view.dtype, std::max(std::abs(want), std::abs(got))) +
                   std::abs(want) * 1e-5 + 1e-6;
          ASSERT_LE(std::abs(got - want), bound)
              << "D[" << b << ", " << i << ", " << j << "] is " << got << ", not " << want;
          worst = std::max(worst, std::abs(got - want) / bound);
        }
        for (int j = columns; j < columns + ask_.padding; ++j) {
          if (i + 1 == ask_.m && b + 1 == ask_.batch) break;
          ASSERT_TRUE(d_.poisoned(b, i, j)) << "D's padding was written at " << i << ", " << j;
        }
      }
    }
    EXPECT_GT(worst, 0) << "a comparison that found no rounding at all compared nothing";
  }

  Instance instance_;
  Ask ask_;
  Matrix a_, b_, c_, d_, sa_, sb_, sd_, bias_;
  GemmOperands o_;
};

// Extents that exercise an instance: two tiles and a tail in each direction.
Ask extents(const kernel::GemmConfig& c, int seed) {
  Ask ask;
  const int rows = 2 * kernel::result_rows(c) + 8;
  const int columns = kernel::result_columns(c) + (kernel::result_columns(c) > 64 ? 24 : 5);
  ask.m = c.swapped ? columns : rows;
  ask.n = c.swapped ? rows : columns;
  if (c.gated) ask.n *= 2;
  if (c.sums == kernel::Sums::block_scaled && c.gated) ask.n = (ask.n + 255) / 256 * 256;
  ask.k = kernel::tile_k(c) * 5 + 128 / numeric::bits(c.a);
  ask.seed = static_cast<unsigned>(seed);
  if (c.cluster_k) ask.sms = 64;  // one tile a cluster
  return ask;
}

bool eight_bit(const kernel::GemmConfig& c) {
  return numeric::bits(c.a) == 8;
}

TEST(Variants, EveryInstanceMultiplies) {
  for (const Instance& i : instances()) {
    Ask ask = extents(i.config, 1);
    Problem(i, ask).run();
    if (HasFatalFailure()) return;
  }
}

TEST(Variants, ClustersBatchesAndScales) {
  int seed = 10;
  for (const Instance& i : instances()) {
    for (const atom::ClusterShape cluster : {atom::ClusterShape{2, 1}, atom::ClusterShape{1, 2}}) {
      if (!kernel::supports(i.config, cluster)) continue;
      Ask ask = extents(i.config, ++seed);
      if (!i.config.cluster_k) ask.cluster = cluster;
      ask.batch = 2;
      ask.k = kernel::tile_k(i.config) * 3;
      if (eight_bit(i.config)) {
        ask.scaling = seed % 2 == 0 ? Scaling::tensor : Scaling::row_column;
      }
      Problem(i, ask).run();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Variants, EpiloguesOnOddShapes) {
  int seed = 100;
  for (const Instance& i : instances()) {
    Ask ask = extents(i.config, ++seed);
    ask.m += 3;
    if (!i.config.gated) {
      ask.n += 1;
      ask.beta = eight_bit(i.config) && numeric::bits(i.config.result) == 8 ? 0.0F : -0.5F;
      ask.activation = std::array{Activation::relu, Activation::gelu, Activation::silu}[seed % 3];
    }
    ask.k = kernel::tile_k(i.config) * 2;
    ask.bias = seed % 2 == 0 ? Bias::rows : Bias::columns;
    ask.bias_type = seed % 3 == 0 || i.config.result != DType::bf16 ? DType::f32 : DType::bf16;
    ask.padding = numeric::bits(i.config.result) == 8 ? 0 : 3;
    Problem(i, ask).run();
    if (HasFatalFailure()) return;
  }
}

TEST(Variants, RandomSchedules) {
  for (const Instance& i : instances()) {
    for (int seed = 1; seed <= 2; ++seed) {
      Ask ask = extents(i.config, 200 + seed);
      ask.k = kernel::tile_k(i.config) * 4;
      ask.mode = seed == 1 ? model::Mode::eager : model::Mode::random;
      Problem(i, ask).run();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace warpwright::device
