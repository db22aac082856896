// E2m1 weights: what their codes become in registers, beside float64 (products by them:
// model_test.cpp).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/kernel/hopper/decode/e2m1.h"
#include "warpwright/kernel/hopper/decode/int4_wide.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {
namespace {

// Calls `body` with canonical bits in which each code is in each place once, beside any others.
template <class Body>
void for_each_code_in_each_place(std::mt19937& random, const Body& body) {
  for (std::uint32_t code = 0; code < 16; ++code) {
    for (int place = 0; place < 8; ++place) {
      auto bits = static_cast<std::uint32_t>(random());
      bits = (bits & ~(0xfU << 4 * place)) | code << 4 * place;
      body(bits);
    }
  }
}

double value_of(std::uint32_t bits, int place) {
  return numeric::to_double(DType::e2m1, bits >> 4 * place & 15U);
}

// Int4 for tokens of 16 bits: every code in every place, less every zero point, exactly.
template <DType type>
void check_int4() {
  std::mt19937 random(4);
  for (std::uint32_t zero = 0; zero < 16; ++zero) {
    for_each_code_in_each_place(random, [&](std::uint32_t bits) {
      ASSERT_EQ(packed::bits_of_nibble_word(packed::nibble_word(bits)), bits);
      using Wide = kernel::WideCodes<type>;
      const std::uint32_t less[] = {Wide::int4_less(0, zero), Wide::int4_less(1, 8)};
      std::uint32_t a[4];
      kernel::convert_to_wide<type>(packed::nibble_word(bits), less, a);
      for (int r = 0; r < 4; ++r) {
        for (int half = 0; half < 2; ++half) {
          const int place = 2 * (r / 2 * 2 + half) + r % 2;
          const int code = packed::code_of(bits >> 4 * place & 15U, Int4Encoding::ex);
          ASSERT_EQ(numeric::to_double(type, a[r] >> 16 * half & 0xffff),
                    code + 8 - static_cast<int>(r % 2 == 0 ? zero : 8))
              << std::hex << bits << " " << zero << " " << r;
        }
      }
    });
  }
}
TEST(PackedInt4, CodesBecomeBf16) {
  check_int4<DType::bf16>();
}
TEST(PackedInt4, CodesBecomeF16) {
  check_int4<DType::f16>();
}

TEST(PackedE2m1, WordsAreTurnedBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const auto bits = static_cast<std::uint32_t>(random());
    EXPECT_EQ(packed::bits_of_table_word(packed::table_word(bits)), bits);
    for (const DType tokens : {DType::bf16, DType::f16}) {
      EXPECT_EQ(packed::bits_of_half_word(tokens, packed::half_word(tokens, bits)), bits);
    }
  }
}

// Every code at every exponent, exactly: none is rounded, none is subnormal or infinite.
TEST(PackedE2m1, CodesBecomeE5m2) {
  std::mt19937 random(2);
  const auto most = static_cast<std::uint32_t>(packed::exponent_range(DType::e4m3).most);
  for (std::uint32_t x = 0; x <= most; ++x) {
    for_each_code_in_each_place(random, [&](std::uint32_t bits) {
      const std::uint32_t other = random() % (most + 1);
      const kernel::E5m2Table tables[] = {kernel::E5m2Table::of(x), kernel::E5m2Table::of(other)};
      const std::uint32_t words[] = {packed::table_word(bits), packed::table_word(~bits)};
      std::uint32_t a[4];
      kernel::convert_by_tables(words, tables, a);
      for (int r = 0; r < 4; ++r) {
        const double unit = std::ldexp(1, static_cast<int>(r % 2 == 0 ? x : other) - 13);
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(numeric::to_double(DType::e5m2, a[r] >> 8 * i & 0xff),
                    value_of(r < 2 ? bits : ~bits, 2 * i + r % 2) * unit)
              << std::hex << bits << " " << x << " " << r;
        }
      }
    });
  }
}

