// Names and ticks of the timelines.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

TEST(TimelineParts, NamesOfTiles) {
  EXPECT_EQ(tile_of("tile m 1 n 0"), "tile m 1 n 0");
  EXPECT_EQ(tile_of("consumer 0: tile m 1 n 0, k_tile 3"), "tile m 1 n 0");
  EXPECT_EQ(tile_of("consumer 0: group 3 tile m 1 n 0, k_tile 3"), "group 3 tile m 1 n 0");
  EXPECT_EQ(tile_of("wait full[0]"), "");
  EXPECT_EQ(tile_of("epilogue subtile 1"), "");
  EXPECT_EQ(issuer_of("consumer 0: tile m 1 n 0"), "consumer 0");
  EXPECT_EQ(issuer_of("tile m 1 n 0"), "");
}

TEST(TimelineParts, TicksAreRoundAndHaveAUnit) {
  const auto texts = [](std::int64_t from, std::int64_t to, bool measured) {
    std::vector<std::string> all;
    for (const Tick& t : round_ticks(from, to, measured)) all.push_back(t.text);
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(0, 11800, false),
            (Texts{"0", "2 kcycles", "4 kcycles", "6 kcycles", "8 kcycles", "10 kcycles"}));
  EXPECT_EQ(texts(120, 1640, false),
            (Texts{"200 cycles", "400 cycles", "600 cycles", "800 cycles", "1000 cycles",
                   "1200 cycles", "1400 cycles", "1600 cycles"}));
  EXPECT_EQ(texts(0, 10000, true).back(), "10 us");
  EXPECT_EQ(texts(0, 10000, false)[1], "1 kcycle");
  EXPECT_EQ(texts(999, 1005, true),
            (Texts{"999 ns", "1000 ns", "1001 ns", "1002 ns", "1003 ns", "1004 ns", "1005 ns"}));
  for (std::int64_t to = 1; to < 1'000'000'000; to = to * 7 / 4 + 1) {
    const std::size_t count = round_ticks(0, to, false).size();
    EXPECT_GE(count, to < 4 ? 2U : 5U) << to;
    EXPECT_LE(count, 11U) << to;
  }
}

}  // namespace
}  // namespace warpwright::pictures
