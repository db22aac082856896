// Every kernel on a CUDA device: the products of the model's test, and many more by chance.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/gpu.h"
#include "tests/kernel/problem_cuda.h"
#include "tests/must.h"
#include "warpwright/device/quantise.h"

namespace warpwright::tests {
namespace {

class VariantsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_HOPPER();
    const auto devices = device::cuda_devices();
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
        // A kernel that failed takes the context with it: what follows would fail only for that.
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

// Codes and scales are, bit for bit, those that the host makes of the float32 values.
TEST_F(VariantsOnGpu, CodesAreThoseOfTheHost) {
  constexpr unsigned seed = 20261127;
  std::printf("operands by seed %u\n", seed);
  for (const float alpha : {1.0F, 0x1p-70F, 0x1p-140F, 0x1p110F}) {
    const Ask ask{.m = 300, .n = 1000, .k = 528, .alpha = 1.0F, .seed = seed};
    Ask scaled = ask;
    scaled.alpha = alpha;
    Problem wide(named("hopper_e4m3_f32_128x128_pp"), ask);
    Problem narrow(named("hopper_e4m3_e4m3_128x128_pp_q"), scaled);
    for (Problem* p : {&wide, &narrow}) {
      OnCuda there(*p);
      const auto made = must(plan(there.operands(), *facts_, p->choices()));
      there.prepare(*made);
      must_do(there.launch(*made));
      there.receive(*p);
    }
    Tensor values = wide.d();
    Tensor codes(DType::e4m3, ask.m, ask.n, ask.n);
    Tensor scales(DType::f32, ask.m, 8, 8);
    for (int i = 0; i < ask.m; ++i) {
      for (int j = 0; j < ask.n; ++j) {
        values.set(0, i, j, static_cast<double>(static_cast<float>(values.get(0, i, j)) * alpha));
      }
    }
    ASSERT_FALSE(
        quantise_on_host({values.view(), codes.view(), scales.view(), Scaling::blockwise}));
    int wrong = 0;
    for (int i = 0; i < ask.m; ++i) {
      for (int j = 0; j < ask.n; ++j) {
        wrong += *codes.address(0, i, j) != *narrow.d().address(0, i, j) ||
                         scales.get(0, i, j / 128) != narrow.d_scales().get(0, i, j / 128)
                     ? 1
                     : 0;
      }
    }
    EXPECT_EQ(wrong, 0) << "alpha " << alpha;
  }
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
