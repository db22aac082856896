#include "warpwright/weights/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/must.h"
#include "tests/weights/some_weights.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/numeric/bulk.h"

namespace warpwright::weights {
namespace {

void expect_same(const PlainWeights& a, const PlainWeights& b) {
  EXPECT_EQ(a.extents, b.extents);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_TRUE(a.codes == b.codes);
  EXPECT_TRUE(a.scales == b.scales);
  EXPECT_TRUE(a.zeros == b.zeros);
}

TEST(PackTest, EveryFormatComesBack) {
  for (const int group : {32, 64, 128}) {
    for (const DType scale : {DType::bf16, DType::f16, DType::f32}) {
      for (const bool zeros : {false, true}) {
        // Rows and K that fill no tile, where the group allows.
        const packed::Extents e{2, 70, group == 128 ? 256 : 128 + group};
        const PlainWeights w = some_weights(e, group, scale, zeros);
        const auto bytes = must(pack(source_of(w)));
        const auto header = must(parse_packed(*bytes));
        EXPECT_EQ(header->format.encoding, Int4Encoding::ex);
        EXPECT_EQ(header->format.group, group);
        EXPECT_EQ(header->format.scale, scale);
        EXPECT_EQ(header->format.zero_points == ZeroPoints::groups, zeros);
        const auto back = must(unpack(*bytes));
        expect_same(*back, w);
        // The same for tokens of bf16: other words.
        const auto wide = must(pack(source_of(w), {.tokens = DType::bf16}));
        EXPECT_EQ(parse_packed(*wide)->format.tokens, DType::bf16);
        EXPECT_NE(std::memcmp(bytes->data() + packed::kHeaderBytes,
                              wide->data() + packed::kHeaderBytes, packed::kTileCodeBytes),
                  0);
        expect_same(*unpack(*wide), w);
      }
    }
  }
}

TEST(PackTest, ThreadsDoNotChangeTheBytes) {
  const PlainWeights w = some_weights({3, 200, 384}, 128, DType::bf16);
  const auto one = pack(source_of(w), {}, {.threads = 1});
  double last = 0;
  const auto three = pack(source_of(w), {}, {.threads = 3, .progress = [&](double share) {
                                               EXPECT_GT(share, last);
                                               last = share;
                                             }});
  ASSERT_TRUE(one && three);
  EXPECT_TRUE(*one == *three);
  EXPECT_EQ(last, 1);
}

TEST(PackTest, PaddingIsZeroWithTheLastScale) {
  const packed::Extents e{1, 65, 160};
  const PlainWeights w = some_weights(e, 32, DType::bf16, true);
  const auto bytes = must(pack(source_of(w)));
  PlainWeights padded = w;
  padded.extents = {1, 128, 256};
  // The same bytes under a header that calls the padding weights.
  const PackedFormat f = parse_packed(*bytes)->format;
  std::vector<std::byte> whole = *bytes;
  const auto header = header_bytes(
      {f, padded.extents, "test", sum_of(std::span(whole).subspan(packed::kHeaderBytes))});
  std::copy(header.begin(), header.end(), whole.begin());
  const auto all = must(unpack(whole));
  for (int n = 0; n < 128; ++n) {
    for (int k = 0; k < 256; ++k) {
      if (n < 65 && k < 160) {
        ASSERT_EQ(code_of(*all, 0, n, k), code_of(w, 0, n, k));
        ASSERT_EQ(scale_of(*all, 0, n, k), scale_of(w, 0, n, k));
        ASSERT_EQ(zero_point_of(*all, 0, n, k), zero_point_of(w, 0, n, k));
      } else {
        ASSERT_EQ(code_of(*all, 0, n, k), 0);
        ASSERT_EQ(scale_of(*all, 0, n, k), n < 65 ? scale_of(w, 0, n, 159) : 1);
        ASSERT_EQ(zero_point_of(*all, 0, n, k), 8);
      }
    }
  }
}

TEST(PackTest, EncodingFollowsTheCodes) {
  const packed::Extents e{1, 64, 128};
  PlainWeights w = some_weights(e, 128, DType::bf16, false, -7);
  EXPECT_EQ(packed_format(source_of(w))->encoding, Int4Encoding::sm);
  EXPECT_EQ(packed_format(source_of(w), {.encoding = Int4Encoding::ex})->encoding,
            Int4Encoding::ex);
  w.codes.back() = static_cast<std::byte>(0x83);  // -8 and 3
  EXPECT_EQ(packed_format(source_of(w))->encoding, Int4Encoding::ex);
  const auto refused = pack(source_of(w), {.encoding = Int4Encoding::sm});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason(),
            "The code of row 63 of expert 0, k = 127, is -8, which the encoding sm does not have: "
            "pack as ex.");
}

TEST(PackTest, ScalesThatAreNoScales) {
  const packed::Extents e{2, 3, 128};
  const auto with_scale = [&](std::size_t at, double scale, DType type) {
    PlainWeights w = some_weights(e, 64, type);
    const auto size = static_cast<std::size_t>(numeric::bits(type)) / 8;
    const std::uint64_t code = numeric::from_double(type, scale);
    std::memcpy(w.scales.data() + at * size, &code, size);
    return w;
  };
  const PlainWeights nan = with_scale(9, std::nan(""), DType::bf16);  // expert 1, row 1, group 1
  const auto refused = pack(source_of(nan));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason(),
            "The scale of row 1 of expert 1, group 1, is NaN: no weight has a value.");
  const PlainWeights infinite = with_scale(0, std::numeric_limits<double>::infinity(), DType::f32);
  EXPECT_FALSE(pack(source_of(infinite)));
  const PlainWeights large = with_scale(0, 128, DType::f16);
  expect_contains(why_not(pack(source_of(large))), "as fp16 the largest is 127.938");
  EXPECT_TRUE(pack(source_of(large), {.scale = DType::bf16}));
  // By tokens of 16 bits sums are 512 times what they stand for, up to their end.
  for (const double scale : {1e34, -1e34}) {
    const PlainWeights far = with_scale(0, scale, DType::f32);
    EXPECT_TRUE(pack(source_of(far)));
    const auto beyond = pack(source_of(far), {.tokens = DType::bf16});
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.reason(),
              "The scale of row 0 of expert 0, group 0, is too large: sums are kept times 512, and "
              "beside tokens of bf16 the largest is 1.84467e+19.");
    EXPECT_TRUE(pack(source_of(with_scale(0, std::copysign(0x1p64, scale), DType::f32)),
                     {.tokens = DType::bf16}));
  }
  // A scale of 0 makes its weights 0, whatever the codes, with the scale before, or 1.
  PlainWeights zero = with_scale(3, 0, DType::bf16);  // expert 0, row 1, group 1
  std::memset(&zero.scales[8], 0, 8);                 // rows 2 and 3
  const auto bytes = must(pack(source_of(zero)));
  const auto back = must(unpack(*bytes));
  for (int k = 64; k < 128; ++k) {
    EXPECT_EQ(code_of(*back, 0, 1, k), 0);
    EXPECT_EQ(scale_of(*back, 0, 1, k), scale_of(zero, 0, 1, 0));
    EXPECT_EQ(code_of(*back, 0, 2, k), 0);
    EXPECT_EQ(scale_of(*back, 0, 2, k), 1);
  }
  EXPECT_EQ(code_of(*back, 0, 1, 5), code_of(zero, 0, 1, 5));
}

