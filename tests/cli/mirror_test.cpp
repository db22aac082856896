// Operands whose products tell in which order their terms were added.
#include "cli/compute/mirror.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cli/compute/random.h"
#include "tests/must.h"
#include "warpwright/numeric/bulk.h"

namespace warpwright::cli {
namespace {

std::vector<float> mirrored_floats(HostTensor t) {
  if (t.dtype == DType::tf32) t.dtype = DType::f32;
  const HostTensor wide = convert(t, DType::f32);
  std::vector<float> all(static_cast<std::size_t>(t.elements()));
  std::memcpy(all.data(), wide.bytes.data(), wide.bytes.size());
  return all;
}

TEST(Mirror, HasAStretchInEachHalfOfK) {
  EXPECT_FALSE(mirror_of(0, 32, 1));
  EXPECT_FALSE(mirror_of(255, 128, 1));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const std::int64_t k : {64, 96, 448, 1920}) {
      const auto m = must(mirror_of(k, 32, seed));
      EXPECT_EQ(m->first % 32 + m->second % 32, 0);
      EXPECT_LE(m->first + 32, m->second);
      EXPECT_LE(m->second + 32, k);
    }
  }
  const Mirror blocks = mirror_of(1024, 128, 3)->over(128);
  EXPECT_EQ(blocks.width, 1);
  EXPECT_LT(blocks.first, blocks.second);
}

// Rows 1, 5, ... of A only change; B's rows all repeat; either way round in memory, of every type.
TEST(Mirror, ChangesWhatItSays) {
  for (const DType type :
       {DType::f32, DType::tf32, DType::bf16, DType::f16, DType::e4m3, DType::e5m2}) {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(std::string(numeric::word(type)) + (transposed ? ", transposed" : ""));
      constexpr std::int64_t rows = 7;
      constexpr std::int64_t k = 96;
      const Mirror mirror{0, 64, 32};
      const std::vector<std::int64_t> shape = transposed ? std::vector<std::int64_t>{2, k, rows}
                                                         : std::vector<std::int64_t>{2, rows, k};
      const HostTensor drawn = random_normal(type, shape, 5, 1);
      HostTensor a = drawn;
      HostTensor b = drawn;
      weigh(a, mirror, transposed);
      repeat(b, mirror, transposed);
      EXPECT_EQ(a.dtype, type);
      const std::vector<float> before = mirrored_floats(drawn);
      const std::vector<float> of_a = mirrored_floats(a);
      const std::vector<float> of_b = mirrored_floats(b);
      const auto at = [&](std::int64_t matrix, std::int64_t row, std::int64_t i) {
        return static_cast<std::size_t>(matrix * rows * k +
                                        (transposed ? i * rows + row : row * k + i));
      };
      for (std::int64_t matrix = 0; matrix < 2; ++matrix) {
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t i = 0; i < k; ++i) {
            const std::size_t here = at(matrix, row, i);
            const std::size_t twin = at(matrix, row, i - 64);
            EXPECT_EQ(of_b[here], before[i < 64 ? here : twin]);
            if (row % 4 != 1) {
              EXPECT_EQ(of_a[here], before[here]);
            } else if (i < 32) {
              EXPECT_NEAR(of_a[here], 64 * before[here], std::abs(before[here]) * 8);
            } else if (i < 64) {
              EXPECT_NEAR(of_a[here], before[here] / 128, std::abs(before[here]) / 1024 + 0x1p-9);
            } else {
              EXPECT_EQ(of_a[here], -of_a[twin]);
            }
          }
        }
      }
    }
  }
}

// The products of e4m3 are exact in float32, and bf16 rounds what is left: only with the mirror do
// sums of the k_tiles in two orders differ.
TEST(Mirror, ShowsTheOrderOfAddingInBf16) {
  constexpr std::int64_t m = 16;
  constexpr std::int64_t n = 64;
  constexpr std::int64_t k = 1024;
  constexpr std::int64_t tile = 128;
  const auto differing = [&](bool telling) {
    HostTensor a = random_normal(DType::e4m3, {m, k}, 7, 1);
    HostTensor b = random_normal(DType::e4m3, {n, k}, 7, 2);
    if (telling) {
      const auto mirror = mirror_of(k, 32, 7);
      weigh(a, *mirror);
      repeat(b, *mirror);
    }
    const std::vector<float> x = mirrored_floats(a);
    const std::vector<float> y = mirrored_floats(b);
    int count = 0;
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        float sums[2] = {};  // in the order of K, and even k_tiles before odd ones
        const auto add = [&](float& to, std::int64_t t) {
          float part = 0;
          for (std::int64_t i = t * tile; i < (t + 1) * tile; ++i)
            part += x[static_cast<std::size_t>(row * k + i)] *
                    y[static_cast<std::size_t>(column * k + i)];
          to += part;
        };
        for (std::int64_t t = 0; t < k / tile; ++t) add(sums[0], t);
        for (std::int64_t t = 0; t < k / tile; t += 2) add(sums[1], t);
        for (std::int64_t t = 1; t < k / tile; t += 2) add(sums[1], t);
        std::uint16_t narrow[2];
        numeric::narrow(sums, narrow, 2, DType::bf16);
        count += narrow[0] != narrow[1] ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(differing(false), 0);
  EXPECT_GT(differing(true), 8);
}

}  // namespace
}  // namespace warpwright::cli
