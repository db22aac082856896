// The recipes of blocks' scales and codes (facts/micro_scale.h), against their definitions in
// float64.
#include "warpwright/facts/micro_scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace warpwright {
namespace {

constexpr DType kElements[] = {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint32_t word_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
float float_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

std::uint64_t rounded(DType type, double x) {
  return numeric::from_double(type, x, numeric::Rounding::nearest_even,
                              numeric::Overflow::saturate);
}

// Around every code, every middle between two of them, and powers of two.
std::vector<float> hard_floats(DType type) {
  std::vector<float> all = {0.0F, -0.0F, kInf, -kInf, kNan, 0x1p-149F, 0x1.fffffep127F};
  const numeric::FloatFormat f = numeric::format_of(type);
  for (std::uint64_t code = 0; code <= f.max_code(); ++code) {
    const double value = numeric::decode(f, code);
    const double next = code < f.max_code() ? numeric::decode(f, code + 1) : 2 * value;
    for (const double x : {value, (value + next) / 2}) {
      const auto near = static_cast<float>(x);
      for (const float y : {std::nextafter(near, 0.0F), near, std::nextafter(near, kInf)}) {
        all.push_back(y);
        all.push_back(-y);
      }
    }
  }
  for (std::uint64_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint64_t rest :
         {0, 1, 0x3fffff, 0x400000, 0x400001, 0x600000, 0x700000, 0x700001, 0x7fffff}) {
      all.push_back(float_of(exponent << 23 | rest));
    }
  }
  return all;
}

TEST(MicroScale, CodesAreThoseOfCvt) {
  std::mt19937 random(20261124);
  for (const DType type :
       {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1, DType::ue4m3}) {
    std::vector<float> all = hard_floats(type);
    for (int i = 0; i < 200000; ++i) all.push_back(float_of(random()));
    for (int i = 0; i < 200000; ++i) {  // of the type's own size
      all.push_back(static_cast<float>(std::ldexp(static_cast<double>(random()) - 0x1p31,
                                                  -32 + static_cast<int>(random() % 24) - 10)));
    }
    for (const float x : all) {
      ASSERT_EQ(micro::code(type, x), rounded(type, static_cast<double>(x)))
          << "seed 20261124, " << numeric::name(type) << " of " << x;
    }
    const numeric::FloatFormat f = numeric::format_of(type);
    for (std::uint32_t code = 0; code <= f.max_code(); ++code) {
      EXPECT_EQ(micro::code(type, micro::value(type, code)), code);
    }
  }
}

TEST(MicroScale, ValuesAreExact) {
  for (const DType type : {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1,
                           DType::ue4m3, DType::ue8m0}) {
    for (std::uint32_t code = 0; code < 1U << numeric::bits(type); ++code) {
      const double want = numeric::to_double(type, code);
      const float got = micro::value(type, code);
      if (std::isfinite(want)) {
        EXPECT_EQ(word_of(got), word_of(static_cast<float>(want)))
            << numeric::name(type) << ", code " << code;
      } else {
        EXPECT_TRUE(std::isnan(got)) << numeric::name(type) << ", code " << code;
      }
    }
  }
}

TEST(MicroScale, TiesGoToEvenCodes) {
  const auto four_bits = [](float x) {
    return micro::value(DType::e2m1, micro::code(DType::e2m1, x));
  };
  EXPECT_EQ(four_bits(2.5F), 2);
  EXPECT_EQ(four_bits(3.5F), 4);
  EXPECT_EQ(four_bits(5), 4);
  EXPECT_EQ(four_bits(0.25F), 0);
  EXPECT_EQ(four_bits(0.75F), 1);
  EXPECT_EQ(four_bits(-1.25F), -1);
  EXPECT_EQ(four_bits(-1.75F), -2);
  EXPECT_EQ(four_bits(1e30F), 6);
  EXPECT_EQ(four_bits(kNan), 6);
  EXPECT_EQ(micro::code(DType::e2m1, -0.1F), 8U);  // -0
}

// The scale by its definition: an exponent, which ue8m0 clamps.
int exponent_of(Recipe recipe, DType type, double largest) {
  const numeric::FloatFormat f = numeric::format_of(type);
  int exponent = std::ilogb(largest) - f.max_exponent();
  if (recipe == Recipe::up) {
    exponent = std::ilogb(largest) - f.max_exponent() - 2;
    while (largest > f.max() * std::ldexp(1.0, exponent)) ++exponent;
  }
  return std::max(exponent, -127);
}

TEST(MicroScale, PowersOfTwoAreAsTheyAreDefined) {
  std::mt19937 random(20261125);
  for (const DType type : kElements) {
    std::vector<float> all = hard_floats(type);
    for (int i = 0; i < 100000; ++i) all.push_back(float_of(random()));
    for (const Recipe recipe : {Recipe::floor, Recipe::up}) {
      SCOPED_TRACE(std::string(micro::name(recipe)) + " of " + std::string(numeric::name(type)));
      for (const float x : all) {
        const std::uint32_t code = micro::power_scale(recipe, type, micro::magnitude(x, type));
        if (x == 0 || (!std::isfinite(x) && micro::has_nan(type))) {
          ASSERT_EQ(code, 127U) << x;
          continue;
        }
        if (!std::isfinite(x)) {
          ASSERT_EQ(code, 0xffU);
          ASSERT_TRUE(micro::clears(DType::ue8m0, code));
          continue;
        }
        const double largest = std::fabs(static_cast<double>(x));
        ASSERT_EQ(static_cast<int>(code) - 127, exponent_of(recipe, type, largest))
            << "seed 20261125, " << x;
        // The quotient is exact where codes can tell.
        const float quotient = x * micro::power_inverse(code);
        const double exact = std::ldexp(static_cast<double>(x), 127 - static_cast<int>(code));
        if (std::fabs(exact) >= 0x1p-126) {
          ASSERT_EQ(static_cast<double>(quotient), exact) << x;
        }
        ASSERT_EQ(micro::code(type, quotient), rounded(type, exact)) << x;
        const double most = numeric::format_of(type).max();
        ASSERT_LE(std::fabs(exact),
                  recipe == Recipe::up
                      ? most
                      : std::ldexp(1.0, numeric::format_of(type).max_exponent() + 1));
      }
    }
  }
}

TEST(MicroScale, EveryPowerHasItsInverse) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    EXPECT_EQ(static_cast<double>(micro::power_inverse(code)),
              std::ldexp(1.0, 127 - static_cast<int>(code)));
    EXPECT_FALSE(micro::clears(DType::ue8m0, code));
  }
  EXPECT_EQ(micro::power_inverse(255), 0);
}

