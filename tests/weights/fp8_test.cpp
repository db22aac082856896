// E2m1 weights as e4m3 with scales of blocks: their values to the bit, or a refusal.
#include "warpwright/weights/fp8.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/draws.h"
#include "tests/must.h"
#include "tests/weights/some_weights.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {
namespace {

double fp8_value(const Fp8Weights& w, std::int64_t row, std::int64_t k) {  // rows of all experts
  const packed::Extents& e = w.extents;
  const std::int64_t line = row / e.n * ((e.n + 127) / 128) + row % e.n / 128;
  const auto code = static_cast<std::uint64_t>(w.codes[static_cast<std::size_t>(row * e.k + k)]);
  return numeric::to_double(DType::e4m3, code) *
         static_cast<double>(
             w.scales[static_cast<std::size_t>(line * ((e.k + 127) / 128) + k / 128)]);
}

TEST(AsFp8, ValuesStayToTheBit) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tests::Draws draw(seed);
    const packed::Extents e{draw(1, 2), draw(1, 200), 32 * draw(1, 9)};
    const int least = draw(1, 230);
    const PlainWeights w = some_e2m1(e, "mxf4", least, least + draw(0, 14), seed);
    std::vector<float> factors;
    for (std::int64_t i = 0; i < e.experts; ++i) factors.push_back(std::ldexp(1.0F, draw(-3, 3)));
    const auto made = must(as_fp8(source_of(w, factors), {.threads = 2}));
    const std::vector<float> values = values_of(w);
    for (std::int64_t i = 0; i < e.experts * e.n * e.k; ++i) {
      const double factor = static_cast<double>(factors[static_cast<std::size_t>(i / e.k / e.n)]);
      ASSERT_EQ(fp8_value(*made, i / e.k, i % e.k),
                static_cast<double>(values[static_cast<std::size_t>(i)]) * factor)
          << i;
    }
  }
}

// One step further, and the least code of the least scale has no place; where it is not there all
// is well.
TEST(AsFp8, WhatIsRoundedIsRefused) {
  PlainWeights w = some_e2m1({1, 2, 64}, "mxf4", 120, 120, 1);
  std::fill(w.codes.begin(), w.codes.end(), std::byte{0x77});  // 6
  w.scales[0] = std::byte{105};
  w.codes[0] = std::byte{0x17};  // 6, then 0.5
  const auto refused = as_fp8(source_of(w));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason(),
            "The weight of row 0 and k = 1 of expert 0 is 1.19209e-07, and the scale of its block "
            "of 128 x 128 in e4m3 0.00012207; none is rounded where the scales of a block span at "
            "most 15 powers of two: the nearest is to keep them packed.");
  w.codes[0] = std::byte{0x27};
  EXPECT_TRUE(as_fp8(source_of(w)));
  w.codes[0] = std::byte{0x17};
  w.scales[0] = std::byte{106};
  EXPECT_TRUE(as_fp8(source_of(w)));
  // Numbers of ue4m3 have more digits than e4m3 has room for, but for powers of two.
  EXPECT_FALSE(as_fp8(source_of(some_e2m1({1, 8, 64}, "nvf4", 0x31, 0x37, 1))));
  EXPECT_TRUE(as_fp8(source_of(some_e2m1({1, 8, 64}, "nvf4", 0x38, 0x38, 1))));
}

TEST(AsFp8, AFactorBeyondFloat32IsRefused) {
  const PlainWeights w = some_e2m1({1, 2, 64}, "mxf4", 250, 254, 1);
  const float factor[] = {0x1p100F};
  EXPECT_FALSE(as_fp8(source_of(w, factor)));
}

}  // namespace
}  // namespace warpwright::weights
