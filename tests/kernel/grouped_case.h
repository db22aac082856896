// Random grouped products and what they must give, for the model and for a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/draws.h"
#include "tests/index.h"
#include "tests/kernel/table.h"
#include "tests/packed.h"
#include "tests/reference.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::grouped {

using tests::Instance;

inline const std::vector<Instance>& instances() {
  return tests::grouped_instances();
}

using tests::Tensor;

struct Case {
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;
  std::int64_t n = 0;  ///< D's columns, at least: those of halves have a unit
  std::int64_t k = 0;
  std::string kernel;
  atom::ClusterShape cluster;
  Scaling scaling = Scaling::none;
  OffsetType type = OffsetType::int32;
  bool k_major_scales = false;
  bool one_a_scale = false;
  bool one_b = false;    ///< all groups have the same weights and scales, by a batch stride of 0
  int scale_stride = 1;  ///< between scales of rows, and of groups
  int k_pad = 16;        ///< elements between rows of A and B, beyond whole 16s: 16s
  int loose = 0;         ///< elements more between rows of A and B, by which they also begin late
  int d_pad = 0;
  int d_shift = 0;  ///< elements from a multiple of 256 bytes to D
  float alpha = 1.0F;
  unsigned seed = 1;
};

inline std::string text(const Case& c) {
  std::string s = c.kernel + " cluster " + std::to_string(c.cluster.m) + "x" +
                  std::to_string(c.cluster.n) + " total " + std::to_string(c.total) + " n " +
                  std::to_string(c.n) + " k " + std::to_string(c.k) + " scaling " +
                  scaling_name(c.scaling) + " pads " + std::to_string(c.k_pad) + " loose " +
                  std::to_string(c.loose) + " " + std::to_string(c.d_pad) + " shift " +
                  std::to_string(c.d_shift) + (c.type == OffsetType::int64 ? " int64" : " int32") +
                  " offsets";
  for (const std::int64_t o : c.offsets) s += " " + std::to_string(o);
  return s;
}

inline const kernel::GemmConfig& config_of(const std::string& name) {
  for (const Instance& i : instances()) {
    if (name == i.name) return i.config;
  }
  throw std::invalid_argument(name);
}

inline Accumulation accumulation_of(const kernel::GemmConfig& c) {
  return sums_of(c) == kernel::Sums::promoted ? Accumulation::promoted : Accumulation::fast;
}

// All tensors of a case.
struct Tensors {
  explicit Tensors(const Case& c)
      : config(config_of(c.kernel)),
        groups(static_cast<std::int64_t>(c.offsets.size()) - 1),
        blocks((c.k + 127) / 128),
        pitch((c.k + 15) / 16 * 16 + c.k_pad + c.loose),
        columns(columns_of(c, config)),
        n(columns * (config.gated ? 2 : 1)),
        a(operand_b(config).type, c.total, c.k, pitch, 1, 1, 0, c.loose),
        b(operand_a(config).type, n, c.k, pitch, 1, groups, c.one_b ? 0 : (n + 1) * pitch, c.loose),
        d(config.result, c.total, columns, columns + c.d_pad, 1, 1, 0, c.d_shift),
        scale_a(scale_of_a(c)),
        scale_b(scale_of_b(c)) {
    std::mt19937 random(c.seed);
    std::vector<double> elements, factors;
    for (int i = 0; i < 33; ++i) elements.push_back(i / 16.0 - 1.0);
    for (int i = 0; i < 97; ++i) factors.push_back(0.25 + i / 64.0);
    a.fill(random, elements);
    if (kernel::packed_a(config)) {
      packed = tests::Packed(tests::packed_for(config, c.seed).format, {groups, n, c.k}, random,
                             folds(group_sums(config)));
      b = packed.tiles;
    } else {
      b.fill(random, elements);
    }
    if (c.scaling != Scaling::none) {
      scale_a.fill(random, factors);
      scale_b.fill(random, factors);
    }
    for (const std::int64_t o : c.offsets) narrow.push_back(static_cast<std::int32_t>(o));
    wide = c.offsets;
    operands.a = a.view();
    operands.b = b.view();
    if (kernel::packed_a(config)) {
      operands.b = packed.view();
      operands.packed = tests::packed_for(config, c.seed);
    }
    operands.d = d.view();
    operands.groups = Groups{c.type == OffsetType::int64 ? static_cast<const void*>(wide.data())
                                                         : static_cast<const void*>(narrow.data()),
                             c.type};
    operands.alpha = c.alpha;
    if (config.gated) operands.epilogue = {.activation = Activation::silu, .gated = true};
    operands.scaling = c.scaling;
    operands.accumulation = accumulation_of(config);
    if (c.scaling != Scaling::none) {
      operands.scale_a = scale_a.view();
      if (!operands.packed || c.scaling != Scaling::block) operands.scale_b = scale_b.view();
    }
  }

