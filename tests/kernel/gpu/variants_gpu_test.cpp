// Every kernel on a CUDA device: the products of the model's test, and many more by chance.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tests/kernel/variant_sets.h"
#include "tests/kernel/variants_cuda.h"

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

  // What is wrong with the product; empty when nothing is. A second launch, from a D full of NaN
  // again, must give the same bytes.
  std::string fault(const VariantCase& c) {
    Variant variant(c.instance, c.ask);
    OnCuda there(variant);
    const auto made = plan(there.operands(), *facts_, variant.choices());
    if (!made) return made.reason();
    there.prepare(*made);
    std::vector<std::byte> first;
    for (int launch = 0; launch < 2; ++launch) {
      if (launch > 0) {
        const Variant fresh(c.instance, c.ask);
        there.send(fresh);
      }
      if (const auto refusal = there.launch(*made)) return refusal->reason;
      there.receive(variant);
      std::string said = variant.fault();
      if (!said.empty()) return said;
      const std::byte* const bytes = variant.d().memory();
      if (launch == 0) first.assign(bytes, bytes + variant.d().bytes());
      if (!std::equal(first.begin(), first.end(), bytes)) return "two launches give other bits";
    }
    return {};
  }

  void expect_right(const std::vector<VariantCase>& cases) {
    for (const VariantCase& c : cases) {
      SCOPED_TRACE(std::string(c.instance.name) + ", " + text(c.ask));
      try {
        EXPECT_EQ(fault(c), "");
      } catch (const std::runtime_error& failed) {
        // A kernel that failed takes the context with it: what follows would fail for that alone.
        FAIL() << failed.what();
      }
    }
  }

  std::optional<DeviceFacts> facts_;
};

TEST_F(VariantsOnGpu, EveryInstanceMultiplies) {
  expect_right(plain_cases());
}

TEST_F(VariantsOnGpu, ClustersBatchesAndScales) {
  expect_right(cluster_cases());
}

TEST_F(VariantsOnGpu, EpiloguesOnOddShapes) {
  expect_right(epilogue_cases());
}

TEST_F(VariantsOnGpu, WhateverIsAsked) {
  const char* asked = std::getenv("WARPWRIGHT_TEST_SEED");
  const auto seed =
      static_cast<unsigned>(asked != nullptr ? std::strtoul(asked, nullptr, 10) : 20261121);
  constexpr int count = 240;
  std::printf("%d products by seed %u (WARPWRIGHT_TEST_SEED)\n", count, seed);
  expect_right(random_cases(count, seed));
}

}  // namespace
}  // namespace warpwright::tests
