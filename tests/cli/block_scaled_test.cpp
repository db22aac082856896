#include "cli/compute/block_scaled.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "cli/compute/random.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/reference/operand.h"

namespace warpwright::cli {
namespace {

HostTensor tensor_of(const std::vector<float>& values, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(values.size());
  HostTensor t{DType::f32, {rows, count / rows}, std::vector<std::byte>(values.size() * 4)};
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

std::vector<float> floats_of(const HostTensor& t) {
  std::vector<float> values(t.bytes.size() / 4);
  std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  return values;
}

constexpr MicroFormat kMxf8 = *micro_format("mxf8");
constexpr MicroFormat kNvf4 = *micro_format("nvf4");

// A product whose A are such codes, with the scales of `made` in tiles; and the scales' memory.
struct Made {
  Made(const HostTensor& values, const MicroFormat& format) : made(quantise(values, format)) {
    const std::size_t rank = values.shape.size();
    o.a = matrix(made.codes.data(), format.element, values.shape[rank - 2], values.shape[rank - 1]);
    if (rank == 3) o.a.batch = o.d.batch = values.shape[0];
    o.a.batch_stride = o.a.rows * o.a.columns;
    o.d.rows = o.a.rows;
    o.scaling = Scaling::block_scaled;
    o.scale_a.dtype = format.scale;
    const MatrixShape shape = scale_shape(problem_of(o), true);
    const std::int64_t block = micro_block(format.scale);
    tiles = scale_tiles(made, shape, o.a.rows, (o.a.columns + block - 1) / block);
    o.scale_a = {tiles.data(), shape};
  }
  // What codes and scales say.
  [[nodiscard]] std::vector<float> meant() const {
    std::vector<float> all(static_cast<std::size_t>(o.a.batch * o.a.batch_stride));
    for (std::int64_t b = 0; b < o.a.batch; ++b) {
      reference::Operand(o, reference::Side::a)
          .read(b, b, 0, o.a.rows, 0, o.a.columns, all.data() + b * o.a.batch_stride, o.a.columns);
    }
    return all;
  }
  [[nodiscard]] double scale_at(std::int64_t place) const {
    return numeric::to_double(o.scale_a.dtype,
                              static_cast<unsigned>(tiles[static_cast<std::size_t>(place)]));
  }

  MicroTensor made;
  std::vector<std::byte> tiles;
  GemmOperands o;
};

// Tiles of 128 rows x 4 scales: rows 32 apart side by side, the tiles of a row along K.
TEST(BlockScaled, ScalesLieInTiles) {
  EXPECT_EQ(block_scales::place(0, 0, 8), 0);
  EXPECT_EQ(block_scales::place(0, 3, 8), 3);
  EXPECT_EQ(block_scales::place(1, 0, 8), 16);
  EXPECT_EQ(block_scales::place(32, 0, 8), 4);
  EXPECT_EQ(block_scales::place(33, 5, 8), 512 + 16 + 4 + 1);
  EXPECT_EQ(block_scales::place(128, 0, 8), 1024);
  EXPECT_EQ(block_scales::place(127, 7, 8), 1023);
  EXPECT_EQ(block_scales::padded_rows(129), 256);
  EXPECT_EQ(block_scales::padded_columns(129, 32), 8);
  EXPECT_EQ(block_scales::padded_columns(64, 16), 4);
}

TEST(BlockScaled, TheLargestOfABlockFits) {
  std::vector<float> values(2 * 64, 0.0F);
  values[0] = 448;  // a scale of 1
  values[1] = 0.5F;
  values[32] = 3;  // of 2^-7: 3 is 384 of them
  values[64] = std::numeric_limits<float>::infinity();
  values[65] = 256;
  const HostTensor t = tensor_of(values, 2);
  const Made all(t, kMxf8);
  EXPECT_EQ(all.made.codes.size(), 128U);
  EXPECT_EQ(all.scale_at(0), 1);
  EXPECT_EQ(all.scale_at(1), 0x1p-7);
  EXPECT_EQ(all.scale_at(2), 0x1p-127) << "behind K";
  EXPECT_TRUE(std::isnan(all.scale_at(32))) << "of no row";
  const std::vector<float> back = all.meant();
  EXPECT_EQ(back[0], 448);
  EXPECT_EQ(back[1], 0.5F);
  EXPECT_EQ(back[32], 3);
  EXPECT_EQ(back[40], 0);
  EXPECT_TRUE(std::isnan(back[64])) << "what is not finite is seen";
  EXPECT_EQ(back[65], 256);
}

TEST(BlockScaled, TwoCodesOfE2m1AreAByte) {
  std::vector<float> values(32, 0.0F);
  values[0] = 6;
  values[1] = -3;
  values[17] = 12;  // a scale of 2
  const HostTensor t = tensor_of(values, 1);
  const Made all(t, kNvf4);
  ASSERT_EQ(all.made.codes.size(), 16U);
  EXPECT_EQ(all.made.codes[0], std::byte{0xd7});  // 6 is 7, -3 is 5 with a sign
  EXPECT_EQ(all.made.codes[8], std::byte{0x70});
  EXPECT_EQ(all.scale_at(0), 1);
  EXPECT_EQ(all.scale_at(1), 2);
  EXPECT_EQ(all.meant(), values);
}

TEST(BlockScaled, FourCodesOfSixBitsAreThreeBytes) {
  std::vector<float> values(32, 0.0F);
  values[0] = 7.5F;  // e2m3's largest: a scale of 1
  values[1] = -1.25F;
  values[2] = 0.125F;
  values[3] = -7.5F;
  const Made all(tensor_of(values, 1), *micro_format("mxf6"));
  ASSERT_EQ(all.made.codes.size(), 24U);
  EXPECT_EQ(all.scale_at(0), 1);
  EXPECT_EQ(all.made.codes[0], std::byte{0x9f});  // 011111, 101010, 000001 and 111111
  EXPECT_EQ(all.made.codes[1], std::byte{0x1a});
  EXPECT_EQ(all.made.codes[2], std::byte{0xfc});
  EXPECT_EQ(all.meant(), values);
}

// Codes and scales are no further from the numbers than rounding, in every matrix.
TEST(BlockScaled, CodesAndScalesAreTheValues) {
  for (const MicroFormat& format : micro_formats) {
    SCOPED_TRACE(format.word);
    HostTensor t = random_normal(DType::f32, {2, 130, 80}, 5, 1);
    spread_blocks(t, 3);
    const std::vector<float> values = floats_of(t);
    const Made all(t, format);
    const std::vector<float> back = all.meant();
    const MatrixView& scales = all.o.scale_a;
    EXPECT_EQ(scales.rows, 256);
    EXPECT_EQ(scales.columns, format.scale == DType::ue4m3 ? 8 : 4);
    EXPECT_EQ(scales.batch_stride * 2, static_cast<std::int64_t>(all.tiles.size()));
    const numeric::FloatFormat element = numeric::format_of(format.element);
    std::set<double> different;
    for (std::int64_t i = 0; i < 2 * 130 * 80; ++i) {
      const std::int64_t row = i / 80;
      const double scale = all.scale_at(
          row / 130 * scales.batch_stride +
          block_scales::place(row % 130, i % 80 / micro_block(format.scale), scales.columns));
      different.insert(scale);
      const auto at = static_cast<std::size_t>(i);
      const double value = static_cast<double>(back[at]) / scale;
      const std::uint64_t code = numeric::from_double(format.element, value);
      ASSERT_EQ(numeric::to_double(format.element, code), value) << i;
      // Half the largest step, or what lies beyond the largest number.
      const double beyond = 2 * numeric::pow2(element.max_exponent()) - element.max();
      const double step = numeric::pow2(element.max_exponent() - element.mantissa_bits);
      ASSERT_LE(std::abs(value * scale - static_cast<double>(values[at])),
                (format.scale == DType::ue4m3 ? 1.01 : std::max(beyond, step / 2)) * scale)
          << i;
    }
    EXPECT_GT(different.size(), 4U);
  }
}

// Each group's scales begin at a tile; rows by index have those of their tokens.
TEST(BlockScaled, ScalesOfGroupsBeginAtTiles) {
  const HostTensor t = [] {
    HostTensor all = random_normal(DType::f32, {140, 32}, 5, 1);
    spread_blocks(all, 8);
    return all;
  }();
  const MicroTensor made = quantise(t, kMxf8);
  const MatrixShape shape{DType::ue8m0, 512, 4, 4};
  const std::vector<std::byte> tiles = scale_tiles(made, shape, 140, 1, {{0, 3}, {3, 3}, {3, 138}});
  const auto at = [&](std::int64_t row) {
    return tiles[static_cast<std::size_t>(block_scales::place(row, 0, 4))];
  };
  EXPECT_EQ(at(2), made.scales[2]);
  EXPECT_EQ(at(3), std::byte{0xff});
  EXPECT_EQ(at(128), made.scales[3]);
  EXPECT_EQ(at(128 + 134), made.scales[137]);
  EXPECT_EQ(at(128 + 135), std::byte{0xff});
  const std::vector<std::byte> picked = scale_tiles(made, shape, 2, 1, {{0, 1}, {1, 2}}, {139, -1});
  EXPECT_EQ(picked[0], made.scales[139]);
  EXPECT_EQ(picked[512], std::byte{0}) << "no such token";
}

}  // namespace
}  // namespace warpwright::cli
