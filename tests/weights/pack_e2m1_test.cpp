// Packed e2m1 weights: their values are those of the checkpoint, to the bit.
#include "warpwright/weights/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/draws.h"
#include "tests/must.h"
#include "tests/weights/some_weights.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/reference/operand.h"

namespace warpwright::weights {
namespace {

// Weights with random codes and scales, and what they are by the definitions of the formats.
struct Checkpoint {
  PlainWeights w;
  Source source;
  std::vector<std::byte>& codes = w.codes;
  std::vector<std::byte>& scales = w.scales;

  Checkpoint(packed::Extents e, const char* format, int least, int largest, std::uint64_t seed)
      : w(some_e2m1(e, format, least, largest, seed)), source(source_of(w)) {}

  [[nodiscard]] double value(std::int64_t row, std::int64_t k) const {  // rows of all experts
    const std::int64_t at = row * source.extents.k + k;
    const auto two = static_cast<std::uint32_t>(codes[static_cast<std::size_t>(at / 2)]);
    const auto scale = static_cast<std::uint32_t>(scales[static_cast<std::size_t>(at / w.group)]);
    return numeric::to_double(DType::e2m1, two >> at % 2 * 4 & 15U) *
           numeric::to_double(w.scale == DType::ue8m0 ? w.scale : DType::e4m3, scale);
  }

  void expect_same(const std::vector<std::byte>& packed) const {
    const auto header = must(parse_packed(packed));
    const packed::Extents& e = source.extents;
    ASSERT_EQ(header->extents, e);
    GemmOperands o;
    // Only read.
    auto* const tiles = const_cast<std::byte*>(packed.data()) + packed::kHeaderBytes;  // NOLINT
    o.b = matrix(tiles, DType::e2m1, e.n, e.k);
    o.b.batch = e.experts;
    o.packed = PackedWeights{.format = header->format};
    std::vector<float> row(static_cast<std::size_t>(e.k));
    for (std::int64_t n = 0; n < e.experts * e.n; ++n) {
      reference::Operand(o, reference::Side::b)
          .read(n / e.n, n / e.n, n % e.n, 1, 0, e.k, row.data(), e.k);
      for (std::int64_t k = 0; k < e.k; ++k) {
        ASSERT_EQ(static_cast<double>(row[static_cast<std::size_t>(k)]), value(n, k))
            << n << ", " << k;
      }
    }
  }
};

TEST(PackE2m1, ValuesStayToTheBit) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    tests::Draws draw(seed);
    const packed::Extents e{draw(1, 2), draw(1, 140), 32 * draw(1, 9)};
    const int least = draw(1, 200);
    const bool nv = seed % 3 == 0;
    const int span = seed % 3 == 1 ? 26 : 45;
    const Checkpoint c = nv ? Checkpoint(e, "nvf4", 0, 0x7e, seed)
                            : Checkpoint(e, "mxf4", least, least + draw(0, span), seed);
    for (const DType tokens : {DType::e4m3, DType::bf16, DType::f16}) {
      if (nv && tokens == DType::e4m3) continue;
      if (tokens == DType::f16 && !nv && wide_row(c.source, tokens)) continue;  // span of 26 and 45
      const auto packed = must(pack(c.source, {.tokens = tokens}, {.threads = 2}));
      c.expect_same(*packed);
    }
  }
}