  // D's.
  static std::int64_t columns_of(const Case& c, const kernel::GemmConfig& config) {
    const int unit = config.gated ? tests::gated_unit(config) / 2 : 1;
    return (c.n + unit - 1) / unit * unit;
  }
  [[nodiscard]] Tensor scale_of_a(const Case& c) const {
    switch (c.scaling) {
      case Scaling::group:
        return c.one_a_scale ? Tensor(DType::f32, 1, 1, 1, 1)
                             : Tensor(DType::f32, groups, 1, c.scale_stride, 1);
      case Scaling::row_column:
        return {DType::f32, c.total, 1, c.scale_stride, 1};
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
        return {DType::f32, groups, 1, c.scale_stride, 1};
      case Scaling::row_column:
        return {DType::f32, n, 1, c.scale_stride, 1, groups, c.one_b ? 0 : n * c.scale_stride + 3};
      case Scaling::block:
        return {DType::f32,
                (n + 127) / 128,
                blocks,
                blocks,
                1,
                groups,
                c.one_b ? 0 : (n + 127) / 128 * blocks + 1};
      default:
        return {DType::f32, 1, 1, 1, 1};
    }
  }
  const kernel::GemmConfig& config;
  std::int64_t groups;
  std::int64_t blocks;
  std::int64_t pitch;
  std::int64_t columns;  ///< of D
  std::int64_t n;        ///< rows of B
  Tensor a;
  Tensor b;
  Tensor d;
  Tensor scale_a;
  Tensor scale_b;
  tests::Packed packed;  ///< B where the kernel takes it so; `b` are its tiles
  std::vector<std::int32_t> narrow;
  std::vector<std::int64_t> wide;
  GemmOperands operands;
};

/// What is wrong with D, against float64 products of the tensors, or with the rest of its memory;
/// empty when nothing is.
inline std::string fault(const Case& c, const Tensors& t) {
  const tests::Product product(t.operands);
  // The tensor core keeps 13 bits of 8-bit products' sums below the leading one: of each addend
  // half a unit is lost, so that with a short K eight units of all together are not much (K = 95
  // lost 4.6 where one group's scale was 128 times the next one's).
  const double addends = static_cast<double>(c.k) + 8;
  const double share = kernel::operand_bits(t.config) == 8 ? std::max(0x1p-10, addends * 0x1p-18)
                                                           : addends * 0x1p-24;
  const auto loss = [&](const tests::Sum& sum) { return share * (sum.size + 0.1); };
  int wrong = 0;
  double worst = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  for (std::int64_t g = 0; g < t.groups; ++g) {
    rows.emplace_back(c.offsets[index(g)], c.offsets[index(g) + 1]);
    for (std::int64_t i = c.offsets[index(g)]; i < c.offsets[index(g) + 1]; ++i) {
      for (std::int64_t j = 0; j < t.columns; ++j) {
        // Every element of the first and last rows and columns, and some between.
        const bool edge = i < c.offsets[index(g)] + 2 || i + 3 > c.offsets[index(g) + 1] || j < 2 ||
                          j + 3 > t.columns;
        if (!edge && (i * 7 + j) % 23 != 0) {
          wrong += std::isnan(t.d.get(0, i, j)) ? 1 : 0;
          continue;
        }
        const tests::Bounded want = product.bounded(0, g, i, j, loss, tests::slope);
        const double slack = want.bound + 0.52 * numeric::ulp(t.config.result, want.value);
        const double off = std::fabs(t.d.get(0, i, j) - want.value);
        if (!(off <= slack)) ++wrong;
        worst = std::max(worst, std::isnan(off) ? 1e9 : off);
      }
    }
  }
  if (wrong > 0) {
    return std::to_string(wrong) + " elements of D are wrong, the largest difference is " +
           std::to_string(worst);
  }
  const std::int64_t disturbed = t.d.disturbed(rows);
  if (disturbed == 0) return {};
  return std::to_string(disturbed) + " bytes outside D's groups were written";
}
inline void expect_product(const Case& c, const Tensors& t) {
  EXPECT_EQ(fault(c, t), "");
}

