// Operands as they are multiplied, and the product by both ways to it: an element at a time and a
// tile at a time.
#include "warpwright/reference/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/draws.h"
#include "tests/packed.h"
#include "tests/reference.h"
#include "warpwright/reference/verdict.h"

namespace warpwright::tests {
namespace {

using reference::Operand;
using reference::Part;
using reference::Side;

std::vector<float> read(const GemmOperands& o, Side side, std::int64_t matrix) {
  const MatrixView& v = side == Side::a ? o.a : o.b;
  std::vector<float> all(index(v.rows * v.columns));
  Operand(o, side).read(matrix, matrix, 0, v.rows, 0, v.columns, all.data(), v.columns);
  return all;
}

TEST(Operands, EveryTypeAsItLies) {
  std::mt19937 random(1);
  for (const DType type : {DType::f32, DType::tf32, DType::f16, DType::bf16, DType::e4m3,
                           DType::e5m2, DType::e2m1, DType::s8}) {
    // K-major, MN-major, and neither, which no kernel takes.
    for (const auto& [row, column] : {std::pair{10, 1}, {1, 20}, {30, 2}}) {
      Tensor t(type, 6, 8, row, column, 3, 400);
      t.fill(random, -4, 4);
      GemmOperands o;
      o.b = t.view();
      const std::vector<float> got = read(o, Side::b, 2);
      // From the middle of it too.
      float part[3] = {};
      Operand(o, Side::b).read(0, 2, 4, 1, 5, 3, part, 3);
      for (int i = 0; i < 6; ++i) {
        for (int k = 0; k < 8; ++k) EXPECT_EQ(got[index(8 * i + k)], t.get(2, i, k));
      }
      for (int k = 0; k < 3; ++k) EXPECT_EQ(part[k], t.get(2, 4, 5 + k));
    }
  }
}

// Tiles that a test has filled by the places of their parts, against the values it meant.
TEST(Operands, PackedWeights) {
  std::mt19937 random(2);
  for (unsigned number = 0; number < 36; ++number) {
    PackedFormat format = format_of(number);
    if (number >= 18) {
      format.encoding = Int4Encoding::ex;
      format.zero_points = ZeroPoints::groups;
    }
    const Packed packed(format, {2, 70, 256}, random);
    GemmOperands o;
    o.packed = PackedWeights{.format = format};
    o.b = packed.view();
    for (const int expert : {0, 1}) {
      const std::vector<float> got = read(o, Side::b, expert);
      for (int n = 0; n < 70; ++n) {
        for (int k = 0; k < 256; ++k) {
          ASSERT_EQ(got[index(256 * n + k)], packed.values.get(expert, n, k))
              << "format " << number << ": " << expert << ", " << n << ", " << k;
        }
      }
    }
    float part[9] = {};
    Operand(o, Side::b).read(0, 1, 65, 1, 124, 9, part, 9);
    for (int k = 0; k < 9; ++k) EXPECT_EQ(part[k], packed.values.get(1, 65, 124 + k));
  }
}

TEST(Parts, AreGroupsAsKernelsTakeThem) {
  GemmOperands o;
  o.d = matrix(nullptr, DType::bf16, 50, 8);
  o.d.batch = 3;
  const auto said = [&o] {
    std::vector<std::vector<std::int64_t>> all;
    for (const Part& p : reference::parts_of(o)) all.push_back({p.batch, p.group, p.begin, p.end});
    return all;
  };
  using Expected = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(said(), (Expected{{0, 0, 0, 50}, {1, 1, 0, 50}, {2, 2, 0, 50}}));
  o.d.batch = 1;
  o.b.batch = 4;
  const std::int32_t narrow[] = {2, 10, 10, 7, 60};  // the third ends before it begins
  o.groups = Groups{narrow};
  EXPECT_EQ(said(), (Expected{{0, 0, 2, 10}, {0, 3, 7, 50}}));
  const std::int64_t wide[] = {-3, 10, 20, 30, 1LL << 40};
  o.groups = Groups{wide, OffsetType::int64};
  EXPECT_EQ(said(), (Expected{{0, 0, 0, 10}, {0, 1, 10, 20}, {0, 2, 20, 30}, {0, 3, 30, 50}}));
}

// A random product of any kind.
struct Drawn {
  explicit Drawn(unsigned seed) : random(seed) {
    Draws draw(seed);
    constexpr DType types[] = {DType::bf16, DType::f16,  DType::e4m3,
                               DType::s8,   DType::e2m1, DType::e3m2};
    const DType type = draw.of(types);
    const bool narrow = type == DType::e4m3 || type == DType::s8;
    const std::int64_t batch = draw(1, 2);
    const std::int64_t m = draw(1, 150);
    const std::int64_t k = 32 * draw(0, 12);
    std::int64_t n = draw(1, 150);
    if (draw.rarely(3)) {
      o.epilogue = {.activation = draw.rarely(2) ? Activation::silu : Activation::swiglu_oai,
                    .gated = true,
                    .interleaved = draw.rarely(2)};
    }
    if (o.epilogue.gated) n *= 2;
    const bool micro = type == DType::e2m1 || type == DType::e3m2;
    const DType other = micro && draw.rarely(2) ? draw.of(micro_formats).element : type;
    a = Tensor(type, m, k, k + 4, 1, batch, m * (k + 4));
    b = Tensor(other, n, k, k + 4, 1, batch, n * (k + 4));
    for (Tensor* t : {&a, &b}) t->fill(random, type == DType::s8 ? -100 : -2, 2);
    o.a = a.view();
    o.b = b.view();
    if (type == DType::e4m3 && draw.rarely(3)) {
      packed = Packed(format_of(static_cast<unsigned>(draw(0, 17))), {1, n, k}, random);
      o.packed = PackedWeights{.format = packed.format};
      o.b = packed.view();
      if (draw.rarely(2)) o.packed->sums = GroupSums::folded;
    }
    constexpr DType results[] = {DType::f32, DType::bf16, DType::e4m3};
    const std::int64_t columns = o.epilogue.gated ? n / 2 : n;
    o.d = matrix(nullptr, draw.of(results), m, columns);
    o.d.batch = batch;
    if (narrow) {
      constexpr Scaling scalings[] = {Scaling::none, Scaling::tensor, Scaling::row_column,
                                      Scaling::blockwise};
      o.scaling = draw.of(scalings);
    }
    if (micro || (type == DType::e4m3 && !o.packed && draw.rarely(4))) {
      o.scaling = Scaling::block_scaled;
      if (type == other && draw.rarely(2)) o.scale_a.dtype = DType::ue8m0;
    }
    block = o.packed ? 128 : 128 >> draw(0, 2);
    make_scales(true, scale_a, 1);
    if (!o.packed) make_scales(false, scale_b, block);
    if (draw.rarely(2)) o.accumulation = Accumulation::promoted;
    constexpr float alphas[] = {1, -0.75F, 0};
    o.alpha = draw.of(alphas);
    if (!o.epilogue.gated) {
      do {
        o.epilogue.activation = draw.of(all_activations);
      } while (!stands_alone(o.epilogue.activation));
      c = Tensor(DType::bf16, m, n, n + 3);
      c.fill(random, -2, 2);
      if (draw.rarely(2)) o.c = c.view();
      o.beta = -0.5F;
    }
    constexpr Bias biases[] = {Bias::none, Bias::rows, Bias::columns};
    o.epilogue.bias = draw.of(biases);
    bias = Tensor(DType::f32, std::max(m, n), 1, 1);
    bias.fill(random, -1, 1);
    if (o.epilogue.bias != Bias::none) o.bias = bias.view();
    scale_d = Tensor(DType::f32, 1, 1, 1);
    scale_d.set(0, 0, 0, 1.75);
    if (numeric::is_8bit(o.d.dtype)) o.scale_d = scale_d.view();
  }

