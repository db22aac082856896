// Random grouped products and what they must give, for the model and for a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/index.h"
#include "tests/kernel/table.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/plan.h"

namespace warpwright::grouped {

using tests::Instance;

inline const std::vector<Instance>& instances() {
  static const std::vector<Instance> all =
      tests::rows_with([](const kernel::GemmConfig& c) { return kernel::is_grouped(c); });
  return all;
}

// A tensor in memory that is otherwise all 0xff: NaN in every floating-point type.
class Tensor {
 public:
  static constexpr std::int64_t guard = 256;  // bytes before and behind

  Tensor(DType type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
         std::int64_t column_stride, std::int64_t batch = 1, std::int64_t batch_stride = 0)
      : view_{nullptr, type, rows, columns, row_stride, column_stride, batch, batch_stride} {
    std::int64_t last = 0;
    if (rows > 0 && columns > 0) {
      last =
          (rows - 1) * row_stride + (columns - 1) * column_stride + (batch - 1) * batch_stride + 1;
    }
    bytes_.assign(index(2 * guard + 64 + last * width()), 0xff);
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data()) + guard;
    view_.data = bytes_.data() + guard + (64 - at % 64) % 64;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  [[nodiscard]] const MatrixView& view() const { return view_; }
  void set(std::int64_t b, std::int64_t i, std::int64_t j, double x) {
    const std::uint64_t code = numeric::from_double(view_.dtype, x);
    std::memcpy(at(b, i, j), &code, index(width()));
  }
  double get(std::int64_t b, std::int64_t i, std::int64_t j) {
    std::uint64_t code = 0;
    std::memcpy(&code, at(b, i, j), index(width()));
    return numeric::to_double(view_.dtype, code);
  }
  template <class Draw>
  void fill(const Draw& draw) {
    for (std::int64_t b = 0; b < view_.batch; ++b) {
      for (std::int64_t i = 0; i < view_.rows; ++i) {
        for (std::int64_t j = 0; j < view_.columns; ++j) set(b, i, j, draw());
      }
    }
  }
  // All of it, with what lies around the tensor.
  [[nodiscard]] std::vector<unsigned char>& memory() { return bytes_; }
  // Bytes outside rows [first, end) that are not as they were made.
  int disturbed(const std::vector<std::pair<int, int>>& rows) {
    std::vector<unsigned char> copy = bytes_;
    for (const auto& [first, end] : rows) {
      for (int i = first; i < end; ++i) {
        std::fill_n(copy.begin() + (at(0, i, 0) - bytes_.data()), view_.columns * width(),
                    static_cast<unsigned char>(0xff));
      }
    }
    return static_cast<int>(
        std::count_if(copy.begin(), copy.end(), [](unsigned char b) { return b != 0xff; }));
  }

 private:
  [[nodiscard]] std::int64_t width() const { return numeric::bits(view_.dtype) / 8; }
  unsigned char* at(std::int64_t b, std::int64_t i, std::int64_t j) {
    return static_cast<unsigned char*>(view_.data) +
           (b * view_.batch_stride + i * view_.row_stride + j * view_.column_stride) * width();
  }

