#include "tests/must.h"
#include "warpwright/weights/source.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace warpwright::weights {
namespace {

// Tensors of 8 rows and K = 64 of two experts, as ModelOpt has them.
class MicroSourceTest : public testing::Test {
 protected:
  MicroSourceTest() {
    t_.codes = batch_of(codes_.data(), DType::u8, 8, 32);
    t_.scales = batch_of(scales_.data(), DType::e4m3, 8, 4);
    t_.tensor_scale = batch_of(tensor_.data(), DType::f32, 1, 1);
  }
  static MatrixView batch_of(void* data, DType type, std::int64_t rows, std::int64_t columns) {
    MatrixView v = matrix(data, type, rows, columns);
    v.batch = 2;
    v.batch_stride = rows * columns;
    return v;
  }

  [[nodiscard]] Result<Source> read(std::string_view layout = "modelopt-nvfp4") const {
    return read_checkpoint(layout, std::span(&t_, 1));
  }
  void expect_refused(const std::string& part, std::string_view layout = "modelopt-nvfp4") {
    const auto source = read(layout);
    ASSERT_FALSE(source) << part;
    expect_contains(source.reason(), part);
    EXPECT_EQ(source.reason().back(), '.');
  }

  std::vector<std::uint8_t> codes_ = std::vector<std::uint8_t>(2 * 8 * 32, 0x21);
  std::vector<std::uint8_t> scales_ = std::vector<std::uint8_t>(2 * 8 * 4, 0x38);
  std::vector<float> tensor_ = {0.5F, 0.25F};
  CheckpointTensors t_;
};

TEST_F(MicroSourceTest, SaysWhatLiesThere) {
  const auto source = must(read());
  EXPECT_EQ(source->extents, (packed::Extents{2, 8, 64}));
  EXPECT_EQ(source->format, micro_format("nvf4"));
  EXPECT_EQ(source->experts[1].codes, reinterpret_cast<const std::byte*>(codes_.data()) + 256);
  EXPECT_EQ(source->experts[1].scales, reinterpret_cast<const std::byte*>(scales_.data()) + 32);
  EXPECT_EQ(source->experts[1].tensor, 0.25F);
  const auto divided = must(read("compressed-tensors-nvfp4"));
  EXPECT_EQ(divided->experts[1].tensor, 4);
}

// For libraries that give any strides along an extent of 1.
TEST_F(MicroSourceTest, StridesAlongOneElementSayNothing) {
  t_.tensor_scale.row_stride = 7;
  t_.tensor_scale.column_stride = 0;
  ASSERT_TRUE(read()) << read().reason();
  EXPECT_EQ(read()->experts[1].tensor, 0.25F);
  t_.codes.rows = t_.scales.rows = 1;
  t_.codes.row_stride = t_.scales.row_stride = 99;
  t_.codes.batch_stride = 32;
  t_.scales.batch_stride = 4;
  ASSERT_TRUE(read()) << read().reason();
  EXPECT_EQ(read()->extents, (packed::Extents{2, 1, 64}));
  t_.codes.batch_stride = 64;
  expect_refused("the tensors of checkpoints are row-major");
}

TEST_F(MicroSourceTest, Refusals) {
  expect_refused("has type e4m3; it is u8 or ue8m0 in layout gpt-oss", "gpt-oss");
  t_.tensor_scale.batch = 1;
  expect_refused("has 1 matrices of 1 x 1; the codes are of 2 experts");
  t_.tensor_scale = {};
  expect_refused("weight_scale_2 is missing");
  t_.scales.row_stride = 5;
  expect_refused("the tensors of checkpoints are row-major");
  t_.scales.row_stride = 4;
  t_.codes.dtype = DType::s32;
  expect_refused("it is u8, s8 or e2m1 in layout modelopt-nvfp4");
  t_.codes.dtype = DType::e2m1;  // K = 32
  expect_refused("a scale for each 16 of K: 8 x 2");
  t_.codes.columns = 31;
  t_.codes.row_stride = 31;
  t_.codes.batch_stride = 8 * 31;
  expect_refused("K is even");
}

// fp8 with a scale for each 128 x 128, which is a power of two.
TEST_F(MicroSourceTest, BlocksOfFp8) {
  std::vector<std::uint8_t> codes(2 * 130 * 200, 0x38);
  std::vector<float> scales = {1, 0.5F, 4, 2, 8, 0x1p-127F, 0x1p127F, 1};
  t_ = {};
  t_.codes = batch_of(codes.data(), DType::e4m3, 130, 200);
  t_.scales = batch_of(scales.data(), DType::f32, 2, 2);
  const auto source = must(read("deepseek-fp8"));
  EXPECT_EQ(source->extents, (packed::Extents{2, 130, 200}));
  EXPECT_EQ(source->format, micro_format("mxf8"));
  EXPECT_TRUE(source->blocks_of_128);
  EXPECT_EQ(source->scale, DType::f32);
  EXPECT_EQ(source->experts[1].codes, reinterpret_cast<const std::byte*>(codes.data()) + 26000);
  EXPECT_EQ(source->experts[1].scales, reinterpret_cast<const std::byte*>(scales.data()) + 16);
  for (const float wrong : {0.0F, -1.0F, 0.75F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 0x1p-128F}) {
    scales[6] = wrong;
    expect_refused("The scale of rows from 128 and k = 0 of expert 1 is", "deepseek-fp8");
    expect_refused("powers of two, and others are for products with blockwise", "deepseek-fp8");
  }
  t_.scales = batch_of(scales.data(), DType::f32, 2, 1);
  expect_refused("have a scale for each 128 x 128: 2 x 2", "deepseek-fp8");
  t_.scales = batch_of(scales.data(), DType::bf16, 2, 2);
  expect_refused("it is f32 or ue8m0", "deepseek-fp8");
  std::vector<std::uint8_t> powers = {127, 128, 129, 0, 1, 254, 255, 127};
  t_.scales = batch_of(powers.data(), DType::ue8m0, 2, 2);
  expect_refused("of expert 1 is 0xff, NaN", "deepseek-fp8-ue8m0");
  powers[6] = 126;
  const auto bytes = must(read("deepseek-fp8-ue8m0"));
  EXPECT_EQ(bytes->experts[1].scales, reinterpret_cast<const std::byte*>(powers.data()) + 4);
  t_.codes.dtype = DType::u8;
  expect_refused("it is e4m3", "deepseek-fp8-ue8m0");
}

// Both directions of every scale: one of them is refused, whatever the weights' size.
TEST(TensorScale, OneDirectionAloneIsTaken) {
  constexpr float largest = 448;
  for (double amax = 1e-6; amax < 2600; amax *= 1.7) {
    const auto factor = static_cast<float>(amax / 2688);
    const auto divisor = static_cast<float>(2688 / amax);
    EXPECT_FALSE(tensor_scale_fault("s", factor, false, largest)) << amax;
    EXPECT_FALSE(tensor_scale_fault("s", divisor, true, largest)) << amax;
    EXPECT_TRUE(tensor_scale_fault("s", divisor, false, largest)) << amax;
    EXPECT_TRUE(tensor_scale_fault("s", factor, true, largest)) << amax;
  }
  for (const float none : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_TRUE(tensor_scale_fault("s", none, false, largest));
    EXPECT_TRUE(tensor_scale_fault("s", none, true, largest));
  }
}

}  // namespace
}  // namespace warpwright::weights
