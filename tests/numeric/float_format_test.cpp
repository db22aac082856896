#include "warpwright/numeric/float_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include "warpwright/numeric/scalar.h"

namespace warpwright::numeric {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What the formats' standards say, written down a second time and without the room's helpers.
struct Definition {
  DType type;
  int sign_bits, exponent_bits, mantissa_bits, bias;
  bool has_inf;   // exponent all ones and mantissa 0
  int nan_first;  // first magnitude code that is NaN; -1: there is none
  double largest;
  double smallest;
};

const Definition kDefinitions[] = {
    {DType::f16, 1, 5, 10, 15, true, 0x7c01, 65504.0, 0x1p-24},
    {DType::bf16, 1, 8, 7, 127, true, 0x7f81, 0x1.fep127, 0x1p-133},
    {DType::e4m3, 1, 4, 3, 7, false, 0x7f, 448.0, 0x1p-9},
    {DType::e5m2, 1, 5, 2, 15, true, 0x7d, 57344.0, 0x1p-16},
    {DType::e2m3, 1, 2, 3, 1, false, -1, 7.5, 0.125},
    {DType::e3m2, 1, 3, 2, 3, false, -1, 28.0, 0.0625},
    {DType::e2m1, 1, 2, 1, 1, false, -1, 6.0, 0.5},
    {DType::ue4m3, 0, 4, 3, 7, false, 0x7f, 448.0, 0x1p-9},
};

class EveryFormat : public ::testing::TestWithParam<Definition> {
 protected:
  static int magnitudes(const Definition& d) { return 1 << (d.exponent_bits + d.mantissa_bits); }
  static bool is_nan_code(const Definition& d, int magnitude) {
    return d.nan_first >= 0 && magnitude >= d.nan_first;
  }
  static bool is_inf_code(const Definition& d, int magnitude) {
    return d.has_inf && magnitude == ((1 << d.exponent_bits) - 1) << d.mantissa_bits;
  }
  static int largest_code(const Definition& d) {
    int code = magnitudes(d) - 1;
    while (is_nan_code(d, code) || is_inf_code(d, code)) --code;
    return code;
  }
  // The value by the textbook: ldexp of the mantissa.
  static double value(const Definition& d, int magnitude) {
    const int field = magnitude >> d.mantissa_bits;
    const int mantissa = magnitude & ((1 << d.mantissa_bits) - 1);
    if (field == 0) return std::ldexp(mantissa, 1 - d.bias - d.mantissa_bits);
    return std::ldexp((1 << d.mantissa_bits) + mantissa, field - d.bias - d.mantissa_bits);
  }
  // The canonical NaN, or the largest value where there is none.
  static int nan_code(const Definition& d) { return magnitudes(d) - 1; }
};

TEST_P(EveryFormat, EveryCodeHasTheDefinedValue) {
  const Definition& d = GetParam();
  for (int sign = 0; sign <= d.sign_bits; ++sign) {
    for (int m = 0; m < magnitudes(d); ++m) {
      const int code = sign * magnitudes(d) + m;
      const double got = to_double(d.type, static_cast<std::uint64_t>(code));
      if (is_nan_code(d, m)) {
        EXPECT_TRUE(std::isnan(got)) << code;
        continue;
      }
      const double want = is_inf_code(d, m) ? kInf : value(d, m);
      ASSERT_EQ(got, sign != 0 ? -want : want) << code;
      ASSERT_EQ(std::signbit(got), sign != 0) << code;
    }
  }
}

TEST_P(EveryFormat, EveryCodeRoundTripsInEveryRounding) {
  const Definition& d = GetParam();
  for (int sign = 0; sign <= d.sign_bits; ++sign) {
    for (int m = 0; m < magnitudes(d); ++m) {
      const int word = sign * magnitudes(d) + m;
      const auto code = static_cast<std::uint64_t>(word);
      const double x = to_double(d.type, code);
      for (const Rounding r : {Rounding::nearest_even, Rounding::nearest_away,
                               Rounding::toward_zero, Rounding::up, Rounding::down}) {
        const std::uint64_t back = from_double(d.type, x, r);
        if (is_nan_code(d, m)) {
          ASSERT_EQ(back, static_cast<std::uint64_t>(nan_code(d))) << code;
        } else {
          ASSERT_EQ(back, code);
        }
      }
    }
  }
}

TEST_P(EveryFormat, TiesGoToEvenAndTheirNeighboursToTheNearest) {
  const Definition& d = GetParam();
  const auto sign_bit = static_cast<std::uint64_t>(magnitudes(d));
  for (int m = 0; m < largest_code(d); ++m) {
    const double below = value(d, m);
    const double above = value(d, m + 1);
    const double middle = below / 2 + above / 2;  // exact: at most 12 significant bits
    const auto even = static_cast<std::uint64_t>(m % 2 == 0 ? m : m + 1);
    const auto low = static_cast<std::uint64_t>(m);
    ASSERT_EQ(from_double(d.type, middle), even) << m;
    ASSERT_EQ(from_double(d.type, std::nextafter(middle, 0.0)), low) << m;
    ASSERT_EQ(from_double(d.type, std::nextafter(middle, kInf)), low + 1) << m;
    ASSERT_EQ(from_double(d.type, middle, Rounding::nearest_away), low + 1) << m;
    for (const double x : {std::nextafter(below, kInf), middle, std::nextafter(above, 0.0)}) {
      ASSERT_EQ(from_double(d.type, x, Rounding::toward_zero), low) << m;
      ASSERT_EQ(from_double(d.type, x, Rounding::down), low) << m;
      ASSERT_EQ(from_double(d.type, x, Rounding::up), low + 1) << m;
    }
    if (d.sign_bits == 0) {
      ASSERT_EQ(from_double(d.type, -middle), even) << m;
      continue;
    }
    ASSERT_EQ(from_double(d.type, -middle), sign_bit | even) << m;
    ASSERT_EQ(from_double(d.type, -middle, Rounding::toward_zero), sign_bit | low) << m;
    ASSERT_EQ(from_double(d.type, -middle, Rounding::up), sign_bit | low) << m;
    ASSERT_EQ(from_double(d.type, -middle, Rounding::down), sign_bit | (low + 1)) << m;
  }
}

TEST_P(EveryFormat, OverflowStartsHalfAnUlpPastTheLargest) {
  const Definition& d = GetParam();
  const auto largest = static_cast<std::uint64_t>(largest_code(d));
  const double step = value(d, largest_code(d)) - value(d, largest_code(d) - 1);
  const double edge = d.largest + step / 2;
  std::uint64_t special = largest;  // a finite format saturates in any case
  if (d.nan_first >= 0) special = largest + 1;
  // The tie itself goes to the even code, which is the special one unless the largest is even.
  const std::uint64_t tie = largest % 2 == 0 ? largest : special;
  EXPECT_EQ(from_double(d.type, d.largest), largest);
  EXPECT_EQ(from_double(d.type, std::nextafter(edge, 0.0)), largest);
  EXPECT_EQ(from_double(d.type, edge), tie);
  EXPECT_EQ(from_double(d.type, std::nextafter(edge, kInf)), special);
  EXPECT_EQ(from_double(d.type, std::nextafter(edge, kInf), Rounding::toward_zero), largest);
  for (const double x : {edge, 2 * edge, 1e300, kInf}) {
    EXPECT_EQ(from_double(d.type, x, Rounding::nearest_even, Overflow::saturate), largest) << x;
    if (x > edge) {
      EXPECT_EQ(from_double(d.type, x), special) << x;
    }
    if (d.sign_bits == 0) continue;
    const auto sign_bit = static_cast<std::uint64_t>(magnitudes(d));
    EXPECT_EQ(from_double(d.type, -x, Rounding::nearest_even, Overflow::saturate),
              sign_bit | largest);
    if (x > edge) {
      EXPECT_EQ(from_double(d.type, -x), sign_bit | special);
    }
    if (x < kInf) {
      EXPECT_EQ(from_double(d.type, -x, Rounding::up), sign_bit | largest);
    }
  }
}

TEST_P(EveryFormat, TinyValuesAndZeros) {
  const Definition& d = GetParam();
  EXPECT_EQ(from_double(d.type, 0.0), 0u);
  EXPECT_EQ(from_double(d.type, -0.0),
            d.sign_bits != 0 ? static_cast<std::uint64_t>(magnitudes(d)) : 0u);
  for (const double x : {5e-324, 1e-310, 1e-300, d.smallest / 2}) {
    EXPECT_EQ(from_double(d.type, x), 0u) << x;
    EXPECT_EQ(from_double(d.type, x, Rounding::up), 1u) << x;
  }
  EXPECT_EQ(from_double(d.type, std::nextafter(d.smallest / 2, kInf)), 1u);
}

TEST_P(EveryFormat, NanIsCanonical) {
  const Definition& d = GetParam();
  EXPECT_EQ(from_double(d.type, kNan), static_cast<std::uint64_t>(nan_code(d)));
  EXPECT_EQ(from_double(d.type, -kNan, Rounding::nearest_even, Overflow::saturate),
            static_cast<std::uint64_t>(nan_code(d)));
}

TEST_P(EveryFormat, LimitsAndUlp) {
  const Definition& d = GetParam();
  const FloatFormat f = format_of(d.type);
  EXPECT_EQ(f.max(), d.largest);
  EXPECT_EQ(f.min_positive(), d.smallest);
  EXPECT_EQ(f.max_code(), static_cast<std::uint64_t>(largest_code(d)));
  for (int m = 0; m < largest_code(d); ++m) {
    const double x = value(d, m);
    const double spacing = value(d, m + 1) - x;
    ASSERT_EQ(ulp(d.type, x), spacing) << m;
    ASSERT_EQ(ulp(d.type, -x), spacing) << m;
    ASSERT_EQ(ulp(d.type, x + spacing / 2), spacing) << m;
  }
  const double top = value(d, largest_code(d)) - value(d, largest_code(d) - 1);
  EXPECT_EQ(ulp(d.type, d.largest), top);
  EXPECT_EQ(ulp(d.type, 1e300), top);
  EXPECT_EQ(ulp(d.type, -kInf), top);
  EXPECT_EQ(ulp(d.type, 0.0), d.smallest);
  EXPECT_EQ(ulp(d.type, 5e-324), d.smallest);
  EXPECT_TRUE(std::isnan(ulp(d.type, kNan)));
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, ::testing::ValuesIn(kDefinitions),
                         [](const auto& i) { return std::string(name(i.param.type)); });

void PrintTo(const Definition& d, std::ostream* os) {
  *os << name(d.type);
}

// The examples that were executed with the toolkit's own headers.
TEST(FloatFormat, ExamplesFromTheToolkit) {
  const auto rn = Rounding::nearest_even;
  const auto sat = Overflow::saturate;
  EXPECT_EQ(from_double(DType::e4m3, 448), 0x7eu);
  EXPECT_EQ(from_double(DType::e4m3, 464), 0x7eu);
  EXPECT_EQ(from_double(DType::e4m3, 465), 0x7fu);
  EXPECT_EQ(from_double(DType::e4m3, kInf, rn, sat), 0x7eu);
  EXPECT_EQ(from_double(DType::e4m3, kInf), 0x7fu);
  EXPECT_EQ(from_double(DType::e5m2, kInf), 0x7cu);
  EXPECT_EQ(from_double(DType::e5m2, kInf, rn, sat), 0x7bu);
  EXPECT_EQ(from_double(DType::e2m1, 0.25), 0u);
  EXPECT_EQ(to_double(DType::e2m1, from_double(DType::e2m1, 0.75)), 1.0);
  EXPECT_EQ(to_double(DType::e2m1, from_double(DType::e2m1, 2.5)), 2.0);
  EXPECT_EQ(to_double(DType::e2m1, from_double(DType::e2m1, 5)), 4.0);
  EXPECT_EQ(from_double(DType::e2m1, kNan), 7u);
  EXPECT_EQ(from_double(DType::ue8m0, 448, Rounding::up), 0x88u);
  EXPECT_EQ(from_double(DType::ue8m0, 448, Rounding::toward_zero), 0x87u);
}

TEST(FloatFormat, Ue8m0IsPowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const double x = std::ldexp(1.0, code - 127);
    const auto want = static_cast<std::uint64_t>(code);
    EXPECT_EQ(to_double(DType::ue8m0, want), x);
    for (const Rounding r : {Rounding::nearest_even, Rounding::toward_zero, Rounding::up}) {
      EXPECT_EQ(from_double(DType::ue8m0, x, r), want);
      EXPECT_EQ(from_double(DType::ue8m0, -x, r), want) << "the sign is dropped";
    }
    EXPECT_EQ(from_double(DType::ue8m0, x * 1.25, Rounding::toward_zero), want);
    EXPECT_EQ(from_double(DType::ue8m0, x * 1.25, Rounding::up, Overflow::saturate),
              code == 254 ? 254u : want + 1);
    EXPECT_EQ(ulp(DType::ue8m0, x), x);
  }
  EXPECT_TRUE(std::isnan(to_double(DType::ue8m0, 0xff)));
  EXPECT_EQ(from_double(DType::ue8m0, kNan), 0xffu);
  EXPECT_EQ(from_double(DType::ue8m0, 0.0), 0u);
  EXPECT_EQ(from_double(DType::ue8m0, 0x1p-140), 0u);
  EXPECT_EQ(from_double(DType::ue8m0, 0x1p-140, Rounding::up), 0u);
  EXPECT_EQ(from_double(DType::ue8m0, kInf), 0xffu);
  EXPECT_EQ(from_double(DType::ue8m0, kInf, Rounding::up, Overflow::saturate), 0xfeu);
  EXPECT_EQ(from_double(DType::ue8m0, 0x1.8p127, Rounding::up), 0xffu);
}