  void make_scales(bool of_a, Tensor& scales, int rows) {
    const MatrixView& of = of_a ? o.a : o.b;
    if (o.scaling == Scaling::none) return;
    const bool of_blocks = o.scaling == Scaling::blockwise;
    const std::int64_t blocks = (of.columns + block - 1) / block;
    if (o.scaling == Scaling::block_scaled) {
      const DType type = micro_scale(o, of_a);
      const std::int64_t columns = block_scales::padded_columns(of.columns, micro_block(type));
      // Gates and ups of B have tiles of their own.
      const std::int64_t parts = !of_a && o.epilogue.gated ? 2 : 1;
      const std::int64_t padded = parts * block_scales::padded_rows(of.rows / parts);
      scales = Tensor(type, padded, columns, columns, 1, of.batch, padded * columns);
    } else {
      const std::int64_t m = of_blocks                      ? (of.rows + rows - 1) / rows
                             : o.scaling == Scaling::tensor ? 1
                                                            : of.rows;
      const std::int64_t n = of_blocks ? blocks : 1;
      scales = Tensor(DType::f32, m, n, n, 1, of.batch, m * n);
    }
    scales.fill(random, 0.5, 2);
    (of_a ? o.scale_a : o.scale_b) = scales.view();
  }

  std::mt19937 random;
  GemmOperands o;
  int block = 128;
  Tensor a, b, c, scale_a, scale_b, scale_d, bias;
  Packed packed;
};

TEST(Product, OfTilesIsThatOfElements) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn drawn(seed);
    const GemmOperands& o = drawn.o;
    const Product product(o);
    reference::Tile tile(o);
    const std::int64_t rows = std::min<std::int64_t>(o.d.rows, 128);
    const std::int64_t columns = std::min<std::int64_t>(o.d.columns, 128);
    const std::int64_t row = o.d.rows - rows;
    const std::int64_t column = o.d.columns - columns;
    const std::int64_t batch = o.d.batch - 1;
    tile.compute(batch, batch, row, column, rows, columns);
    for (std::int64_t i = 0; i < rows; i += 7) {
      for (std::int64_t j = 0; j < columns; j += 5) {
        const double want = product.result(batch, batch, row + i, column + j);
        const reference::Expected due = tile.at(i, j);
        ASSERT_NEAR(due.value, want, 1e-13 * (1 + due.magnitude));
        ASSERT_GE(due.magnitude * (1 + 1e-12), std::abs(want) / 3);
        // Right as it is rounded, and wrong so far away; beyond the largest fp8 all is right.
        const double right = reference::rounded(o.d.dtype, want);
        ASSERT_TRUE(reference::judge(o.d.dtype, right, due).passed);
        const double wrong = want + 2 * due.bound + 2 * numeric::ulp(o.d.dtype, want) + 1e-30;
        if (reference::saturates(o.d.dtype) && std::abs(want) > 400) continue;
        ASSERT_FALSE(reference::judge(o.d.dtype, wrong, due).passed);
      }
    }
  }
}