// Back in rows: values are those of the source, and what is packed of them are the same bytes.
TEST(PackE2m1, UnpackedIsWhatWasPacked) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tests::Draws draw(seed);
    const bool nv = seed % 3 == 0;
    const packed::Extents e{draw(1, 3), draw(1, 140), (nv ? 16 : 32) * draw(1, 9)};
    const int least = draw(1, 200);
    Checkpoint c = nv ? Checkpoint(e, "nvf4", 0, 0x7e, seed)
                      : Checkpoint(e, "mxf4", least, least + draw(0, 45), seed);
    // A group of zeros, whose scale may be any.
    std::fill_n(c.codes.begin(), nv ? 8 : 16, std::byte{0x80});
    const bool wide = nv || seed % 2 == 0;
    const bool fits = nv || !wide_row(c.source, DType::f16);
    const PackOptions options{.tokens = !wide                  ? DType::e4m3
                                        : fits && seed % 4 < 2 ? DType::f16
                                                               : DType::bf16};
    const auto bytes = must(pack(c.source, options));
    const auto back = must(unpack(*bytes, {.threads = 2}));
    EXPECT_EQ(back->extents, e);
    EXPECT_EQ(
        std::memcmp(back->codes.data(), c.codes.data(), c.codes.size()) == 0, !nv || [&] {
          return std::ranges::none_of(c.scales, [](std::byte s) { return s == std::byte{0}; });
        }());
    const std::vector<float> values = values_of(*back);
    for (std::int64_t i = 0; i < e.experts * e.n * e.k; ++i) {
      ASSERT_EQ(static_cast<double>(values[static_cast<std::size_t>(i)]), c.value(i / e.k, i % e.k))
          << i;
    }
    const auto again = must(pack(source_of(*back), options));
    EXPECT_EQ(*again, *bytes);
  }
  const Checkpoint c({1, 8, 64}, "mxf4", 120, 124, 1);
  const auto bytes = pack(c.source);
  EXPECT_FALSE(unpack(std::span(*bytes).first(200)));
}

// Scales that span too far stay as they are, or are refused; those of zeros do not count.
TEST(PackE2m1, ScalesThatSpanTooFar) {
  Checkpoint c({2, 3, 128}, "mxf4", 100, 126, 7);
  EXPECT_EQ(packed_format(c.source)->exponents, Exponents::of_rows);
  c.scales[4 * 4 + 1] = std::byte{99};  // expert 1, row 1
  c.codes[(4 * 128 + 32) / 2] = std::byte{0x12};
  c.scales[4 * 4 + 2] = std::byte{126};
  c.codes[(4 * 128 + 64) / 2] = std::byte{0x12};
  EXPECT_EQ(packed_format(c.source)->exponents, Exponents::own);
  c.expect_same(*pack(c.source));
  const auto refused = pack(c.source, {.exponents = Exponents::of_rows});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason(),
            "The scales of row 1 of expert 1 are 2^-28 to 2^-1; for tokens of e4m3 those of a row "
            "are folded into the codes where they span at most 27 powers of two: the nearest is to "
            "leave exponents to pack, which keeps them.");
  ASSERT_TRUE(pack(c.source, {.tokens = DType::bf16}));
  c.scales[4 * 4 + 1] = std::byte{20};
  expect_contains(why_not(pack(c.source, {.tokens = DType::bf16})), "at most 64 powers of two");
  // 25 powers of two for tokens of f16, and not one more.
  Checkpoint narrow({1, 1, 64}, "mxf4", 100, 100, 3);
  narrow.codes[0] = narrow.codes[16] = std::byte{0x17};
  narrow.scales[1] = std::byte{124};
  const auto half = must(pack(narrow.source, {.tokens = DType::f16}));
  narrow.expect_same(*half);
  narrow.scales[1] = std::byte{125};
  EXPECT_EQ(pack(narrow.source, {.tokens = DType::f16}).reason(),
            "The scales of row 0 of expert 0 are 2^-27 to 2^-2; for tokens of fp16 those of a row "
            "are folded into the codes where they span at most 25 powers of two: the nearest are "
            "tokens of bf16.");
  std::fill_n(c.codes.begin() + (4 * 128 + 32) / 2, 16, std::byte{0x80});
  EXPECT_EQ(packed_format(c.source)->exponents, Exponents::of_rows);
  c.expect_same(*pack(c.source));
}

TEST(PackE2m1, Refusals) {
  const Checkpoint nv({1, 8, 64}, "nvf4", 1, 9, 1);
  const auto refused = pack(nv.source, {.tokens = DType::e4m3});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.reason(),
            "These cannot be packed: nvf4 weights are packed for tokens of bf16 or fp16.");
  EXPECT_FALSE(pack(nv.source, {.exponents = Exponents::of_rows}));
  EXPECT_FALSE(pack(nv.source, {.tokens = DType::e5m2}));
}

}  // namespace
}  // namespace warpwright::weights
