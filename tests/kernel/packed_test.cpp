// Packed int4 weights: their conversion (products by them: model_test.cpp).
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/kernel/hopper/decode/table.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {
namespace {

// Every code in every place of a word, beside any others.
TEST(PackedWeightsTest, CodesBecomeE4m3) {
  std::mt19937 random(1);
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    const std::uint32_t carries = packed::carries_of(encoding);
    for (int round = 0; round < 8 * 16 * 16; ++round) {
      const int place = round / 256;
      std::uint32_t bits = static_cast<std::uint32_t>(random());
      bits &= ~(0xfU << 4 * place);
      bits |= static_cast<std::uint32_t>(round % 16) << 4 * place;
      const std::uint32_t word = packed::word_of(bits);
      const std::uint32_t halves[] = {packed::first_values(word, carries),
                                      packed::second_values(word, carries)};
      EXPECT_EQ(halves[1], packed::first_values(word >> 4 | word << 28, carries));
      for (int i = 0; i < 8; ++i) {
        const double value =
            512 * numeric::to_double(DType::e4m3, halves[i / 4] >> 8 * (i % 4) & 0xff);
        ASSERT_EQ(value, packed::code_of(bits >> 4 * (2 * (i % 4) + i / 4) & 0xf, encoding))
            << std::hex << bits;
      }
    }
  }
}

// Less any zero point: -15 to 15, of which e4m3 has all.
TEST(PackedWeightsTest, DifferencesBecomeE4m3) {
  std::mt19937 random(1);
  for (std::uint32_t zero = 0; zero < 16; ++zero) {
    for (unsigned round = 0; round < 8 * 16 * 4; ++round) {
      const unsigned place = round / 64;
      std::uint32_t bits = static_cast<std::uint32_t>(random());
      bits &= ~(0xfU << 4 * place);
      bits |= round % 16 << 4 * place;
      const std::uint32_t word = packed::word_of(bits);
      const std::uint32_t halves[] = {packed::first_differences(word, zero),
                                      packed::second_differences(word, zero)};
      for (int i = 0; i < 8; ++i) {
        const double value =
            512 * numeric::to_double(DType::e4m3, halves[i / 4] >> 8 * (i % 4) & 0xff);
        const int code = packed::code_of(bits >> 4 * (2 * (i % 4) + i / 4) & 0xf, Int4Encoding::ex);
        ASSERT_EQ(value, code + 8 - static_cast<int>(zero)) << std::hex << bits << " " << zero;
      }
    }
  }
}

// A table gives what a product rounded to e4m3 is: with scales of bf16, whose products f16 holds,
// the same as the way through f16 does.
TEST(PackedWeightsTest, TablesAreScaledCodes) {
  std::mt19937 random(1);
  for (int round = 0; round < 512; ++round) {
    // As the main loop scales them: in the largest group below 2^14.
    const float scale = std::ldexp(static_cast<float>(128 + random() % 128), 6 - round % 16);
    const kernel::CodeTable table = kernel::CodeTable::of(scale);
    const std::uint32_t factor = isa::pack<DType::f16>(scale, scale);
    const std::uint32_t word = packed::word_of(static_cast<std::uint32_t>(random()));
    const std::uint32_t codes[] = {packed::first_values(word, 0), packed::second_values(word, 0)};
    const std::uint32_t found[] = {kernel::look_up<false>(word, table),
                                   kernel::look_up<true>(word, table)};
    for (int half = 0; half < 2; ++half) {
      ASSERT_EQ(found[half], kernel::fold(codes[half], factor)) << round;
      for (int i = 0; i < 4; ++i) {
        const double code = numeric::to_double(DType::e4m3, codes[half] >> 8 * i & 0xff);
        const auto right = numeric::from_double(DType::e4m3, code * static_cast<double>(scale));
        ASSERT_EQ(found[half] >> 8 * i & 0x7f, right & 0x7f) << round << " " << code;
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