TEST(PackTest, ScalesOfAnotherTypeAreRounded) {
  const packed::Extents e{1, 64, 128};
  const PlainWeights w = some_weights(e, 32, DType::f32);
  PlainWeights finer = w;
  for (std::size_t i = 0; i < finer.scales.size(); i += 4) {
    float s = 0;
    std::memcpy(&s, &finer.scales[i], 4);
    s *= 1.001F;  // beyond bf16's bits
    std::memcpy(&finer.scales[i], &s, 4);
  }
  const auto back = must(unpack(*pack(source_of(finer), {.scale = DType::bf16})));
  for (int n = 0; n < 64; ++n) {
    const double exact = scale_of(finer, 0, n, 0);
    EXPECT_EQ(scale_of(*back, 0, n, 0),
              numeric::to_double(DType::bf16, numeric::from_double(DType::bf16, exact)));
  }
}

TEST(QuantiseTest, ErrorsAreHalfAStep) {
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    for (const int group : {32, 64, 128}) {
      std::mt19937 random(7);
      std::normal_distribution<float> normal;
      std::vector<float> values(3 * 40 * 384);
      for (float& v : values) v = normal(random);
      const MatrixView view{values.data(), DType::f32, 40, 384, 384, 1, 3, 40 * 384};
      const auto w = must(quantise(std::span(&view, 1), {encoding, group, DType::f32}));
      EXPECT_EQ(w->origin, "f32");
      const std::vector<float> back = values_of(*w);
      double least = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i) / 384;
        const auto k = static_cast<std::int64_t>(i) % 384;
        const double step = scale_of(*w, n / 40, n % 40, k);
        ASSERT_LE(std::abs(static_cast<double>(values[i]) - static_cast<double>(back[i])),
                  step * 0.500001);
        least = std::min(least, code_of(*w, n / 40, n % 40, k));
      }
      EXPECT_EQ(least, packed::least_code(encoding));
      EXPECT_EQ(packed_format(source_of(*w))->encoding, encoding);
    }
  }
}

