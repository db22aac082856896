// The whole kernel on the model: every type, cluster, edge and path against a float64 product.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kernel/table.h"
#include "warpwright/device/model.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright {
namespace {

constexpr std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct Case {
  int m = 0;
  int n = 0;
  int k = 0;
  atom::ClusterShape cluster;
  kernel::Schedule schedule = kernel::Schedule::pingpong;
  DType operand = DType::bf16;
  DType result = DType::bf16;
  float alpha = 1.0F;
  float beta = 0.0F;
  int d_pad = 0;    ///< elements between the rows of D
  int d_shift = 0;  ///< elements by which D starts late
  int c_pad = 0;
  int c_shift = 0;
  bool in_place = false;
};

std::string text(const Case& c) {
  std::string s = std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k);
  s += " cluster " + std::to_string(c.cluster.m) + "x" + std::to_string(c.cluster.n);
  s += std::string(" ") + tests::text(c.schedule) + " " + std::string(numeric::name(c.operand)) +
       " -> " + std::string(numeric::name(c.result));
  s += " alpha " + std::to_string(c.alpha) + " beta " + std::to_string(c.beta);
  s += " D " + std::to_string(c.d_pad) + "/" + std::to_string(c.d_shift) + " C " +
       std::to_string(c.c_pad) + "/" + std::to_string(c.c_shift) + (c.in_place ? " in place" : "");
  return s;
}

// A matrix of narrow elements with room before, between and after its rows, all of it the same
// odd code, which is a NaN in bf16 and f16.
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

std::vector<unsigned char> expect_right(const Case& c, const device::ModelOptions& how) {
  SCOPED_TRACE(text(c) + (how.mode == model::Mode::random ? ", random, seed " : ", mode ") +
               std::to_string(how.mode == model::Mode::random
                                  ? how.seed
                                  : static_cast<std::uint64_t>(how.mode)));
  const int k_pitch = (c.k + 7) / 8 * 8 + 8;
  Tensor a(c.operand, c.m, c.k, k_pitch, 0);
  Tensor b(c.operand, c.n, c.k, k_pitch, 0);
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
  const auto instance = tests::one_with(text(c), [&](const kernel::GemmConfig& config) {
    return tests::is_basic(config, c.schedule) && config.a == c.operand &&
           config.result == c.result;
  });
  if (!instance) return {};
  PlanChoices choices = tests::only(*instance);
  choices.cluster = c.cluster;
  const auto made = plan(o, model_facts(16), choices);
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

device::ModelOptions mode(model::Mode m, std::uint64_t seed = 1) {
  device::ModelOptions how;
  how.mode = m;
  how.seed = seed;
  return how;
}

constexpr kernel::Schedule basic_schedules[] = {kernel::Schedule::pingpong,
                                                kernel::Schedule::cooperative};

// The 16-bit operands and results for which there are both basic kernels.
std::vector<kernel::GemmConfig> types_of_the_build() {
  std::vector<kernel::GemmConfig> types;
  for (const auto& i : tests::all_with([](const kernel::GemmConfig& c) {
         return tests::is_basic(c, kernel::Schedule::pingpong) && numeric::bits(c.a) == 16;
       })) {
    types.push_back(i.config);
    std::printf("%s of %s; ", std::string(numeric::name(i.config.result)).c_str(),
                std::string(numeric::name(i.config.a)).c_str());
  }
  std::printf("in this build\n");
  return types;
}

TEST(GemmOnTheModel, AnyShape) {
  constexpr unsigned seed = 20261121;
  std::printf("shapes by seed %u\n", seed);
  std::mt19937 random(seed);
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const std::vector<kernel::GemmConfig> types = types_of_the_build();
  constexpr float scalars[] = {0.0F, 1.0F, -0.75F, 2.5F};
  constexpr atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  for (int i = 0; i < 24; ++i) {
    Case c;
    c.cluster = clusters[i % 4];
    c.schedule = draw(0, 1) == 0 ? kernel::Schedule::pingpong : kernel::Schedule::cooperative;
    c.m = draw(1, 300);
    c.n = draw(1, 420);
    c.k = draw(1, 400);
    const auto& drawn = types[index(draw(0, static_cast<int>(types.size()) - 1))];
    c.operand = drawn.a;
    c.result = drawn.result;
    c.alpha = scalars[draw(1, 3)];
    c.beta = scalars[draw(0, 3)];
    c.in_place = c.beta != 0 && draw(0, 3) == 0;
    // Half of the results lie where the copy engine can reach them.
    const auto reach = [&](int& pad, int& shift) {
      if (draw(0, 1) == 0) {
        pad = (8 - c.n % 8) % 8 + 8 * draw(0, 2);
      } else {
        pad = draw(0, 9);
        shift = draw(0, 3);
      }
    };
    reach(c.d_pad, c.d_shift);
    reach(c.c_pad, c.c_shift);
    const model::Mode modes[] = {model::Mode::random, model::Mode::latest, model::Mode::random,
                                 model::Mode::eager};
    expect_right(c, mode(modes[(i + i / 4) % 4], 1000 + static_cast<unsigned>(i)));
  }
}

TEST(GemmOnTheModel, EveryTypeInTurnsAndShared) {
  for (const kernel::GemmConfig& types : types_of_the_build()) {
    for (const auto schedule : basic_schedules) {
      Case c;
      c.m = 130;
      c.n = 136;
      c.k = 72;
      c.schedule = schedule;
      c.operand = types.a;
      c.result = types.result;
      c.beta = 0.5F;
      expect_right(c, mode(model::Mode::random, 7));
    }
  }
}

TEST(GemmOnTheModel, EveryClusterInEveryMode) {
  for (const atom::ClusterShape cluster : kernel::supported_clusters) {
    if (cluster == atom::ClusterShape{4, 4}) continue;
    for (const auto schedule : basic_schedules) {
      Case c;
      c.m = 257;
      c.n = 300;
      c.k = 200;
      c.d_pad = 4;
      c.c_pad = 4;
      c.cluster = cluster;
      c.schedule = schedule;
      c.beta = -1.0F;
      const auto first = expect_right(c, mode(model::Mode::eager));
      // However things fall, the bytes are the same.
      EXPECT_EQ(expect_right(c, mode(model::Mode::latest)), first);
      EXPECT_EQ(expect_right(c, mode(model::Mode::random, 11)), first);
    }
  }
}

TEST(GemmOnTheModel, SixteenCtas) {
  Case c;
  c.m = 515;
  c.n = 515;
  c.k = 200;
  c.d_pad = 5;
  c.cluster = {4, 4};
  expect_right(c, mode(model::Mode::latest));
  c.m = 90;
  expect_right(c, mode(model::Mode::random, 5));
}

TEST(GemmOnTheModel, Degenerate) {
  for (const auto schedule : basic_schedules) {
    for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {1, 300, 8}, {300, 1, 8}, {5, 7, 0}}) {
      for (const float beta : {0.0F, 2.0F}) {
        Case c;
        c.m = m;
        c.n = n;
        c.k = k;
        c.schedule = schedule;
        c.beta = beta;
        expect_right(c, mode(model::Mode::random, 3));
      }
    }
    // alpha 0 reads neither A nor B; beta 0 does not read what D holds (NaN).
    Case c;
    c.m = 140;
    c.n = 40;
    c.k = 64;
    c.schedule = schedule;
    c.alpha = 0;
    expect_right(c, mode(model::Mode::latest));
    c.beta = 1.0F;
    expect_right(c, mode(model::Mode::latest));
  }
  for (const auto& [m, n] : {std::pair{0, 8}, {8, 0}}) {
    Case c;
    c.m = m;
    c.n = n;
    c.k = 16;
    expect_right(c, mode(model::Mode::latest));
  }
}

