// The words of --tokens.
#include "cli/compute/token_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace warpwright::cli {
namespace {

using Lengths = std::vector<std::int64_t>;

Lengths made(const std::string& words, std::int64_t groups, std::int64_t total = 0) {
  const auto lengths = token_lengths(words, groups, total);
  EXPECT_TRUE(lengths.ok()) << lengths.reason();
  return lengths ? *lengths : Lengths{};
}

std::int64_t sum(const Lengths& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

TEST(TokenLengths, OfASkewedDrawAddUp) {
  for (const std::int64_t groups : {1, 2, 3, 4, 7, 32, 600}) {
    for (const std::int64_t total : {0, 1, 5, 100, 8192, 2000000001}) {
      for (const char* words : {"skew:1", "skew:2", "skew:18446744073709551615"}) {
        const Lengths lengths = made(words, groups, total);
        ASSERT_EQ(static_cast<std::int64_t>(lengths.size()), groups);
        EXPECT_EQ(sum(lengths), total > 0 ? total : 256 * groups) << words << " " << groups;
        EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 0);
      }
    }
  }
}

TEST(TokenLengths, OfASkewedDrawAreSkewed) {
  const Lengths lengths = made("skew:7", 4000, 40000000);
  // Shares of e^N(0, 1): the logarithms of the lengths have mean m and deviation 1.
  double mean = 0;
  double square = 0;
  int busy = 0;
  for (const std::int64_t length : lengths) {
    if (length == 0) continue;
    const double log = std::log(static_cast<double>(length));
    mean += log;
    square += log * log;
    ++busy;
  }
  EXPECT_EQ(busy, 3500);
  mean /= busy;
  EXPECT_NEAR(std::sqrt(square / busy - mean * mean), 1, 0.06);            // 5 standard errors
  EXPECT_GT(std::count(lengths.begin(), lengths.begin() + 2000, 0), 150);  // all over the place
}

// The same lengths on every machine, for ever: measurements name them by their seed.
TEST(TokenLengths, OfASeedStayTheSame) {
  EXPECT_EQ(made("skew:1", 8, 100), made("skew:1", 8, 100));
  EXPECT_NE(made("skew:1", 8, 100), made("skew:2", 8, 100));
  EXPECT_EQ(made("skew:1", 8, 1000), (Lengths{105, 42, 96, 103, 0, 112, 222, 320}));
}

// Which no command line passes on.
TEST(TokenLengths, RefusesNoWords) {
  const auto lengths = token_lengths("", 2, 0);
  ASSERT_FALSE(lengths.ok());
  EXPECT_NE(lengths.reason().find("--tokens is \"\""), std::string::npos) << lengths.reason();
  EXPECT_FALSE(token_lengths("0", 407966883, 0));  // before its memory is asked for
  EXPECT_TRUE(token_lengths("5", 65536, 0));
}

}  // namespace
}  // namespace warpwright::cli
