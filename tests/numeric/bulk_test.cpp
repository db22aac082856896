#include "warpwright/numeric/bulk.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace warpwright::numeric {
namespace {

void expect_same(float got, double want, std::uint64_t code) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << code;
    return;
  }
  ASSERT_EQ(static_cast<double>(got), want) << code;
  ASSERT_EQ(std::signbit(got), std::signbit(want)) << code;
}

TEST(Bulk, WidensEvery16BitCode) {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  std::vector<float> out(codes.size());
  for (const DType t : {DType::f16, DType::bf16}) {
    widen(codes.data(), out.data(), codes.size(), t);
    for (std::size_t i = 0; i < codes.size(); ++i) expect_same(out[i], to_double(t, i), i);
  }
}

TEST(Bulk, WidensEveryByte) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  std::vector<float> out(codes.size());
  for (const DType t : {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1,
                        DType::ue8m0, DType::ue4m3, DType::s4, DType::s8, DType::u8}) {
    widen(codes.data(), out.data(), codes.size(), t);
    for (std::size_t i = 0; i < codes.size(); ++i) expect_same(out[i], to_double(t, i), i);
  }
}

TEST(Bulk, EveryLengthWritesExactlyThatMuch) {
  const std::vector<std::uint16_t> codes(40, 0x3c00);
  for (std::size_t n = 0; n <= codes.size(); ++n) {
    std::vector<float> out(codes.size() + 1, -5.0f);
    widen(codes.data(), out.data(), n, DType::f16);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i < n ? 1.0f : -5.0f);
  }
}

TEST(Bulk, WidensFromAnyAddress) {
  std::vector<unsigned char> bytes(1 + 2 * 1300);
  for (std::size_t i = 0; i < 1300; ++i) {
    bytes[1 + 2 * i] = static_cast<unsigned char>(i & 0xff);
    bytes[2 + 2 * i] = static_cast<unsigned char>(0x40 + (i >> 8));
  }
  std::vector<float> out(1300);
  widen_from(bytes.data() + 1, out.data(), out.size(), DType::bf16);
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], to_double(DType::bf16, 0x4000 + i)) << i;
  }
  const unsigned char word[] = {9, 0xff, 0x3f, 0x80, 0x3f};  // 0x3f803fff behind a stray byte
  float x = 0;
  widen_from(word + 1, &x, 1, DType::f32);
  EXPECT_EQ(x, std::bit_cast<float>(0x3f803fffu));
  widen_from(word + 1, &x, 1, DType::tf32);
  EXPECT_EQ(x, std::bit_cast<float>(0x3f802000u));
  widen_from(word, &x, 1, DType::u8);
  EXPECT_EQ(x, 9.0f);
  widen_from(nullptr, nullptr, 0, DType::f32);
}

// All midpoints and their float neighbours, every code, the specials, and noise.
std::vector<float> interesting_floats() {
  std::vector<float> in;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u,
                                      0x8001u, 0xefffu, 0xf000u, 0xf001u, 0xffffu}) {
      in.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (std::uint64_t code = 0; code < 0x7bff; ++code) {
    const double middle =
        (to_double(DType::f16, code) + to_double(DType::f16, code + 1)) / 2;  // exact in float
    const auto tie = static_cast<float>(middle);
    for (const float x : {std::nextafterf(tie, 0.0f), tie, std::nextafterf(tie, 1e9f)}) {
      in.push_back(x);
      in.push_back(-x);
    }
  }
  std::mt19937 random(11);
  for (int i = 0; i < 200000; ++i)
    in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return in;
}

TEST(Bulk, NarrowingAgreesWithTheExactEncoder) {
  const std::vector<float> in = interesting_floats();
  std::vector<std::uint16_t> codes(in.size());
  std::vector<std::uint8_t> narrow_codes(in.size());
  for (const Overflow o : {Overflow::special, Overflow::saturate}) {
    for (const DType t : {DType::f16, DType::bf16}) {
      narrow(in.data(), codes.data(), in.size(), t, o);
      for (std::size_t i = 0; i < in.size(); ++i) {
        ASSERT_EQ(codes[i], from_double(t, in[i], Rounding::nearest_even, o)) << name(t) << in[i];
      }
    }
    narrow(in.data(), narrow_codes.data(), in.size(), DType::e4m3, o);
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(narrow_codes[i], from_double(DType::e4m3, in[i], Rounding::nearest_even, o));
    }
  }
}

}  // namespace
}  // namespace warpwright::numeric
