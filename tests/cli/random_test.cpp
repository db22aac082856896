#include "cli/compute/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace warpwright::cli {
namespace {

std::vector<float> values(const HostTensor& t) {
  const HostTensor wide = convert(t, DType::f32);
  std::vector<float> v(static_cast<std::size_t>(t.elements()));
  std::memcpy(v.data(), wide.bytes.data(), wide.bytes.size());
  return v;
}

std::uint64_t hash(const std::vector<std::byte>& bytes) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3U;
  return h;
}

TEST(Random, IsNormal) {
  const std::vector<float> v = values(random_normal(DType::f32, {1000, 1000}, 7, 1));
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  int beyond_two = 0;
  for (const float x : v) {
    const auto d = static_cast<double>(x);
    ASSERT_TRUE(std::isfinite(d));
    sum += d;
    squares += d * d;
    fourths += d * d * d * d;
    beyond_two += std::abs(d) > 2 ? 1 : 0;
  }
  const auto n = static_cast<double>(v.size());
  EXPECT_NEAR(sum / n, 0, 0.005);  // 5 standard errors
  EXPECT_NEAR(squares / n, 1, 0.0071);
  EXPECT_NEAR(fourths / n, 3, 0.05);
  EXPECT_NEAR(beyond_two / n, 0.0455, 0.0011);
}

TEST(Random, DoesNotDependOnThreads) {
  const std::vector<std::int64_t> shape = {333, 1003};
  const HostTensor one = random_normal(DType::bf16, shape, 42, 3, 1);
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(one.bytes, random_normal(DType::bf16, shape, 42, 3, threads).bytes) << threads;
  }
}

TEST(Random, StreamsAndSeedsDiffer) {
  const std::vector<std::int64_t> shape = {64, 64};
  const HostTensor base = random_normal(DType::f32, shape, 1, 1);
  EXPECT_NE(base.bytes, random_normal(DType::f32, shape, 1, 2).bytes);
  EXPECT_NE(base.bytes, random_normal(DType::f32, shape, 2, 1).bytes);
  EXPECT_EQ(base.bytes, random_normal(DType::f32, shape, 1, 1).bytes);
}

TEST(Random, RoundsTheSameValues) {
  const HostTensor wide = random_normal(DType::f32, {70, 1000}, 5, 1);
  EXPECT_EQ(convert(wide, DType::bf16).bytes, random_normal(DType::bf16, {70, 1000}, 5, 1).bytes);
  EXPECT_EQ(convert(wide, DType::f16).bytes, random_normal(DType::f16, {70, 1000}, 5, 1).bytes);
}

// The very bytes, so that a change that would break reproducibility between releases or machines
// does not pass unseen.
TEST(Random, IsTheSameEverywhere) {
  EXPECT_EQ(hash(random_normal(DType::f32, {300, 500}, 1, 1).bytes), 6383572100138608868U);
}

TEST(Random, AcceptsEmptyShapes) {
  EXPECT_TRUE(random_normal(DType::f32, {0, 5}, 1, 1).bytes.empty());
  EXPECT_EQ(random_normal(DType::f32, {1, 1}, 1, 1).bytes.size(), 4U);
}

}  // namespace
}  // namespace warpwright::cli