using tests::Draws;

inline std::vector<std::int64_t> lengths_to_offsets(Draws& draw, int groups, int longest) {
  std::vector<std::int64_t> o = {draw(0, 4) == 0 ? draw(0, 5) : 0};
  for (int g = 0; g < groups; ++g) {
    o.push_back(o.back() + (draw(0, 3) == 0 ? 0 : draw(0, longest)));
  }
  return o;
}

// The scalings that a kernel can do.
inline std::vector<Scaling> scalings(const kernel::GemmConfig& c) {
  if (is_block_scaled(c)) return {Scaling::block};
  if (kernel::operand_bits(c) == 16) return {Scaling::none};
  return {Scaling::none, Scaling::tensor, Scaling::group, Scaling::row_column};
}

/// As many groups of as many tokens, and as large ones, as models have; each below its limit, by
/// orders of magnitude. No tensor has more than a twelfth of `most` elements.
inline void draw_large(Case& c, Draws& draw, double most) {
  const auto up_to = [&draw](int limit) {
    const double share = draw(0, 1 << 20) / static_cast<double>(1 << 20);
    return std::min(limit, static_cast<int>(std::exp2(share * std::log2(limit + 1.0))));
  };
  const int groups = up_to(600);
  c.offsets = lengths_to_offsets(draw, groups, up_to(2000));
  c.total = c.offsets.back() + (draw(0, 3) == 0 ? draw(1, 90) : 0);
  c.n = up_to(2048);
  c.k = up_to(2048);
  const auto too_large = [&] {
    const auto elements =
        std::max({groups * (c.n + 1) * (c.k + 48), c.total * (c.k + 48), c.total * (c.n + 16)});
    return static_cast<double>(c.total) * static_cast<double>(c.n * c.k) > most ||
           static_cast<double>(elements) > most / 12;
  };
  while (too_large()) {
    auto& larger = c.n > c.k ? c.n : c.k;
    larger = (larger + 1) / 2;
  }
  // Whole 16 bytes as often as odd extents: they are stored in different ways.
  if (draw(0, 1) == 0) c.n = (c.n + 7) / 8 * 8;
}

/// A random problem for one kernel, of at most about `most` multiplications: groups of up to 200
/// tokens, or more groups of few; where `most` has room for it, anything that models have.
inline Case random_case(const Instance& instance, Draws& draw, double most) {
  const kernel::GemmConfig& config = instance.config;
  Case c;
  c.kernel = instance.name;
  if (most > 1e8) {
    draw_large(c, draw, most);
  } else {
    const bool many = draw(0, 2) == 0;
    const int groups = many ? draw(20, 40) : draw(1, 9);
    int longest = many ? 12 : 200;
    while (groups * longest * 1e4 > most && longest > 4) longest /= 2;
    c.offsets = lengths_to_offsets(draw, groups, longest);
    c.total = c.offsets.back() + (draw(0, 3) == 0 ? draw(1, 40) : 0);
    c.n = 8 * draw(1, 40);
    if (draw(0, 3) == 0) c.n += draw(1, 7);
    c.k = draw(1, 400);
    while (static_cast<double>(c.total) * static_cast<double>(c.n * c.k) > most && c.n > 8) {
      c.n = (c.n + 1) / 2;
    }
  }
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
  c.scale_stride = draw(1, 3);
  c.one_b = draw(0, 9) == 0;
  if (draw(0, 19) == 0) c.alpha = 0;
  c.seed = draw.seed();
  if (draw.rarely(2)) c.k_pad = 0;
  if (draw.rarely(3) && !kernel::has_group_maps(config)) c.d_shift = draw(1, 7);
  if (draw.rarely(4)) c.loose = draw(1, 9);  // then a launch copies A and B
  return c;
}

}  // namespace warpwright::grouped