TEST(FloatFormat, F32AgreesWithTheProcessor) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300000; ++i) {
    // Any double's fraction, with exponents around float's range and its subnormals.
    const std::uint64_t word = (random() & 0x800fffffffffffffull) |
                               (static_cast<std::uint64_t>(860 + random() % 300) << 52);
    const double x = std::bit_cast<double>(word);
    const auto want = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    ASSERT_EQ(from_double(DType::f32, x), want) << x;
    ASSERT_EQ(to_double(DType::f32, want), static_cast<double>(static_cast<float>(x)));
  }
  EXPECT_EQ(ulp(DType::f32, 1.0), 0x1p-23);
  EXPECT_EQ(ulp(DType::f32, 0.0), 0x1p-149);
  EXPECT_EQ(ulp(DType::f32, kInf), 0x1p104);
}

TEST(FloatFormat, F64IsItself) {
  for (const double x : {0.0, -0.0, 1.0, -1.5, 5e-324, 0x1p-1022, 0x1.fffffffffffffp1023, kInf}) {
    EXPECT_EQ(from_double(DType::f64, x), std::bit_cast<std::uint64_t>(x)) << x;
    EXPECT_EQ(to_double(DType::f64, std::bit_cast<std::uint64_t>(x)), x);
  }
}

TEST(FloatFormat, Tf32KeepsTenMantissaBitsInTheUpperPart) {
  EXPECT_EQ(from_double(DType::tf32, 1.0), 0x3f800000u);
  EXPECT_EQ(from_double(DType::tf32, 1.0 + 0x1p-11), 0x3f800000u);
  EXPECT_EQ(from_double(DType::tf32, 1.0 + 0x1p-11, Rounding::nearest_away), 0x3f802000u);
  EXPECT_EQ(from_double(DType::tf32, -kInf), 0xff800000u);
  EXPECT_EQ(to_double(DType::tf32, 0x3f801fffu), 1.0);
}

