// The words of --tokens.
#include "cli/compute/token_lengths.h"
#include "tests/must.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace warpwright::cli {
namespace {

using Lengths = std::vector<std::int64_t>;

Lengths made(const std::string& words, std::int64_t groups, std::int64_t total = 0) {
  const auto lengths = must(token_lengths(words, groups, total));
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

// --- as a router draws them

TEST(RoutedLengths, AddUpAndNoTokenPicksAnExpertTwice) {
  for (const char* spread : {"", ",uniform", ",zipf:1", ",zipf:8"}) {
    for (const auto& [experts, tokens, top_k] :
         {std::array{1, 7, 1}, {5, 0, 3}, {5, 1, 3}, {5, 40, 1}, {64, 300, 8}, {130, 50, 129}}) {
      const std::string words =
          "routed:" + std::to_string(tokens) + "," + std::to_string(top_k) + spread;
      const Lengths lengths = made(words, experts);
      ASSERT_EQ(static_cast<int>(lengths.size()), experts);
      EXPECT_EQ(sum(lengths), tokens * top_k) << words;
      EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), tokens) << words;
      // None of a token's choices is another's.
      const std::int64_t hit = experts - std::count(lengths.begin(), lengths.end(), 0);
      EXPECT_GE(hit, tokens > 0 ? top_k : 0) << words;
    }
  }
  // All of them: each gets all tokens, however little it is liked.
  EXPECT_EQ(made("routed:9,5,zipf:8", 5), Lengths(5, 9));
}

// The sum of (length - expected)^2 / variance has, of uniform draws without replacement, the mean
// and nearly the spread of a chi-square with experts - 1 degrees of freedom.
TEST(RoutedLengths, OfUniformRoutingAreEven) {
  constexpr int experts = 128;
  constexpr int tokens = 4096;
  constexpr int top_k = 8;
  constexpr double share = static_cast<double>(top_k) / experts;
  // For one expert; the lengths' sum is fixed, which takes one of the degrees.
  const double variance = tokens * share * (1 - share) * experts / (experts - 1);
  for (int seed = 1; seed <= 20; ++seed) {
    const Lengths lengths = made("routed:4096,8,seed:" + std::to_string(seed), experts);
    double squares = 0;
    for (const std::int64_t length : lengths) {
      const double off = static_cast<double>(length) - tokens * share;
      squares += off * off / variance;
    }
    EXPECT_NEAR(squares, experts - 1, 5 * std::sqrt(2.0 * (experts - 1))) << "seed " << seed;
  }
}

// Three experts of weights 1, 1/2 and 1/3, of which two are picked one after the other: each is
// left out where the others come in either order.
TEST(RoutedLengths, OfZipfHaveTheirRanksShares) {
  constexpr double tokens = 200000;
  const double weights[] = {6.0 / 11, 3.0 / 11, 2.0 / 11};
  Lengths lengths = made("routed:200000,2,zipf:1,seed:3", 3);
  std::sort(lengths.rbegin(), lengths.rend());
  for (std::size_t i = 0; i < 3; ++i) {
    const double a = weights[(i + 1) % 3];
    const double b = weights[(i + 2) % 3];
    const double inside = 1 - (a * b / (1 - a) + b * a / (1 - b));
    EXPECT_NEAR(static_cast<double>(lengths[i]), tokens * inside,
                5 * std::sqrt(tokens * inside * (1 - inside)));
  }
  // One choice each: the shares themselves, and with S = 0 equal ones.
  lengths = made("routed:200000,1,zipf:1", 3);
  std::sort(lengths.rbegin(), lengths.rend());
  EXPECT_NEAR(static_cast<double>(lengths[0]), tokens * weights[0], 5 * std::sqrt(tokens / 4));
  EXPECT_NEAR(static_cast<double>(lengths[2]), tokens * weights[2], 5 * std::sqrt(tokens / 4));
  EXPECT_EQ(made("routed:500,2,zipf:0", 9), made("routed:500,2,uniform", 9));
}

// Which expert is liked most is drawn.
TEST(RoutedLengths, RanksAreAnywhere) {
  std::vector<int> places(8);
  for (int seed = 0; seed < 400; ++seed) {
    const Lengths lengths = made("routed:60,1,zipf:2,seed:" + std::to_string(seed), 8);
    ++places[static_cast<std::size_t>(std::max_element(lengths.begin(), lengths.end()) -
                                      lengths.begin())];
  }
  for (const int count : places) EXPECT_NEAR(count, 50, 35);
}

TEST(RoutedLengths, OfASeedStayTheSame) {
  EXPECT_EQ(made("routed:20,2", 8), made("routed:20,2,seed:1", 8));
  EXPECT_EQ(*token_lengths("routed:20,2", 8, 0, "--total", 5), made("routed:20,2,seed:5", 8));
  EXPECT_EQ(made("routed:20,2,seed:1", 8), (Lengths{8, 3, 8, 5, 7, 2, 5, 2}));
  EXPECT_EQ(made("routed:20,2,zipf:1,seed:1", 8), (Lengths{2, 1, 3, 3, 10, 1, 6, 14}));
}

// Which no command line passes on.
TEST(TokenLengths, RefusesNoWords) {
  expect_contains(why_not(token_lengths("", 2, 0)), "--tokens is \"\"");
  EXPECT_FALSE(token_lengths("0", 407966883, 0));  // before its memory is asked for
  EXPECT_TRUE(token_lengths("5", 65536, 0));
}

}  // namespace
}  // namespace warpwright::cli