// Weights that lie to one side of 0 use all 16 codes.
TEST(QuantiseTest, ZeroPoints) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0.5F, 0.4F);
  std::vector<float> values(20 * 128);
  for (float& v : values) v = normal(random);
  std::fill(values.begin() + 3 * 128, values.begin() + 4 * 128, 0.0F);
  for (int i = 4 * 128; i < 5 * 128; ++i) values[static_cast<std::size_t>(i)] -= 10;  // below 0
  const MatrixView view = matrix(values.data(), DType::f32, 20, 128);
  const auto w =
      must(quantise(std::span(&view, 1), {Int4Encoding::ex, 32, DType::f32, ZeroPoints::groups}));
  const std::vector<float> back = values_of(*w);
  for (int n = 0; n < 20; ++n) {
    for (int k = 0; k < 128; ++k) {
      const auto at = static_cast<std::size_t>(n * 128 + k);
      // Rounding the zero point moves the ends by half a step more.
      ASSERT_LE(std::abs(static_cast<double>(values[at]) - static_cast<double>(back[at])),
                scale_of(*w, 0, n, k) * 1.00001);
    }
  }
  EXPECT_EQ(zero_point_of(*w, 0, 4, 0), 15);
  EXPECT_EQ(scale_of(*w, 0, 3, 0), 0);
  const auto packed = must(pack(source_of(*w)));
  const std::vector<float> there = values_of(*unpack(*packed));
  EXPECT_TRUE(there == back);
}

TEST(QuantiseTest, TypesBatchesAndZeros) {
  // The same weights as a batch of two, as two views, and in 16 bits.
  std::vector<float> values(2 * 5 * 64);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i % 31) - 15) / 8;
  for (std::size_t i = 64; i < 128; ++i) values[i] = 0;  // row 1
  std::vector<std::uint16_t> halves(values.size());
  numeric::narrow(values.data(), halves.data(), halves.size(), DType::bf16);
  const MatrixView batch{values.data(), DType::f32, 5, 64, 64, 1, 2, 5 * 64};
  const MatrixView parts[] = {matrix(values.data(), DType::f32, 5, 64),
                              matrix(values.data() + 5 * 64, DType::f32, 5, 64)};
  const MatrixView narrow{halves.data(), DType::bf16, 5, 64, 64, 1, 2, 5 * 64};
  const QuantiseOptions options{Int4Encoding::ex, 64, DType::bf16};
  const auto a = quantise(std::span(&batch, 1), options);
  const auto b = quantise(parts, options);
  const auto c = quantise(std::span(&narrow, 1), options);
  ASSERT_TRUE(a && b && c);
  expect_same(*a, *b);
  EXPECT_TRUE(a->codes == c->codes && a->scales == c->scales);
  EXPECT_EQ(scale_of(*a, 0, 1, 0), 0);
  EXPECT_EQ(code_of(*a, 0, 1, 0), 0);
}

TEST(QuantiseTest, Refusals) {
  std::vector<float> values(2 * 96, 1.0F);
  const auto refused = [&](MatrixView view, QuantiseOptions options, const std::string& part) {
    expect_contains(why_not(quantise(std::span(&view, 1), options)), part);
  };
  const MatrixView view = matrix(values.data(), DType::f32, 2, 96);
  refused(view, {Int4Encoding::ex, 64, DType::bf16}, "K = 96 is no multiple of the group of 64");
  refused(view, {Int4Encoding::ex, 48, DType::bf16}, "groups of 32, 64 or 128");
  refused(view, {Int4Encoding::sm, 32, DType::bf16, ZeroPoints::groups}, "encoding is ex");
  refused(matrix(values.data(), DType::e4m3, 2, 96), {Int4Encoding::ex, 32, DType::bf16},
          "Weights of e4m3 are not quantised");
  values[100] = std::numeric_limits<float>::infinity();
  refused(view, {Int4Encoding::ex, 32, DType::bf16},
          "The weight of row 1 of expert 0, k = 4, is NaN or infinite");
}

}  // namespace
}  // namespace warpwright::weights
