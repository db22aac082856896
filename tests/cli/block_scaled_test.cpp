#include "cli/compute/block_scaled.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
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

// What codes and scales say, of tensors of the shape of `values`.
std::vector<float> meant(MicroTensor& made, const HostTensor& values, DType type) {
  const std::size_t rank = values.shape.size();
  GemmOperands o;
  o.a = matrix(made.codes.data(), type, values.shape[rank - 2], values.shape[rank - 1]);
  if (rank == 3) o.a.batch = values.shape[0];
  o.a.batch_stride = o.a.rows * o.a.columns;
  o.scaling = Scaling::block_scaled;
  o.scale_a = scales_view(made, values, type);
  std::vector<float> all(static_cast<std::size_t>(values.elements()));
  for (std::int64_t b = 0; b < o.a.batch; ++b) {
    reference::Operand(o, reference::Side::a)
        .read(b, b, 0, o.a.rows, 0, o.a.columns, all.data() + b * o.a.batch_stride, o.a.columns);
  }
  return all;
}

double scale_at(const MicroTensor& of, DType type, std::int64_t place) {
  return numeric::to_double(micro_scale(type),
                            static_cast<unsigned>(of.scales[static_cast<std::size_t>(place)]));
}

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
  MicroTensor made = quantise(t, DType::e4m3);
  EXPECT_EQ(made.codes.size(), 128U);
  EXPECT_EQ(scale_at(made, DType::e4m3, 0), 1);
  EXPECT_EQ(scale_at(made, DType::e4m3, 1), 0x1p-7);
  const std::vector<float> back = meant(made, t, DType::e4m3);
  EXPECT_EQ(back[0], 448);
  EXPECT_EQ(back[1], 0.5F);
  EXPECT_EQ(back[32], 3);
  EXPECT_EQ(back[40], 0);
  EXPECT_EQ(back[64], 448) << "what is not finite becomes the largest number of its block";
  EXPECT_EQ(back[65], 256);
}

TEST(BlockScaled, TwoCodesOfE2m1AreAByte) {
  std::vector<float> values(32, 0.0F);
  values[0] = 6;
  values[1] = -3;
  values[17] = 12;  // a scale of 2
  const HostTensor t = tensor_of(values, 1);
  MicroTensor made = quantise(t, DType::e2m1);
  ASSERT_EQ(made.codes.size(), 16U);
  EXPECT_EQ(made.codes[0], std::byte{0xd7});  // 6 is 7, -3 is 5 with a sign
  EXPECT_EQ(made.codes[8], std::byte{0x70});
  EXPECT_EQ(scale_at(made, DType::e2m1, 0), 1);
  EXPECT_EQ(scale_at(made, DType::e2m1, 1), 2);
  EXPECT_EQ(meant(made, t, DType::e2m1), values);
}

// Codes and scales are no further from the numbers than rounding, in every matrix.
TEST(BlockScaled, CodesAndScalesAreTheValues) {
  for (const DType type : {DType::e4m3, DType::e2m1}) {
    const HostTensor t = random_normal(DType::f32, {2, 130, 80}, 5, 1);
    const std::vector<float> values = floats_of(t);
    MicroTensor made = quantise(t, type);
    const std::vector<float> back = meant(made, t, type);
    const MatrixView scales = scales_view(made, t, type);
    EXPECT_EQ(scales.rows, 256);
    EXPECT_EQ(scales.columns, type == DType::e2m1 ? 8 : 4);
    EXPECT_EQ(scales.batch_stride * 2, static_cast<std::int64_t>(made.scales.size()));
    const int bits = numeric::bits(type);
    for (std::int64_t i = 0; i < 2 * 130 * 80; ++i) {
      const std::int64_t row = i / 80;
      const double scale =
          scale_at(made, type,
                   row / 130 * scales.batch_stride +
                       block_scales::place(row % 130, i % 80 / micro_block(micro_scale(type)),
                                           scales.columns));
      const auto both = static_cast<unsigned>(made.codes[static_cast<std::size_t>(i * bits / 8)]);
      const double value = numeric::to_double(type, both >> i * bits % 8) * scale;
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(static_cast<double>(back[at]), value) << i;
      // Half the largest step; of e4m3 up to 512, and 448 is the largest.
      const double most = type == DType::e2m1 ? 1.01 * scale : 64 * scale;
      ASSERT_LE(std::abs(value - static_cast<double>(values[at])), most) << i;
    }
  }
}

}  // namespace
}  // namespace warpwright::cli
