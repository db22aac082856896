// Lanes of a warp that find each other by their values, and sums over the lanes before.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tests/model/harness.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"

namespace warpwright::model {
namespace {

TEST(Match, LanesOfOneValue) {
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    std::array<std::uint32_t, 64> value{};
    for (auto& v : value) v = random() % static_cast<unsigned>(1 + 4 * round);
    std::array<std::uint32_t, 64> found{};
    expect_clean({{.threads = 64}, [&] {
                    const auto t = static_cast<std::size_t>(isa::thread_index());
                    found[t] = isa::match_any(value[t]);
                  }});
    for (std::size_t t = 0; t < 64; ++t) {
      for (std::size_t lane = 0; lane < 32; ++lane) {
        EXPECT_EQ((found[t] >> lane & 1) != 0, value[t / 32 * 32 + lane] == value[t]) << t;
      }
      EXPECT_EQ(
          isa::count_lanes(found[t]),
          std::count(value.begin() + static_cast<std::ptrdiff_t>(t / 32 * 32),
                     value.begin() + static_cast<std::ptrdiff_t>(t / 32 * 32) + 32, value[t]));
    }
  }
}

TEST(Match, IsOfWholeWarps) {
  const Report report =
      run(Kernel{{.threads = 40}, [] { static_cast<void>(isa::match_any(1)); }}, Options{});
  EXPECT_TRUE(report.has(Check::divergence)) << report.text();
}

TEST(Match, IsOfAllLanesTogether) {
  const Report report = run(Kernel{{.threads = 32},
                                   [] {
                                     if (isa::lane_index() != 5) {
                                       static_cast<void>(isa::match_any(1));
                                     }
                                   }},
                            Options{});
  EXPECT_FALSE(report.clean());
}

TEST(Scan, SumsUpToALane) {
  std::array<int, 64> sums{};
  expect_clean({{.threads = 64}, [&] {
                  const int t = isa::thread_index();
                  sums[static_cast<std::size_t>(t)] =
                      isa::sum_up_to_lane(3 * t - 40, isa::lane_index());
                }});
  int sum = 0;
  for (int t = 0; t < 64; ++t) {
    sum = (t % 32 == 0 ? 0 : sum) + 3 * t - 40;
    EXPECT_EQ(sums[static_cast<std::size_t>(t)], sum) << t;
  }
}

}  // namespace
}  // namespace warpwright::model
