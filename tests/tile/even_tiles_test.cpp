// Groups cut evenly: every token once, in as few tiles as by the widest only.
#include <gtest/gtest.h>

#include <vector>

#include "warpwright/tile/even_tiles.h"

namespace warpwright::tile {
namespace {

// The tiles of one group that begins at a token, as its scheduler gives them.
struct OneGroup {
  int first;
  int end;
  int widest;
  int next_tile = 0;

  bool next(Work& work) {
    if (first + next_tile * widest >= end) return false;
    work = {};
    work.tile.n = next_tile++;
    work.first_token = first;
    work.end_token = end;
    work.column = first + work.tile.n * widest;
    return true;
  }
};

struct Cut {
  int begin;
  int end;
  int width;
};

template <TileWidths widths>
std::vector<Cut> cut(int first, int tokens) {
  EvenTiles<OneGroup, widths> tiles(OneGroup{first, first + tokens, widest(widths)});
  std::vector<Cut> all;
  Work work;
  while (tiles.next(work)) {
    all.push_back({work.column, work.end_token, width_of(widths, count(widths), work.width)});
    EXPECT_EQ(work.first_token, first);
  }
  return all;
}

template <TileWidths widths>
void expect_even() {
  constexpr int most = widest(widths);
  for (int tokens = 1; tokens <= 4 * most + 1; ++tokens) {
    const int first = tokens % 7;
    SCOPED_TRACE(tokens);
    const std::vector<Cut> all = cut<widths>(first, tokens);
    ASSERT_EQ(static_cast<int>(all.size()), (tokens + most - 1) / most);
    int at = first;
    for (const Cut& c : all) {
      EXPECT_EQ(c.begin, at);
      EXPECT_GT(c.end, c.begin);
      EXPECT_LE(c.end - c.begin, c.width);
      // None that is narrower would do.
      for (int i = 0; i < count(widths); ++i) {
        if (widths.of[i] < c.width) {
          EXPECT_LT(widths.of[i], c.end - c.begin);
        }
      }
      at = c.end;
    }
    EXPECT_EQ(at, first + tokens);
    // Not a full one and a sliver: all but the last are as narrow as they can be.
    const int each = (tokens + static_cast<int>(all.size()) - 1) / static_cast<int>(all.size());
    for (int i = 0; i < count(widths); ++i) {
      if (widths.of[i] >= each) {
        EXPECT_LE(all.front().width, widths.of[i]);
      }
    }
  }
}

TEST(EvenTiles, TakeEveryTokenOnce) {
  expect_even<TileWidths{{72, 112, 128, 136, 144}}>();
  expect_even<TileWidths{{136, 176, 216, 256}}>();
  expect_even<TileWidths{{8, 16}}>();
  expect_even<TileWidths{{8, 24, 40, 56, 64, 72}}>();
  expect_even<TileWidths{{64}}>();
}

TEST(EvenTiles, AGroupALittleLongerThanTwoOf128) {
  constexpr TileWidths widths{{72, 112, 128, 136, 144}};
  int multiplied = 0;
  for (const Cut& c : cut<widths>(5, 264)) multiplied += c.width;
  EXPECT_EQ(multiplied, 136 + 128);  // only one width: 288
  EXPECT_EQ(cut<widths>(0, 256).back().width, 128);
  EXPECT_EQ(cut<widths>(0, 150).front().width, 112);  // not 144 and 6
  EXPECT_EQ(cut<widths>(0, 150).back().width, 72);
}

}  // namespace
}  // namespace warpwright::tile