// One rounding only: through float, this value would become a tie first and then go wrong.
TEST(FloatFormat, DoubleToNarrowRoundsOnce) {
  const double x = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(from_double(DType::bf16, x), 0x3f81u);
  EXPECT_EQ(from_double(DType::bf16, static_cast<double>(static_cast<float>(x))), 0x3f80u);
  EXPECT_EQ(bf16_t(x).code, 0x3f81u);
}

TEST(FloatFormat, Integers) {
  for (int i = -8; i < 8; ++i) {
    EXPECT_EQ(to_double(DType::s4, static_cast<std::uint64_t>(i & 15)), i);
    EXPECT_EQ(from_double(DType::s4, i), static_cast<std::uint64_t>(i & 15));
  }
  EXPECT_EQ(from_double(DType::s4, 100.0), 7u);
  EXPECT_EQ(from_double(DType::s4, -kInf), 8u);
  EXPECT_EQ(to_double(DType::s8, 0x80), -128.0);
  EXPECT_EQ(to_double(DType::s32, 0xffffffffu), -1.0);
  EXPECT_EQ(from_double(DType::u8, 300.0), 255u);
  EXPECT_EQ(from_double(DType::u8, -3.0), 0u);
  EXPECT_EQ(from_double(DType::s8, 2.5), 2u);
  EXPECT_EQ(from_double(DType::s8, 3.5), 4u);
  EXPECT_EQ(from_double(DType::s8, -2.5), 0xfeu);
  EXPECT_EQ(from_double(DType::s8, -2.5, Rounding::nearest_away), 0xfdu);
  EXPECT_EQ(from_double(DType::s8, -2.5, Rounding::toward_zero), 0xfeu);
  EXPECT_EQ(from_double(DType::s8, -2.5, Rounding::up), 0xfeu);
  EXPECT_EQ(from_double(DType::s8, -2.5, Rounding::down), 0xfdu);
  EXPECT_EQ(from_double(DType::s8, kNan), 0u);
  EXPECT_EQ(ulp(DType::s8, 3.0), 1.0);
}

TEST(Scalar, ConvertsExplicitlyAndAtCompileTime) {
  static_assert(fp16_t(1.0).code == 0x3c00);
  static_assert(fp16_t(65520.0).code == 0x7c00);
  static_assert(fp16_t::saturated(65520.0).code == 0x7bff);
  static_assert(static_cast<float>(bf16_t::from_code(0x4049)) == 3.140625f);
  static_assert(static_cast<double>(e5m2_t(1.75)) == 1.75);
  static_assert(e4m3_t::saturated(1e9).code == 0x7e);
  static_assert(!std::is_convertible_v<float, bf16_t> && !std::is_convertible_v<bf16_t, float>);
}

}  // namespace
}  // namespace warpwright::numeric
