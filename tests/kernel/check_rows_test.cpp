// The kernel that checks numbers of tokens, against a loop on the host.
#include "warpwright/kernel/check_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/model/machine.h"

namespace warpwright::kernel {
namespace {

TEST(CheckRows, TellsTheFirstStrayNumberInGroups) {
  constexpr unsigned seed = 34;
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return static_cast<std::int32_t>(random() % below); };
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(i));
    const int total = 1 + draw(i % 2 == 0 ? 300 : 40);
    const int tokens = 1 + draw(9);
    const int divisor = 1 + draw(5);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(total));
    for (std::int32_t& x : rows) x = draw(tokens * divisor);
    const std::vector<std::int32_t> strays = {-1, INT32_MIN, tokens * divisor, INT32_MAX};
    for (int j = draw(5); j > 0; --j) {
      rows[static_cast<std::size_t>(draw(total))] = strays[static_cast<std::size_t>(draw(4))];
    }
    std::vector<std::int32_t> offsets = {draw(total + 1), 0, draw(total + 1)};
    if (offsets[2] < offsets[0]) std::swap(offsets[0], offsets[2]);
    offsets[1] = offsets[0];
    std::uint32_t due[2] = {0, 0};
    for (std::int32_t r = offsets[0]; r < offsets[2] && due[0] == 0; ++r) {
      const std::int32_t x = rows[static_cast<std::size_t>(r)];
      if (x < 0 || x >= tokens * divisor) {
        due[0] = static_cast<std::uint32_t>(r + 1);
        due[1] = static_cast<std::uint32_t>(x);
      }
    }
    std::uint32_t status[2] = {99, 99};
    CheckRowsParams p;
    p.index = tile::TokenIndex(rows.data(), divisor, tokens);
    p.rows = rows.data();
    p.offsets = tile::GroupOffsets(offsets.data(), false, 2, total);
    p.status = status;
    const std::vector<model::Allocation> memory = {
        {offsets.data(), 12, "offsets", false},
        {rows.data(), std::int64_t{4} * total, "rows", false},
        {status, 8, "status"}};
    const model::Report report = model::run({}, {}, memory, [&] { CheckRowsKernel::run(p); });
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(status[0], due[0]);
    EXPECT_EQ(status[1], due[1]);
  }
}

}  // namespace
}  // namespace warpwright::kernel
