#include "warpwright/weights/source.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/must.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {
namespace {

// Tensors of 16 rows and K = 64 in two groups, as compressed-tensors has them; all codes are 3.
class SourceTest : public testing::Test {
 protected:
  SourceTest() {
    t_.codes = matrix(codes_.data(), DType::s32, 16, 8);
    t_.scales = matrix(scales_.data(), DType::bf16, 16, 2);
  }

  [[nodiscard]] Result<Source> read(std::string_view layout = "compressed-tensors") const {
    return read_checkpoint(layout, std::span(&t_, 1));
  }
  void expect_refused(const std::string& part, std::string_view layout = "compressed-tensors") {
    const auto source = read(layout);
    ASSERT_FALSE(source) << part;
    expect_contains(source.reason(), part);
    EXPECT_EQ(source.reason().back(), '.');
  }

  std::vector<std::uint32_t> codes_ = std::vector<std::uint32_t>(16 * 8, 0xbbbbbbbbU);
  std::vector<std::uint16_t> scales_ = std::vector<std::uint16_t>(16 * 2, 0x3f80);
  std::vector<std::uint32_t> zeros_ = std::vector<std::uint32_t>(2 * 2, 0x88888888U);
  std::vector<std::int32_t> order_ = std::vector<std::int32_t>(64);
  CheckpointTensors t_;
};

TEST_F(SourceTest, ReadsWhatLiesThere) {
  const auto source = must(read());
  EXPECT_EQ(source->extents, (packed::Extents{1, 16, 64}));
  EXPECT_EQ(source->group, 32);
  EXPECT_FALSE(source->has_zero_points);
  const auto back = must(unpack(*pack(*source)));
  EXPECT_EQ(back->origin, "compressed-tensors");
  for (const float value : values_of(*back)) EXPECT_EQ(value, 3);
}

TEST_F(SourceTest, ZeroPointsCountOnlyWhereTheyAreNotEight) {
  t_.zeros = matrix(zeros_.data(), DType::s32, 2, 2);
  EXPECT_FALSE(read()->has_zero_points);
  zeros_[3] = 0x68888888U;  // rows 8 to 15 of group 1
  const auto source = read();
  ASSERT_TRUE(source && source->has_zero_points);
  const auto back = must(unpack(*pack(*source)));
  EXPECT_EQ(zero_point_of(*back, 0, 15, 40), 6);
  EXPECT_EQ(zero_point_of(*back, 0, 15, 10), 8);
  EXPECT_EQ(zero_point_of(*back, 0, 14, 40), 8);
  EXPECT_EQ(values_of(*back)[15 * 64 + 40], 5);
}

TEST_F(SourceTest, FindsACodeOfMinusEight) {
  EXPECT_FALSE(has_least_code(*read()));
  codes_[77] = 0xbb0bbbbbU;
  EXPECT_TRUE(has_least_code(*read()));
}

TEST_F(SourceTest, Refusals) {
  expect_refused("the layouts that are read are modelopt-nvfp4, compressed-tensors-nvfp4, ",
                 "gguf");
  expect_refused("has type s32; it is s8 or u8 in layout int4", "int4");
  t_.scales.dtype = DType::e4m3;
  expect_refused("has type e4m3; it is bf16, fp16 or f32 in layout compressed-tensors");
  t_.scales = matrix(scales_.data(), DType::bf16, 8, 2);
  expect_refused("stand for N = 8 and N = 16");
  t_.scales = {};
  expect_refused("weight_scale is missing");
  t_.scales = matrix(scales_.data(), DType::bf16, 16, 2);
  t_.codes.row_stride = 9;
  expect_refused("the tensors of checkpoints are row-major");
  t_.codes = matrix(codes_.data(), DType::s32, 16, 8);
  t_.zeros = matrix(zeros_.data(), DType::s32, 1, 4);
  expect_refused("is 1 x 4; for N = 16 and 2 groups it is 2 x 2");
  t_ = {};
  t_.codes = matrix(codes_.data(), DType::s32, 8, 16);
  t_.scales = matrix(scales_.data(), DType::bf16, 2, 16);
  expect_refused("Tensor *.qzeros is missing, so nothing says of how many bits the codes are",
                 "gptq");
}

TEST_F(SourceTest, ActOrderIsRefused) {
  for (int k = 0; k < 64; ++k) order_[static_cast<std::size_t>(k)] = k / 32;
  t_.group_index = matrix(order_.data(), DType::s32, 1, 64);
  EXPECT_TRUE(read());
  order_[10] = 1;
  expect_refused("puts k = 10 into group 1 and not 0: weights in act-order are not packed");
  t_.group_index = matrix(order_.data(), DType::s32, 1, 60);
  expect_refused("has 60 numbers; K is 64");
}

TEST_F(SourceTest, ExpertsAreAlike) {
  std::vector<CheckpointTensors> experts(3, t_);
  EXPECT_EQ(read_checkpoint("compressed-tensors", experts)->extents.experts, 3);
  experts[2].codes.rows = experts[2].scales.rows = 8;
  expect_contains(why_not(read_checkpoint("compressed-tensors", experts)),
                  "Expert 2 has N = 8, K = 64");
}

}  // namespace
}  // namespace warpwright::weights
