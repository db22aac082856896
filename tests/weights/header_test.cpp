#include "warpwright/weights/header.h"
#include "tests/must.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace warpwright::weights {
namespace {

Header some_header() {
  Header h;
  h.format = {Int4Encoding::ex, 64, DType::f32, ZeroPoints::groups};
  h.extents = {3, 100, 192};
  h.source = "gptq";
  h.sum = 0x0123456789abcdefU;
  return h;
}

// A header whose own sum is right again after `change`.
template <class Change>
HeaderBytes changed(const Change& change) {
  HeaderBytes bytes = header_bytes(some_header());
  change(bytes.data());
  const std::uint64_t sum = sum_of(std::span(bytes).first(120));
  for (int i = 0; i < 8; ++i)
    bytes[static_cast<std::size_t>(120 + i)] = static_cast<std::byte>(sum >> 8 * i);
  return bytes;
}

void expect_refused(std::span<const std::byte> bytes, const std::string& part) {
  const auto header = parse_header(bytes, "x");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.reason().find("x "), 0U);
  expect_contains(header.reason(), part);
  EXPECT_EQ(header.reason().back(), '.');
}

// The bytes that docs/packing.md lists.
TEST(HeaderTest, Bytes) {
  const HeaderBytes bytes = header_bytes(some_header());
  const auto text = [&](int at, int count) {
    std::string hex;
    for (int i = at; i < at + count; ++i) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<int>(bytes[static_cast<std::size_t>(i)]));
      hex += two;
    }
    return hex;
  };
  EXPECT_EQ(text(0, 8), "5757494e54340d0a");   // "WWINT4\r\n"
  EXPECT_EQ(text(8, 8), "0100000080000000");   // version 1, 128 bytes
  EXPECT_EQ(text(16, 8), "0102010040000000");  // ex, f32, zero points, 0; group 64
  EXPECT_EQ(text(24, 8), "0300000000000000");  // experts
  EXPECT_EQ(text(32, 8), "6400000000000000");  // N
  EXPECT_EQ(text(40, 8), "c000000000000000");  // K
  EXPECT_EQ(text(48, 8), "8000000000000000");  // N padded
  EXPECT_EQ(text(56, 8), "0001000000000000");  // K padded
  EXPECT_EQ(text(64, 8), "8012000000000000");  // 4096 + 2 * 256 + 128 bytes a tile
  EXPECT_EQ(text(72, 8), "00de000000000000");  // 12 tiles
  EXPECT_EQ(text(80, 8), "efcdab8967452301");
  EXPECT_EQ(text(88, 8), "6770747100000000");
}

TEST(HeaderTest, ComesBack) {
  const auto header = must(parse_header(header_bytes(some_header())));
  EXPECT_EQ(header->format, some_header().format);
  EXPECT_EQ(header->extents, some_header().extents);
  EXPECT_EQ(header->source, "gptq");
  EXPECT_EQ(header->sum, some_header().sum);
}

// For nvf4: known, one an expert, or not said, as before there was a place for it.
TEST(HeaderTest, FactorOfNvf4) {
  Header h;
  h.format = {.group = 16, .scale = DType::ue4m3, .code = DType::e2m1, .tokens = DType::bf16};
  h.extents = {2, 100, 192};
  h.source = "compressed-tensors-nvfp4";
  for (const float factor : {0.0F, 0.125F, kFactorEach}) {
    h.factor = factor;
    const auto header = must(parse_header(header_bytes(h)));
    EXPECT_EQ(std::isnan(header->factor), std::isnan(factor));
    EXPECT_TRUE(std::isnan(factor) || header->factor == factor);
    EXPECT_EQ(header->lacks_factor(), factor != 0.125F);
    EXPECT_EQ(header->source, h.source);
  }
  for (const float factor : {-1.0F, std::numeric_limits<float>::infinity()}) {
    h.factor = factor;
    expect_refused(header_bytes(h), "claims what no packed tensor is");
  }
  Header of_int4 = some_header();
  EXPECT_FALSE(of_int4.lacks_factor());
  of_int4.factor = 2;
  expect_refused(header_bytes(of_int4), "claims what no packed tensor is");
}

TEST(HeaderTest, EveryBitIsChecked) {
  const HeaderBytes good = header_bytes(some_header());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    HeaderBytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(parse_header(bytes)) << "bit " << bit;
  }
}

TEST(HeaderTest, Refusals) {
  const HeaderBytes good = header_bytes(some_header());
  expect_refused(std::span(good).first(127), "holds no packed weights");
  expect_refused({}, "holds no packed weights");
  expect_refused(changed([](std::byte* at) { at[6] = std::byte{'\n'}; }), "holds no packed");
  expect_refused(changed([](std::byte* at) { at[8] = std::byte{2}; }),
                 "has version 2 of the packed form, and version 1 is the one that is read");
  HeaderBytes damaged = good;
  damaged[32] = std::byte{0x65};
  expect_refused(damaged, "is damaged: its header does not add up");
  // Whole by its sum, and yet impossible: every field.
  for (const int at : {12, 16, 17, 18, 19, 20, 24, 31, 32, 40, 48, 56, 64, 72, 93, 119}) {
    expect_refused(changed([at](std::byte* bytes) { bytes[at] ^= std::byte{0x40}; }),
                   "claims what no packed tensor is");
  }
  expect_refused(changed([](std::byte* at) { at[40] = std::byte{0xa0}; }), "claims what");  // K 160
  expect_refused(changed([](std::byte* at) { at[88] = std::byte{7}; }), "claims what");
}

TEST(HeaderTest, WholeTensors) {
  Header h = some_header();
  std::vector<std::byte> bytes(128 + packed::data_bytes(h.format, h.extents));
  std::mt19937 random(3);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  h.sum = sum_of(std::span(bytes).subspan(128));
  const HeaderBytes header = header_bytes(h);
  std::copy(header.begin(), header.end(), bytes.begin());
  ASSERT_TRUE(parse_packed(bytes)) << parse_packed(bytes).reason();
  std::vector<std::byte> damaged = bytes;
  damaged[5000] ^= std::byte{1};
  expect_contains(parse_packed(damaged).reason(), "its tiles do not add up");
  // Two words that change places are seen too.
  damaged = bytes;
  std::swap_ranges(damaged.begin() + 136, damaged.begin() + 144, damaged.begin() + 1136);
  EXPECT_FALSE(parse_packed(damaged));
  damaged = bytes;
  damaged.pop_back();
  expect_contains(parse_packed(damaged).reason(),
                  "56831 bytes behind its header, which speaks of 56832");
}

TEST(HeaderTest, OtherWeights) {
  const Header h = some_header();
  EXPECT_FALSE(mismatch(h, {3, 100, 192}));
  for (const packed::Extents& other :
       {packed::Extents{1, 100, 192}, packed::Extents{3, 128, 192}, packed::Extents{3, 100, 256}}) {
    const auto fault = must(mismatch(h, other, "w"));
    expect_contains(fault->reason, "w holds 3 matrices of N = 100 and K = 192; the product needs");
  }
}

TEST(SumTest, ThreadsAddUpTheSame) {
  std::vector<std::byte> bytes(8 * 400000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 3);
  EXPECT_EQ(sum_of(bytes, 1), sum_of(bytes, 5));
}

}  // namespace
}  // namespace warpwright::weights