// Scales of a group begin at a tile: a product in groups is that of each group by itself.
TEST(Product, OfGroupsWithScalesOfBlocks) {
  std::mt19937 random(7);
  constexpr std::int64_t k = 128;
  constexpr std::int64_t n = 24;
  const std::int32_t offsets[] = {3, 10, 10, 140, 141};
  constexpr std::int64_t groups = 4;
  constexpr std::int64_t m = 150;
  Tensor a(DType::e3m2, m, k, k);
  Tensor b(DType::e2m1, n, k, k, 1, groups, n * k);
  Tensor scale_a(DType::ue8m0, block_scales::grouped_rows(m, groups), 4, 4);
  Tensor scale_b(DType::ue8m0, 128, 4, 4, 1, groups, 512);
  for (Tensor* t : {&a, &b}) t->fill(random, -4, 4);
  for (Tensor* t : {&scale_a, &scale_b}) t->fill(random, {0.25, 0.5, 1, 2, 8});
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = matrix(nullptr, DType::f32, m, n);
  o.scaling = Scaling::block_scaled;
  o.scale_a = scale_a.view();
  o.scale_b = scale_b.view();
  o.groups = Groups{offsets};
  const Product grouped(o);
  const std::int64_t first_scales[] = {0, 128, 128, 384};  // of lengths 7, 0, 130 and 1
  for (std::int64_t g = 0; g < groups; ++g) {
    GemmOperands one = o;
    one.groups.reset();
    one.a.rows = one.d.rows = offsets[g + 1] - offsets[g];
    one.a.data = a.address(0, offsets[g], 0);
    one.b.data = b.address(g, 0, 0);
    one.b.batch = one.scale_b.batch = 1;
    one.scale_a.data = static_cast<std::byte*>(o.scale_a.data) + first_scales[g] * 4;
    one.scale_b.data = static_cast<std::byte*>(o.scale_b.data) + g * 512;
    const Product alone(one);
    reference::Tile tile(o);
    if (one.d.rows > 0)
      tile.compute(0, g, offsets[g], 0, std::min<std::int64_t>(one.d.rows, 128), n);
    for (std::int64_t i = 0; i < one.d.rows; ++i) {
      const double want = alone.result(0, 0, i, 5);
      EXPECT_EQ(grouped.result(0, g, offsets[g] + i, 5), want) << "group " << g << ", row " << i;
      if (i >= 128) continue;
      EXPECT_NEAR(tile.at(i, 5).value, want, 1e-9);
    }
  }
}

// The product of two small matrices, worked out by hand.
TEST(Product, IsWhatItSays) {
  Tensor a(DType::f32, 2, 3, 3);
  Tensor b(DType::f32, 2, 3, 3);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 3; ++k) {
      a.set(0, i, k, 1 + i + k);          // 1 2 3, 2 3 4
      b.set(0, i, k, (k - 1) * (i + 1));  // -1 0 1, -2 0 2
    }
  }
  GemmOperands o;
  o.a = a.view();
  o.b = b.view();
  o.d = matrix(nullptr, DType::f32, 2, 2);
  const Product product(o);
  EXPECT_EQ(product.before(0, 0, 0, 0).value, 2);
  EXPECT_EQ(product.before(0, 0, 0, 0).size, 4);
  EXPECT_EQ(product.before(0, 0, 1, 1).value, 4);
  EXPECT_EQ(product.before(0, 0, 1, 1).size, 12);
  reference::Tile tile(o);
  tile.compute(0, 0, 0, 0, 2, 2);
  EXPECT_EQ(tile.at(1, 1).value, 4);
  EXPECT_EQ(tile.at(1, 1).magnitude, 12);
  EXPECT_NEAR(tile.at(1, 1).bound, 12 * 3 * 0x1p-24, 1e-30);
}

}  // namespace
}  // namespace warpwright::tests