// The same as floats of 16 bits, for exponents of mxf4 and all numbers of ue4m3.
template <DType type>
void check_floats() {
  using Wide = kernel::WideCodes<type>;
  constexpr packed::ExponentRange range = packed::exponent_range(type);
  std::mt19937 random(3);
  constexpr std::uint32_t count = range.most + 1;
  // In each of a row's four bytes, the others as they come.
  const auto check = [&](auto of_exponents, std::uint32_t byte, double scale) {
    constexpr bool exponents = decltype(of_exponents)::value;
    const auto one = static_cast<std::uint32_t>(range.bias) * 0x01010101U;
    int slice = 0;
    for_each_code_in_each_place(random, [&](std::uint32_t bits) {
      slice = (slice + 1) % 4;
      std::uint32_t bytes = 0;
      for (int i = 0; i < 4; ++i) {
        bytes |= (i == slice ? byte : random() % count) << 8 * i;
      }
      const std::uint32_t factors[] = {Wide::template factors<exponents>(bytes, slice % 2),
                                       Wide::template factors<true>(one, slice % 2)};
      std::uint32_t a[4];
      kernel::convert_by_factors<type>(packed::half_word(type, bits), factors, slice / 2, a);
      for (int r = 0; r < 4; ++r) {
        for (int half = 0; half < 2; ++half) {
          const double right = value_of(bits, 2 * (r / 2 * 2 + half) + r % 2);
          ASSERT_EQ(numeric::to_double(type, a[r] >> 16 * half & 0xffff),
                    right * (r % 2 == 0 ? scale : 1))
              << std::hex << bits << " " << bytes << " " << slice << " " << r;
        }
      }
    });
  };
  for (std::uint32_t x = 0; x <= static_cast<std::uint32_t>(range.most); ++x) {
    check(std::true_type{}, x, std::ldexp(1, static_cast<int>(x) - range.bias));
    check(std::true_type{}, x | 0xc0U, std::ldexp(1, static_cast<int>(x) - range.bias));
  }
  for (std::uint32_t code = 1; code < 0x7f; ++code) {
    const std::uint32_t stored = packed::stored_ue4m3(code);
    const double scale = numeric::to_double(DType::e4m3, code);
    ASSERT_EQ(
        packed::scale_value({.group = 16, .scale = DType::ue4m3, .code = DType::e2m1}, stored, 0),
        scale);
    check(std::false_type{}, stored, std::ldexp(scale, -7));
  }
}
TEST(PackedE2m1, CodesBecomeBf16) {
  check_floats<DType::bf16>();
}
TEST(PackedE2m1, CodesBecomeF16) {
  check_floats<DType::f16>();
}

// Exponents and the unit of a row, through its four bytes.
TEST(PackedE2m1, UnitsOfRows) {
  for (const DType tokens : {DType::e4m3, DType::bf16, DType::f16}) {
    const packed::ExponentRange range = packed::exponent_range(tokens);
    const PackedFormat f{.group = 32,
                         .scale = DType::ue8m0,
                         .code = DType::e2m1,
                         .tokens = tokens,
                         .exponents = Exponents::of_rows};
    for (int largest = 0; largest < 255; ++largest) {
      const int unit = packed::unit_of_largest(tokens, largest);
      std::uint32_t word = 0;
      for (int slice = 0; slice < 4; ++slice) {
        const int scale = std::max(0, largest - slice * 8);
        const int x = packed::exponent_under(tokens, unit, scale);
        ASSERT_TRUE(x >= 0 && x <= range.most) << largest << " " << slice;
        const std::uint32_t byte = packed::exponent_byte(x, unit, slice);
        word |= byte << 8 * slice;
        ASSERT_EQ(packed::scale_value(f, byte, static_cast<std::uint32_t>(unit)),
                  std::ldexp(1, scale - 127));
      }
      ASSERT_EQ(packed::unit_in(word), static_cast<std::uint32_t>(unit));
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
