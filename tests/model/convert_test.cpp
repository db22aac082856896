// Conversions and functions in registers (isa/numeric.h), as the model does them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "warpwright/isa/numeric.h"

namespace warpwright::isa {
namespace {

TEST(Convert, SigmoidIsAccurate) {
  for (int i = -2000; i <= 2000; ++i) {
    const float x = static_cast<float>(i) / 23;
    const double want = 1 / (1 + std::exp(-static_cast<double>(x)));
    if (want < static_cast<double>(std::numeric_limits<float>::min())) continue;
    ASSERT_NEAR(static_cast<double>(sigmoid(x)), want, want * 0x1p-20) << x;
  }
}

TEST(Convert, SigmoidAtTheEnds) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sigmoid(0), 0.5F);
  EXPECT_EQ(sigmoid(infinity), 1.0F);
  EXPECT_EQ(sigmoid(1e30F), 1.0F);
  EXPECT_EQ(sigmoid(-infinity), 0.0F);
  EXPECT_EQ(sigmoid(-1e30F), 0.0F);
  EXPECT_TRUE(std::isnan(sigmoid(std::numeric_limits<float>::quiet_NaN())));
}

template <DType T>
void expect_bytes() {
  // Every code and its neighbour come back, each in its place.
  for (unsigned code = 0; code < 256; ++code) {
    const double x = numeric::to_double(T, code);
    if (!std::isfinite(x)) continue;
    const std::uint16_t packed = pack_bytes<T>(static_cast<float>(x), 1.0F);
    const auto one = static_cast<unsigned>(numeric::from_double(T, 1.0));
    ASSERT_EQ(packed & 0xffU, code);
    ASSERT_EQ(packed >> 8, one);
    ASSERT_EQ(pack_bytes<T>(1.0F, static_cast<float>(x)), code << 8 | one);
  }
}

TEST(Convert, PackBytesKeepsEveryCode) {
  expect_bytes<DType::e4m3>();
  expect_bytes<DType::e5m2>();
}

TEST(Convert, PackBytesRoundsToEvenAndSaturates) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // e4m3: 1.0625 lies between 1 (0x38) and 1.125 (0x39); 1.1875 between 0x39 and 0x3a.
  EXPECT_EQ(pack_bytes<DType::e4m3>(1.0625F, 1.1875F), 0x3a38);
  EXPECT_EQ(pack_bytes<DType::e4m3>(1e6F, -1e6F), 0xfe7e);  // +-448
  EXPECT_EQ(pack_bytes<DType::e4m3>(infinity, -infinity), 0xfe7e);
  // e5m2: 1.125 lies between 1 (0x3c) and 1.25 (0x3d); 1.375 between 0x3d and 0x3e.
  EXPECT_EQ(pack_bytes<DType::e5m2>(1.125F, 1.375F), 0x3e3c);
  EXPECT_EQ(pack_bytes<DType::e5m2>(1e6F, -infinity), 0xfb7b);  // +-57344
  const std::uint16_t nan = pack_bytes<DType::e4m3>(std::nanf(""), 0.0F);
  EXPECT_TRUE(std::isnan(numeric::to_double(DType::e4m3, nan & 0xffU)));
  EXPECT_EQ(nan >> 8, 0);
}

// Subnormal numbers count, on both sides: 2^-127 * 2^120 and 2^-100 * -2^-30; a tie goes to even.
TEST(ConvertTest, PairsOfBf16AreMultiplied) {
  EXPECT_EQ(multiply_pairs<DType::bf16>(0x0d800040, 0xb0807b80), 0x80083c00U);
  EXPECT_EQ(multiply_pairs<DType::bf16>(0x3f813f81, 0x3fc03f80), 0x3fc23f81U);
}

// 2^-24 * 2^13 and 2^-14 * -2^-9; 1 + 2^-10 times 1.5, a tie, and times 1.
TEST(ConvertTest, PairsOfF16AreMultiplied) {
  EXPECT_EQ(multiply_pairs<DType::f16>(0x04000001, 0x98007000), 0x80021000U);
  EXPECT_EQ(multiply_pairs<DType::f16>(0x3c013c01, 0x3e003c00), 0x3e023c01U);
}

// 1024 + 15 less 1024 + 8; 128 + 3 less 128 + 15.
TEST(ConvertTest, PairsAreSubtracted) {
  EXPECT_EQ(subtract_pairs<DType::f16>(0x640f6400, 0x64086408), 0x4700c800U);
  EXPECT_EQ(subtract_pairs<DType::bf16>(0x43034300, 0x430f4308), 0xc140c100U);
}

TEST(ConvertTest, BytesArePermuted) {
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, 0x7531), 0x77553311U);
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, 0x0246), 0x00224466U);
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, 0xffff4444 & 0xffff7777), 0x44444444U);
}

}  // namespace
}  // namespace warpwright::isa
