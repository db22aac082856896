// `bench grouped` on a GPU: that every kind of operands is checked and timed, with the loop of
// cuBLASLt calls beside it, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/cublaslt.h"
#include "bench/gemm_bench.h"
#include "cli/compute/bench_shapes.h"
#include "tests/gpu.h"
#include "tests/must.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

bench::TimeOptions few_rounds() {
  bench::TimeOptions o;
  o.rounds = 3;
  o.round_seconds = 2e-4;
  return o;
}

Result<bench::GemmTimes> time_lengths(const ProductKind& kind,
                                      const std::vector<std::int64_t>& lengths,
                                      std::int64_t wrong_tokens = 0) {
  const auto groups = static_cast<std::int64_t>(lengths.size());
  const std::int64_t k = kind.second.packed ? 640 : 528;  // packed weights: whole groups of them
  const GemmProblem p = problem_of(kind.second, {0, 264, k, groups, ""}, lengths);
  const auto plans = candidates(p, *device::cuda_device(0));
  if (!plans) return plans.refusal();
  bench::TimeOptions how = few_rounds();
  how.lengths = lengths;
  how.lengths.back() += wrong_tokens;
  return bench::time_gemm(*plans, nullptr, how);
}

TEST(BenchGroupedOnGpu, EveryKindIsCheckedAndTimed) {
  WW_NEEDS_HOPPER();
  for (const ProductKind& kind : parse_kinds(kind_words(","))) {
    SCOPED_TRACE(kind.first);
    const auto times = must(time_lengths(kind, {16, 0, 300, 4, 100, 0}));
    EXPECT_GT(times->ours.median, 0);
    EXPECT_GT(times->config_time.median, 0);
    EXPECT_LE(times->config_time.median, times->ours.median);
    EXPECT_GT(times->configs, kind.second.packed ? 1 : 3);
    // Not 0: that would be a result compared with itself.
    EXPECT_GT(times->relative_error, 1e-5);
    EXPECT_TRUE(times->cold);
    EXPECT_EQ(times->rounds, 3);
    if (bench::cublaslt_version().empty() || kind.second.packed) continue;
    ASSERT_TRUE(times->first) << times->baseline;
    EXPECT_EQ(times->calls, 4);
    EXPECT_GT(times->first->median, 0);
  }
}

// Int4 weights with every kind of sums beside FP8 ones, in the same rounds.
TEST(BenchW4a8OnGpu, AllKindsAreCheckedAndTimed) {
  WW_NEEDS_HOPPER();
  const std::vector<std::int64_t> lengths = {16, 0, 300, 4};
  for (const Shape& shape : {Shape{0, 264, 640, 4, ""}, Shape{40, 264, 640}}) {
    SCOPED_TRACE(shape_name(shape));
    bench::TimeOptions how = few_rounds();
    if (shape.groups > 0) how.lengths = lengths;
    std::vector<Plan> exact;
    for (const ProductKind& kind : packed_kinds("int4", 64)) {
      const auto plans =
          candidates(problem_of(kind.second, shape, how.lengths), *device::cuda_device(0));
      if (!plans) continue;  // no kernel of this build
      if (kind.first == "exact") {
        exact = *plans;
      } else {
        how.beside.push_back(*plans);
      }
    }
    const auto times = must(bench::time_gemm(exact, nullptr, how));
    EXPECT_GT(times->ours.median, 0);
    EXPECT_GT(times->relative_error, 1e-5);
    EXPECT_TRUE(times->cold);
    ASSERT_FALSE(times->beside.empty());
    for (const bench::GemmTimes& other : times->beside) {
      EXPECT_GT(other.config_time.median, 0) << other.plan;
      EXPECT_GT(other.relative_error, 1e-5) << other.plan;
    }
  }
}

TEST(BenchGroupedOnGpu, WhatCublasltCannotHasNoLoop) {
  WW_NEEDS_HOPPER();
  const auto times = must(time_lengths(parse_kinds("e4m3-block").front(), {16, 3}));
  EXPECT_FALSE(times->first);
  EXPECT_GT(times->ours.median, 0);
  if (bench::cublaslt_version().empty()) return;
  EXPECT_EQ(times->baseline.rfind("a group of 3 tokens: ", 0), 0U) << times->baseline;
}

TEST(BenchGroupedOnGpu, LengthsThatDoNotAddUpAreRefused) {
  WW_NEEDS_HOPPER();
  const auto times = time_lengths(parse_kinds("bf16").front(), {16, 3}, 1);
  ASSERT_FALSE(times);
  EXPECT_NE(times.reason().find("2 groups of 19 tokens"), std::string::npos) << times.reason();
}

}  // namespace
}  // namespace warpwright::cli