TEST(MicroScale, MagnitudesAreInOrder) {
  const auto of = [](float x, DType type) { return micro::magnitude(x, type); };
  EXPECT_EQ(of(-3, DType::e2m1), word_of(3));
  EXPECT_EQ(of(-kInf, DType::e4m3), 0U);
  EXPECT_GT(of(-kInf, DType::e2m1), of(0x1.fffffep127F, DType::e2m1));
  EXPECT_EQ(of(kNan, DType::e4m3), 0U);
  EXPECT_GT(of(-kNan, DType::e2m1), of(0x1.fffffep127F, DType::e2m1));
  EXPECT_EQ(micro::larger(of(2, DType::e2m1), of(-3, DType::e2m1)), word_of(3));
}

// A quotient of float64 that is rounded to float is the float's own: 53 bits are 2 * 24 + 2 and
// more.
float divided(double x, double y) {
  return static_cast<float>(x / y);
}

TEST(MicroScale, NestedScalesAreAsTheyAreDefined) {
  std::mt19937 random(20261126);
  for (int i = 0; i < 300000; ++i) {
    const float of_all = std::fabs(float_of(random() % 0x7f800000));
    const float tensor = micro::tensor_scale(Recipe::nested, of_all);
    ASSERT_EQ(tensor, of_all == 0 ? 1 : std::max(divided(of_all, 2688), 0x1p-117F));
    ASSERT_EQ(micro::tensor_scale(Recipe::nested_4_or_6, of_all),
              of_all == 0 ? 1 : std::max(divided(of_all, 1536), 0x1p-117F));
    const float largest =
        of_all * static_cast<float>(std::ldexp(static_cast<double>(random()),
                                               -32 - static_cast<int>(random() % 20)));
    const std::uint32_t scale = micro::nested_scale(word_of(largest), tensor);
    const auto six = static_cast<float>(6.0 * static_cast<double>(tensor));
    ASSERT_EQ(scale, rounded(DType::ue4m3, static_cast<double>(divided(largest, six))))
        << "seed 20261126, " << largest << " of " << of_all;
    const double exact = micro::value(DType::ue4m3, scale) * static_cast<double>(tensor);
    ASSERT_EQ(micro::nested_divisor(scale, tensor),
              static_cast<float>(std::clamp(exact, 0x1p-126, 0x1.fffffep127)));
    // The decoded largest is within half a step of the scale and half a step of the code.
    if (scale > 8) {
      const float divisor = micro::nested_divisor(scale, tensor);
      const float decoded =
          divisor * micro::value(DType::e2m1, micro::code(DType::e2m1, largest / divisor));
      ASSERT_NEAR(decoded / largest, 1, 0.0589) << largest << " of " << of_all;
    }
  }
  EXPECT_EQ(micro::nested_scale(0, 1), 0U);
  EXPECT_EQ(micro::nested_scale(micro::magnitude(kNan, DType::e2m1), 1), 0x7fU);
  EXPECT_EQ(micro::nested_scale(micro::magnitude(-kInf, DType::e2m1), 1), 0x7fU);
  EXPECT_TRUE(micro::clears(DType::ue4m3, 0x7f));
  EXPECT_TRUE(micro::clears(DType::ue4m3, 0));
  EXPECT_FALSE(micro::clears(DType::ue4m3, 1));
  EXPECT_FALSE(micro::clears(DType::ue8m0, 0));
  // A given scale of any size is no divisor of 0 or infinity.
  EXPECT_EQ(micro::nested_divisor(0x7e, 0x1p127F), 0x1.fffffep127F);
  EXPECT_EQ(micro::nested_divisor(1, 0x1p-126F), 0x1p-126F);
}