  MatrixView view_;
  std::vector<unsigned char> bytes_;
};

struct Case {
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string kernel;
  atom::ClusterShape cluster;
  Scaling scaling = Scaling::none;
  OffsetType type = OffsetType::int32;
  bool k_major_scales = false;
  bool one_a_scale = false;
  bool one_b = false;  ///< all groups have the same B and scales, by a batch stride of 0
  int d_pad = 0;
  unsigned seed = 1;
};

inline std::string text(const Case& c) {
  std::string s = c.kernel + " cluster " + std::to_string(c.cluster.m) + "x" +
                  std::to_string(c.cluster.n) + " total " + std::to_string(c.total) + " n " +
                  std::to_string(c.n) + " k " + std::to_string(c.k) + " scaling " +
                  scaling_name(c.scaling) + " offsets";
  for (const std::int64_t o : c.offsets) s += " " + std::to_string(o);
  return s;
}

inline const kernel::GemmConfig& config_of(const std::string& name) {
  for (const Instance& i : instances()) {
    if (name == i.name) return i.config;
  }
  throw std::invalid_argument(name);
}

// All tensors of a case.
struct Tensors {
  explicit Tensors(const Case& c)
      : config(config_of(c.kernel)),
        groups(static_cast<std::int64_t>(c.offsets.size()) - 1),
        blocks((c.k + 127) / 128),
        pitch((c.k + 15) / 16 * 16 + 16),
        a(config.a.stored, c.total, c.k, pitch, 1),
        b(config.a.stored, c.n, c.k, pitch, 1, groups, c.one_b ? 0 : (c.n + 1) * pitch),
        d(config.result, c.total, c.n, c.n + c.d_pad, 1),
        scale_a(scale_of_a(c)),
        scale_b(scale_of_b(c)) {
    std::mt19937 random(c.seed);
    const auto element = [&] { return static_cast<int>(random() % 33) / 16.0 - 1.0; };
    const auto factor = [&] { return 0.25 + static_cast<int>(random() % 97) / 64.0; };
    a.fill(element);
    b.fill(element);
    if (c.scaling != Scaling::none) {
      scale_a.fill(factor);
      scale_b.fill(factor);
    }
    for (const std::int64_t o : c.offsets) narrow.push_back(static_cast<std::int32_t>(o));
    wide = c.offsets;
    operands.a = a.view();
    operands.b = b.view();
    operands.d = d.view();
    operands.groups = Groups{c.type == OffsetType::int64 ? static_cast<const void*>(wide.data())
                                                         : static_cast<const void*>(narrow.data()),
                             c.type};
    operands.scaling = c.scaling;
    operands.accumulation =
        config.sums == kernel::Sums::promoted ? Accumulation::promoted : Accumulation::fast;
    if (c.scaling != Scaling::none) {
      operands.scale_a = scale_a.view();
      operands.scale_b = scale_b.view();
    }
  }

  [[nodiscard]] Tensor scale_of_a(const Case& c) const {
    switch (c.scaling) {
      case Scaling::group:
        return c.one_a_scale ? Tensor(DType::f32, 1, 1, 1, 1) : Tensor(DType::f32, groups, 1, 1, 1);
      case Scaling::row_column:
        return {DType::f32, c.total, 1, 1, 1};
      case Scaling::block:
        if (c.k_major_scales) return {DType::f32, c.total, blocks, blocks, 1};
        return {DType::f32, c.total, blocks, 1, (c.total + 3) / 4 * 4};
      default:
        return {DType::f32, 1, 1, 1, 1};
    }
  }
  [[nodiscard]] Tensor scale_of_b(const Case& c) const {
    switch (c.scaling) {
      case Scaling::group:
        return {DType::f32, groups, 1, 1, 1};
      case Scaling::row_column:
        return {DType::f32, c.n, 1, 1, 1, groups, c.one_b ? 0 : c.n + 3};
      case Scaling::block:
        return {DType::f32,
                (c.n + 127) / 128,
                blocks,
                blocks,
                1,
                groups,
                c.one_b ? 0 : (c.n + 127) / 128 * blocks + 1};
      default:
        return {DType::f32, 1, 1, 1, 1};
    }
  }
  // The factors of one product of elements.
  double scale(const Case& c, std::int64_t g, std::int64_t i, std::int64_t j, std::int64_t kk) {
    switch (c.scaling) {
      case Scaling::tensor:
        return scale_a.get(0, 0, 0) * scale_b.get(0, 0, 0);
      case Scaling::group:
        return scale_a.get(0, c.one_a_scale ? 0 : g, 0) * scale_b.get(0, g, 0);
      case Scaling::row_column:
        return scale_a.get(0, i, 0) * scale_b.get(g, j, 0);
      case Scaling::block:
        return scale_a.get(0, i, kk / 128) * scale_b.get(g, j / 128, kk / 128);
      default:
        return 1;
    }
  }