TEST(GemmOnTheModel, AlphaZeroIgnoresNaNOperands) {
  Tensor a(DType::bf16, 16, 16, 16, 0);  // all NaN
  Tensor b(DType::bf16, 16, 16, 16, 0);
  Tensor d(DType::bf16, 16, 16, 16, 0);
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  o.alpha = 0;
  const auto made = plan(o, model_facts());
  ASSERT_TRUE(made.ok()) << made.reason();
  const auto report = device::launch_on_model(*made, o);
  ASSERT_TRUE(report.ok()) << report.reason();
  EXPECT_TRUE(report->clean()) << report->text();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(d.get(i, 15 - i), 0.0);
}

TEST(GemmOnTheModel, OneSeedOneRun) {
  Case c;
  c.m = 140;
  c.n = 200;
  c.k = 150;
  Tensor a(c.operand, c.m, c.k, 152, 0);
  Tensor b(c.operand, c.n, c.k, 152, 0);
  Tensor d(c.result, c.m, c.n, c.n, 0);
  a.fill(1);
  b.fill(2);
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = d.view();
  const auto made = plan(o, model_facts());
  ASSERT_TRUE(made.ok()) << made.reason();
  std::vector<std::int64_t> switches;
  for (const std::uint64_t seed : {5, 5, 6}) {
    const auto report = device::launch_on_model(*made, o, mode(model::Mode::random, seed));
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->text(), "");
    EXPECT_EQ(report->statistics.tiles, made->tiles());
    switches.push_back(report->statistics.fiber_switches);
  }
  EXPECT_EQ(switches[0], switches[1]);
  EXPECT_NE(switches[0], switches[2]);
}

}  // namespace
}  // namespace warpwright