TEST(MicroScale, FourIsTakenWhereItErrsLess) {
  const auto fma = [](float x, float y, float z) { return std::fma(x, y, z); };
  std::mt19937 random(20261127);
  int fours = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    float x[16];
    std::uint32_t largest = 0;
    for (float& v : x) {
      v = static_cast<float>(random() % 2001) / 1000.0F - 1;
      largest = micro::larger(largest, micro::magnitude(v, DType::e2m1));
    }
    const float tensor = micro::tensor_scale(Recipe::nested_4_or_6, 1);
    double exact[2];
    float errors[2];
    std::uint32_t scale[2];
    for (int four = 0; four < 2; ++four) {
      scale[four] = micro::nested_scale(largest, tensor, four == 1 ? 4.0F : 6.0F);
      const float divisor = micro::nested_divisor(scale[four], tensor);
      errors[four] = 0;
      exact[four] = 0;
      for (const float v : x) {
        errors[four] = micro::add_error(errors[four], v / divisor, fma);
        const double decoded = micro::value(DType::e2m1, micro::code(DType::e2m1, v / divisor));
        const double off = static_cast<double>(v) - decoded * static_cast<double>(divisor);
        exact[four] += off * off;
      }
    }
    const bool four = micro::takes_four(scale[0], errors[0], scale[1], errors[1]);
    fours += four ? 1 : 0;
    if (std::fabs(exact[0] - exact[1]) > 1e-5 * exact[0]) {
      ASSERT_EQ(four, exact[1] < exact[0]) << "seed 20261127, block " << trial;
    }
  }
  EXPECT_GT(fours, 2000);
  EXPECT_LT(fours, 18000);
  EXPECT_FALSE(micro::takes_four(0, 0, 0, 0));
  EXPECT_TRUE(micro::takes_four(0, 0, 1, 0));
  EXPECT_FALSE(micro::takes_four(8, 0, 12, 0));
}

}  // namespace
}  // namespace warpwright