  const kernel::GemmConfig& config;
  std::int64_t groups;
  std::int64_t blocks;
  std::int64_t pitch;
  Tensor a;
  Tensor b;
  Tensor d;
  Tensor scale_a;
  Tensor scale_b;
  std::vector<std::int32_t> narrow;
  std::vector<std::int64_t> wide;
  GemmOperands operands;
};

/// D against float64 products of the tensors; and nothing else of D's memory has changed.
inline void expect_product(const Case& c, Tensors& t) {
  int wrong = 0;
  double worst = 0;
  std::vector<std::pair<int, int>> rows;
  for (std::int64_t g = 0; g < t.groups; ++g) {
    rows.emplace_back(c.offsets[index(g)], c.offsets[index(g) + 1]);
    for (std::int64_t i = c.offsets[index(g)]; i < c.offsets[index(g) + 1]; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        // Every element of the first and last rows and columns, and some between.
        const bool edge =
            i < c.offsets[index(g)] + 2 || i + 3 > c.offsets[index(g) + 1] || j < 2 || j + 3 > c.n;
        if (!edge && (i * 7 + j) % 23 != 0) {
          wrong += std::isnan(t.d.get(0, i, j)) ? 1 : 0;
          continue;
        }
        double want = 0;
        double size = 0;
        for (std::int64_t kk = 0; kk < c.k; ++kk) {
          const double product = t.a.get(0, i, kk) * t.b.get(g, j, kk) * t.scale(c, g, i, j, kk);
          want += product;
          size += std::fabs(product);
        }
        // The tensor core keeps 13 bits of 8-bit products' sums below the leading one.
        const bool fast = numeric::bits(t.config.a.stored) == 8;
        const double slack =
            (static_cast<double>(c.k) + 8) * std::ldexp(size + 0.1, fast ? -18 : -24) +
            0.52 * numeric::ulp(t.config.result, want);
        const double off = std::fabs(t.d.get(0, i, j) - want);
        if (!(off <= slack)) ++wrong;
        worst = std::max(worst, std::isnan(off) ? 1e9 : off);
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "elements of D; the largest difference is " << worst;
  EXPECT_EQ(t.d.disturbed(rows), 0) << "bytes outside D's groups";
}

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  int operator()(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

 private:
  std::mt19937 random_;
};

inline std::vector<std::int64_t> lengths_to_offsets(Draws& draw, int groups, int longest) {
  std::vector<std::int64_t> o = {draw(0, 4) == 0 ? draw(0, 5) : 0};
  for (int g = 0; g < groups; ++g) {
    o.push_back(o.back() + (draw(0, 3) == 0 ? 0 : draw(0, longest)));
  }
  return o;
}

// The scalings that a kernel can do.
inline std::vector<Scaling> scalings(const kernel::GemmConfig& c) {
  if (c.sums == kernel::Sums::block_scaled) return {Scaling::block};
  if (numeric::bits(c.a.stored) == 16) return {Scaling::none};
  return {Scaling::none, Scaling::tensor, Scaling::group, Scaling::row_column};
}

/// A random problem for one kernel: groups of up to `longest` tokens, or more groups of few.
inline Case random_case(Draws& draw, const Instance& instance, int longest, unsigned seed) {
  const kernel::GemmConfig& config = instance.config;
  Case c;
  c.kernel = instance.name;
  const bool many = draw(0, 2) == 0;
  c.offsets =
      lengths_to_offsets(draw, many ? draw(20, 40) : draw(1, 9), many ? longest / 16 : longest);
  c.total = c.offsets.back() + (draw(0, 3) == 0 ? draw(1, 40) : 0);
  c.n = 8 * draw(1, 40);
  if (draw(0, 3) == 0) c.n += draw(1, 7);
  c.k = draw(1, 400);
  c.d_pad = draw(0, 1) == 0 ? static_cast<int>((8 - c.n % 8) % 8) : draw(0, 9);
  if (kernel::has_group_maps(config)) {  // rows of whole pieces of 16 bytes
    c.n = (c.n + 7) / 8 * 8;
    c.d_pad = c.d_pad / 3 * 8;
  }
  const atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {1, 1}};
  c.cluster = clusters[draw(0, 3)];
  if (!kernel::supports(config, c.cluster)) c.cluster = {1, 1};
  const auto can = scalings(config);
  c.scaling = can[index(draw(0, static_cast<int>(can.size()) - 1))];
  c.type = draw(0, 1) == 0 ? OffsetType::int32 : OffsetType::int64;
  c.k_major_scales = draw(0, 1) == 0;
  c.one_a_scale = draw(0, 1) == 0;
  c.seed = seed;
  return c;
}

}  // namespace warpwright::grouped
