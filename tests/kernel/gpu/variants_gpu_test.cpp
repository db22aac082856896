// Every kernel on a CUDA device: the products of the model's test, and many more by chance.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/kernel/problem_cuda.h"

namespace warpwright::tests {
namespace {

class VariantsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = device::cuda_devices();
    if (devices.empty()) GTEST_SKIP() << "did not run: no CUDA device here";
    ASSERT_FALSE(device::use_cuda_device(0));
    facts_ = devices.front();
  }

  void expect_right(const Rows& rows) {
    for (const Row& row : rows) {
      const Problem problem(row.instance, row.ask);
      SCOPED_TRACE(problem.text());
      try {
        EXPECT_EQ(fault_on_cuda(row, problem.choices(), *facts_, 2), "");
      } catch (const std::runtime_error& failed) {
        // A kernel that failed takes the context with it: what follows would fail for that alone.
        FAIL() << failed.what();
      }
    }
  }

  std::optional<DeviceFacts> facts_;
};

TEST_F(VariantsOnGpu, EveryInstanceMultiplies) {
  expect_right(plain_rows(instances()));
}

TEST_F(VariantsOnGpu, ClustersBatchesAndScales) {
  expect_right(cluster_rows(instances()));
}

TEST_F(VariantsOnGpu, EpiloguesOnOddShapes) {
  expect_right(epilogue_rows(instances()));
}

TEST_F(VariantsOnGpu, WithoutAProduct) {
  expect_right(empty_rows(instances()));
}

// A plan does not choose them here: each by its name, on random shapes, rows and epilogues.
TEST_F(VariantsOnGpu, RegisterKernelsOnRandomShapes) {
  constexpr int each = 100;
  Rows rows;
  std::uint64_t seed = 20261122;
  for (const Instance& i : drawn_instances(false)) {
    if (!is_register_kernel(i)) continue;
    for (int n = 0; n < each; ++n) {
      Draws draw(++seed);
      rows.push_back({i, random_ask(i, draw, 4e6)});
    }
  }
  std::printf("%zu products by the seeds up to %llu\n", rows.size(),
              static_cast<unsigned long long>(seed));
  expect_right(rows);
}

TEST_F(VariantsOnGpu, ProblemsBySeed) {
  const char* asked = std::getenv("WARPWRIGHT_TEST_SEED");
  const std::uint64_t first = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 20261121;
  const std::uint64_t count = 2 * drawn_instances(false).size();
  std::printf("%llu problems by the seeds from %llu on (WARPWRIGHT_TEST_SEED)\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(first));
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Seeded problem(seed, 4e7, false);
    SCOPED_TRACE(problem.text());
    try {
      EXPECT_EQ(fault_on_cuda(problem, *facts_), "");
    } catch (const std::runtime_error& failed) {
      FAIL() << failed.what();
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
